"""The journal of memory, as every store keeps it: versions, ends, tags, revisions, erasure."""

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.core.errors import SequenceConflict
from moot.store.memory.store import MemoryStore
from moot.store.memory_entries import MemoryRow
from moot.store.protocol import Append, Batch, Store
from moot.store.sqlite import SqliteStore
from tests.support.store.rows import append, batch


def note(
    revision: int, memory_id: str = "a", content: str | None = "text", **given: Any
) -> MemoryRow:
    fields = {"tenant": "acme", "scope": "desk", "run_id": "r1", "sequence": revision}
    fields |= {"written_at": revision, "created_at": revision} | given
    return MemoryRow(revision=revision, memory_id=memory_id, content=content, **fields)


async def kept(store: Store, *notes: MemoryRow) -> None:
    for each in notes:
        await store.commit(Batch(notes=[each]))


async def listed(
    store: Store, at: int | None = None, now: int = 0, tag: str | None = None, limit: int = 100
) -> list[tuple[str, str | None]]:
    found = await store.notes("acme", "desk", at, now, tag, limit)
    return [(each.memory_id, each.content) for each in found]


async def test_the_newest_entries_come_first_and_no_more_than_asked_for(store: Store) -> None:
    await kept(store, note(1, "a"), note(2, "b"), note(3, "c"))
    assert [name for name, _ in await listed(store)] == ["c", "b", "a"]
    assert [name for name, _ in await listed(store, limit=2)] == ["c", "b"]
    assert await store.memory_revision("acme") == 3


async def test_a_revision_shows_what_was_so_then(store: Store) -> None:
    await kept(store, note(1, "a", "one"), note(2, "a", "two"), note(3, "a", None), note(4, "b"))
    assert await listed(store, at=0) == []
    assert await listed(store, at=1) == [("a", "one")]
    assert await listed(store, at=2) == [("a", "two")]
    assert await listed(store, at=3) == []
    assert await listed(store) == [("b", "text")]
    then = await store.note("acme", "desk", "a", 1)
    assert then is not None and then.content == "one"
    ended = await store.note("acme", "desk", "a", None)
    assert ended is not None and ended.content is None
    assert await store.note("acme", "desk", "nobody", None) is None


async def test_tags_find_the_versions_that_have_them(store: Store) -> None:
    await kept(store, note(1, "a", tags=["x", "y"]), note(2, "b", tags=["x"]), note(3, "a"))
    assert await listed(store, tag="x") == [("b", "text")]
    assert await listed(store, at=2, tag="x", limit=1) == [("b", "text")]
    assert [name for name, _ in await listed(store, at=2, tag="x")] == ["b", "a"]
    assert await listed(store, tag="y") == []


async def test_what_has_ended_is_not_shown(store: Store) -> None:
    await kept(store, note(1, "a", expires_at=50), note(2, "b", expires_at=51))
    assert [name for name, _ in await listed(store, now=49)] == ["b", "a"]
    assert [name for name, _ in await listed(store, now=50)] == ["b"]
    assert await store.memory_refs("acme", 50, 9) == [("desk", 1)]
    assert await store.memory_refs("acme", 51, 9) == []


async def test_a_further_version_keeps_the_beginning_and_the_earlier_end(store: Store) -> None:
    await kept(store, note(1, expires_at=90), note(2, expires_at=99), note(3), note(4, "b"))
    found = await store.note("acme", "desk", "a", None)
    assert found is not None and (found.created_at, found.expires_at) == (1, 90)
    assert [name for name, _ in await listed(store)] == ["b", "a"]
    await kept(store, note(100, "a"))  # the one before has ended by then: this is another one
    found = await store.note("acme", "desk", "a", None)
    assert found is not None and (found.created_at, found.expires_at) == (100, None)


async def test_tenants_and_scopes_do_not_meet(store: Store) -> None:
    await kept(store, note(1), note(1, tenant="other"), note(2, scope="elsewhere"))
    assert len(await listed(store)) == 1
    assert await store.notes("nobody", "desk", None, 0, None, 9) == []
    assert await store.note("other", "elsewhere", "a", None) is None
    assert await store.memory_refs("acme", 0, 9) == [("desk", 1), ("elsewhere", 1)]
    assert await store.memory_refs("other", 0, 9) == [("desk", 1)]
    assert await store.memory_revision("other") == 1
    assert await store.memory_revision("nobody") == 0


async def test_later_writes_of_a_family_are_found_by_its_first_run(store: Store) -> None:
    await kept(
        store,
        note(1, "a", run_id="root"),
        note(2, "b", run_id="root"),
        note(3, "c", run_id="child", ancestors=["root"]),
        note(4, "d", run_id="stranger"),
        note(5, "e", None, run_id="root"),
    )
    found = await store.memory_rows_after("acme", "desk", 1, ("root",))
    assert [each.memory_id for each in found] == ["b", "c", "e"]
    assert found[1].ancestors == ["root"]
    both = await store.memory_rows_after("acme", "desk", 1, ("stranger", "root"))
    assert [each.memory_id for each in both] == ["b", "c", "d", "e"]
    assert await store.memory_rows_after("acme", "desk", 1, ()) == []


async def test_a_write_is_found_by_its_name(store: Store) -> None:
    await kept(store, note(1, write_id="w1"), note(2, write_id="w2"))
    found = await store.written("acme", "w2")
    assert found is not None and found.revision == 2
    assert await store.written("other", "w2") is None
    assert await store.written("acme", "w3") is None


async def test_an_erased_entry_is_gone_from_every_revision_and_leaves_its_place(
    store: Store,
) -> None:
    tagged = note(1, "a", "secret words", tags=["t"])
    await kept(store, tagged, note(2, "a", "more"), note(3, "b", "stays", tags=["t"]))
    assert await store.memory_ids("acme", "desk") == ["a", "b"]
    assert not await store.forgotten("acme", "desk", 2)
    await kept(store, note(4, "a", None, erases=True, run_id="", sequence=-1))
    for at in (1, 2, 3, 4, None):
        assert "a" not in [name for name, _ in await listed(store, at=at)]
        assert "a" not in [name for name, _ in await listed(store, at=at, tag="t")]
    then = await store.note("acme", "desk", "a", 1)
    assert then is not None and (then.content, then.tags, then.forgotten) == (None, [], True)
    assert [await store.forgotten("acme", "desk", at) for at in (0, 1, 2, 3, 4)] == [
        False, True, True, True, False,
    ]  # fmt: skip
    assert await store.memory_ids("acme", "desk") == ["b"]
    await kept(store, note(5, "a", "anew"))
    assert await listed(store) == [("a", "anew"), ("b", "stays")]


async def test_a_batch_in_conflict_leaves_no_note(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 1)))
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r1", 5, 1), notes=[note(1)]))
    assert await store.memory_revision("acme") == 0
    await store.commit(batch(append("r1", 1, 1), notes=[note(1)]))
    assert await listed(store) == [("a", "text")]


async def test_what_no_event_tells_of_is_found(store: Store) -> None:
    told = {"runId": "r1", "sequence": 0, "type": "memory.written", "payload": {"memoryId": "a"}}
    first = Append(tenant="acme", run_id="r1", first=0, events=[msgspec.json.encode(told)])
    good = note(1, "a", sequence=0)
    await store.commit(Batch(appends=[first], notes=[good]))
    await kept(store, note(2, "a", None, erases=True, run_id="", sequence=-1))
    assert await store.verify() == []
    for number, wrong in enumerate((
        note(3, "other", sequence=0), note(4, "a", sequence=7), note(5, "a", run_id="r9"),
        note(6, "a", sequence=0, tenant="other"),
    )):  # fmt: skip
        await kept(store, wrong)
        found = (await store.verify())[-1]
        assert (found.run_id, found.sequence) == (wrong.run_id, wrong.sequence)
        assert len(await store.verify()) == number + 1


async def test_an_erased_content_is_not_in_the_file_any_more(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    words = "nobody shall read this again " * 400
    await kept(sqlite, note(1, "a", words, tags=["private-tag"]), note(2, "b", "other"))
    await kept(sqlite, note(3, "a", None, erases=True))
    await sqlite.aclose()
    left = (tmp_path / "moot.db").read_bytes()
    assert b"nobody shall read this again" not in left
    assert b"private-tag" not in left


writes = st.lists(
    st.tuples(
        st.sampled_from(["acme", "other"]),
        st.sampled_from(["desk", "shelf"]),
        st.sampled_from("abc"),
        st.sampled_from(["put", "put", "put", "delete", "erase"]),
        st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True),
        st.none() | st.integers(1, 30),
        st.sampled_from(["r1", "r2"]),
    ),
    max_size=20,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(writes=writes, group=st.integers(1, 6))
def test_both_stores_remember_the_same(writes: list[Any], group: int) -> None:
    notes = [
        note(
            number, name, "text" if what == "put" else None, tenant=tenant, scope=scope,
            tags=tags if what == "put" else [], erases=what == "erase", run_id=run_id,
            expires_at=None if end is None or what != "put" else number + end,
        )
        for number, (tenant, scope, name, what, tags, end, run_id) in enumerate(writes, 1)
    ]  # fmt: skip

    async def compare() -> None:
        memory = MemoryStore()
        with tempfile.TemporaryDirectory() as folder:
            sqlite = await SqliteStore.open(Path(folder) / "moot.db")
            for start in range(0, len(notes), group):
                some = notes[start : start + group]
                await memory.commit(Batch(notes=some))
                await sqlite.commit(Batch(notes=some))
            assert await everything(sqlite, len(notes)) == await everything(memory, len(notes))
            await sqlite.aclose()

    asyncio.run(compare())


async def everything(store: Store, last: int) -> list[Any]:
    asked: list[Awaitable[Any]] = []
    for tenant in ("acme", "other"):
        asked.append(store.memory_revision(tenant))
        asked.append(store.memory_refs(tenant, last, 9))
        for scope in ("desk", "shelf"):
            asked.append(store.memory_ids(tenant, scope))
            asked.append(store.memory_rows_after(tenant, scope, last // 2, ("r1",)))
            for at in (None, 0, last // 3, last // 2, last):
                for now in (0, last, last + 9):
                    for tag in (None, "x"):
                        asked.append(store.notes(tenant, scope, at, now, tag, 2))
                        asked.append(store.notes(tenant, scope, at, now, tag, 9))
                asked += [store.note(tenant, scope, name, at) for name in "abc"]
                asked.append(store.forgotten(tenant, scope, last if at is None else at))
    return await asyncio.gather(*asked)
