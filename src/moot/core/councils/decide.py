"""Decide the commands of a council: advance it, end an invitation, record reports.

Each invitation ends exactly once. An answer to an invitation that has ended causes nothing.
"""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.core.conversations.decide import answer_conversation
from moot.core.conversations.turns import HOST, find_open
from moot.core.councils import host_messages, invitations
from moot.core.councils.host_messages import (
    CONTINUE_HINT,
    FAILURE_TEXTS,
    STOP_TEXTS,
    busiest_pair,
    display_name,
    host_turn_event,
)
from moot.core.councils.invitations import (
    CouncilStep,
    InvitationEnded,
    invitation_answered,
    open_invitation,
)
from moot.core.councils.next_speaker import next_step
from moot.core.councils.votes import close_with_votes
from moot.core.errors import Conflict, MootError, ParticipantMuted, ThreadPaused
from moot.core.errors.models import DailyBudgetUsedUp
from moot.core.events import NewEvent
from moot.core.payloads.agents import ToolReturned
from moot.core.payloads.councils import CouncilStopped, ToolAsked, TurnHeld, WithheldTurn
from moot.core.payloads.memory import EffectAbandoned
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state import agents
from moot.core.state.conversation import Conversation
from moot.core.state.floor import DAY_BUDGET, NATURAL_STOPS, SPOKEN_TASKS, Invitation
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow


class AdvanceCouncil(Struct, frozen=True):
    """Take the next step of the council, if one is due."""

    node_id: str
    at: int


class InvitationReport(Struct, frozen=True):
    """Events that a member reports while it works on its answer."""

    node_id: str
    wake_id: str
    events: tuple[NewEvent, ...]
    at: int
    #: the caller relies on these events: refuse when the invitation has ended
    required: bool = False


def advance_council(run: Run, flow: Flow, node_id: str, at: int) -> list[NewEvent]:
    conversation = find_open(run, node_id)
    step = next_step(conversation, at) if conversation is not None else None
    if conversation is None or step is None:
        return []
    if step.stop is not None:
        return _stop(conversation, step, at)
    floor = conversation.floor
    if floor is None:
        return []
    if step.close:
        return close_with_votes(run, flow, conversation, floor, at)
    invited = invitations.invitations_event(run, conversation, step)
    if not step.unclear:
        return [invited]
    text = host_messages.mention_question(conversation, step.unclear)
    meta, to = {"replyTo": conversation.turn_seq}, floor.unclear_to or None
    return [invited, host_turn_event(conversation, text, at, meta=meta, to=to)]


def _stop(conversation: Conversation, step: CouncilStep, at: int) -> list[NewEvent]:
    reason, limit = str(step.stop), step.limit
    stopped = CouncilStopped(
        conversation_id=conversation.conversation_id,
        reason=reason,
        limit=limit,
        observed=None if step.observed is None else round(step.observed, 6),
    )
    events = [NewEvent(stopped, conversation.node_id, cause=conversation.turn_seq)]
    if reason not in NATURAL_STOPS:
        sentence = STOP_TEXTS.get(reason, "{stop} reached its limit of {limit:g}")
        times, pair = "once" if limit == 1 else f"{limit} times", busiest_pair(conversation)
        sentence = sentence.format(stop=reason, limit=limit, who=pair, times=times)
        text = f"Stopped: {sentence}. {CONTINUE_HINT}"
        events.append(host_turn_event(conversation, text, at))
    return events


def finish_invitation(run: Run, flow: Flow, ending: InvitationEnded) -> list[NewEvent]:
    conversation = find_open(run, ending.node_id)
    invitation = open_invitation(conversation, ending.wake_id)
    if conversation is None or invitation is None:
        return []
    facts = _new_events(conversation, invitation, ending.wake_id, ending.facts)
    ending = replace(ending, facts=tuple(facts))
    if ending.outcome == "spoke" and invitation.task in SPOKEN_TASKS:
        return facts + _end_with_turn(run, flow, conversation, invitation, ending)
    return facts + _end_without_turn(conversation, invitation, ending)


def _end_with_turn(
    run: Run,
    flow: Flow,
    conversation: Conversation,
    invitation: Invitation,
    ending: InvitationEnded,
) -> list[NewEvent]:
    meta = invitations.turn_meta(conversation, invitation)
    turn = WithheldTurn(
        role="agent",
        speaker_id=invitation.agent,
        content=ending.content,
        to=ending.to,
        meta={**(ending.meta or {}), **meta} if meta else ending.meta,
        agent=ending.agent,
    )
    node, who = flow.nodes[ending.node_id], Speaker(HOST, (invitation.agent,))
    value = {"turn": msgspec.to_builtins(turn)}
    answer = GateAnswer(node_id=node.id, value=value, who=who, at=ending.at)
    try:
        events = answer_conversation(run, flow, node, answer)
    except (ParticipantMuted, ThreadPaused) as refusal:
        held = TurnHeld(
            conversation_id=conversation.conversation_id,
            wake_id=ending.wake_id,
            held=str(run.next_sequence + len(ending.facts)),
            turn=turn,
            reason=refusal.code,
        )
        return [
            NewEvent(held, node.id, cause=invitation.seq),
            invitation_answered(conversation, invitation, replace(ending, outcome="held")),
        ]
    except MootError as refusal:
        error: dict[str, object] = {"code": refusal.code, "message": refusal.message}
        failed = replace(ending, outcome="failed", answer=None, error=error)
        return _end_without_turn(conversation, invitation, failed)
    return [invitation_answered(conversation, invitation, ending), *events]


def _end_without_turn(
    conversation: Conversation, invitation: Invitation, ending: InvitationEnded
) -> list[NewEvent]:
    events = [invitation_answered(conversation, invitation, ending)]
    error = ending.error or {}
    if error.get("code") == DailyBudgetUsedUp.code:
        payload = CouncilStopped(conversation_id=conversation.conversation_id, reason=DAY_BUDGET)
        events.append(NewEvent(payload, conversation.node_id, cause=conversation.turn_seq))
    template = FAILURE_TEXTS.get(ending.outcome)
    if template is not None:
        reason = str(error.get("message", "no reason was given"))[:500]
        text = template.format(name=display_name(conversation, invitation.agent), why=reason)
        events.append(host_turn_event(conversation, text, ending.at))
    return events


def record_report(run: Run, flow: Flow, report: InvitationReport) -> list[NewEvent]:
    conversation = find_open(run, report.node_id)
    invitation = open_invitation(conversation, report.wake_id)
    if conversation is not None and invitation is not None:
        return _new_events(conversation, invitation, report.wake_id, report.events)
    if report.required:
        raise Conflict("The member no longer has the floor.", runId=run.run_id)
    floor = conversation.floor if conversation is not None else None
    unpaid = floor.unpaid.get(report.wake_id) if floor is not None else None
    if unpaid is None:
        return []
    # the cost of a member's last call after the member has lost the floor
    costs = [event for event in report.events if isinstance(event.payload, EffectAbandoned)]
    return [replace(event, cause=unpaid.seq) for event in costs[:1]]


def _new_events(
    conversation: Conversation, invitation: Invitation, wake_id: str, events: tuple[NewEvent, ...]
) -> list[NewEvent]:
    """Return the events that are not in the log yet. A member repeats its work after a crash.

    An event that names no cause is caused by the invitation.
    """
    new_events = (_new_event(conversation, invitation, wake_id, event) for event in events)
    return [
        event if event.cause is not None else replace(event, cause=invitation.seq)
        for event in new_events
        if event is not None
    ]


def _new_event(
    conversation: Conversation, invitation: Invitation, wake_id: str, event: NewEvent
) -> NewEvent | None:
    """Return the event to record, or None when the log has it.

    The event itself is not changed, because a command may be decided again.
    """
    payload = event.payload
    if isinstance(payload, ToolAsked):
        if conversation.floor is not None and payload.ask_id in conversation.floor.asks:
            return None
        asked = replace(payload, conversation_id=conversation.conversation_id)
        return replace(event, payload=asked, raw=None)
    if not isinstance(payload, agents.AGENT_EVENTS):
        return event
    hinted = replace(event, hints={"wake": wake_id})
    if isinstance(payload, ToolReturned):
        call = invitation.calls.get(payload.call_id)
        return None if call is None else replace(hinted, cause=call)
    return None if event.nth < invitation.said.get(event.type, 0) else hinted
