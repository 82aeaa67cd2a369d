"""Collect the rows of many batches for one transaction, the last of each run."""

from typing import Any

import apsw
import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from moot.core.errors import Conflict, SequenceConflict
from moot.core.errors.triggers import Overtaken
from moot.store.hash_chain import chain_scope, hash_event
from moot.store.memory_entries import MemoryRow
from moot.store.protocol import Append, Batch, EffectRow, InboxRow, Receipt, RunIndexRow
from moot.store.sqlite import memory_entries
from moot.store.sqlite.write import statements
from moot.store.sqlite.write.heads import LogHead, LogHeads
from moot.store.sqlite.write.records import RecordChanges

ReceiptKey = tuple[str, str, str]

_encode = msgspec.json.Encoder().encode


def receipt_key(receipt: Receipt) -> ReceiptKey:
    return receipt.tenant, receipt.operation, receipt.key


class BatchGroup:
    """The rows of batches added one by one. A batch in conflict is left out completely."""

    def __init__(self, heads: LogHeads, records: RecordChanges) -> None:
        self._heads = heads
        self._records = records
        self.taken: set[ReceiptKey] = set()
        self.touched: dict[str, LogHead] = {}
        self._events: list[tuple[Any, ...]] = []
        self._runs: dict[int, RunIndexRow] = {}
        self._work: dict[int, tuple[LogHead, int | None]] = {}
        self._snapshots: dict[int, tuple[int, int, bytes]] = {}
        self._inbox: dict[int, tuple[str, list[InboxRow]]] = {}
        self._messages: list[tuple[Any, ...]] = []
        self._texts: list[tuple[Any, ...]] = []
        self._effects: dict[tuple[str, str, str], EffectRow] = {}
        self._receipts: list[Receipt] = []
        self._artifacts: dict[tuple[str, str, str], bytes] = {}
        self._unsealed: dict[tuple[str, str], None] = {}
        self._sealed: dict[tuple[str, str], dict[str, bytes | None]] = {}
        self._memory_rows: list[MemoryRow] = []
        self._inboxes: dict[str, None] = {}

    def add(self, batch: Batch) -> Conflict | None:
        """Add the whole batch, or return the error that excludes it."""
        conflict = self._conflict(batch)
        if conflict is not None:
            return SequenceConflict(conflict)
        if (outdated := self._records.find_outdated(batch)) is not None:
            return Overtaken(outdated)
        self._records.add(batch)
        for append in batch.appends:
            self._append(append)
        self.index(batch.effects)
        if batch.receipt is not None:
            self.taken.add(receipt_key(batch.receipt))
            self._receipts.append(batch.receipt)
        for artifact in batch.artifacts:
            place = artifact.tenant, artifact.run_id, artifact.artifact_id
            self._artifacts[place] = artifact.body
        if batch.sealed or batch.unseal:
            self._seal(batch)
        self._memory_rows += batch.notes
        self._inboxes |= dict.fromkeys(batch.inboxes)
        return None

    def _conflict(self, batch: Batch) -> str | None:
        """Return the run whose log the batch does not continue; '' for a taken receipt alone."""
        appends = batch.appends
        for append in appends:
            head = self._heads.get(append.run_id)
            if head is None:
                continues = append.first == 0
            else:
                continues = head.next_sequence == append.first and head.tenant == append.tenant
            if not continues:
                return append.run_id
        twice = len(appends) > 1 and len({append.run_id for append in appends}) < len(appends)
        taken = batch.receipt is not None and receipt_key(batch.receipt) in self.taken
        if twice or taken:
            return appends[0].run_id if appends else ""
        return None

    def _append(self, append: Append) -> None:
        tenant, run_id = append.tenant, append.run_id
        head = self._heads.get(run_id) or self._heads.create(run_id, tenant)
        self.touched[run_id] = head
        n, sequence, last = head.n, head.next_sequence, head.hash
        scope = chain_scope(tenant, run_id)
        for body in append.events:
            last = hash_event(last, scope, sequence, body)
            self._events.append((n, sequence, last, body))
            sequence += 1
        head.next_sequence, head.hash = sequence, last
        self.derive(head, append)

    def derive(self, head: LogHead, append: Append) -> None:
        """Take the run's derived rows; they replace those of earlier batches."""
        if append.row is not None:
            self._runs[head.n] = append.row
        if append.work is not UNSET:
            self._work[head.n] = (head, append.work)
        if append.inbox is not UNSET:
            self._inbox[head.n] = (append.tenant, append.inbox)
        for message_id, sequence in append.messages:
            self._messages.append((head.n, message_id, sequence))
        for text in append.texts:
            self._texts.append((text.at, head.n, text.sequence, text.source))
        if append.snapshot is not None:
            position = append.first + len(append.events)
            self._snapshots[head.n] = (append.fold_version, position, append.snapshot)

    @property
    def texts(self) -> int:
        """The number of events to index."""
        return len(self._texts)

    def index(self, effects: list[EffectRow]) -> None:
        for effect in effects:
            place = effect.tenant, effect.run_id, effect.invocation_id
            indexed = self._effects.get(place)
            if indexed is None or effect.sequence >= indexed.sequence:
                self._effects[place] = effect

    def _seal(self, batch: Batch) -> None:
        for tenant, run_id, name, value in batch.sealed:
            self._sealed.setdefault((tenant, run_id), {})[name] = value
        for run in batch.unseal:
            self._unsealed[run] = None
            self._sealed.pop(run, None)

    def write(self, db: apsw.Connection) -> None:
        """Write all rows. The caller must hold a transaction."""
        self._write_log(db)
        self._write_derived(db)
        self._write_primary(db)
        self._records.write(db)

    def _write_log(self, db: apsw.Connection) -> None:
        heads = [
            (head.n, head.tenant, run_id, head.next_sequence, head.hash)
            for run_id, head in self.touched.items()
        ]
        statements.PUT_HEADS.run(db, heads)
        statements.ADD_EVENTS.run(db, self._events)

    def _write_derived(self, db: apsw.Connection) -> None:
        statements.PUT_RUNS.run(db, [(n, *astuple(row)) for n, row in self._runs.items()])
        self._write_work(db)
        self._write_inbox(db)
        statements.PUT_MESSAGES.run(db, self._messages)
        statements.ADD_TEXTS.run(db, self._texts)
        snapshots = [(n, *cached) for n, cached in self._snapshots.items()]
        statements.PUT_SNAPSHOTS.run(db, snapshots)
        statements.PUT_EFFECTS.run(db, [astuple(effect) for effect in self._effects.values()])

    def _write_inbox(self, db: apsw.Connection) -> None:
        """Write inbox rows one by one: they are rare, because people answer them."""
        for n, (tenant, rows) in self._inbox.items():
            db.execute(statements.SQL["DROP_INBOX"], (n,))
            for row in rows:
                columns = list(astuple(row))
                columns[6] = _encode(row.actions).decode()
                db.execute(statements.SQL["ADD_INBOX"], (n, *columns))
            db.execute(statements.SQL["BUMP_INBOX"], (tenant,))
        for tenant in self._inboxes:
            db.execute(statements.SQL["BUMP_INBOX"], (tenant,))

    def _write_work(self, db: apsw.Connection) -> None:
        put: list[tuple[int, int]] = []
        drop: list[tuple[int]] = []
        for n, (head, due_at) in self._work.items():
            if due_at == head.due_at:
                continue
            if due_at is None:
                drop.append((n,))
            else:
                put.append((n, due_at))
            head.due_at = due_at
        statements.PUT_WORK.run(db, put)
        statements.DROP_WORK.run(db, drop)

    def _write_primary(self, db: apsw.Connection) -> None:
        receipts = [
            (*receipt_key(r), r.digest, r.status, _encode(r.headers), r.body, r.created_at)
            for r in self._receipts
        ]
        statements.ADD_RECEIPTS.run(db, receipts)
        artifacts = [(*place, body) for place, body in self._artifacts.items()]
        statements.PUT_ARTIFACTS.run(db, artifacts)
        self._write_sealed(db)
        for row in self._memory_rows:
            memory_entries.write_entry(db, row)

    def _write_sealed(self, db: apsw.Connection) -> None:
        rows = [
            (*run, name, value)
            for run, values in self._sealed.items()
            for name, value in values.items()
        ]
        statements.UNSEAL.run(db, list(self._unsealed))
        statements.SEAL.run(db, [row for row in rows if row[3] is not None])
        statements.FORGET_SEALED.run(db, [row[:3] for row in rows if row[3] is None])
