"""Edits of a fork: replace one event of the history it continues.

The same code decides an edited decision, answer or turn as a live one. The event names its editor.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from moot.core.conversations import decide, turns
from moot.core.errors import BadRequest, Unprocessable
from moot.core.events import Event, NewEvent, event_id, payload_fields
from moot.core.interrupts.decide import answer_interrupt
from moot.core.json import schema
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.conversations import ConversationEnded, ConversationExchanged, Turn
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalOverridden,
    ApprovalRejected,
    InterruptResolved,
)
from moot.core.payloads.nodes import VariableChanged
from moot.core.payloads.supervisors import SupervisorDecided
from moot.core.runs.answers import GateAnswer
from moot.core.runs.nodes import variable_events
from moot.core.runs.start import check_inputs
from moot.core.secrets import mask_value
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.supervisors.decide import finish_supervisor
from moot.core.workflows.definition import is_of_type
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import Decided
from moot.core.workflows.supervisor_decisions import parse_decision

#: first events of an answer
ANSWER_EVENTS = (
    InterruptResolved, ApprovalOverridden, ApprovalGranted, ApprovalRejected, ConversationEnded,
)  # fmt: skip


class TurnReplacement(Struct, frozen=True):
    """The new content of a turn."""

    content: Any


class HistoryEdit(Struct, frozen=True, kw_only=True):
    """At most one of ``inputs``, ``turn``, ``decision`` and ``answer``: they replace an event."""

    variables: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] | UnsetType = UNSET
    turn: TurnReplacement | UnsetType = UNSET
    decision: dict[str, object] | UnsetType = UNSET
    answer: Any = UNSET
    models: dict[str, str] = {}

    @property
    def replaces(self) -> list[str]:
        names = ("inputs", "turn", "decision", "answer")
        return [name for name in names if getattr(self, name) is not UNSET]

    @property
    def kinds(self) -> list[str]:
        rest = [name for name in ("variables", "models") if getattr(self, name)]
        return [*self.replaces, *rest]


def check_edit(edit: HistoryEdit, from_seq: int, at: Event | None) -> None:
    """Raise when the edit does not fit the event at ``from_seq``."""
    if len(edit.replaces) > 1:
        raise BadRequest(
            f"One event is replaced: {' or '.join(edit.replaces)}, not both.", field="edit"
        )
    if edit.inputs is not UNSET and from_seq > 1:
        raise Unprocessable(
            f"Inputs belong to the beginning: fork at 1, not at {from_seq}.", fromSeq=from_seq
        )
    recorded = at.payload if at is not None else None
    if edit.turn is not UNSET and edited_turn(recorded) is None:
        raise misfit_error("turn", "a turn of a conversation", from_seq, at)
    if edit.decision is not UNSET and not isinstance(recorded, SupervisorDecided):
        raise misfit_error("decision", "a supervisor's decision", from_seq, at)
    if edit.answer is not UNSET and not isinstance(recorded, ANSWER_EVENTS):
        raise misfit_error("answer", "the answer to a question", from_seq, at)


def edited_turn(payload: Payload | OpaquePayload | None) -> Turn | None:
    """Return the turn of an exchange or a close, which an edit may replace."""
    match payload:
        case ConversationExchanged(turn=turn) | ConversationEnded(final_turn=turn):
            return turn
        case _:
            return None


def misfit_error(edit: str, wanted: str, from_seq: int, at: Event | None) -> Unprocessable:
    actual = f"it is {at.type}" if at is not None else f"the run has {from_seq} events"
    return Unprocessable(
        f"edit.{edit} needs {wanted} at event {from_seq}; {actual}. Choose another fromSeq.",
        field=f"edit.{edit}",
        fromSeq=from_seq,
        **({"eventType": at.type} if at is not None else {}),
    )


def edit_inputs(
    flow: Flow, start: Event, sealed: Mapping[str, object], changed: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the changes to the run's start, and the secrets to seal. Raise BadRequest."""
    fields = payload_fields(start)
    inputs = {name: sealed.get(f"var:{name}", v) for name, v in fields["inputs"].items()}
    check_inputs(flow, {**inputs, **changed})
    secret = {name for name in changed if name in flow.sensitive or f"var:{name}" in sealed}
    masked_values = {
        name: mask_value(flow.masking, v) if name in secret else v for name, v in changed.items()
    }
    visible = {name: value for name, value in masked_values.items() if value is not UNSET}
    changes: dict[str, object] = {
        part: {**fields.get(part, {}), **visible}
        for part in ("inputs", "variables")
    }  # fmt: skip
    return changes, {f"var:{name}": changed[name] for name in secret}


def edit_variables(run: Run, flow: Flow, changed: Mapping[str, object], by: str) -> list[NewEvent]:
    """Return the events that set variables at the fork, in the name of its creator."""
    types = {variable.name: variable.type for variable in flow.definition.variables}
    wrong = [
        name
        for name, value in changed.items()
        if name in types and not is_of_type(types[name], value)
    ]
    if wrong:
        raise BadRequest(
            f"Variable '{wrong[0]}' must be a {types[wrong[0]]}.", field="edit.variables"
        )
    events = variable_events(run, flow, changed, None, None)
    for event in events:
        assert isinstance(event.payload, VariableChanged)
        event.payload = replace(event.payload, by=by)
    return events


def decide_edit(
    run: Run, flow: Flow, edit: HistoryEdit, at: Event, editor: GateAnswer
) -> list[NewEvent]:
    """Return the events that replace the event ``at``. ``editor`` holds who edits, and when."""
    if edit.turn is not UNSET:
        return _decide_turn(run, flow, edit.turn.content, at, editor)
    if edit.decision is not UNSET:
        return _decide_decision(run, flow, edit.decision, at, editor)
    return answer_interrupt(run, flow, editor)


def _decide_turn(
    run: Run, flow: Flow, content: Any, at: Event, editor: GateAnswer
) -> list[NewEvent]:
    """Replace the content of a turn; the turn keeps its speaker and names the editor."""
    node = flow.nodes[editor.node_id]
    conversation = turns.require_open(run.conversations.get(node.id), run, node.id)
    if conversation.schema is not None and (
        errors := schema.schema_problems(conversation.schema, content)
    ):
        raise BadRequest(f"The turn does not fit the conversation: {errors[0]}", fields=errors)
    turn = _edited_turn(conversation, at, content, editor)
    group = () if conversation.group_id is not None else ("groupId",)
    order = ("to", *group, "agent", "via", "editedBy", "originalEventId")
    if not isinstance(at.payload, ConversationEnded):
        events = decide.record_turn(run, flow, node, conversation, turn, editor)
    else:
        event = turns.closed_event(conversation, node, turn, at.payload.outcome)
        events = decide.close_conversation(run, flow, node, conversation, event, editor)
    turns.order_turn(events[0], order)
    return events


def _edited_turn(conversation: Conversation, at: Event, content: Any, editor: GateAnswer) -> Turn:
    original, name = edited_turn(at.payload), conversation.conversation_id
    assert original is not None and original.turn_index is not None
    return Turn(
        message_id=f"{name}:{original.turn_index}:{original.role}",
        from_=original.from_,
        content=content,
        ts=editor.at,
        role=original.role,
        turn_index=original.turn_index,
        speaker_id=original.speaker_id or (original.from_ if original.role == "agent" else None),
        group_id=original.group_id or conversation.group_id,
        agent=original.agent,
        to=original.to,
        via=editor.who.principal,
        edited_by=editor.who.principal,
        original_event_id=event_id(at.run_id, at.sequence),
    )


def _decide_decision(
    run: Run, flow: Flow, decision: dict[str, object], at: Event, editor: GateAnswer
) -> list[NewEvent]:
    parse_decision(decision)  # raises when the decision is not valid
    assert isinstance(at.payload, SupervisorDecided)
    outcome = Decided(agent_id=at.payload.agent_id, decision=decision, ratified=True)
    attempt = run.nodes[editor.node_id].attempt
    events = finish_supervisor(run, flow, editor.node_id, attempt, outcome, editor.at)
    if not events:
        raise Unprocessable(
            f"The decision at event {at.sequence} is a person's; edit the answer before it.",
            fromSeq=at.sequence,
        )
    for event in events:
        if isinstance(event.payload, SupervisorDecided):
            event.hints = {**(event.hints or {}), "editedBy": editor.who.principal}
    return events
