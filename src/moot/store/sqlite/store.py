"""The SQLite store: writes go to the writer thread, reads to the reader threads."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
from msgspec.structs import astuple

from moot.core.errors import Conflict
from moot.core.search.query import Query
from moot.store import cursor
from moot.store.counts import Tally
from moot.store.memory_entries import MemoryRow
from moot.store.protocol import (
    Append,
    Batch,
    Definition,
    EffectRow,
    FoldSnapshot,
    InboxRow,
    IntegrityProblem,
    Key,
    Receipt,
    RunFilter,
    RunIndexRow,
    Store,
    WorkRow,
)
from moot.store.records import Delivery, DeliveryFilter, Lane, LedgerRow, Record
from moot.store.search import ReadMark, SearchPage
from moot.store.sqlite import maintenance, memory_entries
from moot.store.sqlite.errors import StoreReadOnly
from moot.store.sqlite.open import check_driver, open_to_read, open_to_write
from moot.store.sqlite.read import counts, deliveries, idempotency, queries, records
from moot.store.sqlite.read.batching import BatchedLookup
from moot.store.sqlite.read.readers import Readers
from moot.store.sqlite.read.runs import list_runs
from moot.store.sqlite.read.search import list_read_marks, move_read_mark, search_texts
from moot.store.sqlite.verify import verify_file, verify_log
from moot.store.sqlite.write import statements
from moot.store.sqlite.write.group_commit import Writer
from moot.store.sqlite.write.heads import LogHeads
from moot.store.sqlite.write.records import put_record
from moot.store.sqlite.write.transaction import transaction

T = TypeVar("T")

QUEUE_LIMIT = 10_000


class SqliteStore:
    """One file with one writing process. Created by ``open``; keeps the promises of ``Store``."""

    def __init__(
        self, path: Path, readers: Readers, writer: Writer | None, release: Callable[[], None]
    ) -> None:
        self._path = path
        self._readers = readers
        #: separate, so a long search does not delay reads of logs
        self._searchers = Readers(path, 1)
        self._receipts = BatchedLookup(readers, idempotency.find_receipts)
        self._messages = BatchedLookup(readers, idempotency.find_messages)
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

    async def read(
        self, tenant: str, run_id: str, after: int = -1, limit: int = 1000
    ) -> list[bytes]:
        return await self._readers.run(queries.read_events, tenant, run_id, after, limit)

    async def head(self, tenant: str, run_id: str) -> int | None:
        return await self._readers.run(queries.next_sequence, tenant, run_id)

    async def snapshot(self, tenant: str, run_id: str, fold_version: int) -> FoldSnapshot | None:
        return await self._readers.run(queries.find_snapshot, tenant, run_id, fold_version)

    async def sealed(self, tenant: str, run_id: str) -> dict[str, bytes]:
        return await self._readers.run(queries.read_sealed_values, tenant, run_id)

    async def receipt(self, tenant: str, operation: str, key: str) -> Receipt | None:
        return await self._receipts.find((tenant, operation, key))

    async def artifact(self, tenant: str, run_id: str, artifact_id: str) -> bytes | None:
        return await self._readers.run(queries.read_artifact, tenant, run_id, artifact_id)

    async def effect(self, tenant: str, run_id: str, invocation_id: str) -> EffectRow | None:
        return await self._readers.run(queries.find_effect, tenant, run_id, invocation_id)

    async def spent(self, tenant: str, day: int) -> tuple[int, int]:
        return await self._readers.run(queries.sum_spending, tenant, day)

    async def member_spending(
        self, tenant: str, member: str, first: int, last: int
    ) -> tuple[int, int]:
        return await self._readers.run(queries.sum_member_spending, tenant, member, first, last)

    # derived rows

    async def find_run(self, tenant: str, run_id: str) -> RunIndexRow | None:
        return await self._readers.run(queries.find_run, tenant, run_id)

    async def list_runs(
        self, tenant: str, where: RunFilter, before: str | None, limit: int
    ) -> tuple[list[RunIndexRow], str | None]:
        position = cursor.decode_position(before)
        return await self._readers.run(list_runs, tenant, where, position, limit)

    async def active_run(self, tenant: str, scope_id: str) -> str | None:
        return await self._readers.run(queries.find_active_run, tenant, scope_id)

    async def message(self, tenant: str, run_id: str, message_id: str) -> int | None:
        return await self._messages.find((tenant, run_id, message_id))

    async def inbox(self, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
        return await self._readers.run(queries.read_inbox, tenant, limit)

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        return await self._readers.run(counts.count_member_runs, tenant, member, since, most)

    async def newest_runs(self, tenant: str, member: str, most: int) -> list[RunIndexRow]:
        return await self._readers.run(counts.list_newest_runs, tenant, member, most)

    async def asked_by(self, tenant: str, member: str, most: int) -> list[tuple[int, InboxRow]]:
        return await self._readers.run(counts.list_member_questions, tenant, member, most)

    async def work(self, until: int, limit: int) -> list[WorkRow]:
        return await self._readers.run(queries.list_work, until, limit)

    async def next_work(self) -> int | None:
        return await self._readers.run(queries.next_work_due)

    async def rebuild(self, rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> None:
        """``rows`` must not write to this store: all writes wait until the rebuild ends."""
        await self._writer.call(maintenance.rebuild_job(rows, asyncio.get_running_loop()))
        await self._writer.reindex()

    async def runs(self) -> list[tuple[str, str]]:
        return await self._readers.run(queries.list_logs)

    # primary tables

    async def put_definition(self, definition: Definition) -> None:
        identity = definition.tenant, definition.workflow_id, definition.digest

        def put(db: apsw.Connection) -> None:
            db.execute(statements.DROP_DEFINITION, identity)
            db.execute(statements.PUT_DEFINITION, astuple(definition))

        await self._write(put)

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None:
        return await self._readers.run(queries.find_definition, tenant, workflow_id)

    async def definition_by_digest(self, tenant: str, digest: str) -> Definition | None:
        return await self._readers.run(queries.find_definition_by_digest, tenant, digest)

    async def is_defined_elsewhere(self, tenant: str, workflow_id: str) -> bool:
        return await self._readers.run(queries.is_defined_elsewhere, tenant, workflow_id)

    async def definitions(self, tenant: str) -> list[Definition]:
        return await self._readers.run(queries.list_definitions, tenant)

    async def put_record(self, record: Record) -> None:
        await self._write(lambda db: put_record(db, record))

    async def record(self, tenant: str, kind: str, name: str) -> Record | None:
        return await self._readers.run(records.find_record, tenant, kind, name)

    async def records(self, tenant: str, kind: str) -> list[Record]:
        return await self._readers.run(records.list_records, tenant, kind)

    async def record_page(
        self, tenant: str, kind: str, after: str, limit: int
    ) -> tuple[list[Record], int]:
        return await self._readers.run(records.read_record_page, tenant, kind, after, limit)

    async def record_history(self, tenant: str, kind: str, name: str) -> list[Record]:
        return await self._readers.run(records.list_record_versions, tenant, kind, name)

    async def record_tenants(self, kind: str) -> list[str]:
        return await self._readers.run(records.list_record_tenants, kind)

    async def put_key(self, key: Key) -> None:
        def put(db: apsw.Connection) -> None:
            holder = db.execute(statements.KEY_HOLDER, (key.hash,)).get
            if holder not in (None, key.id):
                raise Conflict("Another key has this secret.", keyId=holder)
            db.execute(statements.PUT_KEY, queries.columns_of_key(key))

        await self._write(put)

    async def key_by_hash(self, hash_: str) -> Key | None:
        return await self._readers.run(queries.find_key_by_hash, hash_)

    async def keys(self, tenant: str | None) -> list[Key]:
        return await self._readers.run(queries.list_keys, tenant)

    async def revoke_key(self, tenant: str | None, key_id: str, at: int) -> bool:
        values = {"tenant": tenant, "id": key_id, "at": at}
        return await self._write(lambda db: _changes(db, statements.REVOKE_KEY, values)) > 0

    async def forget_receipts(self, before: int) -> int:
        return await self._forget(statements.FORGET_RECEIPTS, before)

    async def _forget(self, sql: str, before: int) -> int:
        """Delete in small steps, so that commits do not wait long."""
        forgotten = 0
        while count := await self._write(lambda db: _changes(db, sql, (before,))):
            forgotten += count
        return forgotten

    async def secret(self, name: str, fresh: bytes) -> bytes:
        def put(db: apsw.Connection) -> bytes:
            db.execute(statements.PUT_SECRET, (name, fresh))
            return bytes(db.execute(statements.SECRET, (name,)).get)

        return await self._write(put)

    # ledgers and deliveries

    async def ledger(self, tenant: str, kind: str, name: str) -> LedgerRow | None:
        return await self._readers.run(deliveries.find_ledger, tenant, kind, name)

    async def due_ledgers(self, kind: str, until: int, limit: int) -> list[LedgerRow]:
        return await self._readers.run(deliveries.list_due_ledgers, kind, until, limit)

    async def next_ledger(self, kind: str) -> int | None:
        return await self._readers.run(deliveries.next_ledger_due, kind)

    async def delivery(self, tenant: str, subscription: str, key: str) -> Delivery | None:
        return await self._readers.run(deliveries.find_delivery, tenant, subscription, key)

    async def delivery_by_id(self, tenant: str, delivery_id: str) -> Delivery | None:
        return await self._readers.run(deliveries.find_delivery_by_id, tenant, delivery_id)

    async def deliveries(
        self, tenant: str, where: DeliveryFilter, before: str | None, limit: int
    ) -> tuple[list[Delivery], str | None]:
        list_name = tenant, repr(where)
        position = cursor.decode_position(cursor.unbind_cursor(before, *list_name))
        page, more = await self._readers.run(
            deliveries.list_deliveries, tenant, where, position, limit
        )
        return page, cursor.bind_cursor(more, *list_name)

    async def delivery_counts(self, tenant: str, subscription: str) -> dict[str, int]:
        return await self._readers.run(deliveries.count_deliveries, tenant, subscription)

    async def waiting_deliveries(
        self, tenant: str, subscription: str, limit: int
    ) -> list[Delivery]:
        return await self._readers.run(
            deliveries.list_waiting_deliveries, tenant, subscription, limit
        )

    async def lanes(self) -> list[Lane]:
        return await self._readers.run(deliveries.list_lanes)

    async def due_deliveries(
        self, tenant: str, subscription: str, until: int, limit: int
    ) -> list[Delivery]:
        return await self._readers.run(
            deliveries.list_due_deliveries, tenant, subscription, until, limit
        )

    async def forget_deliveries(self, before: int) -> int:
        return await self._forget(deliveries.FORGET, before)

    # memory entries

    async def memory_revision(self, tenant: str) -> int:
        return await self._readers.run(memory_entries.read_memory_revision, tenant)

    async def notes(
        self, tenant: str, scope: str, at: int | None, now: int, tag: str | None, limit: int
    ) -> list[MemoryRow]:
        return await self._readers.run(
            memory_entries.list_living_entries, tenant, scope, at, now, tag, limit
        )

    async def note(
        self, tenant: str, scope: str, memory_id: str, at: int | None
    ) -> MemoryRow | None:
        return await self._readers.run(
            memory_entries.read_entry_version, tenant, scope, memory_id, at
        )

    async def memory_rows_after(
        self, tenant: str, scope: str, after: int, roots: tuple[str, ...]
    ) -> list[MemoryRow]:
        return await self._readers.run(
            memory_entries.list_entries_after, tenant, scope, after, roots
        )

    async def written(self, tenant: str, write_id: str) -> MemoryRow | None:
        return await self._readers.run(memory_entries.find_entry_by_write, tenant, write_id)

    async def forgotten(self, tenant: str, scope: str, at: int) -> bool:
        return await self._readers.run(memory_entries.was_any_erased, tenant, scope, at)

    async def memory_ids(self, tenant: str, scope: str) -> list[str]:
        return await self._readers.run(memory_entries.list_entry_ids, tenant, scope)

    async def memory_refs(self, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
        return await self._readers.run(memory_entries.list_scopes, tenant, now, limit)

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

    async def stats(self) -> dict[str, Any]:
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
