"""The SQLite store: writes go to the writer thread, reads to the reader threads."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
from msgspec.json import encode
from msgspec.structs import asdict, astuple

from moot.core.errors import Conflict
from moot.core.search.query import Query
from moot.store import cursor
from moot.store.protocol import (
    Append,
    Batch,
    Definition,
    EffectRow,
    IntegrityProblem,
    Key,
    Receipt,
    Store,
)
from moot.store.records import Record
from moot.store.search import ReadMark, SearchPage
from moot.store.sqlite import maintenance
from moot.store.sqlite.errors import StoreReadOnly
from moot.store.sqlite.memory_entries import MemoryQueries
from moot.store.sqlite.open import check_driver, open_to_read, open_to_write
from moot.store.sqlite.read import records
from moot.store.sqlite.read.batching import BatchedLookup, find_messages, find_receipts
from moot.store.sqlite.read.queries import IndexQueries, LogQueries, RegistryQueries
from moot.store.sqlite.read.readers import Readers
from moot.store.sqlite.read.records import RecordQueries
from moot.store.sqlite.read.search import list_read_marks, move_read_mark, search_texts
from moot.store.sqlite.statements import transaction
from moot.store.sqlite.verify import verify_file, verify_log
from moot.store.sqlite.write.group_commit import Writer
from moot.store.sqlite.write.heads import LogHeads
from moot.store.sqlite.write.records import put_record
from moot.store.sqlite.write.statements import SQL

T = TypeVar("T")

QUEUE_LIMIT = 10_000


class SqliteStore(LogQueries, IndexQueries, RegistryQueries, RecordQueries, MemoryQueries):
    """One file with one writing process. Created by ``open``; keeps the promises of ``Store``."""

    def __init__(
        self, path: Path, readers: Readers, writer: Writer | None, release: Callable[[], None]
    ) -> None:
        super().__init__(readers)
        self._path = path
        #: separate, so a long search does not delay reads of logs
        self._searchers = Readers(path, 1)
        self._receipts = BatchedLookup(readers, find_receipts)
        self._messages = BatchedLookup(readers, find_messages)
        self._write_side = writer
        self._release = release

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        readonly: bool = False,
        queue_limit: int = QUEUE_LIMIT,
    ) -> "SqliteStore":
        """Create or migrate the file. Raise StoreRefused when that is impossible.

        With ``readonly`` the file must exist; a server may have it open.
        """
        check_driver()
        file = Path(path)
        if readonly:
            readers = await asyncio.to_thread(open_to_read, file)
            return cls(file, readers, None, readers.close)
        write_side = await asyncio.to_thread(open_to_write, file)
        writer = Writer(write_side.db, queue_limit=queue_limit)
        return cls(file, write_side.readers, writer, write_side.close)

    @property
    def _writer(self) -> Writer:
        if self._write_side is None:
            raise StoreReadOnly(f"{self._path} is open for reading only; nothing was changed.")
        return self._write_side

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run a rare write in a transaction of its own."""

        def alone(db: apsw.Connection, _: LogHeads) -> T:
            with transaction(db):
                return work(db)

        return await self._writer.call(alone)

    # the log

    def commit(self, batch: Batch) -> Coroutine[Any, Any, None]:
        return self._writer.commit(batch)

    async def settled(self) -> None:
        await self._writer.call(lambda db, heads: None)

    async def receipt(self, tenant: str, operation: str, key: str) -> Receipt | None:
        return await self._receipts.find((tenant, operation, key))

    # derived rows

    async def message(self, tenant: str, run_id: str, message_id: str) -> int | None:
        return await self._messages.find((tenant, run_id, message_id))

    async def rebuild(self, rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> None:
        """``rows`` must not write to this store: all writes wait until the rebuild ends."""
        await self._writer.call(maintenance.rebuild_job(rows, asyncio.get_running_loop()))
        await self._writer.reindex()

    # primary tables

    async def put_definition(self, definition: Definition) -> None:
        identity = definition.tenant, definition.workflow_id, definition.digest

        def put(db: apsw.Connection) -> None:
            db.execute(SQL["DROP_DEFINITION"], identity)
            db.execute(SQL["PUT_DEFINITION"], astuple(definition))

        await self._write(put)

    async def put_record(self, record: Record) -> None:
        await self._write(lambda db: put_record(db, record))

    async def put_key(self, key: Key) -> None:
        def put(db: apsw.Connection) -> None:
            holder = db.execute(SQL["KEY_HOLDER"], (key.hash,)).get
            if holder not in (None, key.id):
                raise Conflict("Another key has this secret.", keyId=holder)
            texts = {"scopes": encode(key.scopes), "speaks_as": encode(key.speaks_as)}
            db.execute(SQL["PUT_KEY"], tuple((asdict(key) | texts).values()))

        await self._write(put)

    async def revoke_key(self, tenant: str | None, key_id: str, at: int) -> bool:
        values = {"tenant": tenant, "id": key_id, "at": at}
        return await self._write(lambda db: _changes(db, SQL["REVOKE_KEY"], values)) > 0

    async def forget_receipts(self, before: int) -> int:
        return await self._forget(SQL["FORGET_RECEIPTS"], before)

    async def forget_deliveries(self, before: int) -> int:
        return await self._forget(records.SQL["FORGET_DELIVERIES"], before)

    async def _forget(self, sql: str, before: int) -> int:
        """Delete in small steps, so that commits do not wait long."""
        forgotten = 0
        while count := await self._write(lambda db: _changes(db, sql, (before,))):
            forgotten += count
        return forgotten

    async def secret(self, name: str, fresh: bytes) -> bytes:
        def put(db: apsw.Connection) -> bytes:
            db.execute(SQL["PUT_SECRET"], (name, fresh))
            return bytes(db.execute(SQL["SECRET"], (name,)).get)

        return await self._write(put)

    # search and read marks

    async def search(self, tenant: str, query: Query, before: str | None, limit: int) -> SearchPage:
        """A file that is open for reading only is searched as far as its index goes."""
        (position,) = (cursor.FIRST,) if before is None else cursor.unpack_numbers(before, 1)
        if self._write_side is not None:
            await self._write_side.catch_up()
        return await self._searchers.run(search_texts, tenant, query, position, limit)

    async def mark_read(self, mark: ReadMark) -> ReadMark:
        return await self._write(lambda db: move_read_mark(db, mark))

    async def read_marks(self, tenant: str, reader: str, threads: list[str]) -> list[ReadMark]:
        return await self._readers.run(list_read_marks, tenant, reader, threads)

    # the whole file

    async def verify(self) -> list[IntegrityProblem]:
        return await self._readers.run_alone(verify_file)

    async def verify_log(self, tenant: str, run_id: str) -> list[IntegrityProblem]:
        return await self._readers.run_alone(lambda db: verify_log(db, tenant, run_id))

    async def stats(self) -> dict[str, object]:
        return await self._readers.run(maintenance.collect_stats, self._path)

    async def backup(self, target: str) -> None:
        await self._readers.run_alone(lambda db: maintenance.write_backup(db, Path(target)))

    async def aclose(self) -> None:
        if self._write_side is not None:
            await self._write_side.aclose()
        await asyncio.to_thread(self._searchers.close)
        await asyncio.to_thread(self._release)


def _changes(db: apsw.Connection, sql: str, values: Any) -> int:
    db.execute(sql, values)
    return db.changes()


if TYPE_CHECKING:
    _conforms: type[Store] = SqliteStore
