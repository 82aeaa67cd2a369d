"""Agent memory on a real host (multi-agent E): written with the log, seen as of the run's start."""

import asyncio
from typing import Any

import pytest

from moot.core.errors import StorageFailed
from moot.core.state.status import Status
from tests.support.engine.hosts import (
    TENANT,
    Gated,
    Place,
    another,
    begun,
    chain,
    ended,
    log,
    node,
    registered,
    soon,
    sound,
    sub,
)  # fmt: skip
from tests.support.engine.memory_nodes import (
    desk,
    entries,
    forget_answers,
    remembering,
    said,
    tells,
)
from tests.support.event_payloads import payload_json


@pytest.fixture(autouse=True)
def _nothing_said() -> None:
    forget_answers()


# -- written and read --------------------------------------------------------------------------


async def test_what_a_node_writes_is_an_event_and_a_row_of_one_commit(place: Place) -> None:
    place.knows(*desk)
    host = place.host()
    run_id = await begun(host, chain(tells("put", content="Ada likes tea", tags=["taste"])))
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED, run.error
    [event] = [event for event in await log(host, run_id) if event.type == "memory.written"]
    assert payload_json(event) == {
        "memoryRef": run_id, "memoryId": said()[0].id, "nodeId": "put", "tags": ["taste"],
    }  # fmt: skip
    [note] = await host.store.notes(TENANT, run_id, None, host.clock.millis(), None, 9)
    assert (note.run_id, note.sequence) == (run_id, event.sequence)
    assert (note.content, note.tags) == ("Ada likes tea", ["taste"])
    assert note.created_at == note.written_at
    await sound(host)


async def test_a_run_sees_its_own_writes_and_a_later_run_of_its_scope_too(place: Place) -> None:
    place.knows(*desk)
    host = place.host()
    flow = await registered(host, chain(tells("put", content="one"), tells("list")))
    first = await ended(host, await another(host, flow, scope_id="desk"))
    assert [entry.content for entry in said()[1]] == ["one"]
    second = await ended(host, await another(host, flow, scope_id="desk"))
    assert [entry.content for entry in said()[3]] == ["one", "one"]
    third = await ended(host, await another(host, flow))
    assert [entry.content for entry in said()[5]] == ["one"]  # a memory of its own
    assert {first.status, second.status, third.status} == {Status.COMPLETED}


async def test_an_entry_has_the_four_operations(place: Place) -> None:
    place.knows(remembering)
    host = place.host()

    async def story(memory: Any) -> None:
        entry = await memory.put("first", memory_id="note", tags=["a", "a", ""])
        assert (entry.id, entry.content, entry.tags) == ("note", "first", ["a"])
        again = await memory.put("second", memory_id="note")
        assert (again.content, again.created_at) == ("second", entry.created_at)
        assert await memory.get("note") == again
        assert await memory.list() == [again]
        assert await memory.list(tag="a") == []
        assert await memory.delete("note") is True
        assert await memory.delete("note") is False
        assert await memory.get("note") is None
        assert await memory.list() == []
        assert await memory.get("unheard") is None

    await remembering.plays(host, story)


async def test_a_list_is_the_newest_first_and_bounded(place: Place) -> None:
    place.knows(remembering)
    host = place.host()

    async def story(memory: Any) -> None:
        for number in range(103):
            await memory.put(str(number), tags=["even"] if number % 2 == 0 else [])
        assert [e.content for e in await memory.list(limit=2)] == ["102", "101"]
        assert len(await memory.list()) == len(await memory.list(limit=0)) == 100
        assert [e.content for e in await memory.list(tag="even", limit=2)] == ["102", "100"]
        assert len(await memory.list(limit=5000)) == 103

    await remembering.plays(host, story)


# -- what is refused ---------------------------------------------------------------------------

BAD_REFS = ["", "a/../b", "..", "a//b", "./a", "a\\..\\b", "nul\x00", "x" * 257, "\ud800"]


@pytest.mark.parametrize("ref", BAD_REFS)
async def test_a_reference_that_names_nothing_has_nothing_in_it(memory: Place, ref: str) -> None:
    memory.knows(remembering)
    host = memory.host()

    async def story(memory: Any) -> None:
        assert await memory.list(ref) == []
        assert await memory.get("x", ref=ref) is None
        assert await memory.delete("x", ref=ref) is False
        await remembering.refuses(memory.put("text", ref=ref))

    run = await remembering.plays(host, story)
    assert not [e for e in await log(host, run.run_id) if "memory" in e.type]


@pytest.mark.parametrize(
    "given",
    [
        {"expires_at": "2001-01-01T00:00:00Z"}, {"expires_at": "soon"},
        {"expires_at": "2030-01-01T00:00:00"}, {"ttl": 0}, {"ttl": -1}, {"ttl": float("nan")},
        {"ttl": True}, {"tags": "text"}, {"tags": ["x" * 257]}, {"tags": ["t"] * 65},
        {"memory_id": ""}, {"memory_id": "x" * 1501}, {"content": 7}, {"content": "x" * 65_537},
    ],
    ids=str,
)  # fmt: skip
async def test_a_write_that_does_not_fit_changes_nothing(
    memory: Place, given: dict[str, Any]
) -> None:
    memory.knows(remembering)
    host = memory.host()

    async def story(memory: Any) -> None:
        await remembering.refuses(memory.put(**{"content": "text", **given}))
        assert await memory.list() == []

    await remembering.plays(host, story)
    assert await host.store.memory_revision(TENANT) == 0


async def test_another_tenants_memory_is_empty(place: Place) -> None:
    place.knows(remembering)
    host = place.host()
    await remembering.plays(host, lambda memory: memory.put("ours", memory_id="x", ref="team/desk"))

    async def probe(memory: Any) -> None:
        assert await memory.list("team/desk") == []
        assert await memory.get("x", ref="team/desk") is None
        assert await memory.delete("x", ref="team/desk") is False

    await remembering.plays(host, probe, tenant="other")
    assert len(await entries(host, "team/desk")) == 1


# -- time --------------------------------------------------------------------------------------


async def test_what_has_ended_never_surfaces(place: Place) -> None:
    place.knows(remembering)
    host = place.host()

    async def story(memory: Any) -> None:
        await memory.put("short", memory_id="short", ttl=60)
        await memory.put("dated", memory_id="dated", expires_at="2999-01-01T00:00:00Z")
        assert len(await memory.list()) == 2
        place.clock.ahead_ms += 59_000
        assert len(await memory.list()) == 2
        place.clock.ahead_ms += 1_001
        assert [entry.id for entry in await memory.list()] == ["dated"]
        assert await memory.get("short") is None
        assert await memory.delete("short") is False

    await remembering.plays(host, story, scope_id="desk")
    assert [note.memory_id for note in await entries(host, "desk")] == ["dated"]


async def test_the_time_to_live_of_a_child_counts_from_its_write(place: Place) -> None:
    place.knows(remembering)
    host = place.host()
    parents: list[int] = []

    async def story(memory: Any) -> None:
        parents.append((await host.view(TENANT, memory._context.run_id)).run.started_at)
        place.clock.ahead_ms += 10_000
        await memory.put("kept an hour", ttl=3600)

    child = chain(remembering.scene(story), id="child")
    await ended(host, await begun(host, child, chain(sub("child"))))
    [note] = await entries(host, None)
    assert note.expires_at == note.written_at + 3_600_000
    assert note.written_at >= parents[0] + 10_000


async def test_the_end_of_an_entry_is_never_put_off(place: Place) -> None:
    place.knows(remembering)
    host = place.host()

    async def story(memory: Any) -> None:
        first = await memory.put("a", memory_id="x", ttl=60)
        again = await memory.put("b", memory_id="x", ttl=3600)
        assert again.expires_at == first.expires_at
        sooner = await memory.put("c", memory_id="x", ttl=1)
        assert sooner.expires_at < first.expires_at

    await remembering.plays(host, story)


# -- not twice, not half -----------------------------------------------------------------------


async def test_an_attempt_after_a_crash_writes_nothing_twice(place: Place) -> None:
    place.knows(remembering)
    host = place.host()
    reached = asyncio.Event()

    async def story(memory: Any) -> None:
        first = await memory.put("one")
        await memory.put("two", memory_id="two")
        await memory.delete("two")
        if not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        assert [entry.id for entry in await memory.list()] == [first.id]
        await memory.put("three")

    run_id = await begun(host, chain(remembering.scene(story)))
    await asyncio.wait_for(reached.wait(), 60)
    await place.crash(host)
    fresh = place.host()
    await fresh.recover()
    assert (await ended(fresh, run_id)).status is Status.COMPLETED
    types = [event.type for event in await log(fresh, run_id)]
    assert types.count("memory.written") == 4
    assert await fresh.store.memory_revision(TENANT) == 4
    await sound(fresh)


async def test_a_failed_attempt_leaves_what_it_wrote_and_the_next_is_given_it(place: Place) -> None:
    place.knows(remembering)
    host = place.host()
    tries: list[str] = []

    async def story(memory: Any) -> None:
        entry = await memory.put(f"try {len(tries)}")
        tries.append(entry.content)
        if len(tries) < 3:
            raise OSError("not yet")

    scene = {**remembering.scene(story), "settings": {"maxRetries": 3, "retryDelayMs": 1}}
    run = await ended(host, await begun(host, chain(scene)))
    assert run.status is Status.COMPLETED
    assert tries == ["try 0"] * 3


@pytest.mark.parametrize("fails", [False, True])
async def test_the_event_and_the_row_are_both_there_or_neither(memory: Place, fails: bool) -> None:
    memory.knows(remembering)
    host = memory.host(Gated)
    store: Any = host.store
    failed: list[int] = []

    def refuse(batch: Any) -> bool:
        if fails and batch.notes and not failed:
            failed.append(1)
            return True
        return False

    store.refuse = refuse

    async def story(memory: Any) -> None:
        if fails:
            with pytest.raises(StorageFailed):
                await memory.put("text", memory_id="x")
            assert await memory.list() == []
        await memory.put("text", memory_id="x")

    run_id = await begun(host, chain(remembering.scene(story)))
    await soon(lambda: bool(remembering.ends))
    run = await ended(host, run_id)
    written = [e.sequence for e in await log(host, run_id) if e.type == "memory.written"]
    notes = await store.memory_rows_after(TENANT, run_id, 0, (run_id,))
    assert [note.sequence for note in notes] == written and len(written) == 1
    assert run.status is Status.COMPLETED
    await sound(host)


async def test_a_crash_before_the_commit_leaves_neither(place: Place) -> None:
    place.knows(remembering)
    host = place.host(Gated)
    store: Any = host.store

    async def story(memory: Any) -> None:
        await memory.put("text")

    run_id = await begun(host, chain(node("wait", "core.delay", config={"ms": 1}),
                                     remembering.scene(story)))  # fmt: skip
    await asyncio.wait_for(remembering.begun.wait(), 60)
    store.gate.clear()
    await soon(lambda: store.waiting)
    await place.crash(host)
    assert await place.store.memory_revision(TENANT) in (0, 1)
    rows = await place.store.memory_rows_after(TENANT, run_id, 0, (run_id,))
    fresh = place.host()
    types = [event.type for event in await log(fresh, run_id)]
    assert types.count("memory.written") == len(rows)
    await fresh.recover()
    assert (await ended(fresh, run_id)).status is Status.COMPLETED
    assert len(await fresh.store.memory_rows_after(TENANT, run_id, 0, (run_id,))) == 1
