"""What a store keeps for readers: where words stand, and how far everybody has read."""

from typing import Protocol

from msgspec import Struct

from moot.core.search.query import Query


class TextRow(Struct, frozen=True):
    """Derived: an event of a run that may be found by its words (``core.texts`` says by which).

    ``source`` is the run that had said it first, where a fork says it again.
    """

    sequence: int
    #: ms since the epoch
    at: int
    source: str | None = None


class Found(Struct, frozen=True, kw_only=True):
    """A text that was found: the event it stands in, and which of its texts it is."""

    run_id: str
    workflow_id: str
    sequence: int
    part: int
    body: bytes


class Page(Struct, frozen=True):
    """Some of what was found. ``following`` is the cursor of the next page; with ``again`` the same
    page comes once more, whatever has been said meanwhile."""

    found: list[Found]
    following: str | None = None
    again: str | None = None


class ReadMark(Struct, frozen=True, kw_only=True):
    """How far somebody has read a thread (primary): to an event, and to the turn before it."""

    tenant: str
    reader: str
    thread_id: str
    sequence: int
    #: index of the newest turn that was read; -1 for none
    turn: int
    at: int


class SearchStore(Protocol):
    async def search(self, tenant: str, query: Query, before: str | None, limit: int) -> Page:
        """What fits, newest first, in no order within a millisecond. Whatever was committed before
        the call is found.

        What a fork says again is found in the run it was said in first, if that is here; where
        places are asked for, in those. Raises BadRequest on a bad cursor.
        """


class MarkStore(Protocol):
    async def mark_read(self, mark: ReadMark) -> ReadMark:
        """The mark that holds from now on: this one, or one that is further on already."""

    async def read_marks(self, tenant: str, reader: str, threads: list[str]) -> list[ReadMark]:
        """The marks there are, in no order."""
