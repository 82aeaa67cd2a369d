"""What a run sees of memory: as of its start, its turn, its place in a family."""

import asyncio
from typing import Any

import pytest

from moot.core.commands import CancelRun
from moot.core.errors import Conflict
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH
from moot.engine.host import Host
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    edge,
    ended,
    log,
    soon,
    sound,
    sub,
)  # fmt: skip
from tests.support.engine.memory_nodes import (
    DONE,
    entries,
    hand,
    led,
    others_say,
    pause,
    remembering,
    texts,
)
from tests.support.engine.replays import same
from tests.support.event_payloads import payload_json


@pytest.fixture
def host(place: Place) -> Host:
    place.knows(remembering)
    return place.host()


# -- as of the start ---------------------------------------------------------------------------


async def test_later_writes_and_deletes_of_others_are_not_seen(host: Host) -> None:
    waits, goes_on = pause()
    await others_say(host, "old", memory_id="old")
    await others_say(host, "gone", memory_id="gone")

    async def story(memory: Any) -> None:
        assert await texts(memory, ref="desk") == ["gone", "old"]
        waits.set()
        await goes_on.wait()
        assert await texts(memory, ref="desk") == ["gone", "old"]
        entry = await memory.get("old", ref="desk")
        assert entry is not None and entry.content == "old"
        assert await memory.get("new", ref="desk") is None
        await memory.put("mine", ref="desk")
        assert await texts(memory, ref="desk") == ["gone", "mine", "old"]

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 60)
    await others_say(host, "changed", memory_id="old")
    await others_say(host, "new", memory_id="new")
    await remembering.plays(host, lambda memory: memory.delete("gone", ref="desk"))
    goes_on.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error
    assert sorted(str(n.content) for n in await entries(host, "desk")) == ["changed", "mine", "new"]


async def test_the_view_is_the_same_after_a_restart(place: Place, host: Host) -> None:
    waits, goes_on = pause()
    await others_say(host, "old")

    async def story(memory: Any) -> None:
        await memory.put("mine", ref="desk")
        waits.set()
        await goes_on.wait()
        assert await texts(memory, ref="desk") == ["mine", "old"]

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 60)
    await others_say(host, "later")
    await place.crash(host)
    fresh = place.host()
    goes_on.set()
    await fresh.recover()
    run = await ended(fresh, run_id)
    assert run.status is Status.COMPLETED, run.error


async def test_revisions_go_on_after_a_restart(sqlite: Place) -> None:
    sqlite.knows(remembering)
    host = sqlite.host()
    await others_say(host, "one")
    fresh = await sqlite.restart(host)
    await others_say(fresh, "two")
    assert await fresh.store.memory_revision(TENANT) == 2
    run = await remembering.plays(fresh, lambda memory: memory.list())
    assert run.memory is not None and run.memory.revision == 2


# -- families ----------------------------------------------------------------------------------


async def test_a_child_shares_the_memory_of_its_parent_and_is_seen_when_it_completed(
    host: Host,
) -> None:
    async def child(memory: Any) -> None:
        assert await texts(memory) == ["of the parent"]
        await memory.put("of the child")

    async def before(memory: Any) -> None:
        await memory.put("of the parent")

    async def after(memory: Any) -> None:
        assert await texts(memory) == ["of the child", "of the parent"]

    kid = chain(remembering.scene(child), id="kid")
    body = chain(remembering.scene(before, "before"), sub("kid"), remembering.scene(after, "after"))
    run = await ended(host, await begun(host, kid, body))
    assert run.status is Status.COMPLETED, run.error


async def test_a_grandchild_is_seen_through_a_child_that_completed(host: Host) -> None:
    async def grandchild(memory: Any) -> None:
        await memory.put("deep")

    async def after(memory: Any) -> None:
        assert await texts(memory) == ["deep"]

    grand = chain(remembering.scene(grandchild), id="grand")
    kid = chain(sub("grand"), id="kid")
    run = await ended(
        host, await begun(host, grand, kid, chain(sub("kid"), remembering.scene(after)))
    )
    assert run.status is Status.COMPLETED, run.error


async def test_a_child_at_work_or_failed_is_not_seen_by_its_parent(host: Host) -> None:
    waits, goes_on = pause()

    async def child(memory: Any) -> None:
        await memory.put("unfinished")
        waits.set()
        await goes_on.wait()
        raise ValueError("it went wrong")

    async def meanwhile(memory: Any) -> None:
        await waits.wait()
        assert await texts(memory) == []
        goes_on.set()

    async def after(memory: Any) -> None:
        assert await texts(memory) == []

    kid = chain(remembering.scene(child), id="kid")
    nodes = [
        sub("kid", onChildFailure="absorb"),
        remembering.scene(meanwhile, "meanwhile"),
        remembering.scene(after, "after"),
    ]
    body = definition(nodes, [edge("sub", "after"), edge("meanwhile", "after")])
    run = await ended(host, await begun(host, kid, body))
    assert run.status is Status.COMPLETED, run.error
    assert len(await entries(host, run.run_id)) == 1  # later runs are reminded of it


@pytest.mark.parametrize("by", ["core.subWorkflow", DISPATCH])
async def test_an_isolated_child_has_a_memory_of_its_own(host: Host, by: str) -> None:
    async def child(memory: Any) -> None:
        assert await texts(memory) == []
        await memory.put("of the child")

    async def before(memory: Any) -> None:
        await memory.put("of the parent")

    async def after(memory: Any) -> None:
        assert await texts(memory) == ["of the parent"]

    kid = chain(remembering.scene(child), id="kid")
    first, last = remembering.scene(before, "before"), remembering.scene(after, "after")
    if by == DISPATCH:
        body = led([hand("kid"), DONE], [first], [last], memoryScopeIsolation="isolated")
    else:
        body = chain(first, sub("kid", memoryScopeIsolation="isolated"), last)
    run = await ended(host, await begun(host, kid, body, scope_id="desk"))
    assert run.status is Status.COMPLETED, run.error
    [name] = run.children
    [started] = (await log(host, name))[:1]
    assert payload_json(started)["memory"]["scope"] == name
    assert [note.content for note in await entries(host, name)] == ["of the child"]


# -- supervisors -------------------------------------------------------------------------------


async def test_what_a_turn_writes_is_seen_from_the_next_turn_on(host: Host) -> None:
    turns: list[list[str]] = []

    async def between(memory: Any) -> None:
        before = await texts(memory)
        await memory.put(f"by the node in turn {len(turns) + 1}")
        turns.append(await texts(memory))
        assert turns[-1] == before

    async def worker(memory: Any) -> None:
        await memory.put(f"by the worker in turn {len(turns)}")

    scene = remembering.scene(between, "between")
    kid = chain(remembering.scene(worker), id="kid")
    run = await ended(
        host, await begun(host, kid, led([hand("kid"), hand("kid"), DONE], [], [], [scene]))
    )
    assert run.status is Status.COMPLETED, run.error
    one = ["by the node in turn 1", "by the worker in turn 1"]
    two = ["by the node in turn 2", "by the worker in turn 2"]
    assert turns == [[], one, sorted([*one, *two])]
    marks = [e.hints for e in await log(host, run.run_id) if e.type == "node.started"
             and e.node_id == "boss"]  # fmt: skip
    assert [mark["memoryRevision"] for mark in marks] == [0, 2, 4]
    again = await same(host, run.run_id)
    told = [e.hints for e in await log(host, again.run_id) if e.type == "node.started"
            and e.node_id == "boss"]  # fmt: skip
    assert told == marks


async def test_writes_of_a_parallel_wave_are_in_one_order_and_none_is_lost(host: Host) -> None:
    together: list[str] = []

    async def worker(memory: Any) -> None:
        together.append(memory._context.run_id)
        while len(together) < 4:  # all of them are at work before any writes
            await asyncio.sleep(0.001)
        for number in range(5):
            await memory.put(f"{memory._context.run_id} {number}", memory_id=f"{number}")

    kid = chain(remembering.scene(worker), id="kid")
    body = led([hand("kid", "kid", "kid", "kid"), DONE], [], [], fanOutPolicy="parallel")
    run = await ended(host, await begun(host, kid, body))
    assert run.status is Status.COMPLETED and len(run.children) == 4
    notes = await host.store.memory_rows_after(TENANT, run.run_id, 0, (run.run_id,))
    assert len(notes) == 20
    assert [note.revision for note in notes] == list(range(1, 21))
    for name in run.children:
        mine = [note.memory_id for note in notes if note.run_id == name]
        assert mine == ["0", "1", "2", "3", "4"]  # each in its own order
    newest = {note.memory_id: note.content for note in notes}
    found = {note.memory_id: note.content for note in await entries(host, run.run_id)}
    assert found == newest  # the last write of each is the one that stands
    await sound(host)


# -- too late -----------------------------------------------------------------------------------


async def test_a_cancelled_run_writes_no_more(host: Host) -> None:
    waits, _ = pause()
    refused: list[str] = []

    async def story(memory: Any) -> None:
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(Conflict) as refusal:
                await memory.put("too late")
            refused.append(refusal.value.code)
            raise

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 60)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    await soon(lambda: bool(refused))
    assert await host.store.memory_revision(TENANT) == 0
