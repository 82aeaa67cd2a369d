"""Answers about threads."""

from typing import Any

from msgspec import field

from moot.wire.agent_bridge import BridgeEvent
from moot.wire.json import JsonObject, WireStruct


class ConvenedCouncil(WireStruct, frozen=True):
    """A new council."""

    run_id: str
    thread_id: str
    url: str = ""


class ThreadView(WireStruct, frozen=True):
    """A conversation in its current state. ``floor`` is set if the host leads it."""

    thread_id: str
    run_id: str
    node_id: str
    open: bool
    title: str | None = None
    #: index of the newest turn, and the number of turns
    turns: int = 0
    turn_count: int = 0
    last_sequence: int = -1
    created_at: str = ""
    #: the creator of the thread, and the caller
    created_by: str = ""
    you: str = ""
    updated_at: str = ""
    participants: list[JsonObject] = []
    state: JsonObject = {}
    floor: JsonObject | None = None
    #: the decision that closed the thread
    decision: JsonObject | None = None
    #: the thread it was forked from, and the threads that continue it
    forked_from: str | None = None
    fork_note: str | None = None
    goes_on_in: list[JsonObject] = []
    #: the limit that stopped the agents of a thread without a policy
    stopped: str | None = None
    #: when and by whom the thread was imported
    imported: JsonObject | None = None

    @property
    def quiet(self) -> bool:
        """True if no agent will speak before a person does."""
        if not self.open or self.floor is None:
            return True
        over = self.floor.get("phase") == "over" or bool(self.floor.get("stopped"))
        return over and not self.floor.get("speaking")


class ThreadSummary(WireStruct, frozen=True):
    """A thread in a list."""

    thread_id: str
    title: str = ""
    open: bool = True
    archived: bool = False
    turns: int = 0
    last_sequence: int = -1
    created_at: str = ""
    updated_at: str = ""
    forked_from: str | None = None
    fork_note: str | None = None
    #: unread turns of others
    unread: int = 0
    #: set on request only
    paused: bool | None = None
    turn_count: int | None = None
    created_by: str = ""
    participants: list[str] = []
    last: JsonObject | None = None
    decision: str | None = None
    #: the thread was imported from another host
    imported: bool = False


class ThreadList(WireStruct, frozen=True):
    """One page of threads."""

    threads: list[ThreadSummary] = []
    #: the caller
    you: str = ""
    next_cursor: str | None = None


class ThreadEventList(WireStruct, frozen=True):
    """Events of a thread."""

    events: list[JsonObject] = []
    count: int = 0
    more: bool = False


class LinkedThread(WireStruct, frozen=True):
    """A thread that another thread links to."""

    thread_id: str
    title: str = ""
    linked_from: str = ""
    url: str = ""


class JoinToken(WireStruct, frozen=True):
    """A key for one participant in one thread."""

    key_id: str
    thread_id: str
    token: str
    speaks_as: str = field(name="as")
    expires_at: str = ""


class SeatView(WireStruct, frozen=True):
    """The claim of one program to a participant's name."""

    thread_id: str
    seat: str
    speaks_as: str = field(name="as")
    since: str = ""


class DueRequest(WireStruct, frozen=True):
    """A request to a participant. ``seq`` is the cursor, ``event`` its subject."""

    thread_id: str
    speaks_as: str = field(name="as")
    seq: int
    reason: str = ""
    task: bool = False
    event: BridgeEvent | None = None


class StartedSpeech(WireStruct, frozen=True):
    """A speech that has begun."""

    speech_id: str
    thread_id: str
    role: str = ""
    speaker: str | None = field(default=None, name="from")
    to: str | None = None


class Line(WireStruct, frozen=True):
    """A turn of a transcript, or with ``note`` an action between turns."""

    at: str
    by: str
    index: int | None = None
    role: str | None = None
    to: str | None = None
    content: Any = None
    model: str | None = None
    kind: str | None = None
    via: str | None = None
    spoken_by: str | None = None
    edited_by: str | None = None
    note: str | None = None


class MinutesView(WireStruct, frozen=True):
    """The minutes of a conversation as data."""

    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[JsonObject] = []
    decision: JsonObject | None = None
    outcome: Any = None
    transcript: list[Line] = []


class ImportedThread(WireStruct, frozen=True):
    """A thread that was imported from a bundle."""

    run_id: str
    thread_id: str
    status: str
    url: str = ""
