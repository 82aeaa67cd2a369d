"""Runs that start runs that start runs."""

import asyncio
from typing import Any

import pytest

from moot.core.commands import CancelRun
from moot.core.events import decode
from moot.core.runs.start import RunLimits
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from tests.engine.test_supervisors import DONE, hand, led, worker
from tests.support.engine.hosts import (
    TENANT,
    Place,
    Recording,
    begun,
    definition,
    delay,
    ended,
    soon,
    sound,
    sub,
    until,
)  # fmt: skip


async def test_a_tree_of_runs_is_bounded_in_breadth_too(memory: Place) -> None:
    host = memory.host(limits=RunLimits(tree=60))
    broad = definition(
        [sub("broad", f"s{n}", onChildFailure="absorb") for n in range(3)], id="broad"
    )
    run_id = await begun(host, broad)
    assert (await ended(host, run_id)).status is Status.COMPLETED
    assert len(await host.store.runs()) <= 60


def grove() -> list[dict[str, Any]]:
    """Two hundred runs: a supervisor, nine below it with twenty workers each, and ten workers."""
    slow = worker("slow", delay(600_000))
    inner = {**led(hand(*["slow"] * 20), DONE, fanOutPolicy="parallel"), "id": "inner"}
    top = led(hand(*["inner"] * 9, *["slow"] * 10), DONE, fanOutPolicy="parallel")
    return [slow, inner, top]


async def everyone(host: Host) -> list[Run]:
    return [(await host.view(*place)).run for place in await host.store.runs()]


async def test_two_hundred_runs_are_cancelled_at_their_root_in_one_transaction(
    place: Place,
) -> None:
    kept: list[Recording] = []
    host = place.host(lambda store: kept.append(Recording(store)) or kept[0])
    run_id = await begun(host, *grove())
    await until(host, run_id, lambda run: len(run.children) == 19)
    for child in (await host.view(TENANT, run_id)).run.children:
        if (await host.view(TENANT, child)).run.workflow_id == "inner":
            await until(host, child, lambda run: len(run.children) == 20)
    assert {run.status for run in await everyone(host)} == {Status.RUNNING}
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis(), "enough"))
    runs = await everyone(host)
    assert len(runs) == 200 and {run.status for run in runs} == {Status.CANCELLED}
    batch = kept[0].batch_with(run_id, "run.cancelled")
    assert len(batch.appends) == 200, "all in one commit"
    assert all(decode(each.events[-1]).type == "run.cancelled" for each in batch.appends)
    await quiet(host)
    later = await everyone(host)
    assert [run.next_sequence for run in later] == [run.next_sequence for run in runs]
    assert len(host.timers) == 0 and len(host.activities) == 0
    assert not await host.store.work(2**62, 1000), "nothing is owed to anybody"
    await sound(host)


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
async def test_a_tree_that_is_still_growing_is_cancelled_whole(place: Place, turns: int) -> None:
    host = place.host()
    run_id = await begun(host, *grove())
    for _ in range(turns):
        await asyncio.sleep(0)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis(), "enough"))
    await quiet(host)
    runs = await everyone(host)
    assert {run.status for run in runs} == {Status.CANCELLED}, "nobody was born into an ended tree"
    assert len(host.timers) == 0
    await sound(host)


async def quiet(host: Host) -> None:
    """Until nothing is under way that could still cause something."""
    await soon(lambda: not len(host.tasks))
