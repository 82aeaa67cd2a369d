"""Pause and resume (protocol 3.8) of runs that are really at work."""

import asyncio

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.errors import Conflict
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
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
    soon,
    sound,
    sub,
    until,
)  # fmt: skip

HOUR = 3_600_000


class Worker:
    """A node that works until it is let go, and remembers how often and how it ended."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.stopped: list[int] = []
        self.go = asyncio.Event()

        @node_function("acme.worker")
        async def work(ctx: NodeContext) -> int:
            self.attempts.append(ctx.attempt)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.stopped.append(ctx.attempt)
                raise
            return ctx.attempt

        self.node = work


async def pause(host: Host, run_id: str, policy: str = "drain-current-node") -> Run:
    return await host.handle(TENANT, run_id, PauseRun(host.clock.millis(), policy))  # type: ignore[arg-type]


async def resume(host: Host, run_id: str) -> Run:
    return await host.handle(TENANT, run_id, ResumeRun(host.clock.millis()))


async def test_a_draining_pause_lets_the_node_finish_first(place: Place) -> None:
    worker = Worker()
    place.knows(worker.node)
    host = place.host()
    run_id = await begun(host, chain(node("a", "acme.worker"), node("b")))
    await soon(lambda: worker.attempts)
    run = await pause(host, run_id)
    assert run.status is Status.RUNNING and run.pause is not None
    worker.go.set()
    await until(host, run_id, lambda run: run.status is Status.PAUSED)
    assert (await order(host, run_id))[-3:] == [
        "moot.pause.requested", "node.completed a", "run.paused"
    ]  # fmt: skip
    await resume(host, run_id)
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED
    lines = await order(host, run_id)
    assert lines[lines.index("run.paused") + 1] == "run.resumed"
    await sound(host)


async def test_an_immediate_pause_stops_the_node_and_resuming_begins_it_anew(
    place: Place,
) -> None:
    worker = Worker()
    place.knows(worker.node)
    host = place.host()
    run_id = await begun(host, chain(node("a", "acme.worker")))
    await soon(lambda: worker.attempts)
    run = await pause(host, run_id, "immediate")
    assert run.status is Status.PAUSED
    await soon(lambda: worker.stopped == [1])
    assert (await order(host, run_id))[-1] == "run.paused"
    worker.go.set()
    await resume(host, run_id)
    run = await ended(host, run_id)
    assert run.outputs == {"output": 2} and worker.attempts == [1, 2]
    events = await log(host, run_id)
    assert [e.type for e in events[3:5]] == ["run.resumed", "node.started"]
    await sound(host)


async def test_a_paused_run_stays_so_through_a_restart_and_goes_on_after(place: Place) -> None:
    worker = Worker()
    place.knows(worker.node)
    host = place.host()
    run_id = await begun(host, chain(node("a", "acme.worker"), delay(1)))
    await soon(lambda: worker.attempts)
    await pause(host, run_id, "immediate")
    again = await place.restart(host)
    await asyncio.sleep(0.02)
    assert (await again.view(TENANT, run_id)).run.status is Status.PAUSED
    assert worker.attempts == [1], "nothing of a paused run is taken up"
    worker.go.set()
    await resume(again, run_id)
    assert (await ended(again, run_id)).status is Status.COMPLETED


async def test_a_pause_that_drains_is_not_forgotten_in_a_crash(place: Place) -> None:
    worker = Worker()
    place.knows(worker.node)
    host = place.host()
    run_id = await begun(host, chain(node("a", "acme.worker"), node("b")))
    await soon(lambda: worker.attempts)
    await pause(host, run_id)
    await place.crash(host)
    worker.go.set()
    again = place.host()
    await again.recover()
    await until(again, run_id, lambda run: run.status is Status.PAUSED)
    assert "node.started b" not in await order(again, run_id)
    await resume(again, run_id)
    assert (await ended(again, run_id)).status is Status.COMPLETED


async def test_a_child_that_ended_during_the_pause_is_heard_of_after_it(place: Place) -> None:
    worker = Worker()
    place.knows(worker.node)
    host = place.host()
    kid = chain(node("a", "acme.worker"), id="kid")
    run_id = await begun(host, kid, chain(sub("kid"), node("after")))
    await soon(lambda: worker.attempts)
    run = await pause(host, run_id)
    assert run.status is Status.PAUSED, "waiting for a child is no work to drain"
    child_run = next(iter(run.children))
    worker.go.set()
    await ended(host, child_run)
    await asyncio.sleep(0.02)
    assert (await order(host, run_id))[-1] == "run.paused"
    await resume(host, run_id)
    assert (await ended(host, run_id)).status is Status.COMPLETED
    await sound(host)


async def test_a_delay_begins_again_after_an_immediate_pause(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(HOUR)))
    await pause(host, run_id, "immediate")
    assert len(host.timers) == 0
    place.clock.ahead_ms += 2 * HOUR
    await resume(host, run_id)
    assert (await host.view(TENANT, run_id)).run.status is Status.RUNNING
    place.clock.ahead_ms += HOUR
    host.timers.look()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.nodes["wait"].attempt == 2


async def test_a_paused_run_can_be_cancelled(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)))
    await pause(host, run_id, "immediate")
    run = await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    assert run.status is Status.CANCELLED
    assert (await order(host, run_id))[-3:] == [
        "run.paused", "node.cancelled wait", "run.cancelled"
    ]  # fmt: skip


async def test_a_second_pause_is_refused_and_changes_nothing(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)))
    await pause(host, run_id, "immediate")
    before = await order(host, run_id)
    with pytest.raises(Conflict):
        await pause(host, run_id)
    assert await order(host, run_id) == before
    assert not (await host.view(TENANT, run_id)).broken
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))


async def test_a_retry_that_waits_does_not_hide_the_timer_that_drains(memory: Place) -> None:
    host = memory.host()
    again = {"maxRetries": 1, "retryDelayMs": HOUR // 2}
    fails = node("fails", "core.fail", config={"retryable": True}, settings=again)
    run_id = await begun(host, definition([delay(HOUR), fails]))
    run = await pause(host, run_id)
    assert run.status is not Status.PAUSED
    assert host.timers.next == run.nodes["wait"].due, "the retry is due before, and not now"
    memory.clock.ahead_ms += HOUR
    host.timers.look()
    await until(host, run_id, lambda run: run.status is Status.PAUSED)
