"""Runs of every kind of node, from their first event to their last."""

import asyncio
import threading
from typing import Any

import pytest

from moot import Completed, NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.events import millis
from moot.core.runs.start import RunLimits
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.node_types import NodeKind, NodeType
from tests.support.engine.hosts import (
    TENANT,
    Place,
    another,
    begun,
    chain,
    definition,
    delay,
    edge,
    ended,
    log,
    node,
    order,
    registered,
    soon,
    sound,
    sub,
    until,
    variable,
)  # fmt: skip
from tests.support.event_payloads import payload_json


@node_function("acme.later")
async def later(value: Any = None) -> Any:
    await asyncio.sleep(0)
    return {"got": value}


@node_function("acme.thread")
def in_thread(value: Any = None) -> Any:
    return {"got": value, "thread": threading.current_thread().name}


@node_function("acme.pure", pure=True)
def pure(value: Any = None) -> Any:
    return {"got": value}


KID = chain(
    node("set", "core.setVariable", config={"name": "answer", "value": 42}),
    id="kid", variables=[{"name": "answer", "type": "number"}],
)  # fmt: skip

PORT = {"value": variable("v")}
V = [{"name": "v", "type": "object", "defaultValue": [1, {"a": None}]}]
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "noop": (node("n"), {}),
    "start": (node("n", "core.start"), {}),
    "end": (node("n", "core.end", inputs=PORT), {"value": V[0]["defaultValue"]}),
    "identity": (node("n", "core.identity", inputs=PORT), {"value": V[0]["defaultValue"]}),
    "delay": (delay(1, "n"), {}),
    "conditional": (
        node("n", "core.conditional", config={"expression": "size(variables.v) == 2"}),
        {"result": True, "branch": "true", "true": {}},
    ),
    "merge": (node("n", "core.merge"), {"results": {}, "merged": {}}),
    "parallel": (node("n", "core.parallel", inputs=PORT), {"value": V[0]["defaultValue"]}),
    "loop": (
        node("n", "core.loop", config={"items": [1, 2], "collect": "item * 2"}),
        {"iterations": 2, "results": [2, 4]},
    ),
    "set": (node("n", "core.setVariable", config={"name": "w", "value": 1}), {"value": 1}),
    "get": (node("n", "core.getVariable", config={"name": "v"}), {"value": V[0]["defaultValue"]}),
    "channel": (
        node("n", "core.channelWrite", config={
            "channelName": "c", "reducer": "append", "value": 1}),
        {"channel": "c"},
    ),
    "async": (node("n", "acme.later", inputs=PORT), {"got": V[0]["defaultValue"]}),
    "thread": (
        node("n", "acme.thread", inputs=PORT),
        {"got": V[0]["defaultValue"], "thread": "moot-blocking"},
    ),
    "pure": (node("n", "acme.pure", inputs=PORT), {"got": V[0]["defaultValue"]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_of_one_node_comes_to_its_end(place: Place, kind: str) -> None:
    place.knows(later, in_thread, pure)
    body, outputs = KINDS[kind]
    host = place.host()
    run_id = await begun(host, definition([body], variables=V))
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error
    assert run.outputs == outputs
    types = [event.type for event in await log(host, run_id)]
    assert types[:2] == ["run.started", "node.started"]
    assert types[-2:] == ["node.completed", "run.completed"]
    await sound(host)


async def test_a_sub_workflow_is_waited_for_and_its_variables_flow_back(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, KID, chain(sub("kid", outputMapping={"mine": "answer"})))
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.variables["mine"] == 42
    child = (await host.view(TENANT, next(iter(run.children)))).run
    assert (child.parent_run, child.parent_node) == (run_id, "sub")
    await sound(host)


async def test_one_child_after_another_for_each_item(place: Place) -> None:
    host = place.host()
    each = node("each", "moot.forEach", config={"workflowId": "kid", "items": [7, 8, 9]})
    run = await ended(host, await begun(host, KID, chain(each)))
    assert run.status is Status.COMPLETED and len(run.children) == 3
    for number, child_run in enumerate(run.children):
        child = (await host.view(TENANT, child_run)).run
        assert child.variables["item"] == 7 + number
    await sound(host)


async def test_a_streamed_answer_is_one_event_for_each_piece(place: Place) -> None:
    host = place.host()
    mock = {"mockProvider": {"id": "stream-text", "config": {"tokens": ["a", "b", "c"]}}}
    prompt = node("ask", "core.ai.callPrompt", config={"promptId": "p"})
    run_id = await begun(host, chain(prompt), configurable=mock)
    run = await ended(host, run_id)
    assert (run.outputs or {})["text"] == "abc"
    chunks = [event for event in await log(host, run_id) if event.type == "output.chunk"]
    assert [payload_json(event)["chunk"] for event in chunks] == ["a", "b", "c"]
    assert [payload_json(event)["isLast"] for event in chunks] == [False, False, True]
    assert payload_json(chunks[-1])["meta"]["usage"] == {"promptTokens": 1, "completionTokens": 3}


async def test_an_artifact_can_be_read_when_its_event_says_so(place: Place) -> None:
    host = place.host()
    leaves = node("n", "conformance.artifact.emit", config={"artifactType": "note", "data": [1]})
    run_id = await begun(host, chain(leaves))
    await ended(host, run_id)
    created = next(e for e in await log(host, run_id) if e.type == "artifact.created")
    body = await host.store.artifact(TENANT, run_id, payload_json(created)["artifactId"])
    assert body is not None and b'"data":[1]' in body


async def test_a_failing_node_fails_the_run_with_its_error(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(node("f", "core.fail", config={"code": "mine"}), node("g")))
    run = await ended(host, run_id)
    assert run.status is Status.FAILED and run.error is not None and run.error.code == "mine"
    assert (await order(host, run_id))[-3:] == ["node.failed f", "node.skipped g", "run.failed"]


# -- side by side --------------------------------------------------------------------------------


async def test_branches_are_at_work_at_the_same_time(place: Place) -> None:
    met = asyncio.Barrier(3)

    @node_function("acme.meet")
    async def meet() -> None:
        await met.wait()

    place.knows(meet)
    host = place.host()
    run = await ended(host, await begun(host, definition([node(n, "acme.meet") for n in "abc"])))
    assert run.status is Status.COMPLETED


class Crowd:
    """A node in which many meet, and who counts them."""

    def __init__(self) -> None:
        self.inside, self.most = 0, 0
        self.gate = asyncio.Event()

        @node_function("acme.crowd")
        async def crowd() -> None:
            self.inside += 1
            self.most = max(self.most, self.inside)
            await self.gate.wait()
            await asyncio.sleep(0)
            self.inside -= 1

        self.node = crowd


async def test_no_more_of_a_run_is_at_work_than_its_limit(place: Place) -> None:
    crowd = Crowd()
    place.knows(crowd.node)
    host = place.host(limits=RunLimits(parallel=2))
    run_id = await begun(host, definition([node(f"n{n}", "acme.crowd") for n in range(7)]))
    await soon(lambda: crowd.inside == 2)
    crowd.gate.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and len(run.nodes) == 7
    assert crowd.most == 2


async def test_no_more_of_the_host_is_at_work_than_its_limit(place: Place) -> None:
    crowd = Crowd()
    place.knows(crowd.node)
    host = place.host(activities=3)
    flow = await registered(host, chain(node("n", "acme.crowd")))
    runs = [await another(host, flow) for _ in range(10)]
    await soon(lambda: crowd.inside == 3)
    crowd.gate.set()
    for run_id in runs:
        assert (await ended(host, run_id)).status is Status.COMPLETED
    assert crowd.most == 3


async def test_a_graph_of_many_nodes_is_cut_into_batches_and_comes_to_its_end(
    place: Place,
) -> None:
    host = place.host()
    run_id = await begun(host, chain(*(node(f"n{n}") for n in range(1200))))
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.executions == 1200
    done = [line for line in await order(host, run_id) if line.startswith("node.completed")]
    assert done == [f"node.completed n{n}" for n in range(1200)]
    await sound(host)


# -- retries, time limits ------------------------------------------------------------------------


async def test_a_failed_attempt_is_tried_again_after_its_delay(place: Place) -> None:
    seen: list[int] = []

    @node_function("acme.third")
    async def third(ctx: NodeContext) -> int:
        seen.append(ctx.attempt)
        if ctx.attempt < 3:
            raise RuntimeError("not yet")
        return ctx.attempt

    place.knows(third)
    host = place.host()
    settings = {"maxRetries": 5, "retryDelayMs": 20}
    run_id = await begun(host, chain(node("n", "acme.third", settings=settings)))
    run = await ended(host, run_id)
    assert run.outputs == {"output": 3} and seen == [1, 2, 3]
    events = await log(host, run_id)
    retried = [event for event in events if event.type == "node.retried"]
    assert [payload_json(event)["delayMs"] for event in retried] == [20, 40]
    assert "not yet" in payload_json(retried[0])["lastError"]["message"]
    started = [event for event in events if event.type == "node.started"]
    for before, after, wait in zip(retried, started[1:], [20, 40], strict=True):
        assert millis(after.timestamp) - millis(before.timestamp) >= wait


async def test_a_nodes_own_retries_hold_unless_the_workflow_says_otherwise(place: Place) -> None:
    @node_function("acme.never", retries=2)
    async def never() -> None:
        raise RuntimeError("never")

    place.knows(never)
    host = place.host()
    for settings, attempts in (({"retryDelayMs": 1}, 3), ({"maxRetries": 0}, 1)):
        run_id = await begun(host, chain(node("n", "acme.never", settings=settings)))
        run = await ended(host, run_id)
        assert run.status is Status.FAILED and run.nodes["n"].attempt == attempts


async def test_a_node_that_never_returns_is_given_up_after_its_time(place: Place) -> None:
    at_work, left = asyncio.Event(), asyncio.Event()

    @node_function("acme.forever", timeout=60)
    async def forever() -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    place.knows(forever)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.forever")))
    await soon(at_work.is_set)
    place.clock.ahead_ms += 60_000
    host.timers.look()
    run = await ended(host, run_id)
    assert run.error is not None and run.error.code == "node_timeout"
    await soon(left.is_set)
    await soon(lambda: len(host.activities) == 0)


async def test_a_thread_that_never_returns_is_given_up_and_blocks_nobody(place: Place) -> None:
    release = threading.Event()

    @node_function("acme.stuck", timeout=0.05)
    def stuck() -> None:
        release.wait(30)

    place.knows(stuck, in_thread)
    host = place.host(activities=1)
    try:
        run = await ended(host, await begun(host, chain(node("n", "acme.stuck"))))
        assert run.error is not None and run.error.code == "node_timeout"
        other = await ended(host, await begun(host, chain(node("n", "acme.thread"))))
        assert other.status is Status.COMPLETED
    finally:
        release.set()


async def test_a_run_that_is_out_of_time_is_stopped(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)), configurable={"runTimeoutMs": 40})
    run = await ended(host, run_id)
    assert run.error is not None and run.error.code == "run_timeout"
    assert (await order(host, run_id))[-3:] == [
        "cap.breached", "node.cancelled wait", "run.failed"
    ]  # fmt: skip
    assert len(host.timers) == 0


async def test_a_pause_does_not_count_towards_the_runs_time(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)), configurable={"runTimeoutMs": 50_000})
    await host.handle(TENANT, run_id, PauseRun(host.clock.millis(), "immediate"))
    place.clock.ahead_ms += 100_000
    await host.handle(TENANT, run_id, ResumeRun(host.clock.millis()))
    await asyncio.sleep(0.02)
    run = (await host.view(TENANT, run_id)).run
    assert run.status is Status.RUNNING and run.nodes["wait"].attempt == 2
    place.clock.ahead_ms += 50_000
    host.timers.look()  # the loop's own alarm would notice within the hour
    run = await ended(host, run_id)
    assert run.error is not None and run.error.code == "run_timeout"


async def test_an_error_branch_is_taken_after_a_time_limit(place: Place) -> None:
    @node_function("acme.forever", timeout=0.02)
    async def forever() -> None:
        await asyncio.Event().wait()

    place.knows(forever)
    host = place.host()
    nodes = [node("n", "acme.forever"), node("rescue")]
    run_id = await begun(host, definition(nodes, [edge("n", "rescue", "any_failed")]))
    assert (await ended(host, run_id)).status is Status.COMPLETED


async def test_a_cancel_stops_what_is_at_work(place: Place) -> None:
    at_work, stopped = asyncio.Event(), asyncio.Event()

    @node_function("acme.forever")
    async def forever() -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    place.knows(forever)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.forever")))
    await soon(at_work.is_set)
    run = await host.handle(TENANT, run_id, CancelRun(host.clock.millis(), "enough", "me"))
    assert run.status is Status.CANCELLED
    await soon(stopped.is_set)
    assert (await order(host, run_id))[-2:] == ["node.cancelled n", "run.cancelled"]
    await sound(host)


async def test_a_raw_node_type_may_answer_with_anything(place: Place) -> None:
    async def plain(ctx: NodeContext) -> Any:
        return [1, 2]

    place.knows(NodeType(type_id="acme.raw", kind=NodeKind.ACTIVITY, activity=plain))
    host = place.host()
    run = await ended(host, await begun(host, chain(node("n", "acme.raw"))))
    assert run.outputs == {"output": [1, 2]}


async def test_a_port_without_a_value_fails_the_node_for_good(place: Place) -> None:
    place.knows(later)
    host = place.host()
    port = {"value": {"type": "connection", "nodeId": "first", "outputKey": "nothing"}}
    body = chain(node("first"), node("n", "acme.later", inputs=port, settings={"maxRetries": 5}))
    run = await ended(host, await begun(host, body))
    assert run.error is not None and run.error.code == "input_unresolved"
    assert run.nodes["n"].attempt == 1


async def test_a_node_that_reports_sees_its_facts_before_its_end(place: Place) -> None:
    @node_function("acme.reporter")
    async def reporter(ctx: NodeContext) -> Completed:
        await ctx.log("info", "hello", n=1)
        await ctx.set_variable("v", 2)
        await ctx.write("c", 3, "append")
        await ctx.emit_chunk("four", True)
        return Completed({"five": 5}, {"w": 6})

    place.knows(reporter)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.reporter")))
    run = await ended(host, run_id)
    assert (await order(host, run_id))[2:] == [
        "log.appended n", "variable.changed n", "channel.written n", "output.chunk n",
        "variable.changed n", "node.completed n", "run.completed",
    ]  # fmt: skip
    assert run.variables == {"v": 2, "w": 6} and run.channels == {"c": [3]}
    causes = {event.causation_id for event in (await log(host, run_id))[2:6]}
    assert causes == {f"{run_id}.1"}, "a report is caused by the attempt that makes it"


async def test_runs_wait_for_each_other_only_where_they_must(place: Place) -> None:
    gate = asyncio.Event()

    @node_function("acme.gate")
    async def wait() -> None:
        await gate.wait()

    place.knows(wait)
    host = place.host()
    held = await begun(host, chain(node("n", "acme.gate"), id="held"))
    quick = await begun(host, chain(node("n"), id="quick"))
    assert (await ended(host, quick)).status is Status.COMPLETED
    run = (await host.view(TENANT, held)).run
    assert run.nodes["n"].status is NodeStatus.RUNNING
    gate.set()
    await ended(host, held)
    await until(host, held, lambda run: run.status is Status.COMPLETED)
