"""A standing agent that is changed while its run begins: the run is of who it is, or is not."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry, DeploymentService
from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    MemberResolver,
    PausePeriod,
    RosterService,
    new_member_guard,
)
from moot.clock import SystemClock
from moot.core.errors import NotProvided
from moot.core.errors.triggers import MemberOffDuty, Overtaken
from moot.engine.host import Host
from moot.engine.nodes.registry import built_in_types
from moot.engine.start import AgentPins, PinnedAgents, RunOrder
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.memory.store import MemoryStore
from moot.store.protocol import RunFilter
from moot.triggers.start_run import RunStarter
from moot.wire.roster import MemberAgentRef

TENANT, SALLY, FLOW = "acme", "host:sally", "noop"
ORDER = RunOrder(
    tenant=TENANT, workflow_id=FLOW, source="queue", principal="key_test", roster_id=SALLY
)


class Interrupted(AgentPins):
    """Somebody comes between the look at a member and the commit that relies on it."""

    between = None

    async def drawn(self, *given: object, **more: object) -> PinnedAgents:
        found = await super().drawn(*given, **more)  # type: ignore[arg-type]
        if self.between is not None:
            await self.between()
        return found


class Office:
    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), SystemClock()
        flows = WorkflowRegistry(self.store, built_in_types(), self.clock)
        self.host = Host(self.store, flows, self.clock)
        self.agents = AgentRegistry(self.store, self.clock)
        self.roster = RosterService(self.store, self.clock)
        deployments = DeploymentService(self.store, self.clock, self.agents)
        instances = MemberResolver(self.roster, self.agents, deployments, self.clock)
        self.pins = Interrupted(instances, self.clock)
        self.run_starter = RunStarter(self.host, self.roster, self.pins, self.clock, {"queue"})

    async def open(self) -> None:
        node = {
            "id": "a", "typeId": "core.noop", "name": "a", "position": {"x": 0, "y": 0},
            "config": {}, "inputs": {},
        }  # fmt: skip
        body = {
            "id": FLOW, "name": FLOW, "version": "1", "nodes": [node], "edges": [],
            "triggers": [], "variables": [], "metadata": {}, "settings": {},
        }  # fmt: skip
        await self.host.flows.register(TENANT, msgspec.json.encode(body))
        await self.agents.put(TENANT, Agent(name="clerk"), "test")
        entry = MemberEntry(
            roster_id=SALLY, persona="Sally", agent_ref=MemberAgentRef(agent_id="host:clerk"),
            owner=MemberOwner(tenant_id=TENANT), workflows=(FLOW,),
        )  # fmt: skip
        hired = MemberRecord(entry=entry, did="hired", hired_at=1)
        await self.roster.put(TENANT, hired, "test", new_member_guard(TENANT, SALLY))

    async def pause(self) -> None:
        seat = await self.roster.must_find(TENANT, SALLY)
        paused = msgspec.structs.replace(
            seat.hired, pause=PausePeriod(since=1, by="test"), did="paused"
        )  # fmt: skip
        await self.roster.put(TENANT, paused, "test", seat.guard)


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    found = Office()
    await found.open()
    yield found
    await found.host.aclose()


async def test_a_member_paused_in_between_starts_nothing(office: Office) -> None:
    office.pins.between = office.pause
    with pytest.raises(Overtaken):
        await office.run_starter.start(ORDER)
    office.pins.between = None
    with pytest.raises(MemberOffDuty):
        await office.run_starter.start(ORDER)
    assert await office.store.runs() == []


async def test_a_member_dismissed_in_between_starts_nothing(office: Office) -> None:
    async def dismiss() -> None:
        seat = await office.roster.must_find(TENANT, SALLY)
        gone = msgspec.structs.replace(seat.hired, did="dismissed")
        await office.roster.put(TENANT, gone, "test", seat.guard, gone=True)

    office.pins.between = dismiss
    with pytest.raises(Overtaken):
        await office.run_starter.start(ORDER)
    assert await office.store.runs() == []


async def test_two_who_change_a_member_at_once_are_told(office: Office) -> None:
    seat = await office.roster.must_find(TENANT, SALLY)
    await office.pause()
    with pytest.raises(Overtaken):
        await office.roster.put(TENANT, seat.hired, "test", seat.guard)


async def test_what_its_runs_use_up_is_told_by_days(office: Office) -> None:
    run = await office.run_starter.start(ORDER)
    row = await office.store.find_run(TENANT, run.run_id)
    assert row is not None and row.member == SALLY
    assert await office.store.member_spending(TENANT, SALLY, 1, 99_999) == (0, 0)


async def test_a_source_that_is_not_offered_fires_no_portfolio(office: Office) -> None:
    with pytest.raises(NotProvided):
        await office.run_starter.start(msgspec.structs.replace(ORDER, source="email"))
    assert (await office.store.list_runs(TENANT, RunFilter(), None, 10))[0] == []
    await office.run_starter.start(msgspec.structs.replace(ORDER, source="run-api"))
