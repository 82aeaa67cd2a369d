"""Records the golden logs of a version, once: ``python tests/replay/record.py 0.1.0``.

What is there already is never written again: a released log stays readable for ever.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from golden import LOGS, beside, folded, pretty, read_log, shown

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.starting import StartRun
from moot.engine.flows import Flows
from moot.engine.host import Host
from moot.engine.nodes.registry import built_in
from moot.store.memory import MemoryStore

TENANT = "acme"


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


class Story:
    """One host with a clock of its own; a scene is told with it and its logs are kept."""

    def __init__(self) -> None:
        self.clock = StoryClock()
        self.store = MemoryStore()
        types = built_in(conformance=True)
        types.update({each.node_type.type_id: each.node_type for each in (flaky, busy)})  # type: ignore[attr-defined]
        self.host = Host(self.store, Flows(self.store, types, self.clock), self.clock)

    async def begin(self, *bodies: dict[str, Any], **given: Any) -> str:
        for body in bodies:
            await self.host.flows.register(TENANT, msgspec.json.encode(body))
        flow = await self.host.flows.newest(TENANT, bodies[-1]["id"])
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


async def branches(story: Story) -> None:
    """A retry, an error branch, a skip, a disabled node, a join."""
    nodes = [
        node("start", "core.start"),
        node("flaky", "acme.flaky", settings={"maxRetries": 2, "retryDelayMs": 100}),
        node("boom", "core.fail", config={"code": "boom"}),
        node("never"),
        node("rescue", "core.identity", inputs={"who": port("who")}),
        node("off", disabled=True),
        node("join", "core.merge"),
    ]
    edges = [
        edge("start", "flaky"), edge("start", "boom"), edge("boom", "never"),
        edge("boom", "rescue", "any_failed"), edge("start", "off"), edge("flaky", "join"),
        edge("rescue", "join"), edge("off", "join"),
    ]  # fmt: skip
    run_id = await story.begin(
        workflow("branches", nodes, edges), inputs={"who": "Ada"}, tags=["golden"],
        metadata={"why": "replay"}, configurable={"recursionLimit": 50}, scope_id="scope-1",
    )  # fmt: skip
    await story.wait(run_id, 60)


async def channels(story: Story) -> None:
    """Every reducer, with time to live, bounds and a declared default."""
    vote = {"userId": "ada", "action": "yes", "timestamp": "t"}
    message = {"messageId": "m1", "role": "user", "content": "hello"}
    declared = {
        "tally": {"reducer": "counter", "default": 10},
        "minutes": {"reducer": "append", "maxSize": 2},
        "talk": {"reducer": "message"},
        "hush": {"reducer": "append", "sensitive": True},
    }
    nodes = [
        write("c1", "tally", "counter", 5), write("c2", "tally", "counter", -2.5),
        write("a1", "minutes", "append", "one"), write("a2", "minutes", "append", ["two"]),
        write("a3", "minutes", "append", None), write("r1", "topic", "replace", ["seed"]),
        write("r2", "topic", "append", "more"), write("m1", "facts", "merge", {"a": 1, "b": 1}),
        write("m2", "facts", "merge", {"b": {"c": 2}}), write("v1", "poll", "votes", vote),
        write("v2", "poll", "votes", {**vote, "action": "no"}),
        write("f1", "words", "feedback", {"feedback": "good", "iteration": 1}),
        write("t1", "talk", "message", message), write("t2", "talk", "message", message),
        write("h1", "hush", "append", "a secret nobody reads"),
        write("x1", "fresh", "append", "old", ttlMs=200),
        node("wait", "core.delay", config={"ms": 300}),
        write("x2", "fresh", "append", "new", ttlMs=200),
    ]  # fmt: skip
    await story.wait(await story.begin(chain("channels", *nodes, channels=declared)), 150)


async def families(story: Story) -> None:
    """A child that completes, one that fails and is absorbed, one for each of two items."""
    kid = chain(
        "kid", node("set", "core.setVariable", config={"name": "answer", "value": 42}),
        variables=[{"name": "answer", "type": "number"},
                   {"name": "given", "type": "object", "defaultValue": "default"}],
    )  # fmt: skip
    broken = chain("broken", node("boom", "core.fail"))
    mapping = {"inputMapping": {"given": "mine"}, "outputMapping": {"got": "answer"}}
    nodes = [
        node("sub", "core.subWorkflow", config={"workflowId": "kid", **mapping}),
        node("soft", "core.subWorkflow", config={
            "workflowId": "broken", "onChildFailure": "absorb"}),
        node("each", "moot.forEach", config={"workflowId": "kid", "items": ["a", "b"]}),
    ]  # fmt: skip
    await story.wait(await story.begin(kid, broken, chain("parent", *nodes)))


async def pauses(story: Story) -> None:
    """An immediate pause, a resume, a draining pause, a resume, a cancel."""
    nodes = [
        node("nap", "core.delay", config={"ms": 1000}),
        node("long", "core.delay", config={"ms": 90_000}),
    ]
    run_id = await story.begin(chain("pauses", *nodes))
    handle, now = story.host.handle, story.now
    await handle(TENANT, run_id, PauseRun(now(), "immediate", "lunch", "key_story"))
    story.clock.pass_time(60_000)
    await handle(TENANT, run_id, ResumeRun(now(), "back", "key_story"))
    await handle(TENANT, run_id, PauseRun(now(), "drain-current-node"))
    story.clock.pass_time(1_000)
    story.host.timers._fire()
    await asyncio.sleep(0.01)
    await handle(TENANT, run_id, ResumeRun(now()))
    await handle(TENANT, run_id, CancelRun(now(), "enough", "key_story"))


async def effects(story: Story) -> None:
    """An effect, log lines, streamed output, an artifact, a sensitive variable."""
    nodes = [
        node("pay", "acme.busy", inputs={"key": port("secret")}),
        node("art", "conformance.artifact.emit", config={"artifactType": "note", "data": {"n": 1}}),
        node("copy", "core.identity", inputs={"copied": port("secret")}),
    ]
    secret = [{"name": "secret", "type": "string", "sensitive": True}]
    run_id = await story.begin(
        chain("effects", *nodes, variables=secret), inputs={"secret": "correct horse battery"}
    )
    await story.wait(run_id)


async def caps(story: Story) -> None:
    """More nodes than the run may start."""
    body = chain("caps", *(node(f"n{n}") for n in range(6)))
    await story.wait(await story.begin(body, configurable={"recursionLimit": 3}))


async def late(story: Story) -> None:
    """A run that is out of time while it waits, and stopped in the middle."""
    body = chain("late", node("nap", "core.delay", config={"ms": 60_000}))
    await story.wait(await story.begin(body, configurable={"runTimeoutMs": 2000}), 500)


SCENES: tuple[Callable[[Story], Awaitable[None]], ...] = (
    branches, channels, families, pauses, effects, caps, late
)  # fmt: skip


async def record(version: str) -> list[str]:
    """The names of the logs that were written."""
    written = []
    LOGS.mkdir(exist_ok=True)
    for scene in SCENES:
        story = Story()
        await scene(story)
        for number, (tenant, run_id) in enumerate(await story.store.runs()):
            name = f"{version}-{scene.__name__}" + (f"-child{number}" if number else "")
            path = LOGS / f"{name}.jsonl"
            if path.exists():
                continue
            rows = await story.store.read(tenant, run_id, -1, 100_000)
            path.write_bytes(b"\n".join(rows) + b"\n")
            beside(path).write_bytes(pretty(shown(folded(read_log(path)))))
            written.append(name)
        await story.host.aclose()
    return written


if __name__ == "__main__":
    for each in asyncio.run(record(sys.argv[1])):
        print(each)
