"""Answers about search, read marks and catch-ups."""

from msgspec import field

from moot.wire.json import JsonObject, WireStruct
from moot.wire.runs import RunFailure


class SearchSnippet(WireStruct, frozen=True):
    """A part of a text from ``start`` on; ``matches`` are positions in this part."""

    text: str
    start: int = 0
    matches: list[tuple[int, int]] = []


class SearchResult(WireStruct, frozen=True):
    """A text that matches a search: a title, a turn, a decision or a run."""

    kind: str
    run_id: str
    sequence: int
    snippet: SearchSnippet
    at: str = ""
    title: str = ""
    event_id: str = ""
    thread_id: str | None = None
    sender: str | None = field(default=None, name="from")
    to: str | None = None
    turn_index: int | None = None
    #: the text and its author were imported from another host
    imported: bool = False


class SearchResultList(WireStruct, frozen=True):
    """One page of search results."""

    results: list[SearchResult]
    next_cursor: str | None = None


class ReadStatus(WireStruct, frozen=True):
    """The read mark of a reader in a thread."""

    thread_id: str
    reader: str
    up_to: int
    turn_index: int
    unread: int


class CatchUpView(WireStruct, frozen=True):
    """A summary of a part of a thread for one reader; ``turn`` is set when it is written."""

    catch_up_id: str
    thread_id: str
    author: str
    status: str
    first: int = field(name="from")
    to: int
    hidden: int = 0
    reader: str = ""
    private: bool = True
    asked_at: str = ""
    turn: JsonObject | None = None
    usage: JsonObject | None = None
    error: RunFailure | None = None

    @property
    def text(self) -> str | None:
        return None if self.turn is None else str(self.turn["content"])


class CatchUpList(WireStruct, frozen=True):
    """One page of catch-ups."""

    catch_ups: list[CatchUpView]
    next_cursor: str | None = None
