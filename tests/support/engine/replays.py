"""What the tests of replays share: nodes that count their calls, answers, and what is the same."""

import asyncio
from collections import Counter
from typing import Any

from msgspec import UNSET

from moot import NodeContext
from moot import node as node_function
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.run import Run
from moot.core.threads.decide import Control
from moot.core.workflows.node_types import Artifact, Completed
from moot.engine.host import Host
from moot.engine.replay.replay import replay_run
from tests.support.engine.hosts import TENANT, log, node, order, sound

CHAIR = Speaker("key_chair", admin=True)
calls: Counter[str] = Counter()


@node_function("acme.call")
async def call(ctx: NodeContext) -> Any:
    """Everything that a node may do to the world and to its run."""
    calls["call"] += 1
    bought = await ctx.effect("shop:order", _order)
    await ctx.log("info", "bought")
    await ctx.emit_chunk("a piece", True)
    await ctx.write("log", calls["call"])
    await ctx.set_variable("seen", calls["call"])
    kept = Artifact(artifact_type="note", data={"call": calls["call"]})
    return Completed(outputs=bought, artifacts=(kept,))


async def _order(key: str) -> dict[str, int]:
    calls["effect"] += 1
    return {"order": calls["effect"]}


@node_function("acme.flaky", retries=2)
async def flaky(ctx: NodeContext) -> dict[str, int]:
    calls["flaky"] += 1
    if ctx.attempt < 3:
        raise OSError("not yet")
    return {"attempt": ctx.attempt}


@node_function("acme.hang")
async def hang(ctx: NodeContext) -> None:
    calls["hang"] += 1
    await asyncio.Event().wait()


def quickly(name: str, type_id: str, **given: Any) -> dict[str, Any]:
    return node(name, type_id, settings={"retryDelayMs": 1}, **given)


def put(name: str, value: Any) -> dict[str, Any]:
    return node(f"set-{name}", "core.setVariable", config={"name": name, "value": value})


def council(name: str = "talk", *members: str) -> dict[str, Any]:
    roster = [{"agentId": each} for each in members or ("host:ada", "host:bo")]
    return node(name, "core.conversationGate", config={"prompt": "June?", "participants": roster})


async def answer(host: Host, run_id: str, key: str, value: Any, who: Speaker = CHAIR) -> None:
    given = GateAnswer(node_id=key, value=value, who=who, at=host.clock.millis())
    await host.handle(TENANT, run_id, given)


async def steer(host: Host, run_id: str, key: str, **content: Any) -> None:
    given = Control(node_id=key, content=content, who=CHAIR, at=host.clock.millis())
    await host.handle(TENANT, run_id, given)


def waits(run: Run) -> bool:
    return bool(run.interrupts)


async def same(host: Host, source: str, from_seq: int = 0) -> Run:
    """The replay, which in every way that can be seen is as its source."""
    then = (await host.view(TENANT, source)).run
    before = await log(host, source)
    called = dict(calls)
    now = await replay_run(host, TENANT, source, from_seq)
    assert now.status == then.status, await order(host, now.run_id)
    assert (now.variables, now.channels) == (then.variables, then.channels)
    assert (now.outputs, now.messages) == (then.outputs, then.messages)
    assert (now.principal, now.tenant) == (then.principal, then.tenant)
    assert await order(host, now.run_id) == await order(host, source)
    assert calls == called, "something was called again"
    assert await log(host, source) == before, "the source was touched"
    return now


async def from_everywhere(host: Host, source: str) -> None:
    """The same from each of its events, and every log is whole."""
    length = len(await log(host, source))
    for from_seq in range(length + 1):
        now = await same(host, source, from_seq)
        told = await log(host, now.run_id)
        for was, event in zip((await log(host, source))[1:from_seq], told[1:from_seq], strict=True):
            assert (was.type, was.node_id, was.hints) == (event.type, event.node_id, event.hints)
        for event in told[1:]:
            assert event.causation_id is not UNSET
            run_id, _, place = event.causation_id.rpartition(".")
            assert run_id == now.run_id and int(place) < event.sequence
    await sound(host)
