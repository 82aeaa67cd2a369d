"""Effects on the outside world (protocol 7.2): once, also when many ask and when hosts die."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun
from moot.core.ids import logical_invocation_id
from moot.core.state.status import Status
from moot.engine.instruments import FaultPoint
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    ended,
    log,
    node,
    order,
    registered,
    soon,
    sound,
)
from tests.support.engine.hosts import another as started
from tests.support.event_payloads import payload_json


class Shop:
    """The outside: counts its orders by their idempotency key."""

    def __init__(self) -> None:
        self.orders: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()

    async def order(self, key: str) -> dict[str, Any]:
        self.orders[key] += 1
        await self.gate.wait()
        return {"order": len(self.orders)}


def buyer(shop: Shop, times: int = 1, **given: Any) -> Any:
    @node_function("acme.buyer", **given)
    async def buy(ctx: NodeContext) -> Any:
        return [await ctx.effect("shop:order", shop.order) for _ in range(times)]

    return buy


BUY = chain(node("n", "acme.buyer", settings={"retryDelayMs": 1}))


async def test_an_effect_is_announced_before_and_recorded_after_it_is_made(place: Place) -> None:
    shop = Shop()
    shop.gate.clear()
    place.knows(buyer(shop))
    host = place.host()
    run_id = await begun(host, BUY)
    await soon(lambda: shop.orders)
    assert (await order(host, run_id))[-1] == "moot.effect.started n"
    shop.gate.set()
    await ended(host, run_id)
    assert (await order(host, run_id))[2:5] == [
        "moot.effect.started n", "moot.effect.finished n", "node.completed n"
    ]  # fmt: skip
    key = logical_invocation_id(TENANT, run_id, "n", 1, "shop:order")
    assert shop.orders == {key: 1}
    finished = payload_json((await log(host, run_id))[3])
    assert finished["invocationId"] == key and finished["result"] == {"order": 1}


async def test_two_intended_calls_are_two_effects(place: Place) -> None:
    shop = Shop()
    place.knows(buyer(shop, times=2))
    host = place.host()
    run = await ended(host, await begun(host, BUY))
    assert run.outputs == {"output": [{"order": 1}, {"order": 2}]}
    assert list(shop.orders.values()) == [1, 1]


async def test_a_retried_node_is_given_the_recorded_outcome(place: Place) -> None:
    shop = Shop()

    @node_function("acme.buyer", retries=1)
    async def buy(ctx: NodeContext) -> Any:
        found = await ctx.effect("shop:order", shop.order)
        if ctx.attempt == 1:
            raise RuntimeError("after the effect")
        return found

    place.knows(buy)
    host = place.host()
    run = await ended(host, await begun(host, BUY))
    assert run.outputs == {"order": 1} and shop.orders.total() == 1
    assert run.nodes["n"].attempt == 2


async def test_a_crash_after_the_outcome_was_recorded_makes_no_second_call(place: Place) -> None:
    shop, go = Shop(), asyncio.Event()

    @node_function("acme.buyer")
    async def buy(ctx: NodeContext) -> Any:
        found = await ctx.effect("shop:order", shop.order)
        await go.wait()
        return found

    place.knows(buy)
    host = place.host()
    run_id = await begun(host, BUY)
    await soon(lambda: shop.orders)
    async with asyncio.timeout(60):
        while (await order(host, run_id))[-1] != "moot.effect.finished n":
            await asyncio.sleep(0.005)
    await place.crash(host)
    go.set()
    again = place.host()
    await again.recover()
    run = await ended(again, run_id)
    assert run.outputs == {"order": 1} and shop.orders.total() == 1
    await sound(again)


async def test_a_crash_in_the_middle_of_a_call_makes_it_again_under_the_same_key(
    place: Place,
) -> None:
    shop = Shop()
    shop.gate.clear()
    place.knows(buyer(shop))
    host = place.host()
    run_id = await begun(host, BUY)
    await soon(lambda: shop.orders)
    await place.crash(host)
    shop.gate.set()
    again = place.host()
    await again.recover()
    run = await ended(again, run_id)
    assert run.status is Status.COMPLETED
    assert len(shop.orders) == 1, "the shop can tell that it is the same order"
    assert (await order(again, run_id)).count("moot.effect.started n") == shop.orders.total() == 2


async def test_a_call_that_must_not_be_made_twice_is_not_made_again_after_a_crash(
    place: Place,
) -> None:
    shop = Shop()
    shop.gate.clear()

    @node_function("acme.buyer")
    async def buy(ctx: NodeContext) -> Any:
        return await ctx.effect("shop:order", shop.order, idempotent=False)

    place.knows(buy)
    host = place.host()
    run_id = await begun(host, BUY)
    await soon(lambda: shop.orders)
    await place.crash(host)
    again = place.host()
    await again.recover()
    run = await ended(again, run_id)
    assert run.error is not None and run.error.code == "effect_outcome_unknown"
    assert shop.orders.total() == 1


async def test_many_runs_at_once_make_one_call_each(place: Place) -> None:
    shop = Shop()
    place.knows(buyer(shop))
    host = place.host()
    flow = await registered(host, BUY)
    runs = await asyncio.gather(*(started(host, flow) for _ in range(40)))
    for run_id in runs:
        await ended(host, run_id)
    assert len(shop.orders) == 40 and set(shop.orders.values()) == {1}


async def test_a_failed_effect_is_recorded_as_such(place: Place) -> None:
    @node_function("acme.buyer")
    async def buy(ctx: NodeContext) -> Any:
        async def closed(_: str) -> Any:
            raise RuntimeError("shop is closed")

        return await ctx.effect("shop:order", closed)

    place.knows(buy)
    host = place.host()
    run_id = await begun(host, BUY)
    run = await ended(host, run_id)
    assert run.error is not None and "shop is closed" in run.error.message
    finished = (await log(host, run_id))[3]
    assert finished.type == "moot.effect.finished"
    assert "shop is closed" in payload_json(finished)["error"]["message"]


async def test_after_a_cancel_no_effect_begins_that_is_not_announced(place: Place) -> None:
    """The run is over in memory, its end is on its way to disk: too late for a new effect."""
    shop, go = Shop(), asyncio.Event()

    @node_function("acme.buyer")
    async def buy(ctx: NodeContext) -> Any:
        while True:
            try:
                await go.wait()
                break
            except asyncio.CancelledError:
                continue
        return await ctx.effect("shop:order", shop.order)

    place.knows(buy)
    host = place.host()
    run_id = await begun(host, BUY)
    await soon(lambda: len(host.activities))
    await asyncio.sleep(0.01)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    go.set()
    await asyncio.sleep(0.05)
    assert not shop.orders
    await sound(host)


async def test_who_waits_for_anothers_call_makes_it_when_the_other_is_stopped(
    place: Place,
) -> None:
    """An attempt is given up slowly; the next one must not be given up with it."""
    calls: list[int] = []
    release = asyncio.Event()

    @node_function("acme.slow")
    async def slow(ctx: NodeContext) -> Any:
        async def call(_: str) -> int:
            calls.append(ctx.attempt)
            if ctx.attempt == 1:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await release.wait()  # tidying up takes its time
                    raise
            return ctx.attempt

        if ctx.attempt == 2:
            asyncio.get_running_loop().call_later(0.02, release.set)
        return await ctx.effect("slow", call)

    place.knows(slow)
    host = place.host()
    settings = {"timeoutMs": 60_000, "maxRetries": 1, "retryDelayMs": 0}
    run_id = await begun(host, chain(node("n", "acme.slow", settings=settings)))
    await soon(lambda: calls)
    place.clock.ahead_ms += 60_000
    host.timers.look()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error
    assert run.outputs == {"output": 2} and calls == [1, 2]


@pytest.mark.parametrize("nth", range(2, 6))
async def test_a_crash_at_any_commit_of_an_effect_loses_and_doubles_nothing(
    place: Place, nth: int
) -> None:
    """Before or after the start, the outcome and the end are on disk."""
    for point in FaultPoint:
        shop = Shop()
        place.knows(buyer(shop))
        host = place.host()
        count = 0

        def crash(host: Any = host) -> None:
            nonlocal count
            count += 1
            if count == nth:
                host.stopping = True
                raise Crash

        host.faults.plan(point, crash)
        run_id = await begun(host, BUY)
        await asyncio.sleep(0.05)
        await place.crash(host)
        again = place.host()
        await again.recover()
        run = await ended(again, run_id)
        assert run.status is Status.COMPLETED
        assert len(shop.orders) == 1
        recorded = (await order(again, run_id)).count("moot.effect.finished n")
        assert recorded == 1
        await sound(again)


class Crash(BaseException):
    """The process is gone."""
