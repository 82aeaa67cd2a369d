"""Derived rows are only derived: thrown away and made anew, they are the same."""

import asyncio
from typing import Any

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun, PauseRun
from moot.core.ids import logical_invocation_id
from moot.core.search.query import parse_query
from moot.core.state.status import Status
from moot.engine.rebuild import rebuild_rows
from moot.engine.replay.replay import replay_run
from moot.store.protocol import RunFilter
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    delay,
    ended,
    node,
    soon,
    sound,
    sub,
    variable,
)  # fmt: skip

GO = asyncio.Event


@node_function("acme.effect")
async def effectful(ctx: NodeContext) -> Any:
    async def call(_: str) -> str:
        return "made"

    return await ctx.effect("outside", call)


async def rows(place: Place) -> dict[str, Any]:
    """Everything that is derived, as far as anybody can ask for it."""
    store = place.store
    listed, _ = await store.list_runs(TENANT, RunFilter(), None, 1000)
    work = sorted((row.run_id, row.due_at) for row in await store.work(2**62, 1000))
    names = [name for _, name in await store.runs()]
    effects = {
        name: await store.effect(
            TENANT, name, logical_invocation_id(TENANT, name, "act", 1, "outside")
        )
        for name in names
    }
    by_id = {name: await store.find_run(TENANT, name) for name in names}
    active = await store.active_run(TENANT, "scope")
    kinds = parse_query("kind:run,thread,turn,decision")
    texts = (await store.search(TENANT, kinds, None, 10_000)).found
    return {
        "listed": listed, "work": work, "effects": effects, "rows": by_id, "active": active,
        "texts": sorted((each.run_id, each.sequence, each.part) for each in texts),
    }  # fmt: skip


async def test_rows_made_anew_from_the_log_are_the_rows_that_were_there(place: Place) -> None:
    stuck = asyncio.Event()

    @node_function("acme.stuck")
    async def hang() -> None:
        await stuck.wait()

    place.knows(effectful, hang)
    host = place.host()
    kid = chain(delay(60_000), id="kid")
    source = await begun(host, chain(node("act", "acme.effect"), id="a"))
    await ended(host, source)
    await replay_run(host, TENANT, source, 2)
    await ended(host, await begun(host, chain(node("f", "core.fail"), id="b")))
    await begun(host, chain(delay(60_000), id="c"), scope_id="scope")
    await begun(host, kid, chain(sub("kid"), id="d"))
    cancelled = await begun(host, kid, chain(sub("kid"), id="d"))
    await host.handle(TENANT, cancelled, CancelRun(host.clock.millis()))
    paused = await begun(host, chain(delay(60_000), id="c"))
    await host.handle(TENANT, paused, PauseRun(host.clock.millis(), "immediate"))
    flaky = node("f", "core.fail", config={"retryable": True},
                 settings={"maxRetries": 1, "retryDelayMs": 30_000})  # fmt: skip
    await begun(host, chain(flaky, id="e"))
    await begun(host, definition([node("x", "acme.stuck"), delay(60_000)], id="f"))
    await soon(lambda: len(host.activities) == 1)
    before = await rows(place)
    assert [(row.fork_of, row.fork_seq) for row in before["listed"] if row.fork_of] == [(source, 2)]
    assert len(before["texts"]) >= len(before["listed"])
    await place.crash(host)

    again = place.host()
    assert await rebuild_rows(place.store, again.flows) == len(await place.store.runs())
    assert await rows(place) == before
    await again.recover()
    await soon(lambda: len(again.activities) == 1)
    await sound(again)
    stuck.set()


async def test_a_run_goes_on_from_rows_that_were_made_anew(place: Place) -> None:
    place.knows(effectful)
    host = place.host()
    run_id = await begun(
        host,
        chain(delay(60_000), node("act", "acme.effect"),
              node("last", "core.identity", inputs={"v": variable("v")})),
        inputs={"v": 7},
    )  # fmt: skip
    await place.crash(host)
    again = place.host()
    await rebuild_rows(place.store, again.flows)
    place.clock.ahead_ms += 120_000
    await again.recover()
    run = await ended(again, run_id)
    assert run.status is Status.COMPLETED and run.outputs == {"v": 7}


async def test_a_step_that_was_cut_in_two_is_owed_after_a_rebuild(place: Place) -> None:
    host = place.host()

    async def never(*_: Any) -> None:
        return

    host._advance = never  # type: ignore[method-assign]
    run_id = await begun(host, chain(*(node(f"n{n}") for n in range(700))))
    await place.crash(host)
    again = place.host()
    await rebuild_rows(place.store, again.flows)
    assert [row.due_at for row in await place.store.work(0, 10)] == [0]
    await again.recover()
    assert (await ended(again, run_id)).status is Status.COMPLETED
