"""Memory entries in SQLite, one row for each version.

A write closes the version before it. Apart from that, only an erasing write changes older rows:
it deletes their content.
"""

from collections.abc import Mapping
from typing import Any

import apsw
import msgspec

from moot.store.memory_entries import MemoryRow, continue_entry

COLUMNS = """
m.tenant, m.revision, m.scope, m.memory_id, m.content, m.tags, m.run_id, m.sequence, m.ancestors,
m.agent_id, m.write_id, m.written_at, m.created_at, m.expires_at, m.erases, m.forgotten
"""
#: the version that was current at a revision
_THEN = "m.revision <= :at AND (m.superseded IS NULL OR m.superseded > :at)"
_LIVES = "m.content IS NOT NULL AND (m.expires_at IS NULL OR m.expires_at > :now)"
_NEWEST = "ORDER BY m.created_at DESC, m.revision DESC LIMIT :limit"
_TAGGED = f"""
SELECT {COLUMNS} FROM memory_tags AS t CROSS JOIN memory AS m
ON m.tenant = t.tenant AND m.revision = t.revision
WHERE t.tenant = :tenant AND t.scope = :scope AND t.tag = :tag
"""
_BY_TAG = "ORDER BY t.created_at DESC, t.revision DESC LIMIT :limit"

REVISION = "SELECT max(revision) FROM memory WHERE tenant = :tenant"
CURRENT = f"""
SELECT {COLUMNS} FROM memory AS m INDEXED BY memory_current
WHERE m.tenant = :tenant AND m.scope = :scope AND m.superseded IS NULL AND {_LIVES} {_NEWEST}
"""
THEN = f"""
SELECT {COLUMNS} FROM memory AS m INDEXED BY memory_newest
WHERE m.tenant = :tenant AND m.scope = :scope AND {_THEN} AND {_LIVES} {_NEWEST}
"""
CURRENT_TAGGED = f"{_TAGGED} AND m.superseded IS NULL AND {_LIVES} {_BY_TAG}"
THEN_TAGGED = f"{_TAGGED} AND {_THEN} AND {_LIVES} {_BY_TAG}"
VERSION = f"""
SELECT {COLUMNS} FROM memory AS m INDEXED BY memory_version
WHERE m.tenant = :tenant AND m.scope = :scope AND m.memory_id = :id AND m.revision <= :at
ORDER BY m.revision DESC LIMIT 1
"""
LATE = f"""
SELECT {COLUMNS} FROM json_each(:roots) AS asked CROSS JOIN memory AS m INDEXED BY memory_family
ON m.tenant = :tenant AND m.scope = :scope AND m.root = asked.value AND m.revision > :after
WHERE m.run_id <> ''
"""
WRITTEN = f"SELECT {COLUMNS} FROM memory AS m WHERE m.tenant = :tenant AND m.write_id = :id"
FORGOTTEN = f"""
SELECT EXISTS (
  SELECT 1 FROM memory AS m INDEXED BY memory_lost
  WHERE m.tenant = :tenant AND m.scope = :scope AND m.forgotten = 1 AND {_THEN}
)
"""
IDS = """
SELECT memory_id FROM memory INDEXED BY memory_version
WHERE tenant = :tenant AND scope = :scope AND superseded IS NULL AND erases = 0
ORDER BY memory_id
"""
REFS = f"""
SELECT m.scope, count(*) FROM memory AS m INDEXED BY memory_current
WHERE m.tenant = :tenant AND m.superseded IS NULL AND {_LIVES}
GROUP BY m.scope ORDER BY m.scope LIMIT :limit
"""

CLOSE = """
UPDATE memory SET superseded = :revision
WHERE tenant = :tenant AND scope = :scope AND memory_id = :id AND superseded IS NULL
"""
ADD = """
INSERT INTO memory (tenant, revision, scope, memory_id, content, tags, run_id, sequence, root,
                    ancestors, agent_id, write_id, written_at, created_at, expires_at, erases,
                    forgotten)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
"""
ADD_TAG = """
INSERT INTO memory_tags (tenant, scope, tag, created_at, revision) VALUES (?, ?, ?, ?, ?)
"""
ERASE_TAGS = """
DELETE FROM memory_tags WHERE (tenant, scope, tag, created_at, revision) IN (
  SELECT m.tenant, m.scope, asked.value, m.created_at, m.revision
  FROM memory AS m INDEXED BY memory_version CROSS JOIN json_each(m.tags) AS asked
  WHERE m.tenant = :tenant AND m.scope = :scope AND m.memory_id = :id
)
"""
ERASE = """
UPDATE memory INDEXED BY memory_version SET content = NULL, tags = '[]', forgotten = 1
WHERE tenant = :tenant AND scope = :scope AND memory_id = :id AND content IS NOT NULL
"""

#: a revision later than any other
NOW = 2**62

_decode_texts = msgspec.json.Decoder(list[str]).decode
_encode = msgspec.json.Encoder().encode


def write_entry(db: apsw.Connection, row: MemoryRow) -> None:
    """Write one version of an entry. The caller must hold a transaction."""
    entry = {"tenant": row.tenant, "scope": row.scope, "id": row.memory_id}
    row = continue_entry(row, read_entry_version(db, row.tenant, row.scope, row.memory_id, None))
    if row.erases:
        _erase(db, entry)
    db.execute(CLOSE, {**entry, "revision": row.revision})
    db.execute(ADD, _columns(row))
    for tag in row.tags:
        db.execute(ADD_TAG, (row.tenant, row.scope, tag, row.created_at, row.revision))


def _erase(db: apsw.Connection, entry: Mapping[str, object]) -> None:
    """Delete the contents and overwrite them with zeros, so no tool can read them back."""
    db.pragma("secure_delete", 1)
    try:
        db.execute(ERASE_TAGS, entry)
        db.execute(ERASE, entry)
    finally:
        db.pragma("secure_delete", 0)


def _columns(row: MemoryRow) -> tuple[Any, ...]:
    return (
        row.tenant, row.revision, row.scope, row.memory_id, row.content,
        _encode(row.tags).decode(), row.run_id, row.sequence, row.root,
        _encode(row.ancestors).decode(), row.agent_id, row.write_id, row.written_at,
        row.created_at, row.expires_at, int(row.erases),
    )  # fmt: skip


def _memory_row(columns: tuple[Any, ...]) -> MemoryRow:
    fields = dict(zip(MemoryRow.__struct_fields__, columns, strict=True))
    texts = {key: _decode_texts(fields[key]) for key in ("tags", "ancestors")}
    flags = {key: bool(fields[key]) for key in ("erases", "forgotten")}
    return MemoryRow(**fields | texts | flags)


def _select_rows(db: apsw.Connection, sql: str, values: Mapping[str, object]) -> list[MemoryRow]:
    return [_memory_row(row) for row in db.execute(sql, values).fetchall()]


def read_memory_revision(db: apsw.Connection, tenant: str) -> int:
    return int(db.execute(REVISION, {"tenant": tenant}).get or 0)


def list_living_entries(
    db: apsw.Connection,
    tenant: str,
    scope: str,
    at: int | None,
    now: int,
    tag: str | None,
    limit: int,
) -> list[MemoryRow]:
    if tag is None:
        sql = CURRENT if at is None else THEN
    else:
        sql = CURRENT_TAGGED if at is None else THEN_TAGGED
    values = {"tenant": tenant, "scope": scope, "at": at, "now": now, "tag": tag, "limit": limit}
    return _select_rows(db, sql, values)


def read_entry_version(
    db: apsw.Connection, tenant: str, scope: str, memory_id: str, at: int | None
) -> MemoryRow | None:
    at = NOW if at is None else at
    values = {"tenant": tenant, "scope": scope, "id": memory_id, "at": at}
    return next(iter(_select_rows(db, VERSION, values)), None)


def list_entries_after(
    db: apsw.Connection, tenant: str, scope: str, after: int, roots: tuple[str, ...]
) -> list[MemoryRow]:
    roots_json = _encode(list(dict.fromkeys(roots))).decode()
    values = {"tenant": tenant, "scope": scope, "after": after, "roots": roots_json}
    return sorted(_select_rows(db, LATE, values), key=lambda row: row.revision)


def find_entry_by_write(db: apsw.Connection, tenant: str, write_id: str) -> MemoryRow | None:
    return next(iter(_select_rows(db, WRITTEN, {"tenant": tenant, "id": write_id})), None)


def was_any_erased(db: apsw.Connection, tenant: str, scope: str, at: int) -> bool:
    return bool(db.execute(FORGOTTEN, {"tenant": tenant, "scope": scope, "at": at}).get)


def list_entry_ids(db: apsw.Connection, tenant: str, scope: str) -> list[str]:
    return [row[0] for row in db.execute(IDS, {"tenant": tenant, "scope": scope})]


def list_scopes(db: apsw.Connection, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
    return list(db.execute(REFS, {"tenant": tenant, "now": now, "limit": limit}))
