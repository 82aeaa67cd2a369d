"""Verify events of conversations: turns, controls and ends of invitations.

The content of a turn is a fact. The right to speak and the consequences follow from the state.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from moot.core.commands import decide
from moot.core.conversations import turns
from moot.core.conversations.decide import close_conversation, record_turn
from moot.core.conversations.turns import HOST
from moot.core.councils import timeouts
from moot.core.councils.invitations import InvitationEnded, end_invitations_for_turn
from moot.core.events import Event, NewEvent, event_id, payload_fields, set_fields
from moot.core.json.schema import schema_problems
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ParticipantJoined,
    ParticipantLeft,
    PresenceChanged,
    SeatClaimed,
    SeatLeft,
    ThreadRenamed,
    Turn,
)
from moot.core.payloads.councils import (
    CouncilContinued,
    InvitationAnswered,
    PolicySet,
    ToolAnswered,
    ToolReopened,
    TurnAdmitted,
    TurnDropped,
    TurnHeld,
)
from moot.core.payloads.nodes import ChannelWritten
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.run import Run
from moot.core.text.names import full_name
from moot.core.threads.decide import Control
from moot.core.threads.seats import LeaveSeat, TakeSeat
from moot.core.threads.side_threads import THREAD_LINKED, SideThreadEnded, ThreadLinkedFrom
from moot.core.verify import council_steps
from moot.core.verify.controls import CONTROL, VOTE, control_rank, control_words
from moot.core.verify.nodes import ImpossibleEvent, VerificationStep

PARTICIPATION_ANSWERED, TURN_HELD = InvitationAnswered.event_type, TurnHeld.event_type
EXCHANGED = ConversationExchanged.event_type

#: outcomes of an invitation that the member causes
MEMBER_OUTCOMES = ("spoke", "answered", "passed", "failed", "refused")


def open_conversation(step: VerificationStep) -> Conversation:
    conversation = step.run.conversations.get(step.own_node.id)
    payload = payload_fields(step.event)
    if conversation is None or not conversation.open:
        raise ImpossibleEvent("impossible", "an open conversation", step.event.type)
    if payload.get("conversationId", conversation.conversation_id) != conversation.conversation_id:
        raise ImpossibleEvent("payload", {"conversationId": conversation.conversation_id}, payload)
    return conversation


def _check_turn(event: Event, conversation: Conversation, key: str) -> dict[str, Any]:
    """Return the turn, or raise when it is not the next one or its speaker may not speak."""
    payload = payload_fields(event)
    turn: dict[str, Any] = payload[key]
    if not payload["turnIndex"] == turn["turnIndex"] == conversation.turns + 1:
        raise ImpossibleEvent("payload", {"turnIndex": conversation.turns + 1}, payload)
    speaker = turn.get("speakerId")
    if turn["role"] == "agent" and (
        turn["from"] != speaker
        or (conversation.roster is not None and speaker not in conversation.roster)
    ):
        raise ImpossibleEvent("payload", {"roster": conversation.roster}, turn)
    schema = conversation.schema if turn["role"] != "system" else None
    if schema is not None and (errors := schema_problems(schema, turn["content"])):
        raise ImpossibleEvent("payload", errors[0], turn["content"])
    return turn


def decide_exchanged(step: VerificationStep) -> list[NewEvent]:
    """Decide a turn from outside, after the invitations that it ends."""
    conversation = open_conversation(step)
    exchanged = next(event for event in step.rest if event.type != PARTICIPATION_ANSWERED)
    turn = _check_turn(exchanged, conversation, "turn")
    answer, spoken = step.answer_by(turn.get("via")), msgspec.convert(turn, Turn)
    events = record_turn(step.run, step.flow, step.own_node, conversation, spoken, answer)
    set_fields(events[0], {**payload_fields(events[0]), "turn": turn})
    return [*end_invitations_for_turn(step.run, step.own_node, events, step.at), *events]


def decide_closed(step: VerificationStep) -> list[NewEvent]:
    conversation = open_conversation(step)
    turn = _check_turn(step.event, conversation, "finalTurn")
    final, outcome = msgspec.convert(turn, Turn), payload_fields(step.event).get("outcome")
    end = turns.closed_event(conversation, step.own_node, final, outcome)
    set_fields(end, {**payload_fields(end), "finalTurn": turn})
    answer = step.answer_by(turn.get("via"))
    return close_conversation(step.run, step.flow, step.own_node, conversation, end, answer)


def decide_linked(step: VerificationStep) -> list[NewEvent]:
    """Decide a new link, the end of a linked thread, or a link back from another thread."""
    payload = payload_fields(step.event)
    if payload.get("closed") is not True and payload.get("back") is not True:
        return decide_control(step)
    open_conversation(step)
    place: dict[str, Any] = {
        "node_id": step.own_node.id,
        "thread": payload["threadId"],
        "at": step.at,
    }
    command: SideThreadEnded | ThreadLinkedFrom = ThreadLinkedFrom(
        title=str(payload["title"]), **place
    )
    if payload.get("back") is not True:
        command = SideThreadEnded(summary=payload["summary"], **place)
    events = decide(step.run, step.flow, command)
    spoken = next((event for event in step.rest if event.type == EXCHANGED), None)
    if len(events) > 1 and spoken is not None:  # the host's turn keeps its recorded time
        fields = payload_fields(events[1])
        turn = {**fields["turn"], "ts": payload_fields(spoken)["turn"]["ts"]}
        set_fields(events[1], {**fields, "turn": turn})
    return events


def decide_seat(step: VerificationStep) -> list[NewEvent]:
    """Decide that a program takes or leaves a seat."""
    open_conversation(step)
    payload = payload_fields(step.event)
    place: dict[str, Any] = {"node_id": step.own_node.id, "name": payload["participantId"]}
    place["seat"] = payload["seat"]
    if step.event.type == SeatLeft.event_type:
        return decide(step.run, step.flow, LeaveSeat(**place))
    claim = {"seen": payload.get("instead"), "via": payload["via"]}
    return decide(step.run, step.flow, TakeSeat(at=step.at, **claim, **place))


# -- controls --------------------------------------------------------------------------------------


def decide_control(step: VerificationStep) -> list[NewEvent]:
    """Decide all events of one control together."""
    open_conversation(step)
    content: Any = {}
    sender = via = ""
    message: dict[str, Any] = {}
    for event in _control_events(step):
        if event.type == CONTROL and not isinstance(payload_fields(event)["content"], dict):
            content = payload_fields(event)["content"]
        else:
            content |= control_words(event) or {}
        sender = str(payload_fields(event).get("from", payload_fields(event).get("by")))
        via = str(payload_fields(event).get("via", via))
        message = message if message.get("messageId") else payload_fields(event)
    command = Control(
        node_id=step.own_node.id, content=content, who=Speaker(via, admin=True), at=step.at,
        sender=sender, lenient=True, message_id=message.get("messageId"),
        digest=str(message.get("digest", "")),
        ends=any(event.type == ConversationEnded.event_type for event in step.rest),
    )  # fmt: skip
    return decide(step.run, step.flow, command)


def _control_events(step: VerificationStep) -> list[Event]:
    """Return the events of one control: all have one cause, apart from tool answers."""
    before = event_id(step.run.run_id, open_conversation(step).last_seq)
    events: list[Event] = []
    until, last, admits = 1, -1, False
    for event in step.rest:
        if event.type == CONTROL and not isinstance(payload_fields(event)["content"], dict):
            return events[:until] or [event]  # an invalid control has no other events
        words = control_words(event)
        if event.type == PARTICIPATION_ANSWERED and not events:
            continue  # a vote ends the open invitations
        if admits and event.type in (EXCHANGED, ChannelWritten.event_type):
            continue  # the admitted turn belongs to the control
        if (
            event.type == PARTICIPATION_ANSWERED
            and payload_fields(event).get("outcome") == "superseded"
        ):
            continue  # a vote ends the open invitations before it
        if words is None or (rank := control_rank(event, words)) <= last:
            break
        events, last, admits = [*events, event], rank, admits or "admit" in words
        if event.type == ToolAnswered.event_type:
            continue
        if event.causation_id != before:
            break
        until = len(events)
    return events[:until]


def decide_tool_reopened(step: VerificationStep) -> list[NewEvent]:
    """Check that a fork or import opens exactly the allowed tool requests again."""
    floor = open_conversation(step).floor
    allowed = [name for name, ask in (floor.asks if floor else {}).items() if ask.allowed is True]
    if payload_fields(step.event).get("askIds") != allowed or not allowed:
        raise ImpossibleEvent("payload", {"askIds": allowed}, payload_fields(step.event))
    return [step.as_recorded()]


# -- members that have the floor -------------------------------------------------------------------


def decide_answered(step: VerificationStep) -> list[NewEvent]:
    """Decide the end of an invitation: by the member, or by the turn of another participant."""
    payload = payload_fields(step.event)
    invitation = _open_invitation(step, str(payload["wakeId"]))
    turn = _turn_after_ends(step)
    if payload["outcome"] == "superseded" and _type_after_ends(step) == VOTE:
        return decide_control(step)
    is_outside = (
        payload["outcome"] == "spoke" and "usage" not in payload and _is_own(turn, invitation)
    )
    if payload["outcome"] == "superseded" or is_outside:
        return decide_exchanged(step)
    if payload["outcome"] not in MEMBER_OUTCOMES:
        raise ImpossibleEvent("payload", f"one of {', '.join(MEMBER_OUTCOMES)}", payload["outcome"])
    if payload.get("agentId") != invitation.agent:
        raise ImpossibleEvent("payload", {"agentId": invitation.agent}, payload)
    spoken = turn if payload["outcome"] == "spoke" else None
    return _decide_invitation_ended(step, payload, payload["outcome"], spoken or {})


def decide_held(step: VerificationStep) -> list[NewEvent]:
    """Decide a turn that arrived after its speaker was muted."""
    payload = payload_fields(step.event)
    _open_invitation(step, str(payload["wakeId"]))
    end = next(event for event in step.rest if event.type == PARTICIPATION_ANSWERED)
    events = _decide_invitation_ended(
        step, {**payload_fields(end), "wakeId": payload["wakeId"]}, "spoke", payload["turn"]
    )
    if step.is_copied and events and events[0].type == TURN_HELD:
        # its id is its sequence in the source
        set_fields(events[0], {**payload_fields(events[0]), "held": str(payload["held"])})
    return events


def _decide_invitation_ended(
    step: VerificationStep, payload: dict[str, Any], outcome: str, turn: dict[str, Any]
) -> list[NewEvent]:
    command = InvitationEnded(
        node_id=step.own_node.id,
        wake_id=str(payload["wakeId"]),
        at=step.at,
        outcome=outcome,
        content=turn.get("content"),
        to=turn.get("to"),
        answer=payload.get("answer"),
        usage=payload.get("usage"),
        error=payload.get("error"),
        meta=turn.get("meta"),
        agent=turn.get("agent"),
    )
    events = decide(step.run, step.flow, command)
    reason = payload_fields(step.event).get("reason")
    if step.fits(events) and payload_fields(events[0]).get("reason") == reason:
        return events
    return decide(_without_timed_mutes(step), step.flow, command)


def _without_timed_mutes(step: VerificationStep) -> Run:
    """Return the run after its timed mutes have ended: one may end just before the turn."""
    conversation = open_conversation(step)
    return council_steps.without_mutes(step.run, conversation, set())


def _open_invitation(step: VerificationStep, invitation_id: str) -> Invitation:
    conversation = open_conversation(step)
    invitation = (
        conversation.floor.wakes.get(invitation_id) if conversation.floor is not None else None
    )
    if invitation is None:
        raise ImpossibleEvent(
            "impossible", "a member that has the floor", payload_fields(step.event)
        )
    return invitation


def _type_after_ends(step: VerificationStep) -> str:
    """Return the type of the first event after the ends of invitations."""
    return next((event.type for event in step.rest if event.type != PARTICIPATION_ANSWERED), "")


def _turn_after_ends(step: VerificationStep) -> dict[str, Any]:
    """Return the turn after the ends of invitations, or an empty dict."""
    after = next((event for event in step.rest if event.type != PARTICIPATION_ANSWERED), None)
    if after is None or after.type != EXCHANGED:
        return {}
    turn = payload_fields(after).get("turn")
    return turn if isinstance(turn, dict) else {}


def _is_own(turn: Mapping[str, object], invitation: Invitation) -> bool:
    """Return whether the member sent the turn itself, not through the host."""
    speaker = full_name(str(turn.get("from", "")))
    return speaker == invitation.agent and "editedBy" not in turn and turn.get("via") != HOST


def decide_silent(step: VerificationStep) -> list[NewEvent]:
    """Decide ends by silence in copied events, whose times do not count."""
    conversation = open_conversation(step)
    invitation_ids: list[str] = []
    for event in step.rest:
        if (
            event.type == PARTICIPATION_ANSWERED
            and payload_fields(event).get("outcome") == "silent"
        ):
            invitation_ids.append(str(payload_fields(event)["wakeId"]))
        elif event.type != EXCHANGED or len(invitation_ids) == 0:
            break
    for invitation_id in invitation_ids:
        _open_invitation(step, invitation_id)
    for count in range(len(invitation_ids), 0, -1):
        events = timeouts.pass_over(step.own_node, conversation, invitation_ids[:count], step.at)
        if step.fits(events):
            return events
    return []


CONVERSATION_DECIDERS = {
    EXCHANGED: decide_exchanged,
    ConversationEnded.event_type: decide_closed,
    TURN_HELD: decide_held,
    CONTROL: decide_control,
    ParticipantJoined.event_type: decide_control,
    ParticipantLeft.event_type: decide_control,
    ThreadRenamed.event_type: decide_control,
    PresenceChanged.event_type: decide_control,
    THREAD_LINKED: decide_linked,
    SeatClaimed.event_type: decide_seat,
    SeatLeft.event_type: decide_seat,
    CouncilContinued.event_type: decide_control,
    PolicySet.event_type: decide_control,
    VOTE: decide_control,
    TurnAdmitted.event_type: decide_control,
    TurnDropped.event_type: decide_control,
    ToolAnswered.event_type: decide_control,
    ToolReopened.event_type: decide_tool_reopened,
}
