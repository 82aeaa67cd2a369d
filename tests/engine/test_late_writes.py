"""Writes whose caller is gone before they are on disk: what they cause is seen to all the same."""

import asyncio
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import SetVariables
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from tests.support.engine.hosts import (
    TENANT,
    Gated,
    Place,
    another,
    chain,
    definition,
    delay,
    ended,
    node,
    registered,
    soon,
    sound,
    sub,
)
from tests.support.store.sqlite_access import writer_stopped


@node_function("acme.act")
async def act(ctx: NodeContext) -> str:
    return "done"


CHILD = definition([node("n0", "acme.act")], id="child")


async def test_a_run_whose_write_comes_after_its_host_is_gone_is_taken_up_by_the_next_host(
    sqlite: Place,
) -> None:
    """The parent was known to be owed something, the child it had just begun was not."""
    sqlite.knows(act)
    host = sqlite.host()
    flow = await registered(host, CHILD, chain(delay(1), sub("child"), id="parent"))
    run_id = await another(host, flow)
    async with writer_stopped(sqlite.store):
        head = await host.runs.head(TENANT, run_id)
        await soon(lambda: head.run.children)  # decided, and on its way
        await sqlite.crash(host)
        again = sqlite.host()
        recovering = asyncio.ensure_future(again.recover())
        await asyncio.wait([recovering], timeout=0.05)  # time enough to look too early
    await recovering
    assert (await ended(again, run_id)).status is Status.COMPLETED
    await sound(again)


async def test_a_write_that_is_given_up_may_take_as_long_as_it_likes(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller of a create goes away, and the host looks before the disk has anything."""
    sqlite.knows(act)
    host = sqlite.host()
    looked: list[str] = []

    def at_once(self: Host, tenant: str, run_id: str) -> None:
        looked.append(run_id)
        self.recovery.look(tenant, run_id)

    monkeypatch.setattr(Host, "look_again", at_once)
    flow = await registered(host, CHILD, chain(sub("child"), id="parent"))
    async with writer_stopped(sqlite.store):
        creating = asyncio.ensure_future(another(host, flow))
        await soon(lambda: len(host.runs))
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        await asyncio.wait(set(host.tasks._tasks), timeout=0.05)  # time enough to look too early
    await soon(lambda: len(looked) == 2)
    runs = await host.store.runs()
    assert sorted(looked) == sorted(run_id for _, run_id in runs)
    for _, run_id in runs:
        assert (await ended(host, run_id)).status is Status.COMPLETED
    await sound(host)


async def test_what_was_owed_is_done_though_a_later_command_could_not_be_answered(
    memory: Place,
) -> None:
    """Its answer cannot be made: what it changed is dropped, and with it the head it was made on,
    while an earlier step is still on its way."""
    memory.knows(act)
    host = memory.host(Gated)
    store: Any = host.store
    body = chain(delay(60_000), node("n0", "acme.act"))
    run_id = await another(host, await registered(host, body))
    store.gate.clear()
    memory.clock.ahead_ms += 60_000
    host.timers.look()
    await soon(lambda: store.waiting == 1)  # the delay is over, the activity begins

    def unanswerable(_: Run, events: object) -> None:
        raise RuntimeError("no answer can be made of this")

    with pytest.raises(RuntimeError):
        await host.handle(TENANT, run_id, SetVariables({"v": 1}, host.clock.millis()), unanswerable)
    store.gate.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and "v" not in run.variables
    await sound(host)
