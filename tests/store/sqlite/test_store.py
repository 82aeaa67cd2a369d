"""What is special to the file: its lock, its schema, its writer thread, its disk."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from moot.core.errors import Conflict, SequenceConflict, StorageFailed, Unavailable
from moot.store.protocol import Append, Batch, RunFilter, WorkRow
from moot.store.sqlite import SchemaRefused, SqliteStore, StoreBusy, StoreReadOnly, StoreRefused
from moot.store.sqlite.migrations import Migration, load_migrations, migrate, require_current
from moot.store.sqlite.open import check_driver
from tests.support.store.rows import append, batch, event, events, listed, receipt, row
from tests.support.store.sqlite_access import handed_over, in_one_group, meddling, writer_stopped


async def on_writer(store: SqliteStore, sql: str) -> Any:
    return await store._writer.call(lambda db, _: db.execute(sql).get)


# opening


async def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    first = await SqliteStore.open(tmp_path / "moot.db")
    with pytest.raises(StoreBusy, match="in use by another Moot"):
        await SqliteStore.open(tmp_path / "moot.db")
    await first.commit(batch(append("r1")))
    await first.aclose()
    second = await SqliteStore.open(tmp_path / "moot.db")
    assert await second.head("acme", "r1") == 1
    await second.aclose()


async def test_a_reader_sees_what_a_running_server_commits(sqlite: SqliteStore) -> None:
    reader = await SqliteStore.open(sqlite._path, readonly=True)
    await sqlite.commit(batch(append("r1", 0, 2)))
    assert await reader.read("acme", "r1") == events("r1", 0, 2)
    assert await reader.verify() == []
    assert (await reader.stats())["events"] == 2
    with pytest.raises(StoreReadOnly, match="reading only"):
        await reader.commit(batch(append("r2")))
    with pytest.raises(StoreReadOnly):
        await reader.forget_receipts(1)
    await reader.aclose()
    await sqlite.commit(batch(append("r1", 2)))


async def test_a_file_can_be_read_when_no_server_runs(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db")
    await store.commit(batch(append("r1")))
    await store.aclose()
    reader = await SqliteStore.open(tmp_path / "moot.db", readonly=True)
    assert await reader.head("acme", "r1") == 1
    await reader.aclose()


async def test_a_closed_store_leaves_one_whole_file(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db")
    await store.commit(batch(append("r1")))
    await store.aclose()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["moot.db", "moot.db.lock"]


async def test_a_missing_file_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="cannot be opened"):
        await SqliteStore.open(tmp_path / "moot.db", readonly=True)
    assert list(tmp_path.iterdir()) == []


async def test_a_missing_folder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="No such file"):
        await SqliteStore.open(tmp_path / "nowhere" / "moot.db")


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, readonly: bool) -> None:
    (tmp_path / "moot.db").write_bytes(b"dear diary " * 100)
    for _ in range(2):  # the lock of the first try is gone
        with pytest.raises(StoreRefused, match="not a database"):
            await SqliteStore.open(tmp_path / "moot.db", readonly=readonly)


def test_an_old_sqlite_is_refused() -> None:
    check_driver()
    check_driver("3.51.3")
    with pytest.raises(StoreRefused, match=r"SQLite 3.51.2 is too old"):
        check_driver("3.51.2")


async def test_the_writer_syncs_every_commit(sqlite: SqliteStore) -> None:
    assert await on_writer(sqlite, "PRAGMA journal_mode") == "wal"
    assert await on_writer(sqlite, "PRAGMA synchronous") == 2
    assert await on_writer(sqlite, "PRAGMA wal_autocheckpoint") == 4000


# the schema


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(
    ("meddle", "sentence"),
    [
        ("INSERT INTO schema_migrations VALUES (99, '0099_later.sql', 'x')", "by a newer Moot"),
        ("UPDATE schema_migrations SET checksum = 'x' WHERE version = 1", "Migration 1"),
    ],
)
async def test_a_newer_or_altered_schema_is_refused(
    tmp_path: Path, readonly: bool, meddle: str, sentence: str
) -> None:
    await (await SqliteStore.open(tmp_path / "moot.db")).aclose()
    with meddling(tmp_path / "moot.db") as db:
        db.execute(meddle)
    with pytest.raises(SchemaRefused, match=sentence):
        await SqliteStore.open(tmp_path / "moot.db", readonly=readonly)


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with meddling(tmp_path / "moot.db") as db:
        db.execute("CREATE TABLE songs (title)")
    with pytest.raises(SchemaRefused, match="not one of Moot's"):
        await SqliteStore.open(tmp_path / "moot.db")
    with meddling(tmp_path / "moot.db") as db:
        assert db.execute("SELECT name FROM sqlite_schema").get == "songs"


def test_migrations_are_applied_once_and_in_order() -> None:
    db = apsw.Connection(":memory:")
    known = load_migrations()
    later = Migration(len(known) + 1, "later.sql", "CREATE TABLE later (x); DROP TABLE later;")
    migrate(db, known)
    with pytest.raises(SchemaRefused, match="older schema"):
        require_current(db, [*known, later])
    migrate(db, [*known, later])
    migrate(db, [*known, later])
    require_current(db, [*known, later])
    assert [migration.version for migration in known] == list(range(1, len(known) + 1))


def test_a_migration_that_fails_leaves_the_schema_as_it_was() -> None:
    db = apsw.Connection(":memory:")
    known = load_migrations()
    migrate(db, known)
    broken = Migration(len(known) + 1, "broken.sql", "CREATE TABLE half (x); nonsense;")
    with pytest.raises(apsw.SQLError):
        migrate(db, [*known, broken])
    require_current(db, known)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").get == 0


# the writer


async def test_batches_that_wait_together_share_one_transaction(sqlite: SqliteStore) -> None:
    commits: list[int] = []
    await sqlite._writer.call(lambda db, _: db.set_commit_hook(lambda: bool(commits.append(1))))
    await in_one_group(sqlite, [sqlite.commit(listed(f"r{number}")) for number in range(700)])
    assert len(commits) == 1
    assert (await sqlite.stats())["statuses"] == {"running": 700}
    assert await sqlite.verify() == []


async def test_only_the_last_word_of_a_group_is_written(sqlite: SqliteStore) -> None:
    await sqlite.commit(batch(append("r0", work=3)))
    touched: list[tuple[str, int]] = []

    def note(_: int, __: str, table: str, n: int) -> None:
        touched.append((table, n))

    await sqlite._writer.call(lambda db, _: db.set_update_hook(note))
    ended = row("r1", status="completed")
    await in_one_group(
        sqlite,
        [
            sqlite.commit(batch(append("r1", 0, row=row("r1"), work=0, snapshot=b"1"))),
            sqlite.commit(batch(append("r1", 1, row=ended, work=None, snapshot=b"2"))),
            sqlite.commit(batch(append("r0", 1, work=None))),
            sqlite.commit(batch(append("r0", 2, work=3))),
        ],
    )
    assert sorted(touched) == [("heads", 1), ("heads", 2), ("runs", 2), ("snapshots", 2)]
    assert await sqlite.find_run("acme", "r1") == ended
    assert await sqlite.work(9, 9) == [WorkRow("acme", "r0", 3)]


async def test_conflicts_are_found_between_the_batches_of_a_group(sqlite: SqliteStore) -> None:
    both = batch(append("r1", 1), append("r9", 1))
    ends = await in_one_group(
        sqlite,
        [
            sqlite.commit(batch(append("r1"), receipt=receipt("k"))),
            sqlite.commit(batch(append("r1"))),
            sqlite.commit(batch(append("r2"), receipt=receipt("k"))),
            sqlite.commit(both),
            sqlite.commit(batch(append("r1", 1))),
        ],
    )
    assert [type(end) for end in ends] == [
        type(None), SequenceConflict, SequenceConflict, SequenceConflict, type(None),
    ]  # fmt: skip
    assert await sqlite.runs() == [("acme", "r1")]
    assert await sqlite.verify() == []


async def test_too_many_waiting_batches_are_refused_with_a_time_to_return(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db", queue_limit=2)
    async with writer_stopped(store):
        waiting = [asyncio.ensure_future(store.commit(batch(append(f"r{n}")))) for n in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as refusal:
            await store.commit(batch(append("r9")))
    assert refusal.value.retry_after == 1
    await asyncio.gather(*waiting)
    await store.commit(batch(append("r9")))
    assert len(await store.runs()) == 3
    await store.aclose()


async def test_what_comes_in_one_turn_of_the_loop_is_one_group_however_the_threads_run(
    sqlite: SqliteStore,
) -> None:
    async with writer_stopped(sqlite):
        waiting = [asyncio.ensure_future(sqlite.commit(batch(append(f"r{n}")))) for n in range(9)]
        await handed_over(sqlite, 9)
        assert sqlite._writer._queue.qsize() == 1
    await asyncio.gather(*waiting)


async def test_a_batch_that_cannot_be_stored_does_not_harm_its_neighbours(
    sqlite: SqliteStore,
) -> None:
    unstorable = batch(append("r2", row=row("r2", created_at=2**70)))
    no_bytes = batch(Append(tenant="acme", run_id="r3", first=0, events=["text"]))  # type: ignore[list-item]
    commits = [batch(append("r1")), unstorable, no_bytes, batch(append("r4")), batch(append("r4"))]
    ends = await in_one_group(sqlite, map(sqlite.commit, commits))
    assert [type(end) for end in ends] == [
        type(None), OverflowError, TypeError, type(None), SequenceConflict,
    ]  # fmt: skip
    assert await sqlite.runs() == [("acme", "r1"), ("acme", "r4")]
    assert await sqlite.verify() == []


async def test_a_caller_who_gives_up_does_not_disturb_the_group(sqlite: SqliteStore) -> None:
    async with writer_stopped(sqlite):
        tasks = [asyncio.ensure_future(sqlite.commit(batch(append(f"r{n}")))) for n in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
    await tasks[1]
    assert tasks[0].cancelled()
    assert await sqlite.runs() == [("acme", "r0"), ("acme", "r1")]


async def test_closing_finishes_what_was_accepted_and_takes_nothing_new(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db")
    async with writer_stopped(store):
        accepted = asyncio.ensure_future(store.commit(batch(append("r1"))))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.aclose())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="closed"):
            await store.commit(batch(append("r2")))
    await asyncio.gather(accepted, closing)
    with pytest.raises(Unavailable, match="closed"):
        await store.head("acme", "r1")
    again = await SqliteStore.open(tmp_path / "moot.db")
    assert await again.runs() == [("acme", "r1")]
    await again.aclose()


async def test_the_cache_of_heads_is_bounded(sqlite: SqliteStore) -> None:
    heads = sqlite._writer._heads
    heads._limit = 3
    for number in range(6):
        await sqlite.commit(batch(append(f"r{number}", work=number)))
    assert list(heads._cached) == ["r3", "r4", "r5"]
    await sqlite.commit(batch(append("r0", 1, work=None)))
    assert list(heads._cached) == ["r4", "r5", "r0"]
    assert [due.run_id for due in await sqlite.work(9, 9)] == ["r1", "r2", "r3", "r4", "r5"]


# the disk


def large(run_id: str, first: int = 0) -> Batch:
    body = event(run_id, first, "x" * 100_000)
    return batch(Append(tenant="acme", run_id=run_id, first=first, events=[body]))


async def test_a_full_disk_fails_the_group_and_is_forgotten_when_there_is_room(
    sqlite: SqliteStore,
) -> None:
    await sqlite.commit(batch(append("r1", work=1)))
    pages = await on_writer(sqlite, "PRAGMA page_count")
    await on_writer(sqlite, f"PRAGMA max_page_count = {pages}")
    batches = [batch(append("r1", 1, work=None)), large("r2"), batch(append("r3"))]
    ends = await in_one_group(sqlite, map(sqlite.commit, batches))
    assert [type(end) for end in ends] == [StorageFailed] * 3
    assert "disk refused" in str(ends[0])
    assert await sqlite.runs() == [("acme", "r1")]
    assert await sqlite.head("acme", "r1") == 1
    assert await sqlite.work(9, 9) == [WorkRow("acme", "r1", 1)]
    await on_writer(sqlite, "PRAGMA max_page_count = 1000000")
    assert await in_one_group(sqlite, map(sqlite.commit, batches)) == [None] * 3
    assert await sqlite.runs() == [("acme", "r1"), ("acme", "r2"), ("acme", "r3")]
    assert await sqlite.work(9, 9) == []
    assert await sqlite.verify() == []


async def test_a_rare_write_on_a_full_disk_fails_and_the_writer_lives_on(
    sqlite: SqliteStore,
) -> None:
    pages = await on_writer(sqlite, "PRAGMA page_count")
    await on_writer(sqlite, f"PRAGMA max_page_count = {pages}")
    big = receipt("k")
    with pytest.raises(StorageFailed):
        await sqlite.commit(
            Batch(receipt=big, artifacts=[], sealed=[("a", "r", "n", b"x" * 99999)])
        )
    await on_writer(sqlite, "PRAGMA max_page_count = 1000000")
    await sqlite.commit(Batch(receipt=big))
    assert await sqlite.receipt("acme", "POST /runs", "k") == big


async def test_a_backup_is_a_whole_store_taken_while_in_use(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    await sqlite.commit(listed("r1"))
    writing = asyncio.gather(*(sqlite.commit(listed(f"s{number}")) for number in range(50)))
    await sqlite.backup(str(tmp_path / "copy.db"))
    await writing
    copy = await SqliteStore.open(tmp_path / "copy.db")
    assert await copy.verify() == []
    assert await copy.read("acme", "r1") == events("r1", 0, 1)
    rows, _ = await copy.list_runs("acme", RunFilter(), None, 100)
    assert len(rows) == len(await copy.runs()) >= 1
    await copy.commit(batch(append("r1", 1)))
    await copy.aclose()
    assert not list(tmp_path.glob("*.partial"))


async def test_a_backup_never_replaces_a_file(sqlite: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(Conflict, match="exists already"):
        await sqlite.backup(str(tmp_path / "precious"))
    assert (tmp_path / "precious").read_text() == "mine"
    with pytest.raises(Unavailable, match="could not be written"):
        await sqlite.backup(str(tmp_path / "nowhere" / "copy.db"))


async def test_stats_tell_the_sizes_and_versions(sqlite: SqliteStore) -> None:
    figures = await sqlite.stats()
    assert figures["schema_version"] == len(load_migrations())
    assert figures["sqlite_version"] == apsw.sqlite_lib_version()
    assert figures["file_bytes"] >= 0
    assert figures["wal_bytes"] > 0
    assert figures["pages"] * figures["page_size"] > 0
