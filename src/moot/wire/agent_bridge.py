"""The Agent Bridge thread API: requests and answers, with names in snake case."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moot.core.state.council_policy import Policy
from moot.core.threads.presence import PresenceState
from moot.core.threads.rendered_event import RenderedEvent
from moot.wire.json import JsonObject
from moot.wire.request import InvitedParticipants, Name, RequestStruct, Text

BridgeTitle = Annotated[str, Meta(max_length=256)]
PostedType = Literal["message", "control", "presence", "task", "result", "thread.renamed"]


class CreateBridgeThread(RequestStruct, frozen=True):
    """A new thread. Without a name it is untitled."""

    name: BridgeTitle | UnsetType = UNSET
    sender: Name | UnsetType = field(default=UNSET, name="from")
    #: The same as ``name``. This and the following fields are the host's own.
    title: BridgeTitle | UnsetType = UNSET
    opening: Text | None = None
    participants: InvitedParticipants = []
    policy: Policy | UnsetType = UNSET


class PostBridgeEvent(RequestStruct, frozen=True):
    """One event as a program sends it.

    ``id`` is the sender's own id: when it sends the event again, it gets the first answer. The
    answer has the host's id and time, whatever the program sent.
    """

    type: PostedType = "message"
    sender: Name | UnsetType = field(default=UNSET, name="from")
    to: Name | None = None
    content: Any = UNSET
    meta: JsonObject | None = None
    id: Name | UnsetType = UNSET
    ts: Any = UNSET
    thread: str | UnsetType = UNSET
    seq: Any = UNSET
    turn: Any = UNSET


class ReportPresence(RequestStruct, frozen=True):
    """A report of presence.

    The default state is listening. Without details the earlier details stay.
    """

    state: PresenceState = "listening"
    sender: Name | UnsetType = field(default=UNSET, name="from")
    details: Any = None


class BridgeThread(Struct, frozen=True):
    """A thread with its id and name."""

    id: str
    name: str
    created_at: str
    updated_at: str


class BridgeThreadList(Struct, frozen=True):
    """All threads."""

    threads: list[BridgeThread]


class CreatedBridgeThread(Struct, frozen=True):
    """The id and name of a new thread."""

    id: str
    name: str


class BridgeEvent(RenderedEvent, frozen=True):
    """One event of a thread. ``seq`` is the cursor, ``turn`` the number of a turn."""


class BridgeEventList(Struct, frozen=True, omit_defaults=True):
    """Events of a thread, oldest first."""

    events: list[BridgeEvent]
    count: int
    #: more events follow; continue after the last one
    more: bool = False


class BridgePostResult(Struct, frozen=True, omit_defaults=True):
    """The answer to a posted event."""

    received: bool
    event: BridgeEvent | None
    #: why the event was stored but has no effect
    warning: str | None = None


class InvitedMember(Struct, frozen=True):
    """A participant who was invited or has joined."""

    id: str
    profile: JsonObject
    invited_by: str
    invited_at: str
    #: the first turn this member may answer
    from_turn: int


class InvitedMembers(Struct, frozen=True):
    """The participants who were invited."""

    invited: list[InvitedMember]


class BridgeDiscussion(Struct, frozen=True):
    """The switch that lets agents answer one another."""

    on: bool
    allow_agent_mentions: bool


class BridgeSwitch(Struct, frozen=True):
    """A control that is on or off."""

    on: bool


class BridgeTask(Struct, frozen=True):
    """A task without a result."""

    id: str
    sender: str = field(name="from")
    ts: str


class BridgeControls(Struct, frozen=True):
    """The controls that have an effect now."""

    paused: bool
    muted: list[str]
    #: muted participant -> the end of the mute, when it has one
    muted_until: dict[str, str]
    prodded: list[str]
    done: list[str]
    ttl_until: str | None
    discussion: BridgeDiscussion
    invited_auto: BridgeSwitch
    participants: InvitedMembers
    #: participant -> its open tasks
    tasks: dict[str, list[BridgeTask]]
    #: the mode of a council; null in another thread
    mode: str | None
    open: bool


class BridgeThreadState(Struct, frozen=True):
    """The controls of a thread."""

    thread: str
    state: BridgeControls


class BridgePresence(Struct, frozen=True):
    """The presence of one participant."""

    state: str
    updated_at: str
    details: Any
    stale: bool


class BridgeParticipant(BridgePresence, frozen=True, kw_only=True):
    """A participant with its presence."""

    id: str


class BridgePresenceList(Struct, frozen=True):
    """The presence of all participants of a thread."""

    thread: str
    ttl_seconds: int
    participants: list[BridgeParticipant]
    #: participant -> its presence
    presence: dict[str, BridgePresence]


class ReportedPresence(BridgePresence, frozen=True, kw_only=True):
    """The presence that a participant has reported."""

    thread: str
    participant: str


class BridgePresenceResult(Struct, frozen=True):
    """The answer to a presence report."""

    received: bool
    presence: ReportedPresence


class BridgePing(Struct, frozen=True):
    """The answer to a ping."""

    status: str
    server: str
    version: str
    timestamp: str
