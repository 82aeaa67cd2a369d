"""Many runs, few heads: memory is bounded, and every run has one head at a time."""

import asyncio
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun, SetVariables
from moot.core.errors import RunNotFound
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.head import Head, HeadCache
from moot.engine.tasks import MOST_STALE_ENTRIES, Timers
from tests.support.engine.hosts import (
    TENANT,
    Gated,
    Place,
    another,
    begun,
    chain,
    definition,
    delay,
    ended,
    log,
    node,
    order,
    registered,
    sound,
    sub,
    until,
)  # fmt: skip
from tests.support.event_payloads import payload_json


@node_function("acme.step")
async def step(ctx: NodeContext) -> int:
    await ctx.write("c", ctx.node_id, "append")
    await asyncio.sleep(0.001)
    await ctx.set_variable(ctx.node_id, 1)
    return len(ctx.read("c"))


async def test_two_heads_are_enough_for_many_runs_at_once(place: Place) -> None:
    place.knows(step)
    host = place.host(heads=2)
    body = chain(node("a", "acme.step"), delay(1), node("b", "acme.step"), node("c"))
    flow = await registered(host, body)
    runs = await asyncio.gather(*(another(host, flow) for _ in range(25)))
    for run_id in runs:
        run = await ended(host, run_id)
        assert run.status is Status.COMPLETED
        assert run.channels == {"c": ["a", "b"]} and run.nodes["b"].outputs == {"output": 2}
    await sound(host)


async def test_two_heads_are_enough_for_families(place: Place) -> None:
    host = place.host(heads=2)
    leaf = chain(delay(2), id="leaf")
    middle = definition([sub("leaf", "x"), sub("leaf", "y")], id="middle")
    top = definition([sub("middle", "a"), sub("middle", "b"), delay(5)], id="top")
    flow = await registered(host, leaf, middle, top)
    runs = await asyncio.gather(*(another(host, flow) for _ in range(5)))
    for run_id in runs:
        run = await ended(host, run_id)
        assert run.status is Status.COMPLETED, run.error
    assert len(await host.store.runs()) == 5 * 7
    await sound(host)


async def test_a_cancel_reaches_a_family_larger_than_the_memory(place: Place) -> None:
    host = place.host(heads=2)
    leaf = chain(delay(60_000), id="leaf")
    run_id = await begun(host, leaf, definition([sub("leaf", f"s{n}") for n in range(8)]))
    await until(host, run_id, lambda run: len(run.children) == 8)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    for _, name in await host.store.runs():
        assert (await host.view(TENANT, name)).run.status is Status.CANCELLED
    await sound(host)


async def test_memory_holds_no_more_heads_than_its_limit_once_all_is_quiet(place: Place) -> None:
    host = place.host(heads=3)
    flow = await registered(host, chain(node("n")))
    for _ in range(20):
        await ended(host, await another(host, flow))
    assert len(host.runs) <= 3


async def test_two_hundred_commands_on_one_run_are_decided_in_order(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)))
    await asyncio.gather(
        *(
            host.handle(TENANT, run_id, SetVariables({"n": n}, host.clock.millis()))
            for n in range(200)
        )
    )
    changed = [
        payload_json(event) for event in await log(host, run_id) if event.type == "variable.changed"
    ]
    assert [said["next"] for said in changed] == list(range(200))
    assert [said.get("previous") for said in changed] == [None, *range(199)]
    await sound(host)


async def test_commands_on_a_run_that_must_be_read_first_are_all_decided(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)))
    again = await place.restart(host)
    await asyncio.gather(
        *(
            again.handle(TENANT, run_id, SetVariables({f"n{n}": n}, again.clock.millis()))
            for n in range(50)
        )
    )
    assert len((await again.view(TENANT, run_id)).run.variables) == 50
    await sound(again)


async def test_commands_come_to_disk_while_others_are_on_their_way(memory: Place) -> None:
    """Nobody waits for the disk before the next one is decided."""
    host = memory.host(Gated)
    store: Any = host.store
    run_id = await begun(host, chain(delay(60_000)))
    store.gate.clear()
    writing = [
        asyncio.ensure_future(
            host.handle(TENANT, run_id, SetVariables({"n": n}, host.clock.millis()))
        )
        for n in range(20)
    ]
    async with asyncio.timeout(60):
        while store.waiting < 20:
            await asyncio.sleep(0)
    assert not any(task.done() for task in writing), "none is answered before its sync"
    store.gate.set()
    await asyncio.gather(*writing)
    assert (await order(host, run_id)).count("variable.changed") == 20


async def test_an_unknown_run_and_a_foreign_one_look_the_same(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, chain(delay(60_000)))
    for tenant, name in (("other", run_id), (TENANT, "run_nobody")):
        with pytest.raises(RunNotFound):
            await host.view(tenant, name)
        with pytest.raises(RunNotFound):
            await host.handle(tenant, name, CancelRun(0))


async def test_a_long_run_is_opened_from_its_last_cached_state(place: Place) -> None:
    host = place.host()
    flow = await registered(host, chain(*(node(f"n{n}") for n in range(900)), delay(60_000)))
    run_id = await another(host, flow)
    await until(host, run_id, lambda run: "wait" in run.nodes)
    from moot.core.state.run import FOLD_VERSION

    cached = await host.store.snapshot(TENANT, run_id, FOLD_VERSION)
    assert cached is not None and cached.next_sequence > 1000
    before = (await host.view(TENANT, run_id)).run
    again = await place.restart(host)
    assert (await again.view(TENANT, run_id)).run == before
    await again.handle(TENANT, run_id, CancelRun(again.clock.millis()))
    await sound(again)


# -- the parts -----------------------------------------------------------------------------------


def head(name: str) -> Head:
    return Head(Run(name, tenant=TENANT), None)  # type: ignore[arg-type]


def test_the_least_recently_used_goes_first_and_what_is_busy_stays() -> None:
    heads = HeadCache(3)
    a, b, c, d = (head(name) for name in "abcd")
    for each in (a, b, c):
        heads.put(each)
    heads.get(TENANT, "a")
    b.inflight = 1
    heads.put(d)
    assert heads.get(TENANT, "b") is b and heads.get(TENANT, "a") is a
    assert heads.get(TENANT, "c") is None
    a.pins = d.pins = 1
    heads.put(c)
    assert len(heads) == 4, "all others are busy: it stays until one of them is not"
    assert heads.get(TENANT, "c") is c


def test_only_the_very_head_is_dropped() -> None:
    heads = HeadCache(3)
    old, new = head("a"), head("a")
    heads.put(new)
    heads.drop(old)
    assert heads.get(TENANT, "a") is new
    heads.drop(new)
    assert heads.get(TENANT, "a") is None


async def test_runs_that_end_early_leave_nothing_in_the_alarm_clock() -> None:
    class Clock:
        def millis(self) -> int:
            return 0

    timers = Timers(Clock(), lambda tenant, run: None)  # type: ignore[arg-type]
    for number in range(20 * MOST_STALE_ENTRIES):
        timers.set(TENANT, f"r{number}", 86_400_000 + number)
        timers.set(TENANT, f"r{number}", None)
    timers.set(TENANT, "living", 5)
    assert len(timers) == 1
    assert len(timers._heap) <= 2 * MOST_STALE_ENTRIES
    timers.close()


async def test_alarms_ring_in_order_and_only_the_last_one_set() -> None:
    moment, rung = [0], []

    class Clock:
        def millis(self) -> int:
            return moment[0]

    timers = Timers(Clock(), lambda tenant, run: rung.append(run))  # type: ignore[arg-type]
    for name, due in (("a", 30), ("b", 10), ("c", 20), ("a", 5), ("b", 40), ("c", 20)):
        timers.set(TENANT, name, due)
    for moment[0] in (4, 5, 10, 25, 30, 39, 40, 100):
        timers._fire()
    assert rung == ["a", "c", "b"]
    assert len(timers) == 0
    timers.close()
