"""What is answered about threads."""

from typing import Any

from msgspec import field

from moot.wire.agent_bridge import Told
from moot.wire.runs import Answer, Data


class Convened(Answer, frozen=True):
    run_id: str
    thread_id: str
    url: str = ""


class ThreadView(Answer, frozen=True):
    """A conversation as it stands. ``floor`` is there when the host leads it."""

    thread_id: str
    run_id: str
    node_id: str
    open: bool
    title: str | None = None
    #: index of the newest turn, and how many there are
    turns: int = 0
    turn_count: int = 0
    last_sequence: int = -1
    created_at: str = ""
    #: who has begun it, and who asks
    created_by: str = ""
    you: str = ""
    updated_at: str = ""
    participants: list[Data] = []
    state: Data = {}
    floor: Data | None = None
    #: what it was closed with
    decision: Data | None = None
    #: the thread whose history it has, and those that have its own
    forked_from: str | None = None
    fork_note: str | None = None
    goes_on_in: list[Data] = []
    #: the limit that agents have reached where nobody leads
    stopped: str | None = None
    #: when and by whom it was brought along from another host
    imported: Data | None = None

    @property
    def quiet(self) -> bool:
        """Nobody will say anything until a person does."""
        if not self.open or self.floor is None:
            return True
        over = self.floor.get("phase") == "over" or bool(self.floor.get("stopped"))
        return over and not self.floor.get("speaking")


class ThreadRow(Answer, frozen=True):
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
    #: turns of others that were not read
    unread: int = 0
    #: where it was asked for
    paused: bool | None = None
    turn_count: int | None = None
    created_by: str = ""
    participants: list[str] = []
    last: Data | None = None
    decision: str | None = None
    #: it was brought along from another host
    imported: bool = False


class ThreadPage(Answer, frozen=True):
    threads: list[ThreadRow] = []
    #: who asks
    you: str = ""
    next_cursor: str | None = None


class ThreadEvents(Answer, frozen=True):
    events: list[Data] = []
    count: int = 0
    more: bool = False


class Linked(Answer, frozen=True):
    thread_id: str
    title: str = ""
    linked_from: str = ""
    url: str = ""


class JoinToken(Answer, frozen=True):
    """A key for one participant in one thread."""

    key_id: str
    thread_id: str
    token: str
    speaks_as: str = field(name="as")
    expires_at: str = ""


class Seat(Answer, frozen=True):
    """A name that one program has in a thread, and since when."""

    thread_id: str
    seat: str
    speaks_as: str = field(name="as")
    since: str = ""


class Due(Answer, frozen=True):
    """What a participant is asked. ``seq`` is what to go on from, ``event`` what it is about."""

    thread_id: str
    speaks_as: str = field(name="as")
    seq: int
    reason: str = ""
    task: bool = False
    event: Told | None = None


class Begun(Answer, frozen=True):
    speech_id: str
    thread_id: str
    role: str = ""
    speaker: str | None = field(default=None, name="from")
    to: str | None = None


class Line(Answer, frozen=True):
    """A turn of a transcript, or with ``note`` what somebody did beside it."""

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


class Minutes(Answer, frozen=True):
    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[Data] = []
    decision: Data | None = None
    outcome: Any = None
    transcript: list[Line] = []


class Imported(Answer, frozen=True):
    run_id: str
    thread_id: str
    status: str
    url: str = ""
