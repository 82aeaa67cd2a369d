"""Decide the commands of a council: advance it, end an invitation, record reports.

Each invitation ends exactly once. An answer to an invitation that has ended causes nothing.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.conversations.decide import answer_conversation
from moot.core.conversations.turns import HOST
from moot.core.councils import host_messages, invitations
from moot.core.councils.host_messages import (
    CONTINUE_HINT,
    FAILURE_TEXTS,
    STOP_TEXTS,
    busiest_pair,
    display_name,
    host_turn_event,
)
from moot.core.councils.invitations import InvitationEnded, invitation_answered, open_invitation
from moot.core.councils.mutes import hold_turn
from moot.core.councils.next_speaker import next_step
from moot.core.councils.steps import CouncilStep
from moot.core.councils.votes import close_with_votes
from moot.core.errors import Conflict, MootError, ParticipantMuted, ThreadPaused
from moot.core.errors.models import DailyBudgetUsedUp
from moot.core.events import NewEvent
from moot.core.payloads.agents import ToolReturned
from moot.core.payloads.councils import CouncilStopped, ToolAsked, TurnHeld
from moot.core.payloads.memory import EffectAbandoned
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state import agents
from moot.core.state.conversation import Conversation
from moot.core.state.floor import DAY_BUDGET, NATURAL_STOPS, SPOKEN_TASKS, Invitation
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow, FlowNode


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
    conversation = run.conversations.get(node_id)
    step = next_step(conversation, at) if conversation is not None and run.going else None
    if conversation is None or step is None:
        return []
    if step.stop is not None:
        return _stop(flow.nodes[node_id], conversation, step, at)
    if conversation.floor is None:
        return []
    if step.close:
        return close_with_votes(
            run, flow, flow.nodes[node_id], conversation, conversation.floor, at
        )
    invited = invitations.invitations_event(run, node_id, conversation, step)
    if not step.unclear:
        return [invited]
    text = host_messages.mention_question(conversation, step.unclear)
    more: dict[str, Any] = {"meta": {"replyTo": conversation.turn_seq}}
    if conversation.floor.unclear_to:
        more["to"] = conversation.floor.unclear_to
    return [invited, host_turn_event(flow.nodes[node_id], conversation, text, at, **more)]


def _stop(node: FlowNode, conversation: Conversation, step: CouncilStep, at: int) -> list[NewEvent]:
    stopped = CouncilStopped(
        conversation_id=conversation.conversation_id,
        reason=str(step.stop),
        limit=step.limit,
        observed=None if step.observed is None else round(step.observed, 6),
    )
    events = [NewEvent(stopped, node.id, cause=conversation.turn_seq)]
    if step.stop not in NATURAL_STOPS:
        sentence = STOP_TEXTS.get(str(step.stop), "{stop} reached its limit of {limit:g}")
        times = "once" if step.limit == 1 else f"{step.limit} times"
        sentence = sentence.format(
            stop=step.stop, limit=step.limit, who=busiest_pair(conversation), times=times
        )
        text = f"Stopped: {sentence}. {CONTINUE_HINT}"
        events.append(host_turn_event(node, conversation, text, at))
    return events


def finish_invitation(run: Run, flow: Flow, ending: InvitationEnded) -> list[NewEvent]:
    conversation = run.conversations.get(ending.node_id)
    invitation = open_invitation(run, conversation, ending.wake_id)
    if conversation is None or invitation is None:
        return []
    node = flow.nodes[ending.node_id]
    facts = _new_events(conversation, invitation, ending.wake_id, ending.facts)
    return [
        *facts,
        *_end_with_answer(
            run, flow, node, conversation, invitation, replace(ending, facts=tuple(facts))
        ),
    ]


def _end_with_answer(
    run: Run,
    flow: Flow,
    node: FlowNode,
    conversation: Conversation,
    invitation: Invitation,
    ending: InvitationEnded,
) -> list[NewEvent]:
    if ending.outcome != "spoke" or invitation.task not in SPOKEN_TASKS:
        return _end_without_turn(node, conversation, invitation, ending)
    turn: dict[str, Any] = {
        "role": "agent",
        "speakerId": invitation.agent,
        "content": ending.content,
    }
    for key in ("to", "meta", "agent"):
        if getattr(ending, key) is not None:
            turn[key] = getattr(ending, key)
    if meta := invitations.turn_meta(conversation, invitation):
        turn["meta"] = {**turn.get("meta", {}), **meta}
    speaker = Speaker(HOST, (invitation.agent,))
    answer = GateAnswer(node_id=node.id, value={"turn": turn}, who=speaker, at=ending.at)
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
        return hold_turn(node, conversation, invitation, ending, held)
    except MootError as refusal:
        error = {"code": refusal.code, "message": refusal.message}
        return _end_without_turn(node, conversation, invitation, _as_failed(ending, error))
    return [invitation_answered(node, conversation, invitation, ending, "spoke"), *events]


def _as_failed(ending: InvitationEnded, error: dict[str, Any]) -> InvitationEnded:
    return InvitationEnded(
        node_id=ending.node_id, wake_id=ending.wake_id, at=ending.at, outcome="failed",
        usage=ending.usage, error=error,
    )  # fmt: skip


def _end_without_turn(
    node: FlowNode, conversation: Conversation, invitation: Invitation, ending: InvitationEnded
) -> list[NewEvent]:
    events = [invitation_answered(node, conversation, invitation, ending, ending.outcome)]
    if (ending.error or {}).get("code") == DailyBudgetUsedUp.code:
        payload = CouncilStopped(conversation_id=conversation.conversation_id, reason=DAY_BUDGET)
        events.append(NewEvent(payload, node.id, cause=conversation.turn_seq))
    template = FAILURE_TEXTS.get(ending.outcome)
    if template is not None:
        reason = str((ending.error or {}).get("message", "no reason was given"))[:500]
        text = template.format(name=display_name(conversation, invitation.agent), why=reason)
        events.append(host_turn_event(node, conversation, text, ending.at))
    return events


def record_report(run: Run, flow: Flow, report: InvitationReport) -> list[NewEvent]:
    conversation = run.conversations.get(report.node_id)
    invitation = open_invitation(run, conversation, report.wake_id)
    if conversation is None or invitation is None:
        if report.required:
            raise Conflict("The member no longer has the floor.", runId=run.run_id)
        return _abandoned_cost(run, conversation, report)
    return _new_events(conversation, invitation, report.wake_id, report.events)


def _abandoned_cost(
    run: Run, conversation: Conversation | None, report: InvitationReport
) -> list[NewEvent]:
    """Return the cost of a member's last call after the member has lost the floor."""
    floor = (
        conversation.floor if conversation is not None and conversation.open and run.going else None
    )
    unpaid = floor.unpaid.get(report.wake_id) if floor is not None else None
    if unpaid is None:
        return []
    costs = [event for event in report.events if isinstance(event.payload, EffectAbandoned)]
    return [replace(event, cause=unpaid.seq) for event in costs[:1]]


def _with_cause(event: NewEvent, invitation: Invitation) -> NewEvent:
    """Name the invitation as the cause of an event that names none."""
    return event if event.cause is not None else replace(event, cause=invitation.seq)


def _new_events(
    conversation: Conversation, invitation: Invitation, wake_id: str, events: tuple[NewEvent, ...]
) -> list[NewEvent]:
    """Return the events that are not in the log yet. A member repeats its work after a crash."""
    new_events = (_new_event(conversation, invitation, wake_id, event) for event in events)
    return [_with_cause(event, invitation) for event in new_events if event is not None]


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
