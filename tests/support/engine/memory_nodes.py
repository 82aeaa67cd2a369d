"""What the tests of memory share: nodes that use it, and a look at what is kept."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.errors import BadRequest
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.node_types import NodeKind, NodeType
from moot.engine.host import Host
from moot.store.memory_entries import MemoryRow
from tests.support.engine.hosts import TENANT, begun, chain, definition, edge, ended, node

_answers: list[Any] = []


def said() -> list[Any]:
    """What the nodes were given, in order."""
    return _answers


def forget_answers() -> None:
    _answers.clear()


@node_function("acme.put")
async def put(ctx: NodeContext, content: str, **given: Any) -> dict[str, str]:
    entry = await ctx.memory.put(content, **given)
    _answers.append(entry)
    return {"id": entry.id}


@node_function("acme.list")
async def list_(ctx: NodeContext, **given: Any) -> list[str]:
    found = await ctx.memory.list(**given)
    _answers.append(found)
    return [entry.content for entry in found]


@node_function("acme.delete")
async def delete(ctx: NodeContext, memory_id: str, **given: Any) -> bool:
    return await ctx.memory.delete(memory_id, **given)


desk = (put, list_, delete)


def tells(what: str, name: str | None = None, **config: Any) -> dict[str, Any]:
    """A node that puts, lists or deletes."""
    return node(name or what, f"acme.{what}", config=config)


Story = Callable[[Any], Awaitable[Any]]


class Remembering:
    """A node type that plays whatever story a test tells it, on the memory of the node."""

    def __init__(self) -> None:
        self.node_type = NodeType(type_id="acme.story", kind=NodeKind.ACTIVITY, activity=self._play)
        self._stories: dict[str, Story] = {}
        self.begun = asyncio.Event()
        self.ends: list[str] = []

    def scene(self, story: Story, name: str = "story", **given: Any) -> dict[str, Any]:
        title = f"story {len(self._stories)}"
        self._stories[title] = story
        self.begun, self.ends = asyncio.Event(), []
        config = {"story": title, **given.pop("config", {})}
        return node(name, "acme.story", config=config, **given)

    async def plays(self, host: Host, story: Story, **given: Any) -> Run:
        """A run in which the story is played, to its end, and without a mistake."""
        tenant = given.get("tenant", TENANT)
        body = chain(self.scene(story), id="story")
        if tenant != TENANT:
            return await self._elsewhere(host, body, **given)
        run = await ended(host, await begun(host, body, **given))
        assert run.status is Status.COMPLETED, run.error
        return run

    async def _elsewhere(self, host: Host, body: dict[str, Any], tenant: str) -> Run:
        flow = await host.flows.register(tenant, msgspec.json.encode(body))
        flow = await host.flows.newest(tenant, flow.definition.id)
        start = StartRun(tenant=tenant, principal="p", at=host.clock.millis(), limits=host.limits)
        run = await host.create(flow, start)
        async with asyncio.timeout(60):
            while not (found := (await host.view(tenant, run.run_id)).run).terminal:
                await asyncio.sleep(0.002)
        assert found.status is Status.COMPLETED, found.error
        return found

    async def _play(self, ctx: Any) -> None:
        self.begun.set()
        try:
            await self._stories[ctx.config["story"]](ctx.memory)
        finally:
            self.ends.append(ctx.run_id)

    async def refuses(self, write: Awaitable[Any]) -> None:
        with pytest.raises(BadRequest) as refusal:
            await write
        assert refusal.value.code == "validation_error"


remembering = Remembering()


async def entries(host: Host, ref: str | None, tenant: str = TENANT) -> list[MemoryRow]:
    """What is remembered there; without a reference, in the one memory there is."""
    now = host.clock.millis()
    if ref is None:
        [(ref, _)] = await host.store.memory_refs(tenant, now, 9)
    return await host.store.notes(tenant, ref, None, now, None, 1000)


async def texts(memory: Any, **given: Any) -> list[str]:
    return sorted(entry.content for entry in await memory.list(**given))


def pause() -> tuple[asyncio.Event, asyncio.Event]:
    """Set by who waits, and by who lets him go on."""
    return asyncio.Event(), asyncio.Event()


async def others_say(host: Host, content: str, **given: Any) -> None:
    await remembering.plays(host, lambda memory: memory.put(content, ref="desk", **given))


DONE = {"kind": "terminate", "reason": "goal-reached"}


def hand(*workers: str) -> dict[str, Any]:
    return {"kind": "next-worker", "nextWorkerIds": list(workers)}


def led(
    plan: list[Any], first: list[Any], last: list[Any], between: Any = (), **config: Any
) -> dict[str, Any]:
    """first → boss → between → hands, round and round, and at the end last."""
    boss = node("boss", SUPERVISOR, config={"plan": plan})
    hands = node("hands", DISPATCH, config=config)
    line = [*first, boss, *between, hands, *last]
    edges = [edge(a["id"], b["id"]) for a, b in itertools.pairwise(line)]
    return definition(line, [*edges, edge("hands", "boss")])
