"""What a run sees of memory: as of its start, its turn, its place in a family, its fork."""

import asyncio
import itertools
from typing import Any

import pytest
from hosting import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    edge,
    ended,
    log,
    node,
    soon,
    sound,
    sub,
)  # fmt: skip
from reminding import entries, remembering
from said_again import same

from moot.core.commands import CancelRun
from moot.core.definition import DISPATCH, SUPERVISOR
from moot.core.errors import Conflict, MemorySnapshotUnavailable
from moot.core.run import Run
from moot.core.status import Status
from moot.engine.forking import replay
from moot.engine.host import Host
from moot.engine.recollections import entry_of


@pytest.fixture
def host(place: Place) -> Host:
    place.knows(remembering)
    return place.host()


async def texts(memory: Any, **given: Any) -> list[str]:
    return sorted(entry.content for entry in await memory.list(**given))


def pause() -> tuple[asyncio.Event, asyncio.Event]:
    """Set by who waits, and by who lets him go on."""
    return asyncio.Event(), asyncio.Event()


async def said(host: Host, content: str, **given: Any) -> None:
    await remembering.plays(host, lambda memory: memory.put(content, ref="desk", **given))


# -- as of the start ---------------------------------------------------------------------------


async def test_later_writes_and_deletes_of_others_are_not_seen(host: Host) -> None:
    waits, goes_on = pause()
    await said(host, "old", memory_id="old")
    await said(host, "gone", memory_id="gone")

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
    await asyncio.wait_for(waits.wait(), 20)
    await said(host, "changed", memory_id="old")
    await said(host, "new", memory_id="new")
    await remembering.plays(host, lambda memory: memory.delete("gone", ref="desk"))
    goes_on.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error
    assert sorted(str(n.content) for n in await entries(host, "desk")) == ["changed", "mine", "new"]


async def test_the_view_is_the_same_after_a_restart(place: Place, host: Host) -> None:
    waits, goes_on = pause()
    await said(host, "old")

    async def story(memory: Any) -> None:
        await memory.put("mine", ref="desk")
        waits.set()
        await goes_on.wait()
        assert await texts(memory, ref="desk") == ["mine", "old"]

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 20)
    await said(host, "later")
    await place.crash(host)
    fresh = place.host()
    goes_on.set()
    await fresh.recover()
    run = await ended(fresh, run_id)
    assert run.status is Status.COMPLETED, run.error


async def test_revisions_go_on_after_a_restart(sqlite: Place) -> None:
    sqlite.knows(remembering)
    host = sqlite.host()
    await said(host, "one")
    fresh = await sqlite.restart(host)
    await said(fresh, "two")
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
    assert started.payload["memory"]["scope"] == name
    assert [note.content for note in await entries(host, name)] == ["of the child"]


# -- supervisors -------------------------------------------------------------------------------

DONE = {"kind": "terminate", "reason": "goal-reached"}


def hand(*workers: str) -> dict[str, Any]:
    return {"kind": "next-worker", "nextWorkerIds": list(workers)}


def led(
    plan: list[Any], first: list[Any], last: list[Any], between: Any = (), **config: Any
) -> dict[str, Any]:
    """first → boss → between → hands, round and round, and at the end last."""
    boss = node("boss", SUPERVISOR, config={"plan": plan})
    hands = node("hands", DISPATCH, config=config)
    line = [*first, boss, *between, hands, *last]
    edges = [edge(a["id"], b["id"]) for a, b in itertools.pairwise(line)]
    return definition(line, [*edges, edge("hands", "boss")])


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
    notes = await host.store.late_notes(TENANT, run.run_id, 0, (run.run_id,))
    assert len(notes) == 20
    assert [note.revision for note in notes] == list(range(1, 21))
    for name in run.children:
        mine = [note.memory_id for note in notes if note.run_id == name]
        assert mine == ["0", "1", "2", "3", "4"]  # each in its own order
    newest = {note.memory_id: note.content for note in notes}
    found = {note.memory_id: note.content for note in await entries(host, run.run_id)}
    assert found == newest  # the last write of each is the one that stands
    await sound(host)


# -- as of a place in the log, and forks -------------------------------------------------------


async def seen_at(host: Host, run: Run, index: int, ref: str) -> list[str]:
    then = (await host.at(TENANT, run.run_id, index - 1)).run
    found = await host.memory.list(TENANT, ref, then, None, None)
    return sorted(entry_of(note).content for note in found)


async def test_a_place_in_the_log_shows_the_value_as_of_there(host: Host) -> None:
    await said(host, "0", memory_id="x")

    async def story(memory: Any) -> None:
        for number in range(1, 4):
            await memory.put(str(number), memory_id="x", ref="desk")

    run = await remembering.plays(host, story)
    await said(host, "later", memory_id="x")
    places = [e.sequence for e in await log(host, run.run_id) if e.type == "memory.written"]
    assert await seen_at(host, run, 1, "desk") == ["0"]
    for number, place in enumerate(places, 1):
        assert await seen_at(host, run, place, "desk") == [str(number - 1)]
        assert await seen_at(host, run, place + 1, "desk") == [str(number)]


async def test_a_replay_writes_nothing_and_tells_the_same_ids(host: Host) -> None:
    async def story(memory: Any) -> None:
        await memory.put("one", tags=["a"])
        await memory.put("two", memory_id="two")
        await memory.delete("two")

    source = await remembering.plays(host, story)
    played = len(remembering.ends)
    revision = await host.store.memory_revision(TENANT)
    before = await entries(host, source.run_id)
    for from_seq in range(source.next_sequence + 1):
        now = await same(host, source.run_id, from_seq)
        told = [
            [e.payload for e in await log(host, name) if e.type == "memory.written"]
            for name in (source.run_id, now.run_id)
        ]
        assert told[0] == told[1] and len(told[0]) == 3
    assert await host.store.memory_revision(TENANT) == revision
    assert await entries(host, source.run_id) == before
    assert len(remembering.ends) == played


async def test_a_fork_inherits_what_its_source_saw_and_had_written_by_then(host: Host) -> None:
    await said(host, "old")

    async def story(memory: Any) -> None:
        await memory.put("early", ref="desk")
        await memory.put("late", ref="desk")

    source = await remembering.plays(host, story)
    await said(host, "of others")
    places = [e.sequence for e in await log(host, source.run_id) if e.type == "memory.written"]
    fork = await replay(host, TENANT, source.run_id, places[1])
    assert fork.memory is not None and source.memory is not None
    assert fork.memory.revision == source.memory.revision
    found = await host.memory.list(TENANT, "desk", fork, None, None)
    assert sorted(str(note.content) for note in found) == ["early", "old"]


async def test_a_fork_of_what_was_forgotten_is_refused(host: Host) -> None:
    await said(host, "private", memory_id="x")
    reader = await remembering.plays(host, lambda memory: memory.list("desk"))
    other = await remembering.plays(host, lambda memory: memory.list("elsewhere"))
    assert await host.memory.forget(TENANT, "desk", "x") == ["x"]
    later = await remembering.plays(host, lambda memory: memory.list("desk"))
    with pytest.raises(MemorySnapshotUnavailable) as refusal:
        await replay(host, TENANT, reader.run_id, 2)
    assert refusal.value.code == "replay_memory_snapshot_unavailable"
    assert refusal.value.status == 422
    assert refusal.value.details["fromSeq"] == 2
    assert "oldestAvailableIdx" not in refusal.value.details
    assert (await replay(host, TENANT, other.run_id, 0)).status is Status.COMPLETED
    assert (await replay(host, TENANT, later.run_id, 0)).status is Status.COMPLETED


async def test_what_a_run_wrote_itself_is_missed_only_after_it_was_written(host: Host) -> None:
    source = await remembering.plays(host, lambda memory: memory.put("x", ref="desk"))
    [place] = [e.sequence for e in await log(host, source.run_id) if e.type == "memory.written"]
    assert len(await host.memory.forget(TENANT, "desk", None)) == 1
    assert await entries(host, "desk") == []
    with pytest.raises(MemorySnapshotUnavailable):
        await replay(host, TENANT, source.run_id, place + 1)
    assert (await replay(host, TENANT, source.run_id, place)).status is Status.COMPLETED


async def test_a_loop_can_be_forked_from_the_turn_that_knew_nothing_of_it(host: Host) -> None:
    await said(host, "private", memory_id="x")
    turns: list[int] = []

    async def between(memory: Any) -> None:
        await memory.list("desk")
        turns.append(len(turns))
        if len(turns) == 1:
            await host.memory.forget(TENANT, "desk", "x")

    scene = remembering.scene(between, "between")
    kid = chain(node("noop"), id="kid")
    run = await ended(host, await begun(host, kid, led([hand("kid"), DONE], [], [], [scene])))
    marks = [e.sequence for e in await log(host, run.run_id) if e.type == "node.started"
             and e.node_id == "boss"]  # fmt: skip
    with pytest.raises(MemorySnapshotUnavailable) as refusal:
        await replay(host, TENANT, run.run_id, marks[0] + 1)
    oldest = refusal.value.details["oldestAvailableIdx"]
    assert oldest == marks[1] + 1
    assert (await replay(host, TENANT, run.run_id, oldest)).status is Status.COMPLETED


async def test_a_forgotten_entry_is_gone_for_a_run_that_saw_it(host: Host) -> None:
    waits, goes_on = pause()
    await said(host, "private", memory_id="x")

    async def story(memory: Any) -> None:
        assert await texts(memory, ref="desk") == ["private"]
        waits.set()
        await goes_on.wait()
        assert await texts(memory, ref="desk") == []
        assert await memory.get("x", ref="desk") is None

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 20)
    await host.memory.forget(TENANT, "desk", "x")
    goes_on.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error


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
    await asyncio.wait_for(waits.wait(), 20)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
    await soon(lambda: bool(refused))
    assert await host.store.memory_revision(TENANT) == 0
