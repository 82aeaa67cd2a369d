"""Queries for ledgers and deliveries."""

from typing import Any

import apsw
import msgspec

from moot.store import cursor
from moot.store.records import Delivery, DeliveryAttempt, DeliveryFilter, Lane, LedgerRow

_attempts = msgspec.json.Decoder(list[DeliveryAttempt])

LEDGER_COLUMNS = "tenant, kind, name, revision, body, due_at"
LEDGER = f"SELECT {LEDGER_COLUMNS} FROM ledgers WHERE tenant = ? AND kind = ? AND name = ?"
DUE_LEDGERS = f"""
SELECT {LEDGER_COLUMNS} FROM ledgers WHERE kind = ? AND due_at <= ? ORDER BY due_at LIMIT ?
"""
NEXT_LEDGER = "SELECT min(due_at) FROM ledgers WHERE kind = ? AND due_at IS NOT NULL"

COLUMNS = """
tenant, subscription, key, delivery_id, source, state, received_at, updated_at, revision, due_at,
run_id, member, subject, reason, attempts, body
"""
ONE = f"SELECT {COLUMNS} FROM deliveries WHERE tenant = ? AND subscription = ? AND key = ?"
BY_ID = f"SELECT {COLUMNS} FROM deliveries WHERE delivery_id = ? AND tenant = ?"
_REST = """
  AND d.tenant = :tenant AND (d.received_at, d.id) < (:received_at, :id)
  AND (:subscription IS NULL OR d.subscription = :subscription)
  AND (:sources IS NULL OR d.source IN (SELECT value FROM json_each(:sources)))
  AND (:member IS NULL OR d.member = :member)
  AND (:run IS NULL OR d.run_id = :run)
  AND (:state IS NULL OR d.state = :state)
  AND (:prefix IS NULL OR substr(d.delivery_id, 1, length(:prefix)) = :prefix)
ORDER BY d.received_at DESC, d.id DESC LIMIT :limit
"""
#: the filter whose index the query walks -> the query. All other filters are checked row by row.
#: Several states need one query each.
LISTS = {
    "prefix": f"""SELECT d.id, {COLUMNS} FROM deliveries AS d INDEXED BY deliveries_id
                  WHERE d.delivery_id >= :prefix AND d.delivery_id < :prefix_end {_REST}""",
    "within": f"""SELECT d.id, {COLUMNS} FROM deliveries AS d INDEXED BY deliveries_within
                  WHERE d.subscription = :subscription AND d.state = :state {_REST}""",
    "run": f"""SELECT d.id, {COLUMNS} FROM deliveries AS d INDEXED BY deliveries_run
               WHERE d.run_id = :run {_REST}""",
    "subscription": f"""SELECT d.id, {COLUMNS} FROM deliveries AS d INDEXED BY deliveries_of
                        WHERE d.subscription = :subscription {_REST}""",
    "state": f"""SELECT d.id, {COLUMNS} FROM deliveries AS d INDEXED BY deliveries_state
                 WHERE d.state = :state {_REST}""",
    "newest": f"""SELECT d.id, {COLUMNS} FROM deliveries AS d INDEXED BY deliveries_newest
                  WHERE true {_REST}""",
}
WAITING = f"""
SELECT {COLUMNS} FROM deliveries INDEXED BY deliveries_state
WHERE tenant = ? AND state = 'waiting' AND subscription = ? ORDER BY received_at, id LIMIT ?
"""
COUNTS = """
SELECT state, count(*) FROM deliveries INDEXED BY deliveries_within
WHERE tenant = ? AND subscription = ? GROUP BY state
"""
#: one step in the index for each lane, however long the lane is
LANES = """
WITH RECURSIVE lane (id) AS (
  SELECT (SELECT id FROM deliveries INDEXED BY deliveries_lane WHERE due_at IS NOT NULL
          ORDER BY tenant, subscription, due_at LIMIT 1)
  UNION ALL
  SELECT (SELECT n.id FROM deliveries AS n INDEXED BY deliveries_lane
          WHERE n.due_at IS NOT NULL AND (n.tenant, n.subscription) > (d.tenant, d.subscription)
          ORDER BY n.tenant, n.subscription, n.due_at LIMIT 1)
  FROM lane CROSS JOIN deliveries AS d ON d.id = lane.id
)
SELECT d.tenant, d.subscription, d.source, d.due_at
FROM lane CROSS JOIN deliveries AS d ON d.id = lane.id
"""
DUE = f"""
SELECT {COLUMNS} FROM deliveries INDEXED BY deliveries_lane
WHERE tenant = ? AND subscription = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?
"""
FORGET = """
DELETE FROM deliveries WHERE id IN (
  SELECT id FROM deliveries WHERE due_at IS NULL AND updated_at < ? ORDER BY updated_at LIMIT 1000
)
"""


def find_ledger(db: apsw.Connection, tenant: str, kind: str, name: str) -> LedgerRow | None:
    row = db.execute(LEDGER, (tenant, kind, name)).fetchone()
    return _ledger(row) if row else None


def list_due_ledgers(db: apsw.Connection, kind: str, until: int, limit: int) -> list[LedgerRow]:
    return [_ledger(row) for row in db.execute(DUE_LEDGERS, (kind, until, limit)).fetchall()]


def next_ledger_due(db: apsw.Connection, kind: str) -> int | None:
    due: int | None = db.execute(NEXT_LEDGER, (kind,)).get
    return due


def find_delivery(db: apsw.Connection, tenant: str, subscription: str, key: str) -> Delivery | None:
    row = db.execute(ONE, (tenant, subscription, key)).fetchone()
    return _delivery(row) if row else None


def find_delivery_by_id(db: apsw.Connection, tenant: str, delivery_id: str) -> Delivery | None:
    row = db.execute(BY_ID, (delivery_id, tenant)).fetchone()
    return _delivery(row) if row else None


def list_deliveries(
    db: apsw.Connection, tenant: str, where: DeliveryFilter, before: cursor.Position, limit: int
) -> tuple[list[Delivery], str | None]:
    sql, rows = LISTS[_choose_index(where)], []
    for state in dict.fromkeys(where.states) or (None,):
        rows += db.execute(sql, _values(tenant, where, state, before, limit + 1)).fetchall()
    rows.sort(key=_row_position, reverse=True)
    page = rows[:limit]
    more = len(rows) > limit > 0
    return [_delivery(row[1:]) for row in page], cursor.encode_position(
        _row_position(page[-1])
    ) if more else None


def list_waiting_deliveries(
    db: apsw.Connection, tenant: str, subscription: str, limit: int
) -> list[Delivery]:
    rows = db.execute(WAITING, (tenant, subscription, limit)).fetchall()
    return [_delivery(row) for row in rows]


def count_deliveries(db: apsw.Connection, tenant: str, subscription: str) -> dict[str, int]:
    rows: list[Any] = db.execute(COUNTS, (tenant, subscription)).fetchall()
    return dict(rows)


def list_lanes(db: apsw.Connection) -> list[Lane]:
    rows: list[tuple[Any, ...]] = db.execute(LANES).fetchall()
    return [Lane(**dict(zip(Lane.__struct_fields__, row, strict=True))) for row in rows]


def list_due_deliveries(
    db: apsw.Connection, tenant: str, subscription: str, until: int, limit: int
) -> list[Delivery]:
    rows = db.execute(DUE, (tenant, subscription, until, limit)).fetchall()
    return [_delivery(row) for row in rows]


def _choose_index(where: DeliveryFilter) -> str:
    if where.run_id is not None:
        return "run"
    if where.prefix:
        return "prefix"
    if where.subscription is not None:
        return "within" if where.states else "subscription"
    return "state" if where.states else "newest"


def _values(
    tenant: str, where: DeliveryFilter, state: str | None, before: cursor.Position, limit: int
) -> dict[str, object]:
    return {
        "tenant": tenant,
        "received_at": before[0],
        "id": before[1],
        "subscription": where.subscription,
        "sources": msgspec.json.encode(where.sources).decode() if where.sources else None,
        "member": where.member,
        "run": where.run_id,
        "state": state,
        "prefix": where.prefix or None,
        "prefix_end": f"{where.prefix}\U0010ffff" if where.prefix else None,
        "limit": limit,
    }


def _row_position(row: tuple[Any, ...]) -> cursor.Position:
    return row[7], row[0]


def _ledger(row: tuple[Any, ...]) -> LedgerRow:
    return LedgerRow(**dict(zip(LedgerRow.__struct_fields__, row, strict=False)))


def _delivery(row: tuple[Any, ...]) -> Delivery:
    fields = dict(zip(Delivery.__struct_fields__, row, strict=False))
    return Delivery(**(fields | {"attempts": _attempts.decode(fields["attempts"])}))
