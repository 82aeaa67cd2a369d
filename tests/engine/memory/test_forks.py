"""Memory as of a place in a log: what forks and replays see, and what cannot be seen any more."""

import asyncio
from typing import Any

import pytest

from moot.core.errors import MemorySnapshotUnavailable
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.memory import entry_from_note
from moot.engine.replay.replay import replay_run
from tests.support.engine.branches import forked
from tests.support.engine.hosts import TENANT, Place, begun, chain, ended, log, node, sound
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


async def seen_at(host: Host, run: Run, index: int, ref: str) -> list[str]:
    then = (await host.runs.at(TENANT, run.run_id, index - 1)).run
    found = await host.memory.list(TENANT, ref, then, None, None)
    return sorted(entry_from_note(note).content for note in found)


async def test_a_place_in_the_log_shows_the_value_as_of_there(host: Host) -> None:
    await others_say(host, "0", memory_id="x")

    async def story(memory: Any) -> None:
        for number in range(1, 4):
            await memory.put(str(number), memory_id="x", ref="desk")

    run = await remembering.plays(host, story)
    await others_say(host, "later", memory_id="x")
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
            [payload_json(e) for e in await log(host, name) if e.type == "memory.written"]
            for name in (source.run_id, now.run_id)
        ]
        assert told[0] == told[1] and len(told[0]) == 3
    assert await host.store.memory_revision(TENANT) == revision
    assert await entries(host, source.run_id) == before
    assert len(remembering.ends) == played


async def test_a_fork_inherits_what_its_source_saw_and_had_written_by_then(host: Host) -> None:
    await others_say(host, "old")

    async def story(memory: Any) -> None:
        await memory.put("early", ref="desk")
        await memory.put("late", ref="desk")

    source = await remembering.plays(host, story)
    await others_say(host, "of others")
    places = [e.sequence for e in await log(host, source.run_id) if e.type == "memory.written"]
    fork = await replay_run(host, TENANT, source.run_id, places[1])
    assert fork.memory is not None and source.memory is not None
    assert fork.memory.revision == source.memory.revision
    found = await host.memory.list(TENANT, "desk", fork, None, None)
    assert sorted(str(note.content) for note in found) == ["early", "old"]


async def test_a_fork_of_what_was_forgotten_is_refused(host: Host) -> None:
    await others_say(host, "private", memory_id="x")
    reader = await remembering.plays(host, lambda memory: memory.list("desk"))
    other = await remembering.plays(host, lambda memory: memory.list("elsewhere"))
    assert await host.memory.forget(TENANT, "desk", "x") == ["x"]
    later = await remembering.plays(host, lambda memory: memory.list("desk"))
    with pytest.raises(MemorySnapshotUnavailable) as refusal:
        await replay_run(host, TENANT, reader.run_id, 2)
    assert refusal.value.code == "replay_memory_snapshot_unavailable"
    assert refusal.value.status == 422
    assert refusal.value.details["fromSeq"] == 2
    assert "oldestAvailableIdx" not in refusal.value.details
    assert (await replay_run(host, TENANT, other.run_id, 0)).status is Status.COMPLETED
    assert (await replay_run(host, TENANT, later.run_id, 0)).status is Status.COMPLETED


async def test_what_a_run_wrote_itself_is_missed_only_after_it_was_written(host: Host) -> None:
    source = await remembering.plays(host, lambda memory: memory.put("x", ref="desk"))
    [place] = [e.sequence for e in await log(host, source.run_id) if e.type == "memory.written"]
    assert len(await host.memory.forget(TENANT, "desk", None)) == 1
    assert await entries(host, "desk") == []
    with pytest.raises(MemorySnapshotUnavailable):
        await replay_run(host, TENANT, source.run_id, place + 1)
    assert (await replay_run(host, TENANT, source.run_id, place)).status is Status.COMPLETED


async def test_a_loop_can_be_forked_from_the_turn_that_knew_nothing_of_it(host: Host) -> None:
    await others_say(host, "private", memory_id="x")
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
        await replay_run(host, TENANT, run.run_id, marks[0] + 1)
    oldest = refusal.value.details["oldestAvailableIdx"]
    assert oldest == marks[1] + 1
    assert (await replay_run(host, TENANT, run.run_id, oldest)).status is Status.COMPLETED


async def test_a_forgotten_entry_is_gone_for_a_run_that_saw_it(host: Host) -> None:
    waits, goes_on = pause()
    await others_say(host, "private", memory_id="x")

    async def story(memory: Any) -> None:
        assert await texts(memory, ref="desk") == ["private"]
        waits.set()
        await goes_on.wait()
        assert await texts(memory, ref="desk") == []
        assert await memory.get("x", ref="desk") is None

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 60)
    await host.memory.forget(TENANT, "desk", "x")
    goes_on.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error


async def test_a_live_branch_sees_memory_as_of_its_fork(host: Host) -> None:
    """What the source wrote later, and what others wrote meanwhile, is not there."""
    seen: list[list[str]] = []

    async def first(memory: Any) -> None:
        await memory.put("early", ref="desk")

    async def second(memory: Any) -> None:
        seen.append(await texts(memory, ref="desk"))
        await memory.put("late", ref="desk")

    await others_say(host, "old")
    body = chain(remembering.scene(first, "one"), remembering.scene(second, "two"))
    source = await ended(host, await begun(host, body))
    await others_say(host, "of others")
    begins = [e.sequence for e in await log(host, source.run_id) if e.type == "node.started"]
    for place, known in ((begins[0], ["old"]), (begins[1], ["early", "old"])):
        fork = await forked(host, source.run_id, place)
        assert await seen_at(host, fork, place, "desk") == known
        assert (await ended(host, fork.run_id)).status is Status.COMPLETED
    assert seen == [["early", "old"]] * 3
    await sound(host)


async def test_what_a_branchs_history_has_written_is_not_written_again(host: Host) -> None:
    waits, goes_on = pause()

    async def story(memory: Any) -> None:
        entry = await memory.put("once", ref="desk")
        waits.set()
        await goes_on.wait()
        await memory.delete(entry.id, ref="desk")

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(waits.wait(), 60)
    fork = await forked(host, run_id, (await host.view(TENANT, run_id)).run.next_sequence)
    goes_on.set()
    assert (await ended(host, run_id)).status is Status.COMPLETED
    assert (await ended(host, fork.run_id)).status is Status.COMPLETED
    told = [e.type for e in await log(host, fork.run_id)]
    assert told.count("memory.written") == 2
    assert await entries(host, "desk") == []


async def test_a_forked_childs_memory_comes_back_to_the_branch(host: Host) -> None:
    """Its own writes and those of the child it was forked from, not that one's later ones."""
    waits, goes_on = pause()
    seen: list[list[str]] = []

    async def kid(memory: Any) -> None:
        await memory.put("before", ref="desk")
        waits.set()
        await goes_on.wait()
        await memory.put("after", ref="desk")

    async def parent(memory: Any) -> None:
        seen.append(await texts(memory, ref="desk"))

    below = chain(remembering.scene(kid), id="kid")
    sub = node("sub", "core.subWorkflow", config={"workflowId": "kid"})
    body = chain(sub, remembering.scene(parent, "look"))
    run_id = await begun(host, below, body)
    await asyncio.wait_for(waits.wait(), 60)
    fork = await forked(host, run_id, (await host.view(TENANT, run_id)).run.next_sequence)
    goes_on.set()
    for name in (run_id, fork.run_id):
        assert (await ended(host, name)).status is Status.COMPLETED
    assert seen == [["after", "before"]] * 2
    await sound(host)


async def test_a_branch_of_what_was_forgotten_is_refused(host: Host) -> None:
    await others_say(host, "private", memory_id="x")
    reader = await remembering.plays(host, lambda memory: memory.list("desk"))
    await host.memory.forget(TENANT, "desk", "x")
    with pytest.raises(MemorySnapshotUnavailable):
        await forked(host, reader.run_id, 2)
