"""Full-text search and read marks, and the promises of a store for them."""

from typing import Protocol

from msgspec import Struct

from moot.core.search.query import Query


class TextRow(Struct, frozen=True):
    """An event whose text can be searched (derived; ``core.search.indexed_text``).

    ``source`` is the original run of an event that a fork repeats.
    """

    sequence: int
    #: ms since the epoch
    at: int
    source: str | None = None


class SearchRow(Struct, frozen=True, kw_only=True):
    """A text that matches a query: its event, and the number of the text in that event."""

    run_id: str
    workflow_id: str
    sequence: int
    part: int
    body: bytes


class SearchPage(Struct, frozen=True):
    """One page of hits. ``following`` is the cursor of the next page.

    ``again`` is the cursor of this same page; newer events do not shift it.
    """

    found: list[SearchRow]
    following: str | None = None
    again: str | None = None


class ReadMark(Struct, frozen=True, kw_only=True):
    """The newest event and turn of a thread that a reader has read (primary)."""

    tenant: str
    reader: str
    thread_id: str
    sequence: int
    #: index of the newest turn that the reader has read; -1 for none
    turn: int
    at: int


class SearchStore(Protocol):
    async def search(self, tenant: str, query: Query, before: str | None, limit: int) -> SearchPage:
        """Return matching texts, newest first; texts of one millisecond come in any order.

        The search covers everything that was committed before the call. A text that a fork
        repeats is found in the original run if this tenant has that run, unless the query names
        places. Raise BadRequest on a bad cursor.
        """

    async def mark_read(self, mark: ReadMark) -> ReadMark:
        """Store the mark unless the reader has a later one; return the mark that is valid."""

    async def read_marks(self, tenant: str, reader: str, threads: list[str]) -> list[ReadMark]:
        """Return the existing marks, in any order."""
