"""Memory entries in SQLite, one row for each version.

A write closes the version before it. Apart from that, only an erasing write changes older rows:
it deletes their content.
"""

from collections.abc import Mapping
from typing import Any

import apsw
import msgspec

from moot.store.memory_entries import MemoryRow, continue_entry
from moot.store.sqlite.read.readers import ReadSide, first_column, select_first
from moot.store.sqlite.statements import load_statements, row_decoder

SQL = load_statements("memory_entries")

#: a revision later than any other
NOW = 2**62

_encode = msgspec.json.Encoder().encode
_decode_row = row_decoder(MemoryRow)


class MemoryQueries(ReadSide):
    """Reads of memory entries."""

    async def memory_revision(self, tenant: str) -> int:
        return await self._first(first_column, SQL["REVISION"], {"tenant": tenant}) or 0

    async def notes(
        self, tenant: str, scope: str, at: int | None, now: int, tag: str | None, limit: int
    ) -> list[MemoryRow]:
        name = ("CURRENT" if at is None else "THEN") + ("" if tag is None else "_TAGGED")
        values = {"tenant": tenant, "scope": scope, "at": at, "now": now, "tag": tag}
        return await self._all(_decode_row, SQL[name], {**values, "limit": limit})

    async def note(
        self, tenant: str, scope: str, memory_id: str, at: int | None
    ) -> MemoryRow | None:
        return await self._first(_decode_row, *_version(tenant, scope, memory_id, at))

    async def memory_rows_after(
        self, tenant: str, scope: str, after: int, roots: tuple[str, ...]
    ) -> list[MemoryRow]:
        roots_json = _encode(list(dict.fromkeys(roots))).decode()
        values = {"tenant": tenant, "scope": scope, "after": after, "roots": roots_json}
        rows = await self._all(_decode_row, SQL["LATE"], values)
        return sorted(rows, key=lambda row: row.revision)

    async def written(self, tenant: str, write_id: str) -> MemoryRow | None:
        return await self._first(_decode_row, SQL["WRITTEN"], {"tenant": tenant, "id": write_id})

    async def forgotten(self, tenant: str, scope: str, at: int) -> bool:
        values = {"tenant": tenant, "scope": scope, "at": at}
        return bool(await self._first(first_column, SQL["FORGOTTEN"], values))

    async def memory_ids(self, tenant: str, scope: str) -> list[str]:
        return await self._all(first_column, SQL["IDS"], {"tenant": tenant, "scope": scope})

    async def memory_refs(self, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
        values = {"tenant": tenant, "now": now, "limit": limit}
        return await self._all(lambda row: (row[0], row[1]), SQL["REFS"], values)


def _version(
    tenant: str, scope: str, memory_id: str, at: int | None
) -> tuple[str, dict[str, object]]:
    """Return the query for one version of an entry, and its values."""
    revision = NOW if at is None else at
    values = {"tenant": tenant, "scope": scope, "id": memory_id, "at": revision}
    return SQL["VERSION"], values


def write_entry(db: apsw.Connection, row: MemoryRow) -> None:
    """Write one version of an entry. The caller must hold a transaction."""
    entry = {"tenant": row.tenant, "scope": row.scope, "id": row.memory_id}
    sql, values = _version(row.tenant, row.scope, row.memory_id, None)
    row = continue_entry(row, select_first(db, _decode_row, sql, values))
    if row.erases:
        _erase(db, entry)
    db.execute(SQL["CLOSE"], {**entry, "revision": row.revision})
    db.execute(SQL["ADD"], _columns(row))
    for tag in row.tags:
        db.execute(SQL["ADD_TAG"], (row.tenant, row.scope, tag, row.created_at, row.revision))


def _erase(db: apsw.Connection, entry: Mapping[str, object]) -> None:
    """Delete the contents and overwrite them with zeros, so no tool can read them back."""
    db.pragma("secure_delete", 1)
    try:
        db.execute(SQL["ERASE_TAGS"], entry)
        db.execute(SQL["ERASE"], entry)
    finally:
        db.pragma("secure_delete", 0)


def _columns(row: MemoryRow) -> tuple[Any, ...]:
    return (
        row.tenant, row.revision, row.scope, row.memory_id, row.content,
        _encode(row.tags).decode(), row.run_id, row.sequence, row.root,
        _encode(row.ancestors).decode(), row.agent_id, row.write_id, row.written_at,
        row.created_at, row.expires_at, int(row.erases),
    )  # fmt: skip
