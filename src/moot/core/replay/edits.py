"""What a fork may change in the history it continues: one event said otherwise, and by whom.

Nothing here is decided in a way of its own: an edited decision, answer or turn is decided by the
code that decides a living one, and says who made it.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.conversations import decide, turns
from moot.core.errors import BadRequest, Unprocessable
from moot.core.events import Event, NewEvent, event_id
from moot.core.interrupts import decide as interrupts
from moot.core.json import schema
from moot.core.runs.answers import Answer
from moot.core.runs.nodes import variable_events
from moot.core.runs.start import check_inputs
from moot.core.secrets import masked
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.supervisors.decide import finish
from moot.core.workflows.definition import fits
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import Decided
from moot.core.workflows.supervisor_orders import order_of

#: events that an answer begins with
ANSWERED = (
    "interrupt.resolved", "approval.overridden", "moot.approval.granted", "moot.approval.rejected",
    "conversation.closed",
)  # fmt: skip
SPOKEN = {"conversation.exchanged": "turn", "conversation.closed": "finalTurn"}

MOST_ENTRIES = 256


class TurnEdit(Struct, frozen=True, forbid_unknown_fields=True):
    content: Any


Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Edit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """At most one of ``inputs``, ``turn``, ``decision`` and ``answer``: they replace an event."""

    variables: Annotated[dict[Name, Any], Meta(max_length=MOST_ENTRIES)] = {}
    inputs: dict[str, Any] | UnsetType = UNSET
    turn: TurnEdit | UnsetType = UNSET
    decision: dict[str, Any] | UnsetType = UNSET
    answer: Any = UNSET
    models: Annotated[dict[Name, Name], Meta(max_length=MOST_ENTRIES)] = {}

    @property
    def replaces(self) -> list[str]:
        names = ("inputs", "turn", "decision", "answer")
        return [name for name in names if getattr(self, name) is not UNSET]

    @property
    def kinds(self) -> list[str]:
        rest = [name for name in ("variables", "models") if getattr(self, name)]
        return [*self.replaces, *rest]


def check(edit: Edit, from_seq: int, at: Event | None) -> None:
    """Raises when the edit cannot be one of the event that stands at ``from_seq``."""
    if len(edit.replaces) > 1:
        raise BadRequest(
            f"One event is replaced: {' or '.join(edit.replaces)}, not both.", field="edit"
        )
    if edit.inputs is not UNSET and from_seq > 1:
        raise Unprocessable(
            f"Inputs belong to the beginning: fork at 1, not at {from_seq}.", fromSeq=from_seq
        )
    if edit.turn is not UNSET and (at is None or at.type not in SPOKEN):
        raise misfit("turn", "a turn of a conversation", from_seq, at)
    if edit.decision is not UNSET and (at is None or at.type != "runOrchestrator.decided"):
        raise misfit("decision", "a supervisor's decision", from_seq, at)
    if edit.answer is not UNSET and (at is None or at.type not in ANSWERED):
        raise misfit("answer", "the answer to a question", from_seq, at)


def misfit(edit: str, wanted: str, from_seq: int, at: Event | None) -> Unprocessable:
    found = f"it is {at.type}" if at is not None else f"the run has {from_seq} events"
    return Unprocessable(
        f"edit.{edit} needs {wanted} at event {from_seq}; {found}. Choose another fromSeq.",
        field=f"edit.{edit}",
        fromSeq=from_seq,
        **({"eventType": at.type} if at is not None else {}),
    )


def changed_inputs(
    flow: Flow, start: Event, sealed: dict[str, Any], given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of the beginning changes, and what is sealed then. Raises BadRequest."""
    known = {name: sealed.get(f"var:{name}", v) for name, v in start.payload["inputs"].items()}
    check_inputs(flow, {**known, **given})
    hidden = {name for name in given if name in flow.sensitive or f"var:{name}" in sealed}
    shown = {name: masked(flow.masking, v) if name in hidden else v for name, v in given.items()}
    seen = {name: value for name, value in shown.items() if value is not UNSET}
    changes = {
        part: {**start.payload.get(part, {}), **seen}
        for part in ("inputs", "variables")
    }  # fmt: skip
    return changes, {f"var:{name}": given[name] for name in hidden}


def changed_variables(run: Run, flow: Flow, given: dict[str, Any], by: str) -> list[NewEvent]:
    """Set right at the fork, by whoever forks."""
    types = {variable.name: variable.type for variable in flow.definition.variables}
    wrong = [
        name for name, value in given.items() if name in types and not fits(types[name], value)
    ]
    if wrong:
        raise BadRequest(
            f"Variable '{wrong[0]}' must be a {types[wrong[0]]}.", field="edit.variables"
        )
    events = variable_events(run, flow, given, None, None)
    for event in events:
        event.payload["by"] = by
    return events


def decided(run: Run, flow: Flow, edit: Edit, at: Event, given: Answer) -> list[NewEvent]:
    """What stands in the place of the event. ``given`` is by whom and when."""
    if edit.turn is not UNSET:
        return _turn(run, flow, edit.turn.content, at, given)
    if edit.decision is not UNSET:
        return _decision(run, flow, edit.decision, at, given)
    return interrupts.answer(run, flow, given)


def _turn(run: Run, flow: Flow, content: Any, at: Event, given: Answer) -> list[NewEvent]:
    """The same speaker in the same place with other words, which say that they are not his own."""
    node = flow.nodes[given.node_id]
    talk = turns.must_be_open(run.conversations.get(node.id), run, node.id)
    if talk.schema is not None and (found := schema.problems(talk.schema, content)):
        raise BadRequest(f"The turn does not fit the conversation: {found[0]}", fields=found)
    turn = _edited(talk, at.payload[SPOKEN[at.type]], content, given)
    turn["originalEventId"] = event_id(at.run_id, at.sequence)
    if at.type == "conversation.exchanged":
        return decide.taken(run, flow, node, talk, turn, given)
    closed = turns.closed(talk, node, turn, at.payload.get("outcome"))
    return decide.closing(run, flow, node, talk, closed, given)


def _edited(talk: Conversation, was: dict[str, Any], content: Any, given: Answer) -> dict[str, Any]:
    index, role = was["turnIndex"], was["role"]
    kept: dict[str, Any] = {
        key: was[key] for key in ("to", "speakerId", "groupId", "agent") if key in was
    }
    turn = turns.new_turn(
        talk.conversation_id, index, role, was["from"], content, given.at, talk.group_id
    )
    return {**turn, **kept, "via": given.who.principal, "editedBy": given.who.principal}


def _decision(
    run: Run, flow: Flow, decision: dict[str, Any], at: Event, given: Answer
) -> list[NewEvent]:
    order_of(decision)  # or refuse
    outcome = Decided(agent_id=at.payload["agentId"], decision=decision, ratified=True)
    attempt = run.nodes[given.node_id].attempt
    events = finish(run, flow, given.node_id, attempt, outcome, given.at)
    if not events:
        raise Unprocessable(
            f"The decision at event {at.sequence} is a person's; edit the answer before it.",
            fromSeq=at.sequence,
        )
    for event in events:
        if event.type == "runOrchestrator.decided":
            event.hints = {**(event.hints or {}), "editedBy": given.who.principal}
    return events
