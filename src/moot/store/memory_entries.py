"""Memory entries: their versions, and what a store promises for them."""

from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace


class MemoryRow(Struct, frozen=True, kw_only=True):
    """One version of a memory entry, or its end (primary).

    Revisions grow within a tenant, in the order in which batches are committed. A row that
    ``erases`` deletes the content of every earlier version; those rows are then ``forgotten``.
    """

    tenant: str
    revision: int
    scope: str
    memory_id: str
    #: None ends the entry
    content: str | None = None
    tags: list[str] = []
    #: the event that wrote the entry; an empty run id means that the host itself wrote it
    run_id: str = ""
    sequence: int = -1
    #: the ancestors of the run, the root first
    ancestors: list[str] = []
    agent_id: str | None = None
    #: identifies a node's write; the same in every attempt
    write_id: str | None = None
    written_at: int = 0
    #: when the entry began; a later version of a living entry keeps this time
    created_at: int = 0
    expires_at: int | None = None
    erases: bool = False
    forgotten: bool = False

    @property
    def root(self) -> str:
        return (self.ancestors or [self.run_id])[0]

    def lives(self, now: int) -> bool:
        return self.content is not None and (self.expires_at is None or self.expires_at > now)


def continue_entry(row: MemoryRow, before: MemoryRow | None) -> MemoryRow:
    """Return the row as the next version of a living entry.

    The entry keeps its creation time, and its expiry is never postponed.
    """
    if row.content is None or before is None or not before.lives(row.written_at):
        return row
    ends = [end for end in (row.expires_at, before.expires_at) if end is not None]
    return replace(row, created_at=before.created_at, expires_at=min(ends, default=None))


class MemoryEntryStore(Protocol):
    """Look-ups of memory entries.

    ``at`` is a revision: the answer shows the entries as of that revision; None is the newest.
    ``now`` is the time (ms) at which expired entries are left out.
    """

    async def memory_revision(self, tenant: str) -> int:
        """Return the newest revision; 0 when the tenant has no entries."""

    async def notes(
        self, tenant: str, scope: str, at: int | None, now: int, tag: str | None, limit: int
    ) -> list[MemoryRow]:
        """Return living entries, newest first."""

    async def note(
        self, tenant: str, scope: str, memory_id: str, at: int | None
    ) -> MemoryRow | None:
        """Return the version of an entry, even one that ends the entry."""

    async def memory_rows_after(
        self, tenant: str, scope: str, after: int, roots: tuple[str, ...]
    ) -> list[MemoryRow]:
        """Return rows that runs under ``roots`` wrote after a revision, oldest first."""

    async def written(self, tenant: str, write_id: str) -> MemoryRow | None:
        """Return the row of a node's write."""

    async def forgotten(self, tenant: str, scope: str, at: int) -> bool:
        """Return whether an entry that existed at a revision has been erased since."""

    async def memory_ids(self, tenant: str, scope: str) -> list[str]:
        """Return the ids of all entries that have content to erase."""

    async def memory_refs(self, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
        """Return scopes in alphabetical order, each with the number of its living entries."""
