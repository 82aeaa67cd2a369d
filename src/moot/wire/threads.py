"""Threads: requests about them and answers."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moot.core.state.council_policy import THREAD_MODES, Policy
from moot.wire.agent_bridge import BridgeEvent, InvitedMembers
from moot.wire.councils import CouncilDecisionView, CouncilFloor
from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import InvitedParticipants, Name, RequestStruct, Text, Title

JOIN_SECONDS = 7 * 24 * 3600
#: A random word that identifies the program.
SeatToken = Annotated[str, Meta(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9._~-]+$(?!\n)")]


class BeginThread(RequestStruct, frozen=True):
    """A new thread. Invited participants may take part from the beginning."""

    title: Title
    opening: Annotated[Text | None, Meta(description="The first turn, by the caller.")] = None
    participants: InvitedParticipants = []
    policy: Policy | UnsetType = UNSET


class RenameThread(RequestStruct, frozen=True):
    """The new title of a thread."""

    title: Title


class LinkThread(RequestStruct, frozen=True):
    """An existing thread by its id, or the title of a new one."""

    thread: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    title: Title | None = None
    opening: Text | None = None
    participants: InvitedParticipants = []


class ReopenThread(RequestStruct, frozen=True):
    """A note for the list of forks."""

    note: Annotated[str, Meta(min_length=1, max_length=500)] | None = None


class CloseThread(RequestStruct, frozen=True):
    """The end of a thread: its decision or outcome, and a last turn."""

    decision: Annotated[
        str | JsonObject | None,
        Meta(description="A text, or an object with `text`, votes, dissent and action items."),
    ] = None
    outcome: Any = None
    turn: JsonObject | None = None
    vote: Annotated[
        bool, Meta(description="Members vote on the decision before the thread closes.")
    ] = False


class ControlThread(RequestStruct, frozen=True):
    """A control, such as ``{"mute": ["ada"]}``. ``from`` names its giver."""

    content: Annotated[
        JsonObject, Meta(description="One or more controls.", examples=[{"mute": ["ada"]}])
    ]
    sender: Name | UnsetType = field(default=UNSET, name="from")


class JoinThread(RequestStruct, frozen=True):
    """The participant that gets a key, and how long the key is valid."""

    speaks_as: Annotated[Name | UnsetType, Meta(description="The participant.")] = field(
        default=UNSET, name="as"
    )
    name: Annotated[Name | UnsetType, Meta(description="The same as `as`.")] = UNSET
    profile: Annotated[
        JsonObject, Meta(description="The participant's profile, when this call invites it.")
    ] = {}
    expires_in_seconds: Annotated[int, Meta(ge=1, le=31_536_000)] = JOIN_SECONDS
    seat: Annotated[
        SeatToken | UnsetType,
        Meta(description="The seat that the key belongs to. A program that lost it gets no key."),
    ] = UNSET


class ClaimSeat(RequestStruct, frozen=True):
    """The name that a program claims, and its random word."""

    speaks_as: Name = field(name="as")
    seat: SeatToken
    replace: Annotated[bool, Meta(description="Take the seat from the program that has it.")] = (
        False
    )


class BeginSpeech(RequestStruct, frozen=True):
    """The coming speaker; by default the person behind the key."""

    speaker_id: Name | None = None
    to: Name | None = None


class SpeechDelta(RequestStruct, frozen=True):
    """The next words of a speech."""

    delta: Annotated[str, Meta(min_length=1, max_length=65_536)]


class ThreadState(Struct, frozen=True):
    """The controls of a thread that have an effect now."""

    paused: bool
    muted: list[str]
    #: muted participant -> the end of the mute, when it has one
    muted_until: dict[str, str] = field(name="mutedUntil")
    prodded: list[str]
    done: list[str]
    ttl_until: str | None
    discussion: bool
    allow_agent_mentions: bool
    invited_auto: bool
    participants: InvitedMembers


class ThreadParticipant(WireStruct, frozen=True):
    """A member of a closed roster."""

    agent_id: str


class ThreadTaskView(WireStruct, frozen=True):
    """A task without a result."""

    id: str
    to: str
    sender: str = field(name="from")
    turn: int
    since: str


class AskedPerson(WireStruct, frozen=True):
    """A person whose answer the thread waits for, and the turn that asks."""

    person: str
    turn: int


class ThreadFork(WireStruct, frozen=True):
    """A thread that continues another one."""

    thread_id: str
    note: str | None


class ThreadLinkView(WireStruct, frozen=True):
    """A side thread, and the threads that continue it."""

    thread_id: str
    title: str
    open: bool
    goes_on_in: list[ThreadFork] = []


class LinkSource(WireStruct, frozen=True):
    """A thread that links to this one."""

    thread_id: str
    title: str


class ImportMark(WireStruct, frozen=True):
    """The import of a thread: its time and its key."""

    at: str
    by: str


class ThreadView(WireStruct, frozen=True):
    """A conversation in its current state. ``floor`` is set if the host leads it."""

    thread_id: str
    run_id: str
    node_id: str
    title: str
    open: bool
    #: index of the newest turn, and the number of turns
    turns: int
    turn_count: int
    last_sequence: int
    created_at: str
    #: the creator of the thread
    created_by: str
    updated_at: str
    state: ThreadState
    #: the caller
    you: str | None = None
    #: the closed roster
    participants: Sequence[ThreadParticipant] = ()
    floor: CouncilFloor | None = None
    #: the decision that closed the thread
    decision: CouncilDecisionView | None = None
    tasks: list[ThreadTaskView] = []
    asked: list[AskedPerson] = []
    #: side threads, the threads that link here, and the thread that this one is a side thread of
    links: list[ThreadLinkView] = []
    linked_from: list[LinkSource] = []
    side_of: str | None = None
    #: the thread it was forked from or that it reopens, and the threads that continue it
    forked_from: str | None = None
    fork_note: str | UnsetType | None = UNSET
    reopened_from: str | None = None
    goes_on_in: list[ThreadFork] = []
    #: the limit that stopped the agents of a thread without a policy
    stopped: str | None = None
    imported: ImportMark | None = None
    #: after archiving or unarchiving
    archived: bool | None = None
    #: after a control: the parts of it that have no effect
    warnings: list[str] = []
    #: of a new thread
    url: str | None = None

    @property
    def plain(self) -> bool:
        """True if no policy leads it, so that only addressed participants answer."""
        return self.floor is None or self.floor.mode in THREAD_MODES

    @property
    def quiet(self) -> bool:
        """True if no agent will speak before a person does."""
        if not self.open or self.floor is None:
            return True
        over = self.floor.phase == "over" or bool(self.floor.stopped)
        return over and not self.floor.speaking


class LastTurn(WireStruct, frozen=True):
    """The beginning of a thread's newest turn."""

    speaker: str = field(name="from")
    content: str


class ThreadSummary(WireStruct, frozen=True):
    """A thread in a list."""

    thread_id: str
    run_id: str
    title: str
    open: bool
    archived: bool
    turns: int
    last_sequence: int
    created_at: str
    updated_at: str
    #: unread turns of others
    unread: int
    forked_from: str | None = None
    fork_note: str | UnsetType | None = UNSET
    #: set on request only
    paused: bool | None = None
    turn_count: int | None = None
    created_by: str | None = None
    participants: Sequence[str] = ()
    last: LastTurn | None = None
    decision: str | None = None
    #: false when the vote did not carry the decision
    adopted: bool | None = None
    #: the thread was imported from another host
    imported: bool = False


class ThreadList(WireStruct, frozen=True):
    """One page of threads."""

    threads: list[ThreadSummary]
    #: the caller
    you: str
    next_cursor: str | None = None


class ThreadEvent(BridgeEvent, frozen=True):
    """An event of a thread, with a sentence about a control and the control that undoes it."""

    says: str | None = None
    undo: JsonObject | None = None


class ThreadEventList(WireStruct, frozen=True):
    """Events of a thread."""

    events: list[ThreadEvent]
    count: int
    more: bool


class LinkedThread(WireStruct, frozen=True):
    """A thread that another thread links to."""

    thread_id: str
    title: str
    linked_from: str
    url: str


class JoinToken(WireStruct, frozen=True):
    """A key for one participant in one thread. A repeated answer has no token."""

    key_id: str
    thread_id: str
    speaks_as: str = field(name="as")
    expires_at: str
    token: str | None = None


class SeatView(WireStruct, frozen=True):
    """The claim of one program to a participant's name."""

    thread_id: str
    speaks_as: str = field(name="as")
    seat: str
    since: str


class DueRequest(WireStruct, frozen=True):
    """A request to a participant. ``seq`` is the cursor, ``event`` its subject."""

    thread_id: str
    speaks_as: str = field(name="as")
    seq: int
    reason: str
    task: bool
    event: BridgeEvent | None


class StartedSpeech(WireStruct, frozen=True):
    """A speech that has begun."""

    speech_id: str
    thread_id: str
    role: str
    speaker: str = field(name="from")
    speaker_id: str | None = None
    to: str | None = None


class ImportedThread(WireStruct, frozen=True):
    """A thread that was imported from a bundle."""

    run_id: str
    thread_id: str
    status: str
    url: str
