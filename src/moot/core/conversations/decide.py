"""Decide what an answer does to a conversation: a turn, or its close."""

from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.core.conversations import addressing, closing_decision, joining, opening, turns
from moot.core.errors import BadRequest, Forbidden, MootError, NotFound
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.json.schema import schema_problems
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    Turn,
)
from moot.core.payloads.interrupts import InterruptResolved
from moot.core.payloads.nodes import NodeResumed
from moot.core.runs.answers import GateAnswer, end_interrupt, gate_completed_event
from moot.core.state import tasks
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.text.names import full_name
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ConversationSpec

OPERATIONS = ("exchange", "close")


class _ConversationAnswer(Struct, frozen=True):
    """The parts of an answer to a conversation."""

    operation: str
    turn: Any = None
    outcome: Any = None
    #: the caller sent the outcome as a decision, so it must be a valid one
    decided: bool = False


def answer_conversation(run: Run, flow: Flow, node: FlowNode, answer: GateAnswer) -> list[NewEvent]:
    """Record a turn or close the conversation. Only a close resumes the node."""
    conversation = turns.require_open(run.conversations.get(node.id), run, node.id)
    parsed = _parse_answer(answer.value)
    _check_conversation_id(conversation, answer.value)
    if parsed.operation == "close":
        _check_closer(conversation, answer)
        _check_outcome(run, node, parsed.outcome)
        names = () if answer.who.speaks_for_people else answer.who.names
        closing_decision.check_decision(parsed.outcome, conversation, parsed.decided, names)
        final_turn = _final_turn(conversation, parsed.turn, answer)
        closed_event = turns.closed_event(conversation, node, final_turn, parsed.outcome)
        return close_conversation(run, flow, node, conversation, closed_event, answer)
    turn = turns.build_turn(conversation, parsed.turn, answer.who, answer.at)
    if turn.to is not None or turn.meta is not UNSET:
        profiles = turns.participant_profiles(conversation)
        turn = addressing.resolve_recipient(
            tasks.check_task_turn(conversation.tasks, profiles, turn), profiles
        )
    return [
        *_join_by_speaking(conversation, turn, answer),
        *record_turn(run, flow, node, conversation, turn, answer),
    ]


def _join_by_speaking(conversation: Conversation, turn: Turn, answer: GateAnswer) -> list[NewEvent]:
    """Add a speaker that may join without an invitation."""
    name = turn.from_
    if turn.role != "agent" or not joining.needs_invitation(conversation, full_name(name)):
        return []
    outside = answer.who.joins == "outside"
    return [
        joining.joined_event(
            conversation, joining.parse_participant_name(name, "from"), {}, name, outside
        )
    ]


def record_turn(
    run: Run,
    flow: Flow,
    node: FlowNode,
    conversation: Conversation,
    turn: Turn,
    answer: GateAnswer,
) -> list[NewEvent]:
    """Record a turn that passed its checks, and close the conversation after its last turn."""
    events = turns.turn_events(run, flow, node, conversation, turn, answer.at)
    limit = closing_turn_count(node)
    if limit is not None and turn.turn_index is not None and turn.turn_index >= limit:
        final_turn = turns.system_turn(
            conversation, "All turns have been taken.", answer.at, ahead=2
        )
        closed_event = turns.closed_event(
            conversation, node, final_turn, turn.content, run.next_sequence
        )
        events += close_conversation(run, flow, node, conversation, closed_event, answer)
    return events


def _check_conversation_id(conversation: Conversation, value: dict[str, Any]) -> None:
    turn = value.get("turn")
    for body in (value, turn if isinstance(turn, dict) else {}):
        conversation_id = body.get("conversationId", conversation.conversation_id)
        if conversation_id != conversation.conversation_id:
            raise NotFound(
                "There is no such conversation here.", conversationId=str(conversation_id)[:256]
            )


def _check_outcome(run: Run, node: FlowNode, outcome: Any) -> None:
    schema = run.interrupts[node.id].data.get("outcomeSchema")
    if schema is not None and (mistakes := schema_problems(schema, outcome)):
        raise BadRequest(f"The outcome does not fit: {mistakes[0]}", fields=mistakes)


def closing_turn_count(node: FlowNode) -> int | None:
    if node.type.dispatches:
        return 1  # a supervisor's question takes one answer
    config = node.definition.config
    return int(config.get("turnCount", 1)) if config.get("lifecycle") else None


def _parse_answer(value: Any) -> _ConversationAnswer:
    """Parse ``{operation, turn, outcome}``, a bare turn, or a close with a decision."""
    if not isinstance(value, dict):
        raise BadRequest("Answer with {operation, turn} or with a turn.", field="resumeValue")
    if "operation" not in value and "turn" not in value:
        return _ConversationAnswer("exchange", value)
    operation = value.get("operation", "exchange")
    if operation not in OPERATIONS:
        raise BadRequest(f"operation must be one of {', '.join(OPERATIONS)}.", field="operation")
    decision = value.get("decision")
    if decision is not None and operation == "close":
        if value.get("outcome") is not None:
            raise BadRequest("A close has a decision or another outcome.", field="outcome")
        outcome = {"text": decision} if isinstance(decision, str) else decision
        return _ConversationAnswer(operation, value.get("turn"), outcome, decided=True)
    return _ConversationAnswer(operation, value.get("turn"), value.get("outcome"))


def _final_turn(conversation: Conversation, body: Any, answer: GateAnswer) -> Turn:
    if body is not None:
        return turns.build_turn(conversation, body, answer.who, answer.at)
    _check_may_close(conversation, answer)
    text = f"{answer.who.person} closed the conversation."
    return replace(turns.system_turn(conversation, text, answer.at), via=answer.who.principal)


def _check_closer(conversation: Conversation, answer: GateAnswer) -> None:
    """Raise Forbidden when the policy of a council does not let this speaker close it."""
    floor, who = conversation.floor, answer.who
    if floor is None or who.speaks_for_people:
        return
    if floor.policy.close != "moderator" or floor.policy.moderator not in who.names:
        raise Forbidden(
            "This conversation is closed by a person"
            + (" or its moderator." if floor.policy.close == "moderator" else "."),
            participant=who.person,
        )


def _check_may_close(conversation: Conversation, answer: GateAnswer) -> None:
    """Raise when neither a person nor any agent of the key may speak now."""
    who = answer.who
    if who.speaks_for_people:
        return
    names = who.names
    refusals = []
    for name in names:
        try:
            turn = {"role": "agent", "speakerId": name}
            turns.check_speaker(conversation, turn, who, answer.at)
        except MootError as refusal:
            refusals.append(refusal)
    if len(refusals) == len(names):
        raise refusals[0]


def close_conversation(
    run: Run,
    flow: Flow,
    node: FlowNode,
    conversation: Conversation,
    closed_event: NewEvent,
    answer: GateAnswer,
) -> list[NewEvent]:
    closed = closed_event.payload
    assert isinstance(closed, ConversationEnded)
    outputs = turns.conversation_outputs(conversation, closed.turn_index, closed.outcome)
    return [
        closed_event,
        *turns.try_echo_turn(run, flow, node, closed.final_turn, answer.at),
        *end_interrupt(node, run.interrupts[node.id], answer, closed.outcome, []),
        gate_completed_event(run, node, outputs, answer.at),
    ]


def open_conversation(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int
) -> list[NewEvent]:
    """Return the opening turn, the invited members and the policy of a council."""
    event = opening.opened_event(run, node, spec, at)
    assert isinstance(event.payload, ConversationOpened)
    turn = event.payload.initial_turn
    echoes = turns.try_echo_turn(run, flow, node, turn, turn.ts or 0)
    return [
        event,
        *echoes,
        *opening.join_initial_members(run, node, spec),
        *opening.set_initial_policy(run, node, spec),
    ]


def mock_conversation(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int
) -> list[NewEvent]:
    """Play a conversation with fixed turns, for a host under test.

    The turns depend on neither the run nor the time, so a replay gives the same ones.
    """
    events, turn = _mock_turns(run, flow, node, spec)
    interrupt_id = derived_id("int_", run.run_id, node.id, str(run.nodes[node.id].attempt))
    outcome = turn.content
    resolved = InterruptResolved(
        node_id=node.id,
        interrupt_id=interrupt_id,
        kind="conversation.exchange",
        resume_value=outcome,
        resolved_at=iso(at * 1000),
        resolved_by="mock",
    )
    resumed = NodeResumed(node_id=node.id, interrupt_id=interrupt_id, resume_value=outcome)
    outputs = {"outcome": outcome, "turnCount": turn.turn_index}
    return [
        *events,
        NewEvent(resolved, node.id, cause=run.next_sequence),
        NewEvent(resumed, node.id),
        gate_completed_event(run, node, outputs, at),
    ]


def _mock_turns(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec
) -> tuple[list[NewEvent], Turn]:
    """Return pairs of a user's and an agent's turn with the close, and the final turn."""
    conversation_id = turns.conversation_id(run, node.id, run.nodes[node.id].attempt)
    speaker = spec.participants[0]["agentId"] if spec.participants else spec.owner or "host:mock"
    events: list[NewEvent] = []
    last = run.next_sequence + 2  # requested, suspended, opened: three events of the same decision
    first = last + len(open_conversation(run, flow, node, spec, 0))
    for index in range(1, 2 * (spec.mock_turns or 1) + 1):
        is_user = index % 2 == 1
        role, sender = ("user", "user") if is_user else ("agent", speaker)
        turn = turns.new_turn(
            conversation_id, index, role, sender, f"mock turn {index}", index, spec.group_id
        )
        exchanged = ConversationExchanged(
            conversation_id=conversation_id, turn_index=index, turn=turn
        )
        sequence = first + len(events)
        events.append(NewEvent(exchanged, node.id, cause=last))
        events += turns.echo_turn(run, flow, node, turn, index)
        last = sequence
    index = 2 * (spec.mock_turns or 1) + 1
    final_turn = turns.new_turn(conversation_id, index, "system", "system", "mock close", index)
    closed = ConversationEnded(
        conversation_id=conversation_id,
        turn_index=index,
        final_turn=final_turn,
        outcome="mock close",
    )
    events.append(NewEvent(closed, node.id, cause=last))
    return [*events, *turns.try_echo_turn(run, flow, node, final_turn, index)], final_turn
