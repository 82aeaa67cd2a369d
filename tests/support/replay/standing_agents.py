"""Scenes of standing agents: one that is asked for, one that a delivery has woken."""

import msgspec

from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry, DeploymentService
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.registry import ModelRegistry, ModelSettings
from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    MemberResolver,
    RosterService,
    new_member_guard,
)
from moot.conformance.nodes.registry import conformance_types
from moot.core.state.initiation import TriggerDelivery
from moot.engine.nodes.registry import built_in_types
from moot.engine.start import AgentPins, RunOrder
from moot.triggers.start_run import RunStarter
from moot.wire.roster import MemberAgentRef
from tests.support.agents.models import NoTools
from tests.support.replay.story import TENANT, Story, node

SALLY = "host:sally"


async def _hired(story: Story, *workflows: str) -> RunStarter:
    """Sally, an instance of the clerk, and the way in which her work begins."""
    agents, roster = (
        AgentRegistry(story.store, story.clock),
        RosterService(story.store, story.clock),
    )
    deployments = DeploymentService(story.store, story.clock, agents)
    instances = MemberResolver(roster, agents, deployments, story.clock)
    book = ModelRegistry({}, lambda name: None, story.clock, ModelSettings(demo_wps=0))
    invoke = Invoker(book, instances.resolve, NoTools())
    story.host.flows.types = built_in_types(invoke, conformance_types(story.programs, invoke))
    await agents.put(TENANT, Agent(name="clerk"), "story")
    entry = MemberEntry(
        roster_id=SALLY, persona="Sally", agent_ref=MemberAgentRef(agent_id="host:clerk"),
        owner=MemberOwner(tenant_id=TENANT), workflows=workflows,
    )  # fmt: skip
    hired = MemberRecord(entry=entry, did="hired", hired_at=story.now())
    await roster.put(TENANT, hired, "story", new_member_guard(TENANT, SALLY))
    return RunStarter(story.host, roster, AgentPins(instances, story.clock), story.clock, {"queue"})


def _body(name: str, *nodes: dict[str, object]) -> dict[str, object]:
    return {
        "id": name, "name": name, "version": "1.0", "nodes": list(nodes), "edges": [],
        "triggers": [], "variables": [], "metadata": {}, "settings": {},
    }  # fmt: skip


async def _told(story: Story, body: dict[str, object], order: RunOrder) -> None:
    firing = await _hired(story, str(body["id"]), "inner")
    inner = _body("inner", node("work", "moot.agent", config={"prompt": "Say it."}))
    for each in (inner, body):
        await story.host.flows.register(TENANT, msgspec.json.encode(each))
    await story.wait((await firing.start(order)).run_id)


async def standing(story: Story) -> None:
    """She does what nobody else is named for; what that begins is her work, too."""
    bare = node("work", "moot.agent", config={"prompt": "Say it."})
    sub = node("sub", "core.subWorkflow", config={"workflowId": "inner"})
    order = RunOrder(
        tenant=TENANT, workflow_id="weekly", source="run-api", principal="key_story",
        roster_id=SALLY,
    )  # fmt: skip
    await _told(story, _body("weekly", bare, sub), order)


async def woken(story: Story) -> None:
    """An item came in: the delivery is the cause, and its body is nobody's but the run's."""
    delivered = TriggerDelivery(delivery_id="wi_story", subscription="sub_leads", key="mail-1")
    order = RunOrder(
        tenant=TENANT, workflow_id="triage", source="queue", principal="key_story",
        roster_id=SALLY, delivered=delivered, trigger={"subject": "A quote"},
    )  # fmt: skip
    await _told(story, _body("triage", node("a", "core.noop")), order)
