"""A host that dies at any commit: the next one finishes what it began, once."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from moot import node as node_function
from moot.core.catalogue import TERMINAL_TYPES
from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.core.state.status import TERMINAL, Status
from moot.engine.host import Host
from moot.engine.instruments import FaultPoint
from moot.engine.streams.hub import Published
from moot.store.protocol import Receipt
from tests.support.engine.hosts import (
    PATIENCE,
    TENANT,
    Place,
    all_over,
    begun,
    chain,
    definition,
    delay,
    edge,
    ended,
    log,
    node,
    order,
    sound,
    sub,
    variable,
)  # fmt: skip

POINTS = list(FaultPoint)


class Crash(BaseException):
    """The process is gone."""


def dies(host: Host, point: FaultPoint, nth: int) -> Counter[str]:
    """The host will be gone at this point of its nth commit; nothing gets past it after."""
    seen: Counter[str] = Counter()

    def act() -> None:
        seen["commits"] += 1
        if seen["commits"] >= nth:
            seen["died"] += 1
            raise Crash

    host.faults.plan(point, act)
    return seen


KID = chain(
    delay(1), node("set", "core.setVariable", config={"name": "answer", "value": 42}),
    id="kid", variables=[{"name": "answer", "type": "number"}],
)  # fmt: skip


def story() -> dict[str, Any]:
    """A bit of everything: an activity, a timer, a child, a retry, a join."""
    nodes = [
        node("first", "acme.count"),
        delay(2, "wait"),
        sub("kid", outputMapping={"got": "answer"}),
        node("flaky", "acme.flaky", settings={"maxRetries": 1, "retryDelayMs": 1}),
        node("join", "core.merge"),
        node("last", "core.identity", inputs={"got": variable("got")}),
    ]
    edges = [
        edge("first", "wait"), edge("first", "sub"), edge("first", "flaky"), edge("wait", "join"),
        edge("sub", "join"), edge("flaky", "join"), edge("join", "last"),
    ]  # fmt: skip
    return definition(nodes, edges)


class Counted:
    """Nodes that count how often they were carried out."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        calls = self.calls

        @node_function("acme.count")
        async def count() -> int:
            calls["count"] += 1
            return 1

        @node_function("acme.flaky")
        async def flaky(ctx: Any) -> int:
            calls["flaky"] += 1
            if ctx.attempt == 1:
                raise RuntimeError("the first time")
            return 2

        self.nodes = (count, flaky)


async def dead_or_done(host: Host, seen: Counter[str]) -> None:
    """Until it is gone, or has nothing left to do."""
    async with asyncio.timeout(PATIENCE):
        while not seen["died"]:
            rows = [await host.store.find_run(*name) for name in await host.store.runs()]
            if rows and all(row.status in TERMINAL for row in rows):
                return
            await asyncio.sleep(0.002)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("nth", range(1, 11))
async def test_a_crash_at_any_commit_is_finished_by_the_next_host(
    place: Place, point: FaultPoint, nth: int
) -> None:
    place.knows(*Counted().nodes)
    host = place.host()
    seen = dies(host, point, nth)
    run_id: str | None = None
    try:
        run_id = await begun(host, KID, story())
    except Crash:
        assert nth == 1
    await dead_or_done(host, seen)
    died = seen["died"]
    await place.crash(host)

    again = place.host()
    await again.recover()
    runs = [name for _, name in await again.store.runs()]
    if run_id is None and point is FaultPoint.BEFORE_APPEND:
        assert runs == [], "what was never written is not there"
        return
    assert run_id in (None, runs[0])
    assert died or nth > 5, "the story has at least so many commits"
    run = await ended(again, runs[0])
    assert run.status is Status.COMPLETED, run.error
    assert run.outputs == {"got": 42}
    assert len(run.children) == 1 and len(await again.store.runs()) == 2
    _whole([event.type for event in await log(again, runs[0])])
    await all_over(again)
    await sound(again)


def _whole(types: list[str]) -> None:
    counts = Counter(types)
    assert counts["run.started"] == 1
    assert sum(counts[type_] for type_ in TERMINAL_TYPES) == 1
    assert counts["node.completed"] == 6 and counts["node.retried"] == 1
    assert counts["node.dispatched"] == 1


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ["cancel", "pause", "resume"])
async def test_a_command_is_there_after_a_crash_if_and_only_if_it_was_written(
    place: Place, point: FaultPoint, kind: str
) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)))
    if kind == "resume":
        await host.handle(TENANT, run_id, PauseRun(host.clock.millis(), "immediate"))
    before = await order(host, run_id)
    at = host.clock.millis()
    command = {
        "cancel": CancelRun(at), "pause": PauseRun(at, "immediate"), "resume": ResumeRun(at)
    }[kind]  # fmt: skip
    dies(host, point, 1)
    with pytest.raises(Crash):
        await host.handle(TENANT, run_id, command)
    await place.crash(host)
    again = place.host()
    await again.recover()
    after = await order(again, run_id)
    if point is FaultPoint.BEFORE_APPEND:
        assert after == before
    else:
        expected = {"cancel": "run.cancelled", "pause": "run.paused", "resume": "node.started wait"}
        assert after[-1] == expected[kind]
    await sound(again)


@pytest.mark.parametrize("point", POINTS)
async def test_an_answer_is_remembered_if_and_only_if_its_run_is_there(
    place: Place, point: FaultPoint
) -> None:
    """A crash cannot separate the receipt of a request from what it reports."""
    host = place.host()
    flow = await host.flows.register(TENANT, _bytes(chain(delay(60_000))))

    def receipt(run: Run, events: list[Published]) -> Receipt:
        return Receipt(
            tenant=TENANT, operation="create", key="k", digest="d", status=201, headers={},
            body=run.run_id.encode(), created_at=host.clock.millis(),
        )  # fmt: skip

    dies(host, point, 1)
    command = StartRun(tenant=TENANT, principal="p", at=0, limits=host.limits)
    with pytest.raises(Crash):
        await host.create(flow, command, receipt)
    await place.crash(host)
    again = place.host()
    kept = await again.store.receipt(TENANT, "create", "k")
    runs = [name for _, name in await again.store.runs()]
    if point is FaultPoint.BEFORE_APPEND:
        assert kept is None and runs == []
    else:
        assert kept is not None and [kept.body.decode()] == runs


def _bytes(body: dict[str, Any]) -> bytes:
    import msgspec

    return msgspec.json.encode(body)


async def test_a_host_that_dies_again_and_again_still_gets_there(place: Place) -> None:
    counted = Counted()
    place.knows(*counted.nodes)
    host = place.host()
    run_id = await begun(host, KID, story())
    for nth in range(25):
        await asyncio.sleep(0.002 * (nth % 4))
        await place.crash(host)
        host = place.host()
        seen = dies(host, POINTS[nth % 2], 1 + nth // 2)
        await host.recover()
    await dead_or_done(host, seen)
    await place.crash(host)
    last = place.host()
    await last.recover()
    run = await ended(last, run_id)
    assert run.status is Status.COMPLETED
    _whole([event.type for event in await log(last, run_id)])
    await all_over(last)
    await sound(last)


async def test_a_step_that_was_cut_in_two_is_finished_after_a_crash_in_between(
    place: Place,
) -> None:
    """More than one batch is needed, and the host dies after the first."""
    host = place.host()
    seen = dies(host, FaultPoint.BEFORE_APPEND, 2)
    run_id = await begun(host, chain(*(node(f"n{n}") for n in range(800))))
    await dead_or_done(host, seen)
    assert (await host.store.find_run(TENANT, run_id)).status != "completed"  # type: ignore[union-attr]
    await place.crash(host)
    again = place.host()
    await again.recover()
    run = await ended(again, run_id)
    assert run.status is Status.COMPLETED and run.executions == 800
    await sound(again)


async def test_a_command_that_comes_between_two_cuts_does_not_hide_the_rest(place: Place) -> None:
    from moot.core.commands import SetVariables

    host = place.host()

    async def never(*_: Any) -> None:
        return

    host._advance = never  # type: ignore[method-assign]
    run_id = await begun(host, chain(*(node(f"n{n}") for n in range(2000))))
    await host.handle(TENANT, run_id, SetVariables({"v": 1}, host.clock.millis()))
    await place.crash(host)
    again = place.host()
    assert [row.run_id for row in await again.store.work(0, 10)] == [run_id]
    await again.recover()
    assert (await ended(again, run_id)).status is Status.COMPLETED
