"""Work on the whole file: figures, a copy, and the derived rows made anew."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw

from moot.core.errors import Conflict, RunNotFound, Unavailable
from moot.store.protocol import Append, EffectRow
from moot.store.sqlite.write.group_rows import Group
from moot.store.sqlite.write.heads import Heads
from moot.store.sqlite.write.records import Standing
from moot.store.sqlite.write.statements import CLEAR_DERIVED
from moot.store.sqlite.write.transaction import transaction

COUNTS = """
SELECT (SELECT count(*) FROM heads), (SELECT ifnull(sum(next_sequence), 0) FROM heads),
       (SELECT count(*) FROM work), (SELECT count(*) FROM receipts),
       (SELECT max(version) FROM schema_migrations)
"""
STATUSES = "SELECT status, count(*) FROM runs GROUP BY status ORDER BY status"

Rebuilt = list[tuple[Append, list[EffectRow]]]
#: runs whose rows are written at a time
CHUNK = 500


def stats(db: apsw.Connection, path: Path) -> dict[str, Any]:
    runs, events, work, receipts, schema = db.execute(COUNTS).get
    wal = Path(f"{path}-wal")
    return {
        "kind": "sqlite",
        "runs": runs,
        "events": events,
        "statuses": dict(db.execute(STATUSES)),
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


def backup(db: apsw.Connection, target: Path) -> None:
    """Copies under another name first: a file called ``target`` is always a whole copy."""
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


def rebuilder(
    rows: AsyncIterator[tuple[Append, list[EffectRow]]], loop: asyncio.AbstractEventLoop
) -> Callable[[apsw.Connection, Heads], None]:
    """A job for the writer: it pulls the rows from the loop, a chunk at a time.

    Nothing else is committed meanwhile, so the rows are those of the logs as they stand.
    """

    def work(db: apsw.Connection, heads: Heads) -> None:
        heads.clear()  # what it knows of work rows is about to be wrong
        try:
            with transaction(db):
                db.execute(CLEAR_DERIVED)
                while chunk := asyncio.run_coroutine_threadsafe(_take(rows), loop).result():
                    _write(db, heads, chunk)
        finally:
            heads.clear()

    return work


async def _take(rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> Rebuilt:
    chunk: Rebuilt = []
    while len(chunk) < CHUNK:
        try:
            chunk.append(await anext(rows))
        except StopAsyncIteration:
            break
    return chunk


def _write(db: apsw.Connection, heads: Heads, chunk: Rebuilt) -> None:
    heads.load(append.run_id for append, _ in chunk)
    group = Group(heads, Standing(db))
    for append, effects in chunk:
        head = heads.get(append.run_id)
        if head is None or head.tenant != append.tenant:
            raise RunNotFound(append.run_id)
        group.derive(head, append)
        group.index(effects)
    group.write(db)
    heads.trim()
