"""Queries for records, in all their versions."""

from typing import Any

import apsw

from moot.store.records import Record

COLUMNS = "tenant, kind, name, version, body, created_at, by, gone, id"
HISTORY = f"""
SELECT {COLUMNS} FROM records WHERE tenant = ? AND kind = ? AND name = ? ORDER BY id DESC
"""
NEWEST = f"{HISTORY} LIMIT 1"
ALL_NEWEST = f"""
SELECT {COLUMNS} FROM records
WHERE id IN (SELECT max(id) FROM records WHERE tenant = ? AND kind = ? GROUP BY name)
  AND NOT gone
ORDER BY name
"""
_NEWEST_IDS = "SELECT max(id) FROM records WHERE tenant = ? AND kind = ? AND name > ? GROUP BY name"
PAGE = f"""
SELECT {COLUMNS} FROM records WHERE id IN ({_NEWEST_IDS}) AND NOT gone ORDER BY name LIMIT ?
"""
COUNT = f"SELECT count(*) FROM records WHERE id IN ({_NEWEST_IDS}) AND NOT gone"
TENANTS = "SELECT DISTINCT tenant FROM records WHERE kind = ? ORDER BY tenant"


def _record(columns: tuple[Any, ...]) -> Record:
    fields = dict(zip(Record.__struct_fields__, columns, strict=True))
    return Record(**(fields | {"gone": bool(fields["gone"])}))


def find_record(db: apsw.Connection, tenant: str, kind: str, name: str) -> Record | None:
    row = db.execute(NEWEST, (tenant, kind, name)).fetchone()
    newest = _record(row) if row else None
    return None if newest is None or newest.gone else newest


def list_records(db: apsw.Connection, tenant: str, kind: str) -> list[Record]:
    return [_record(row) for row in db.execute(ALL_NEWEST, (tenant, kind)).fetchall()]


def read_record_page(
    db: apsw.Connection, tenant: str, kind: str, after: str, limit: int
) -> tuple[list[Record], int]:
    rows = db.execute(PAGE, (tenant, kind, after, limit)).fetchall()
    total: Any = db.execute(COUNT, (tenant, kind, "")).get
    return [_record(row) for row in rows], int(total)


def list_record_versions(db: apsw.Connection, tenant: str, kind: str, name: str) -> list[Record]:
    return [_record(row) for row in db.execute(HISTORY, (tenant, kind, name)).fetchall()]


def list_record_tenants(db: apsw.Connection, kind: str) -> list[str]:
    return [str(row[0]) for row in db.execute(TENANTS, (kind,)).fetchall()]
