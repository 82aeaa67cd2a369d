"""Replays of sources that do not say everything, and of code that has changed since."""

from typing import Any

import pytest

from moot import node as node_function
from moot.core.commands import CancelRun
from moot.core.errors import Conflict
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.verify.walk import verify
from moot.engine.host import Host
from moot.engine.replay.replay import replay_run
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    delay,
    ended,
    log,
    node,
    order,
    sound,
    sub,
)
from tests.support.engine.replays import answer, call, calls, flaky, hang, put, quickly, same
from tests.support.event_payloads import payload_json


@pytest.fixture(autouse=True)
def _nobody_called() -> None:
    calls.clear()


# -- what the record does not say --------------------------------------------------------------


async def test_a_cancelled_source_has_no_outcome_to_serve(place: Place) -> None:
    place.knows(hang, call)
    host = place.host()
    source = await begun(host, chain(delay(60_000), quickly("effect", "acme.call")))
    await host.handle(TENANT, source, CancelRun(host.clock.millis()))
    now = await replay_run(host, TENANT, source, 0)
    assert now.status is Status.FAILED
    failed = [payload_json(e) for e in await log(host, now.run_id) if e.type == "node.failed"]
    assert [(f["nodeId"], f["error"]["code"]) for f in failed] == [
        ("effect", "replay_source_missing")
    ]
    assert "replay.diverged" not in await order(host, now.run_id)
    assert "run.cancelled" not in await order(host, now.run_id)
    assert not calls
    await sound(host)


async def test_the_replay_of_a_waiting_source_waits_and_takes_no_answer(place: Place) -> None:
    place.knows(call)
    host = place.host()
    source = await begun(host, chain(node("ok", "core.approvalGate"), quickly("c", "acme.call")))
    now = await same(host, source)
    assert now.status is Status.WAITING_APPROVAL and list(now.interrupts) == ["ok"]
    with pytest.raises(Conflict):
        await answer(host, now.run_id, "ok", {"action": "accept"})
    assert (await host.view(TENANT, source)).run.status is Status.WAITING_APPROVAL
    assert not calls


async def test_a_child_of_the_source_does_not_end_with_the_replay(place: Place) -> None:
    host = place.host()
    top = definition([sub("leaf"), node("ok", "core.approvalGate")], id="top")
    source = await begun(host, chain(delay(60_000), id="leaf"), top)
    [kid] = (await host.view(TENANT, source)).run.children
    now = await replay_run(host, TENANT, source, 0)
    assert not now.terminal
    await host.handle(TENANT, now.run_id, CancelRun(host.clock.millis()))
    assert (await ended(host, now.run_id)).status is Status.CANCELLED
    assert (await host.view(TENANT, kid)).run.status is Status.RUNNING
    assert (await host.view(TENANT, source)).run.status is Status.RUNNING


async def test_a_cancelled_source_is_replayed_from_everywhere(place: Place) -> None:
    place.knows(hang, call, flaky)
    host = place.host()
    nodes = [node("h", "acme.hang"), node("ok", "core.approvalGate"), delay(60_000), put("x", 1)]
    nodes.append(
        node(
            "f",
            "core.fail",
            config={"retryable": True},
            settings={"maxRetries": 3, "retryDelayMs": 60_000},
        )
    )
    source = await begun(host, definition(nodes))
    await host.handle(TENANT, source, CancelRun(host.clock.millis()))
    whole = await order(host, source)
    for from_seq in range(len(whole) + 1):
        now = await replay_run(host, TENANT, source, from_seq)
        told = await order(host, now.run_id)
        assert told[:from_seq] == whole[:from_seq]
        assert "replay.diverged" not in told
    assert calls["hang"] <= 1
    await sound(host)


# -- another way -------------------------------------------------------------------------------


async def said_otherwise(
    place: Place, before: Any, after: Any, from_seq: int
) -> tuple[Host, Run, Host, Run]:
    """A run with one node of a type, and its replay with another: each with its host."""
    place.knows(before, call)
    host = place.host()
    flow = chain(node("sum", "acme.sum"), quickly("call", "acme.call"), node("sum2", "acme.sum"))
    source = await ended(host, await begun(host, flow))
    place.knows(after)
    other = place.host()
    return host, source, other, await replay_run(other, TENANT, source.run_id, from_seq)


@pytest.mark.parametrize("from_seq", [0, 1, 2, 3])
async def test_a_changed_node_type_is_told_exactly_once(place: Place, from_seq: int) -> None:
    @node_function("acme.sum", pure=True)
    def before() -> dict[str, int]:
        return {"sum": 3}

    @node_function("acme.sum", pure=True)
    def after() -> dict[str, int]:
        raise ValueError("another time")

    _, source, other, now = await said_otherwise(place, before, after, from_seq)
    told = await log(other, now.run_id)
    [diverged] = [event for event in told if event.type == "replay.diverged"]
    at = payload_json(diverged)["atSequence"]
    assert payload_json(diverged) == {
        "sourceRunId": source.run_id,
        "atSequence": at,
        "originalEventId": f"{source.run_id}.{at}",
        "divergenceKind": "type-mismatch",
        "divergencePoint": told[diverged.sequence + 1].type,
    }
    assert at >= max(2, from_seq)
    assert now.status is Status.FAILED and calls["call"] == 1


@pytest.mark.parametrize("from_seq", [0, 1, 2])
async def test_another_output_in_the_same_order_is_told_exactly_once(
    place: Place, from_seq: int
) -> None:
    """What the node gave stands before what came of it; the order of the record goes on."""

    @node_function("acme.sum", pure=True)
    def before() -> dict[str, int]:
        return {"sum": 3}

    @node_function("acme.sum", pure=True)
    def after() -> dict[str, int]:
        return {"sum": 4}

    host, source, other, now = await said_otherwise(place, before, after, from_seq)
    told = await log(other, now.run_id)
    [diverged] = [event for event in told if event.type == "replay.diverged"]
    assert payload_json(diverged) == {
        "sourceRunId": source.run_id,
        "atSequence": 2,
        "originalEventId": f"{source.run_id}.2",
        "divergenceKind": "output",
        "divergencePoint": "node.completed",
    }
    rest = [each for each in await order(other, now.run_id) if each != "replay.diverged"]
    assert rest == await order(host, source.run_id)
    assert now.status is Status.COMPLETED and calls["call"] == 1
    head = await other.view(TENANT, now.run_id)
    assert verify(head.flow, TENANT, now.run_id, told) is None


async def test_what_lies_in_the_history_of_a_replay_is_not_compared(place: Place) -> None:
    @node_function("acme.sum", pure=True)
    def before() -> dict[str, int]:
        return {"sum": 3}

    @node_function("acme.sum", pure=True)
    def after() -> dict[str, int]:
        return {"sum": 4}

    place.knows(before)
    host = place.host()
    source = await ended(host, await begun(host, chain(node("sum", "acme.sum"), put("x", 1))))
    place.knows(after)
    other = place.host()
    now = await replay_run(other, TENANT, source.run_id, 3)
    assert await order(other, now.run_id) == await order(host, source.run_id)
