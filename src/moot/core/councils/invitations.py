"""Invitations to speak: planned, recorded and ended."""

from typing import Any, Literal

from msgspec import Struct

from moot.core.events import NewEvent
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.councils import (
    InvitationAnswered,
    InvitationTask,
    MemberInvitation,
    MemberReason,
    MembersInvited,
)
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.run import Run
from moot.core.text.names import full_name


class PlannedInvitation(Struct, frozen=True, omit_defaults=True):
    """An invitation to one member that the log does not hold yet."""

    agent: str
    task: InvitationTask
    why: str
    blind: int | None = None
    #: first and last turn to sum up
    of: tuple[int, int] | None = None
    #: sequence of the turn to answer, and whether that turn is a task
    reply: int | None = None
    result: bool = False


class CouncilStep(Struct, frozen=True, kw_only=True):
    """The invitations to send next, or the reason to stop or close."""

    wakes: tuple[PlannedInvitation, ...] = ()
    #: skipped member -> reason
    skipped: dict[str, str] = {}
    #: called member outside the host -> reason
    called: dict[str, str] = {}
    #: a word after an @ -> the members it could mean; empty when it means all members
    unclear: dict[str, list[str]] = {}
    round: int = 1
    phase: Literal["talk", "synthesis", "vote", "over"] = "talk"
    stop: str | None = None
    limit: float | None = None
    observed: float | None = None
    close: bool = False


def invitations_event(run: Run, conversation: Conversation, step: CouncilStep) -> NewEvent:
    """Return the event that records the invitations of a step."""
    wakes = [
        MemberInvitation(
            wake_id=f"{run.next_sequence}.{index}",
            agent_id=planned.agent,
            task=planned.task,
            reason=planned.why,
            turn=conversation.turns,
            blind=planned.blind,
            of=planned.of,
            reply_to=planned.reply,
            result=planned.result,
        )
        for index, planned in enumerate(step.wakes)
    ]
    payload = MembersInvited(
        conversation_id=conversation.conversation_id,
        phase=step.phase,
        round=step.round,
        wakes=wakes,
        skipped=_named_reasons(step.skipped),
        called=_named_reasons(step.called),
        unclear=step.unclear or None,
    )
    return NewEvent(payload, conversation.node_id, cause=conversation.turn_seq)


def _named_reasons(reasons: dict[str, str]) -> list[MemberReason] | None:
    return [MemberReason(agent_id=name, reason=reason) for name, reason in reasons.items()] or None


def turn_meta(conversation: Conversation, invitation: Invitation) -> dict[str, object]:
    """Return the metadata of an invited turn: a summary, a reply or the result of an open task."""
    meta: dict[str, object] = {}
    if invitation.of is not None:
        meta["summary"] = {"of": list(invitation.of)}
    if invitation.reply is not None:
        meta["replyTo"] = invitation.reply
    if invitation.result and invitation.reply in conversation.tasks:
        meta["kind"] = "result"
    return meta


class InvitationEnded(Struct, frozen=True, kw_only=True):
    """The end of an invitation: a member's turn (``content``) or another answer."""

    node_id: str
    wake_id: str
    at: int
    #: spoke, answered, passed, failed or refused
    outcome: str
    content: Any = None
    to: str | None = None
    answer: dict[str, object] | None = None
    usage: dict[str, object] | None = None
    error: dict[str, object] | None = None
    #: metadata of the turn
    meta: dict[str, object] | None = None
    agent: dict[str, object] | None = None
    #: events to record before the end
    facts: tuple[NewEvent, ...] = ()


def open_invitation(conversation: Conversation | None, wake_id: str) -> Invitation | None:
    floor = conversation.floor if conversation is not None else None
    return floor.wakes.get(wake_id) if floor is not None else None


def invitation_answered(
    conversation: Conversation, invitation: Invitation, ending: InvitationEnded
) -> NewEvent:
    answered = InvitationAnswered(
        conversation_id=conversation.conversation_id,
        wake_id=ending.wake_id,
        agent_id=invitation.agent,
        task=invitation.task,
        outcome=ending.outcome,
        answer=ending.answer,
        usage=ending.usage,
        error=ending.error,
    )
    return NewEvent(answered, conversation.node_id, cause=invitation.seq)


def end_invitations_for_turn(
    conversation: Conversation, events: list[NewEvent], at: int
) -> list[NewEvent]:
    """End the speaker's own invitation, and all of them when a person interrupts."""
    floor, exchanged = conversation.floor, events[0].payload
    if floor is None or not floor.wakes or not isinstance(exchanged, ConversationExchanged):
        return []
    turn = exchanged.turn
    interrupts = floor.policy.interject == "interrupt" or (
        isinstance(turn.meta, dict) and turn.meta.get("interrupt") is True
    )
    outcomes: dict[str, str] = {}
    for wake_id, invitation in floor.wakes.items():
        if turn.role == "agent" and invitation.agent == full_name(turn.from_):
            outcomes[wake_id] = "spoke"
        elif turn.role == "user" and interrupts and invitation.task == "speak":
            outcomes[wake_id] = "superseded"
    return _end_invitations(conversation, outcomes, at)


def withdraw_other_tasks(conversation: Conversation, at: int) -> list[NewEvent]:
    """End every invitation except those to speak."""
    invitations = conversation.floor.wakes if conversation.floor is not None else {}
    others = [wake_id for wake_id, each in invitations.items() if each.task != "speak"]
    return _end_invitations(conversation, dict.fromkeys(others, "superseded"), at)


def _end_invitations(
    conversation: Conversation, outcomes: dict[str, str], at: int
) -> list[NewEvent]:
    """End invitations without an answer; ``outcomes`` maps their ids."""
    invitations = conversation.floor.wakes if conversation.floor is not None else {}
    events = []
    for wake_id, outcome in outcomes.items():
        ending = InvitationEnded(
            node_id=conversation.node_id, wake_id=wake_id, at=at, outcome=outcome
        )
        events.append(invitation_answered(conversation, invitations[wake_id], ending))
    return events
