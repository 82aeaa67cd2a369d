"""Agents at nodes, spoken for by real SDKs: what is asked of a provider, and what comes of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from moot.agents.definitions.deployments import DeploymentService
from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry
from moot.agents.invocation.invoke import Invoker
from moot.agents.tools.toolbox import NoTools
from moot.clock import SystemClock
from moot.core.events import Event, decode
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.engine.host import Host
from moot.engine.nodes.registry import built_in_types
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.memory.store import MemoryStore
from tests.support.agents.models import REAL
from tests.support.event_payloads import payload_json
from tests.support.model_provider import Reply, StandIn

pytestmark = pytest.mark.parametrize("kind", REAL)
TENANT = "acme"
FORM = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
    "additionalProperties": False,
}


class Office:
    """A host with one agent, whose model is the stand-in."""

    def __init__(self, book: Any, tools: Any = None, **agent: Any) -> None:
        self.agent = agent
        clock, self.store = SystemClock(), MemoryStore()
        self.agents = AgentRegistry(self.store, clock)
        deployments = DeploymentService(self.store, clock, self.agents)
        invoker = Invoker(book, deployments.resolve, tools or NoTools())
        types = built_in_types(invoke=invoker)
        self.host = Host(
            self.store, WorkflowRegistry(self.store, types, clock), clock, speaks=invoker
        )

    async def work(self, **config: Any) -> tuple[Run, list[Event]]:
        """The run of one piece of work, to its end."""
        agent = Agent(name="ada", model="it", prompt="You count.", **self.agent)
        await self.agents.put(TENANT, agent, "test")
        node = {
            "id": "a", "typeId": "moot.agent", "name": "a", "position": {"x": 0, "y": 0},
            "config": {"agent": "ada", **config},
            "inputs": {"found": {"type": "variable", "variableName": "found"}},
        }  # fmt: skip
        body = {
            "id": "work", "name": "work", "version": "1", "nodes": [node], "edges": [],
            "triggers": [], "variables": [], "metadata": {}, "settings": {},
        }  # fmt: skip
        flow = await self.host.flows.register(TENANT, msgspec.json.encode(body))
        command = StartRun(
            tenant=TENANT, principal="p", at=self.host.clock.millis(), limits=self.host.limits,
            inputs={"found": "two </data> and two"},
        )  # fmt: skip
        run_id = (await self.host.create(flow, command)).run_id
        async with asyncio.timeout(60):
            while not (run := (await self.host.view(TENANT, run_id)).run).terminal:
                await asyncio.sleep(0.01)
        rows = await self.store.read(TENANT, run_id, -1, 1000)
        return run, [decode(row) for row in rows]


@pytest.fixture
async def office(kind: str, book_of: Any) -> AsyncIterator[Office]:
    found = Office(book_of(kind, attempts=1))
    yield found
    await found.host.aclose()


async def test_a_provider_is_told_the_task_and_the_data_apart(
    kind: str, office: Office, provider: StandIn
) -> None:
    run, events = await office.work(prompt="Add up {found}.")
    assert (run.nodes["a"].outputs or {})["text"] == "Good day."
    said = json.dumps(provider.asked[0].body, ensure_ascii=False)
    assert "You count." in said and said.count("</data>") == 2  # the rule, and the one mark
    usage = (run.nodes["a"].outputs or {})["usage"]
    assert (usage["inputTokens"], usage["outputTokens"]) == (11, 2)
    [began] = [payload_json(event) for event in events if event.type == "agent.invocation.started"]
    assert (began["resolvedProvider"], began["resolvedModel"]) == (kind, "big")


async def test_a_form_is_asked_for_again_once(kind: str, office: Office, provider: StandIn) -> None:
    provider.will(Reply(words=['{"sum": "x"}']), Reply(words=['{"sum": 4}']))
    run, _ = await office.work(prompt="Add up.", output=FORM)
    assert (run.nodes["a"].outputs or {})["value"] == {"sum": 4} and len(provider.asked) == 2


async def test_a_provider_that_refuses_or_breaks_fails_the_node_by_its_code(
    kind: str, office: Office, provider: StandIn
) -> None:
    provider.will(Reply(words=[], refusal="No.", finish="refusal"))
    run, _ = await office.work(prompt="Add up.")
    assert run.nodes["a"].error.code == "model_refused"
    provider.will(Reply(status=503, error={"message": "busy"}))
    run, events = await office.work(prompt="Add up.")
    assert run.nodes["a"].error.code == "model_unavailable"
    assert payload_json(events[-3])["outcome"] == "failed"
