"""What is answered to who looks for something, has read it, or wants it summed up."""

from msgspec import field

from moot.wire.runs import Answer, Data, Problem


class Snippet(Answer, frozen=True):
    """A part of a text from ``start`` on; ``matches`` are places in this part."""

    text: str
    start: int = 0
    matches: list[tuple[int, int]] = []


class Hit(Answer, frozen=True):
    """One text that was found: of a thread (its title), a turn, a decision or a run."""

    kind: str
    run_id: str
    sequence: int
    snippet: Snippet
    at: str = ""
    title: str = ""
    event_id: str = ""
    thread_id: str | None = None
    sender: str | None = field(default=None, name="from")
    to: str | None = None
    turn_index: int | None = None
    #: it was brought along from another host, and so was who said it
    imported: bool = False


class Hits(Answer, frozen=True):
    results: list[Hit]
    next_cursor: str | None = None


class Reading(Answer, frozen=True):
    """How far somebody has read a thread."""

    thread_id: str
    reader: str
    up_to: int
    turn_index: int
    unread: int


class CatchUp(Answer, frozen=True):
    """A part of a thread, summed up for one reader; ``turn`` is there once it is written."""

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
    turn: Data | None = None
    usage: Data | None = None
    error: Problem | None = None

    @property
    def text(self) -> str | None:
        return None if self.turn is None else str(self.turn["content"])


class CatchUps(Answer, frozen=True):
    catch_ups: list[CatchUp]
    next_cursor: str | None = None
