"""Work on the whole file: statistics, a backup, and a rebuild of derived rows."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import apsw

from moot.core.errors import Conflict, RunNotFound, Unavailable
from moot.store.protocol import Append, EffectRow
from moot.store.sqlite import migrations
from moot.store.sqlite.statements import transaction
from moot.store.sqlite.write.group_rows import BatchGroup
from moot.store.sqlite.write.heads import LogHeads
from moot.store.sqlite.write.records import RecordChanges
from moot.store.sqlite.write.statements import SQL

DerivedRows = list[tuple[Append, list[EffectRow]]]
#: the number of runs whose rows are written at a time
CHUNK = 500


def collect_stats(db: apsw.Connection, path: Path) -> dict[str, object]:
    runs, events, work, receipts, schema = db.execute(migrations.SQL["COUNTS"]).get
    wal = Path(f"{path}-wal")
    return {
        "kind": "sqlite",
        "runs": runs,
        "events": events,
        "statuses": dict(db.execute(migrations.SQL["STATUSES"])),
        "work": work,
        "receipts": receipts,
        "file_bytes": path.stat().st_size,
        "wal_bytes": wal.stat().st_size if wal.exists() else 0,
        "page_size": db.pragma("page_size"),
        "pages": db.pragma("page_count"),
        "free_pages": db.pragma("freelist_count"),
        "schema_version": schema,
        "sqlite_version": apsw.sqlite_lib_version(),
    }


def write_backup(db: apsw.Connection, target: Path) -> None:
    """Copy to another name first, so a file called ``target`` is always complete."""
    if target.exists():
        raise Conflict(f"{target} exists already; a backup never replaces a file.")
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        db.execute("VACUUM INTO ?", (str(partial),))
        _sync(partial)
        partial.rename(target)
    except (apsw.Error, OSError) as failure:
        partial.unlink(missing_ok=True)
        raise Unavailable(f"The backup could not be written to {target}: {failure}.") from failure
    _sync(target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rebuild_job(
    rows: AsyncIterator[tuple[Append, list[EffectRow]]], loop: asyncio.AbstractEventLoop
) -> Callable[[apsw.Connection, LogHeads], None]:
    """Return a job for the writer that pulls the rows from the loop, a chunk at a time.

    The writer commits nothing else during the job, so the rows match the logs.
    """

    def work(db: apsw.Connection, heads: LogHeads) -> None:
        heads.clear()  # the cached due times are about to be wrong
        try:
            with transaction(db):
                db.execute(SQL["CLEAR_DERIVED"])
                while chunk := asyncio.run_coroutine_threadsafe(_next_chunk(rows), loop).result():
                    _write_chunk(db, heads, chunk)
        finally:
            heads.clear()

    return work


async def _next_chunk(rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> DerivedRows:
    chunk: DerivedRows = []
    while len(chunk) < CHUNK:
        try:
            chunk.append(await anext(rows))
        except StopAsyncIteration:
            break
    return chunk


def _write_chunk(db: apsw.Connection, heads: LogHeads, chunk: DerivedRows) -> None:
    heads.load(append.run_id for append, _ in chunk)
    group = BatchGroup(heads, RecordChanges(db))
    for append, effects in chunk:
        head = heads.get(append.run_id)
        if head is None or head.tenant != append.tenant:
            raise RunNotFound(append.run_id)
        group.derive(head, append)
        group.index(effects)
    group.write(db)
    heads.trim()
