"""Payloads of the events of conversations and threads."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import UNSET, Struct

from moot.core.payloads.base import Payload


class Turn(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One turn of a conversation. Fields are written in the order of the class."""

    message_id: str | None = None
    from_: str = ""
    content: Any = UNSET
    ts: int | None = None
    role: str | None = None
    turn_index: int | None = None
    speaker_id: str | None = None
    group_id: str | None = None
    agent: Any = UNSET
    meta: Any = UNSET
    to: str | None = None
    via: str | None = None
    spoken_by: str | None = None
    edited_by: str | None = None
    original_event_id: str | None = None

    @property
    def body(self) -> Any:
        """The content, or None in a turn of another host that has none."""
        return None if self.content is UNSET else self.content


class ConversationOpened(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "conversation.opened"

    conversation_id: str
    initial_turn: Turn
    agent_id: str | None = None
    participants: Sequence[Mapping[str, object]] | None = None
    schema: Any = None
    capabilities: list[str]


class ConversationExchanged(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "conversation.exchanged"

    conversation_id: str
    turn_index: int
    turn: Turn


class ConversationEnded(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "conversation.closed"

    conversation_id: str
    turn_index: int
    final_turn: Turn
    outcome: Any


class ThreadControlled(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.thread.control"

    conversation_id: str
    from_: str
    content: Any
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class ThreadRenamed(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.thread.renamed"

    conversation_id: str
    title: str
    by: str | None = None
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class ThreadLinked(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.thread.linked"

    conversation_id: str
    thread_id: str
    title: str
    by: str | None = None
    via: str | None = None
    back: bool = False
    closed: bool = False
    summary: str | None = None
    message_id: str | None = None
    digest: str | None = None


class PresenceChanged(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.presence.changed"

    conversation_id: str
    from_: str
    state: str
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class ParticipantJoined(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participant.joined"

    conversation_id: str
    participant_id: str
    profile: dict[str, Any]
    by: str
    from_turn: int
    outside: bool = False
    changed: bool = False
    message_id: str | None = None
    digest: str | None = None


class ParticipantLeft(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participant.left"

    conversation_id: str
    participant_id: str
    by: str
    after_turn: int
    message_id: str | None = None
    digest: str | None = None


class SeatClaimed(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.seat.taken"

    conversation_id: str
    participant_id: str
    seat: str
    via: str | None = None
    instead: str | None = None


class SeatLeft(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.seat.left"

    conversation_id: str
    participant_id: str
    seat: str
