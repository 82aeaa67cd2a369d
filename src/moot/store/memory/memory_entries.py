"""Memory entries of the store in memory; every other store must return the same."""

from collections.abc import Iterator

from msgspec.structs import replace

from moot.store.memory_entries import MemoryRow, continue_entry


class InMemoryEntries:
    """Part of the store in memory; it keeps the promises of ``MemoryEntryStore``."""

    def __init__(self) -> None:
        super().__init__()
        self._memory_rows: list[MemoryRow] = []

    def _write_entry(self, row: MemoryRow) -> None:
        before = self._version(row.tenant, row.scope, row.memory_id, None)
        if row.erases:
            for number, each in enumerate(self._memory_rows):
                if _has_content_of(each, row):
                    erased = replace(each, content=None, tags=[], forgotten=True)
                    self._memory_rows[number] = erased
        self._memory_rows.append(continue_entry(row, before))

    def _rows_in(self, tenant: str, scope: str) -> Iterator[MemoryRow]:
        return (row for row in self._memory_rows if (row.tenant, row.scope) == (tenant, scope))

    def _versions(self, tenant: str, scope: str, at: int | None) -> dict[str, MemoryRow]:
        """Return the version of each entry at a revision, by entry id."""
        rows = (row for row in self._rows_in(tenant, scope) if at is None or row.revision <= at)
        return {row.memory_id: row for row in rows}

    def _version(self, tenant: str, scope: str, memory_id: str, at: int | None) -> MemoryRow | None:
        return self._versions(tenant, scope, at).get(memory_id)

    async def memory_revision(self, tenant: str) -> int:
        return max((row.revision for row in self._memory_rows if row.tenant == tenant), default=0)

    async def notes(
        self, tenant: str, scope: str, at: int | None, now: int, tag: str | None, limit: int
    ) -> list[MemoryRow]:
        living = [row for row in self._versions(tenant, scope, at).values() if row.lives(now)]
        living = [row for row in living if tag is None or tag in row.tags]
        living.sort(key=lambda row: (row.created_at, row.revision), reverse=True)
        return living[:limit]

    async def note(
        self, tenant: str, scope: str, memory_id: str, at: int | None
    ) -> MemoryRow | None:
        return self._version(tenant, scope, memory_id, at)

    async def memory_rows_after(
        self, tenant: str, scope: str, after: int, roots: tuple[str, ...]
    ) -> list[MemoryRow]:
        rows = (row for row in self._rows_in(tenant, scope) if row.revision > after)
        return [row for row in rows if row.run_id and row.root in roots]

    async def written(self, tenant: str, write_id: str) -> MemoryRow | None:
        place = tenant, write_id
        rows = (row for row in self._memory_rows if (row.tenant, row.write_id) == place)
        return next(rows, None)

    async def forgotten(self, tenant: str, scope: str, at: int) -> bool:
        return any(row.forgotten for row in self._versions(tenant, scope, at).values())

    async def memory_ids(self, tenant: str, scope: str) -> list[str]:
        versions = self._versions(tenant, scope, None).values()
        return sorted(row.memory_id for row in versions if not row.erases)

    async def memory_refs(self, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
        scopes = sorted({row.scope for row in self._memory_rows if row.tenant == tenant})
        counts = [
            (scope, sum(row.lives(now) for row in self._versions(tenant, scope, None).values()))
            for scope in scopes
        ]
        return [(scope, count) for scope, count in counts if count][:limit]


def _has_content_of(row: MemoryRow, entry: MemoryRow) -> bool:
    """Return whether the row is a version of the entry that has content."""
    place = row.tenant, row.scope, row.memory_id
    return place == (entry.tenant, entry.scope, entry.memory_id) and row.content is not None
