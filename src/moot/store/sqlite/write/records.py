"""Collect and write the changes of records, ledgers and deliveries in one group."""

from typing import Any

import apsw
import msgspec
from msgspec.structs import astuple

from moot.store.protocol import Batch
from moot.store.records import Delivery, Guard, LedgerRow, Record
from moot.store.sqlite.read.records import SQL

RecordPlace = tuple[str, str, str]


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
            if self._revision("RECORD", record_place(guard)) != guard.revision:
                return guard.name
        for ledger in batch.ledgers:
            if self._revision("LEDGER", record_place(ledger)) + 1 != ledger.revision:
                return ledger.name
        for delivery in batch.deliveries:
            if self._revision("DELIVERY", delivery_place(delivery)) + 1 != delivery.revision:
                return delivery.delivery_id
        return None

    def add(self, batch: Batch) -> None:
        for record in batch.records:
            self._revisions["RECORD", record_place(record)] = FRESH
            self._records.append(record)
        for ledger in batch.ledgers:
            place = record_place(ledger)
            self._revisions["LEDGER", place] = 0 if ledger.gone else ledger.revision
            self._ledgers[place] = ledger
        for delivery in batch.deliveries:
            place = delivery_place(delivery)
            self._revisions["DELIVERY", place] = 0 if delivery.gone else delivery.revision
            self._deliveries[place] = delivery

    def write(self, db: apsw.Connection) -> None:
        for record in self._records:
            put_record(db, record)
        for place, ledger in self._ledgers.items():
            if ledger.gone:
                db.execute(SQL["DROP_LEDGER"], place)
            else:
                db.execute(SQL["PUT_LEDGER"], (*place, ledger.revision, ledger.body, ledger.due_at))
        for place, delivery in self._deliveries.items():
            if delivery.gone:
                db.execute(SQL["DROP_DELIVERY"], place)
            else:
                db.execute(SQL["PUT_DELIVERY"], _columns(delivery))

    def _revision(self, table: str, place: RecordPlace) -> int:
        revision = self._revisions.get((table, place))
        if revision is None:
            stored = self._db.execute(SQL[f"{table}_REVISION"], place).get
            revision = self._revisions[table, place] = int(stored or 0)
        return revision


def put_record(db: apsw.Connection, record: Record) -> None:
    db.execute(SQL["PUT_RECORD"], astuple(record)[:-1])


def record_place(record: Guard | Record | LedgerRow) -> RecordPlace:
    return record.tenant, record.kind, record.name


def delivery_place(delivery: Delivery) -> RecordPlace:
    return delivery.tenant, delivery.subscription, delivery.key


def _columns(delivery: Delivery) -> list[Any]:
    columns = list(astuple(delivery)[:-1])
    columns[14] = _encode(delivery.attempts).decode()
    return columns
