"""Events that invite members to speak, and events that end invitations."""

from typing import Any

from msgspec import Struct

from moot.core.councils.steps import CouncilStep, PlannedInvitation
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.councils import (
    InvitationAnswered,
    MemberInvitation,
    MemberReason,
    MembersInvited,
)
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.run import Run
from moot.core.text.names import full_name
from moot.core.workflows.flow import FlowNode


def invitations_event(
    run: Run, node_id: str, conversation: Conversation, step: CouncilStep
) -> NewEvent:
    payload = MembersInvited(
        conversation_id=conversation.conversation_id,
        phase=step.phase,
        round=step.round,
        wakes=[
            _invitation_payload(f"{run.next_sequence}.{index}", planned, conversation)
            for index, planned in enumerate(step.wakes)
        ],
        skipped=_named_reasons(step.skipped),
        called=_named_reasons(step.called),
        unclear=step.unclear or None,
    )
    return NewEvent(payload, node_id, cause=conversation.turn_seq)


def _named_reasons(reasons: dict[str, str]) -> list[MemberReason] | None:
    return [MemberReason(agent_id=name, reason=reason) for name, reason in reasons.items()] or None


def _invitation_payload(
    wake_id: str, planned: PlannedInvitation, conversation: Conversation
) -> MemberInvitation:
    return MemberInvitation(
        wake_id=wake_id,
        agent_id=planned.agent,
        task=planned.task,
        reason=planned.why,
        turn=conversation.turns,
        blind=planned.blind,
        of=planned.of,
        reply_to=planned.reply,
        result=planned.result,
    )


def turn_meta(conversation: Conversation, invitation: Invitation) -> dict[str, Any]:
    """Return the metadata of an invited turn: a summary, a reply or the result of an open task."""
    meta: dict[str, Any] = {}
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
    answer: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    #: metadata of the turn
    meta: dict[str, Any] | None = None
    agent: dict[str, Any] | None = None
    #: events to record before the end
    facts: tuple[NewEvent, ...] = ()


def open_invitation(run: Run, conversation: Conversation | None, wake_id: str) -> Invitation | None:
    if conversation is None or conversation.floor is None or not conversation.open or not run.going:
        return None
    return conversation.floor.wakes.get(wake_id)


def invitation_answered(
    node: FlowNode,
    conversation: Conversation,
    invitation: Invitation,
    ending: InvitationEnded,
    outcome: str,
) -> NewEvent:
    answered = InvitationAnswered(
        conversation_id=conversation.conversation_id,
        wake_id=ending.wake_id,
        agent_id=invitation.agent,
        task=invitation.task,
        outcome=outcome,
        answer=ending.answer,
        usage=ending.usage,
        error=ending.error,
    )
    return NewEvent(answered, node.id, cause=invitation.seq)


def end_invitations_for_turn(
    run: Run, node: FlowNode, events: list[NewEvent], at: int
) -> list[NewEvent]:
    """End the speaker's own invitation, and all of them when a person interrupts."""
    conversation, first = run.conversations[node.id], events[0]
    floor = conversation.floor
    if floor is None or not floor.wakes or not isinstance(first.payload, ConversationExchanged):
        return []
    turn = first.payload.turn
    ends: list[tuple[str, str]] = []
    interrupts = floor.policy.interject == "interrupt" or (
        isinstance(turn.meta, dict) and turn.meta.get("interrupt") is True
    )
    for wake_id, invitation in floor.wakes.items():
        if turn.role == "agent" and invitation.agent == full_name(turn.from_):
            ends.append((wake_id, "spoke"))
        elif turn.role == "user" and interrupts and invitation.task == "speak":
            ends.append((wake_id, "superseded"))
    return [_invitation_over(node, conversation, wake_id, at, outcome) for wake_id, outcome in ends]


def withdraw_other_tasks(node: FlowNode, conversation: Conversation, at: int) -> list[NewEvent]:
    """End every invitation except those to speak."""
    invitations = conversation.floor.wakes if conversation.floor is not None else {}
    return [
        _invitation_over(node, conversation, wake_id, at, "superseded")
        for wake_id, invitation in invitations.items()
        if invitation.task != "speak"
    ]


def _invitation_over(
    node: FlowNode, conversation: Conversation, wake_id: str, at: int, outcome: str
) -> NewEvent:
    assert conversation.floor is not None
    ending = InvitationEnded(node_id=node.id, wake_id=wake_id, at=at, outcome=outcome)
    return invitation_answered(
        node, conversation, conversation.floor.wakes[wake_id], ending, outcome
    )
