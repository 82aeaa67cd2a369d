"""Search, read marks and catch-ups: requests about them and answers."""

from typing import Annotated

from msgspec import Meta, field

from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import Name, RequestStruct

Index = Annotated[int, Meta(ge=0, le=2**53)]


class MarkRead(RequestStruct, frozen=True):
    """``upTo`` is the sequence of the last event that was read, ``turn`` the index of the last
    turn.

    Without both, everything counts as read.
    """

    up_to: Index | None = None
    turn: Index | None = None


class RequestCatchUp(RequestStruct, frozen=True):
    """The turns to sum up, by index: by default from the first unread one to the newest."""

    first: Index | None = field(default=None, name="from")
    to: Index | None = None
    author: Annotated[
        Name | None,
        Meta(description="An agent of this host, by default the moderator or another participant."),
    ] = None


class SearchSnippet(WireStruct, frozen=True):
    """A part of a text from ``start`` on; ``matches`` are positions in this part."""

    text: str
    start: int
    matches: list[tuple[int, int]]


class SearchResult(WireStruct, frozen=True):
    """A text that matches a search: a title, a turn, a decision or a run."""

    kind: str
    run_id: str
    sequence: int
    event_id: str
    at: str
    title: str
    snippet: SearchSnippet
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


class CatchUpTurn(WireStruct, frozen=True):
    """The summary, in the form of a turn."""

    role: str
    sender: str = field(name="from")
    to: str
    content: str
    agent: JsonObject
    meta: JsonObject


class CatchUpView(WireStruct, frozen=True):
    """A summary of a part of a thread for one reader; ``turn`` is set when it is written."""

    catch_up_id: str
    thread_id: str
    first: int = field(name="from")
    to: int
    #: turns that did not fit
    hidden: int
    author: str
    reader: str
    private: bool
    status: str
    asked_at: str
    turn: CatchUpTurn | None = None
    usage: JsonObject | None = None
    error: JsonObject | None = None
    #: of a new catch-up
    url: str | None = None

    @property
    def text(self) -> str | None:
        return None if self.turn is None else self.turn.content


class CatchUpList(WireStruct, frozen=True):
    """One page of catch-ups."""

    catch_ups: list[CatchUpView]
    next_cursor: str | None = None
