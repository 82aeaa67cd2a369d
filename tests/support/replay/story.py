"""A host with a clock of its own to tell scenes with, and what their workflows are made of."""

import asyncio
from typing import Any

import msgspec

from moot import NodeContext
from moot import node as node_function
from moot.agents.invocation.context import (
    AgentContext,
    Assignment,
    InvocationResult,
    Invoke,
    no_agents,
)
from moot.conformance.nodes.registry import conformance_types
from moot.conformance.nodes.structured_output import MockPrograms
from moot.core.runs.answers import GateAnswer
from moot.core.runs.start import StartRun
from moot.core.speaker import Speaker
from moot.core.threads.decide import Control
from moot.core.workflows.flow import Flow
from moot.engine.host import Host
from moot.engine.nodes.registry import built_in_types
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.memory.store import MemoryStore

TENANT = "acme"
CHAIR = Speaker("key_story", admin=True)
ADA = Speaker("key_ada", ("user:ada",))
BOT = Speaker("key_bot", ("host:cfo",))


class StoryClock:
    """Starts on one day and takes a little at every look; ids are counted."""

    def __init__(self) -> None:
        self._micros = 1_794_000_000_000_000
        self._ids = 0

    def micros(self) -> int:
        self._micros += 137
        return self._micros

    def millis(self) -> int:
        return self.micros() // 1000

    def pass_time(self, ms: int) -> None:
        self._micros += ms * 1000

    def new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._ids:020d}"

    def new_secret(self, prefix: str) -> str:
        return f"{prefix}secret"


def node(name: str, type_id: str = "core.noop", **given: Any) -> dict[str, Any]:
    fields = {"config": {}, "inputs": {}, "position": {"x": 0, "y": 0}, "name": name}
    return {"id": name, "typeId": type_id, **fields, **given}


def edge(source: str, target: str, rule: str = "all_success", **given: Any) -> dict[str, Any]:
    ends = {"sourceNodeId": source, "targetNodeId": target, "triggerRule": rule}
    return {"id": f"{source}>{target}", **ends, **given}


def workflow(name: str, nodes: list[Any], edges: list[Any], **given: Any) -> dict[str, Any]:
    return {
        "id": name, "name": name, "version": "1.0", "nodes": nodes, "edges": edges,
        "triggers": [], "variables": [], "metadata": {}, "settings": {}, **given,
    }  # fmt: skip


def chain(name: str, *nodes: dict[str, Any], **given: Any) -> dict[str, Any]:
    edges = [edge(a["id"], b["id"]) for a, b in zip(nodes, nodes[1:], strict=False)]  # noqa: RUF007
    return workflow(name, list(nodes), edges, **given)


def write(name: str, channel: str, reducer: str, value: Any, **more: Any) -> dict[str, Any]:
    config = {"channelName": channel, "reducer": reducer, "value": value, **more}
    return node(name, "core.channelWrite", config=config)


def port(name: str) -> dict[str, Any]:
    return {"type": "variable", "variableName": name}


@node_function("acme.flaky")
async def flaky(ctx: NodeContext) -> dict[str, int]:
    if ctx.attempt < 2:
        raise RuntimeError("not yet")
    return {"attempt": ctx.attempt}


@node_function("acme.busy")
async def busy(ctx: NodeContext) -> dict[str, Any]:
    async def call(key: str) -> dict[str, int]:
        return {"paid": 42}

    await ctx.log("info", "about to pay", amount=42)
    found = await ctx.effect("bank:pay", call)
    await ctx.emit_chunk("pa", False)
    await ctx.emit_chunk("id", True, {"finishReason": "stop"})
    await ctx.set_variable("receipt", found)
    return {"done": True}


@node_function("acme.mind")
async def mind(ctx: NodeContext) -> dict[str, int]:
    seen = len(await ctx.memory.list())
    kept = await ctx.memory.put("kept", tags=["golden"], ttl=60)
    await ctx.memory.put("deleted", memory_id=f"{kept.id}-not")
    await ctx.memory.delete(f"{kept.id}-not")
    return {"seen": seen}


class Story:
    """One host with a clock of its own; a scene is told with it and its logs are kept."""

    def __init__(self) -> None:
        self.clock = StoryClock()
        self.store = MemoryStore()
        self.programs = MockPrograms()
        types = built_in_types(extra=conformance_types(self.programs))
        types.update({each.node_type.type_id: each.node_type for each in (flaky, busy, mind)})  # type: ignore[attr-defined]
        self.types = types
        #: whoever speaks for the members of a council
        self.speaks: Invoke = no_agents
        flows = WorkflowRegistry(self.store, types, self.clock)
        self.host = Host(self.store, flows, self.clock, speaks=self._speak)

    async def _speak(self, assignment: Assignment, desk: AgentContext) -> InvocationResult | None:
        return await self.speaks(assignment, desk)

    async def begin(self, *bodies: dict[str, Any], **given: Any) -> str:
        for body in bodies:
            await self.host.flows.register(TENANT, msgspec.json.encode(body))
        flow = await self.host.flows.newest(TENANT, bodies[-1]["id"])
        return await self.started(flow, **given)

    async def started(self, flow: Flow, **given: Any) -> str:
        command = StartRun(
            tenant=TENANT, principal="key_story", at=self.clock.millis(),
            limits=self.host.limits, **given,
        )  # fmt: skip
        return (await self.host.create(flow, command)).run_id

    async def wait(self, run_id: str, ms: int = 0) -> None:
        """Time passes until the run is over."""
        while not (await self.host.view(TENANT, run_id)).run.terminal:
            await asyncio.sleep(0.001)
            self.clock.pass_time(ms)
            self.host.timers._fire()

    def now(self) -> int:
        return self.clock.millis()

    async def answer(self, run_id: str, node_id: str, value: Any, who: Speaker = CHAIR) -> None:
        given = GateAnswer(node_id=node_id, value=value, who=who, at=self.now())
        await self.host.handle(TENANT, run_id, given)

    async def steer(self, run_id: str, content: dict[str, Any], who: Speaker = CHAIR) -> None:
        name = None if who.admin else who.names[0]
        given = Control(node_id="convo", content=content, who=who, at=self.now(), sender=name)
        await self.host.handle(TENANT, run_id, given)

    async def asked(self, run_id: str, kind: str) -> None:
        """Until a question of this kind is open."""
        while kind not in {
            each.kind for each in (await self.host.view(TENANT, run_id)).run.interrupts.values()
        }:
            await asyncio.sleep(0.001)

    async def until(self, run_id: str, status: str) -> str:
        """The run once it shows this status."""
        while (await self.host.view(TENANT, run_id)).run.status != status:
            await asyncio.sleep(0.001)
        return run_id
