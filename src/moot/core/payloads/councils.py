"""Payloads of the events of councils."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import UNSET, Struct

from moot.core.payloads.base import Payload, RecordedError

InvitationTask = Literal["speak", "hand", "choose", "synthesise", "vote", "summarise"]


class CouncilMember(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A member of a council. The host does not ask one that is not driven."""

    agent_id: str = ""
    profile: dict[str, Any] | None = None
    driven: bool | None = None
    outside: bool = False


class MemberReason(Struct, frozen=True, kw_only=True, rename="camel"):
    """A member that is skipped or called, and the reason."""

    agent_id: str
    reason: str = ""


class MemberInvitation(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An invitation. ``turn`` is the newest turn, ``of`` the turns to sum up."""

    wake_id: str
    agent_id: str
    task: InvitationTask
    reason: str | None = None
    turn: int | None = None
    blind: int | None = None
    of: tuple[int, int] | None = None
    reply_to: int | None = None
    result: bool = False


class PolicySet(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participation.set"

    conversation_id: str
    policy: Mapping[str, object]
    members: list[CouncilMember]
    called: bool | None = None
    asked: list[str] | None = None
    unclear: dict[str, list[str]] | None = None
    by: str | None = None
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class MembersInvited(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participation.decided"

    conversation_id: str
    phase: Literal["talk", "synthesis", "vote", "over"]
    round: int
    wakes: list[MemberInvitation]
    skipped: list[MemberReason] | None = None
    called: list[MemberReason] | None = None
    unclear: dict[str, list[str]] | None = None


class InvitationAnswered(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participation.answered"

    conversation_id: str
    wake_id: str
    agent_id: str
    task: str
    outcome: str
    answer: dict[str, Any] | None = None
    usage: Mapping[str, object] | None = None
    error: Mapping[str, object] | None = None


class MemberHeard(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participation.heard"

    conversation_id: str
    wake_id: str
    agent_id: str
    silent_ms: int


class CouncilStopped(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participation.stopped"

    conversation_id: str
    reason: str
    limit: int | float | None = None
    observed: int | float | None = None
    error: RecordedError | None = None


class CouncilContinued(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.participation.continued"

    conversation_id: str
    by: str
    via: str | None = None
    rounds: int | None = None
    message_id: str | None = None
    digest: str | None = None


class VoteCalled(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.vote.called"

    conversation_id: str
    decision: str
    close: bool
    by: str
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class ToolAsked(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.tool.asked"

    conversation_id: str | None = None
    wake_id: str | None = None
    ask_id: str | None = None
    agent_id: str
    tool_name: str
    inputs: Any = UNSET
    args_hash: str | None = None


class ToolAnswered(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.tool.answered"

    conversation_id: str
    ask_id: str
    allowed: bool
    by: str
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class ToolReopened(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.tool.reopened"

    conversation_id: str
    ask_ids: list[str]
    reason: str


class TurnHeld(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.turn.held"

    conversation_id: str
    wake_id: str
    held: str
    turn: dict[str, Any]
    reason: str


class TurnAdmitted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.turn.admitted"

    conversation_id: str
    held: str
    by: str
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None


class TurnDropped(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.turn.dropped"

    conversation_id: str
    held: str
    by: str
    via: str | None = None
    message_id: str | None = None
    digest: str | None = None
