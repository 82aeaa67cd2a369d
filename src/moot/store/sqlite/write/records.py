"""Collect and write the changes of records, ledgers and deliveries in one group."""

from typing import Any

import apsw
import msgspec
from msgspec.structs import astuple

from moot.store.protocol import Batch
from moot.store.records import Delivery, Guard, LedgerRow, Record

RecordPlace = tuple[str, str, str]

RECORD_REVISION = """
SELECT id FROM records WHERE tenant = ? AND kind = ? AND name = ? ORDER BY id DESC LIMIT 1
"""
LEDGER_REVISION = "SELECT revision FROM ledgers WHERE tenant = ? AND kind = ? AND name = ?"
DELIVERY_REVISION = """
SELECT revision FROM deliveries WHERE tenant = ? AND subscription = ? AND key = ?
"""
PUT_RECORD = """
INSERT INTO records (tenant, kind, name, version, body, created_at, by, gone)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
PUT_LEDGER = """
INSERT INTO ledgers (tenant, kind, name, revision, body, due_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, kind, name) DO UPDATE SET revision = excluded.revision,
  body = excluded.body, due_at = excluded.due_at
"""
DROP_LEDGER = "DELETE FROM ledgers WHERE tenant = ? AND kind = ? AND name = ?"
PUT_DELIVERY = """
INSERT INTO deliveries (tenant, subscription, key, delivery_id, source, state, received_at,
                        updated_at, revision, due_at, run_id, member, subject, reason, attempts,
                        body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, subscription, key) DO UPDATE SET delivery_id = excluded.delivery_id,
  state = excluded.state, updated_at = excluded.updated_at, revision = excluded.revision,
  due_at = excluded.due_at, run_id = excluded.run_id, member = excluded.member,
  subject = excluded.subject, reason = excluded.reason, attempts = excluded.attempts,
  body = excluded.body
"""
DROP_DELIVERY = "DELETE FROM deliveries WHERE tenant = ? AND subscription = ? AND key = ?"

#: the revision of a record of this group; the real one is unknown until the record is written
FRESH = -1

_encode = msgspec.json.Encoder().encode


class RecordChanges:
    """Changes of the batches added so far, and the revisions after them."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._revisions: dict[tuple[str, RecordPlace], int] = {}
        self._records: list[Record] = []
        self._ledgers: dict[RecordPlace, LedgerRow] = {}
        self._deliveries: dict[RecordPlace, Delivery] = {}

    def find_outdated(self, batch: Batch) -> str | None:
        """Return the name of a record whose revision is not the one the batch expects."""
        for guard in batch.guards:
            if self._revision(RECORD_REVISION, record_place(guard)) != guard.revision:
                return guard.name
        for ledger in batch.ledgers:
            if self._revision(LEDGER_REVISION, record_place(ledger)) + 1 != ledger.revision:
                return ledger.name
        for delivery in batch.deliveries:
            if self._revision(DELIVERY_REVISION, delivery_place(delivery)) + 1 != delivery.revision:
                return delivery.delivery_id
        return None

    def add(self, batch: Batch) -> None:
        for record in batch.records:
            self._revisions[RECORD_REVISION, record_place(record)] = FRESH
            self._records.append(record)
        for ledger in batch.ledgers:
            place = record_place(ledger)
            self._revisions[LEDGER_REVISION, place] = 0 if ledger.gone else ledger.revision
            self._ledgers[place] = ledger
        for delivery in batch.deliveries:
            place = delivery_place(delivery)
            self._revisions[DELIVERY_REVISION, place] = 0 if delivery.gone else delivery.revision
            self._deliveries[place] = delivery

    def write(self, db: apsw.Connection) -> None:
        for record in self._records:
            put_record(db, record)
        for place, ledger in self._ledgers.items():
            if ledger.gone:
                db.execute(DROP_LEDGER, place)
            else:
                db.execute(PUT_LEDGER, (*place, ledger.revision, ledger.body, ledger.due_at))
        for place, delivery in self._deliveries.items():
            if delivery.gone:
                db.execute(DROP_DELIVERY, place)
            else:
                db.execute(PUT_DELIVERY, _columns(delivery))

    def _revision(self, sql: str, place: RecordPlace) -> int:
        revision = self._revisions.get((sql, place))
        if revision is None:
            revision = self._revisions[sql, place] = int(self._db.execute(sql, place).get or 0)
        return revision


def put_record(db: apsw.Connection, record: Record) -> None:
    db.execute(PUT_RECORD, astuple(record)[:-1])


def record_place(record: Guard | Record | LedgerRow) -> RecordPlace:
    return record.tenant, record.kind, record.name


def delivery_place(delivery: Delivery) -> RecordPlace:
    return delivery.tenant, delivery.subscription, delivery.key


def _columns(delivery: Delivery) -> list[Any]:
    columns = list(astuple(delivery)[:-1])
    columns[14] = _encode(delivery.attempts).decode()
    return columns
