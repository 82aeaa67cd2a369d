"""Time across restarts: what fell due while the host was down, and what has yet to."""

import asyncio

from moot import node as node_function
from moot.core.events import millis
from moot.core.state.status import Status
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    delay,
    ended,
    log,
    node,
    order,
    sound,
)

HOUR = 3_600_000


async def test_a_delay_that_fell_due_while_the_host_was_down_is_over_at_once(
    place: Place,
) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(HOUR)))
    await host.aclose()
    place.clock.ahead_ms += 2 * HOUR
    await place.open()
    again = place.host()
    assert await again.recover() == 1
    run = await ended(again, run_id)
    assert run.status is Status.COMPLETED
    await sound(again)


async def test_a_delay_that_has_yet_to_fall_due_is_waited_for(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(HOUR)))
    due = (await host.view(TENANT, run_id)).run.nodes["wait"].due
    assert due is not None
    await host.aclose()
    place.clock.ahead_ms += due - place.clock.millis() - HOUR // 2
    await place.open()
    again = place.host()
    await again.recover()
    assert (await again.view(TENANT, run_id)).run.status is Status.RUNNING
    place.clock.ahead_ms += due - place.clock.millis() - 100
    again.timers.look()
    run = await ended(again, run_id)
    completed = next(e for e in await log(again, run_id) if e.type == "node.completed")
    assert millis(completed.timestamp) >= due
    assert run.nodes["wait"].attempt == 1, "the same attempt goes on"


async def test_a_retry_that_fell_due_while_the_host_was_down_is_made_at_once(
    place: Place,
) -> None:
    @node_function("acme.second")
    async def second(ctx: object) -> int:
        attempt: int = ctx.attempt  # type: ignore[attr-defined]
        if attempt == 1:
            raise RuntimeError("the first time")
        return attempt

    place.knows(second)
    host = place.host()
    settings = {"maxRetries": 1, "retryDelayMs": 30_000}
    run_id = await begun(host, chain(node("n", "acme.second", settings=settings)))
    async with asyncio.timeout(60):
        while (await order(host, run_id))[-1] != "node.retried n":
            await asyncio.sleep(0.005)
    place.clock.ahead_ms += 60_000
    again = await place.restart(host)
    assert (await ended(again, run_id)).outputs == {"output": 2}


async def test_a_run_that_ran_out_of_time_while_the_host_was_down_has_ended(
    place: Place,
) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(HOUR)), configurable={"runTimeoutMs": 1000})
    place.clock.ahead_ms += HOUR
    again = await place.restart(host)
    run = await ended(again, run_id)
    assert run.error is not None and run.error.code == "run_timeout"


async def test_nothing_is_owed_to_runs_that_have_ended(place: Place) -> None:
    host = place.host()
    for _ in range(5):
        await ended(host, await begun(host, chain(node("n"), delay(1))))
    assert await host.store.work(2**62, 10) == []
    assert await host.store.next_work() is None
    again = await place.restart(host)
    assert await again.recover() == 0
    assert len(again.timers) == 0


async def test_many_delays_fall_due_each_in_its_time(place: Place) -> None:
    host = place.host()
    runs = {ms: await begun(host, chain(delay(ms), id=f"d{ms}")) for ms in (60, 20, 40, 1, 0, 30)}
    for ms, run_id in runs.items():
        run = await ended(host, run_id)
        assert run.ended_at - run.started_at >= ms
    assert len(host.timers) == 0


async def test_a_host_with_nothing_to_do_sleeps(place: Place) -> None:
    host = place.host()
    await begun(host, chain(delay(HOUR)))
    handle = host.timers._handle
    assert handle is not None
    assert handle.when() - asyncio.get_running_loop().time() > 3000
