"""What an answer does to a conversation: a turn, or its close."""

from typing import Any

from msgspec import Struct

from moot.core import conversation, decisions
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, iso
from moot.core.flow import Flow, FlowNode
from moot.core.ids import derived_id
from moot.core.outcomes import ConversationSpec
from moot.core.resolving import Answer, completed, ended
from moot.core.run import Run
from moot.core.waiting import Conversation

OPERATIONS = ("exchange", "close")


class _Said(Struct, frozen=True):
    """An answer to a conversation, taken apart."""

    operation: str
    turn: Any = None
    outcome: Any = None
    #: the outcome was called a decision: it must be one
    decided: bool = False


def talk(run: Run, flow: Flow, node: FlowNode, given: Answer) -> list[NewEvent]:
    """A turn never resumes the node; only a close does."""
    found = conversation.must_be_open(run.conversations.get(node.id), run, node.id)
    said = _said(given.value)
    if said.operation == "close":
        decisions.check({"decision": said.outcome} if said.decided else said.outcome, found)
        return _closing(run, node, found, _final_turn(found, said.turn, given), said.outcome, given)
    turn = conversation.turn_of(found, said.turn, given.who, given.at)
    events = conversation.exchanged(run, flow, node, found, turn)
    limit = close_after(node)
    if limit is not None and turn["turnIndex"] >= limit:
        final = conversation.system_turn(found, "All turns have been taken.", given.at, ahead=2)
        events += _closing(run, node, found, final, turn["content"], given)
    return events


def close_after(node: FlowNode) -> int | None:
    config = node.definition.config
    return int(config.get("turnCount", 1)) if config.get("lifecycle") else None


def _said(value: Any) -> _Said:
    """``{operation, turn, outcome}``; a bare turn is an exchange; a decision is an outcome."""
    if not isinstance(value, dict):
        raise BadRequest("Answer with {operation, turn} or with a turn.", field="resumeValue")
    if "operation" not in value and "turn" not in value:
        return _Said("exchange", value)
    operation = value.get("operation", "exchange")
    if operation not in OPERATIONS:
        raise BadRequest(f"operation must be one of {', '.join(OPERATIONS)}.", field="operation")
    decided = value.get("decision")
    if decided is not None and operation == "close":
        outcome = {"text": decided} if isinstance(decided, str) else decided
        return _Said(operation, value.get("turn"), outcome, decided=True)
    return _Said(operation, value.get("turn"), value.get("outcome"))


def _final_turn(found: Conversation, said: Any, given: Answer) -> dict[str, Any]:
    if said is not None:
        return conversation.turn_of(found, said, given.who, given.at)
    turn = conversation.system_turn(found, "The conversation was closed.", given.at)
    turn["via"] = given.who.principal
    return turn


def _closing(
    run: Run, node: FlowNode, found: Conversation, turn: dict[str, Any], outcome: Any, given: Answer
) -> list[NewEvent]:
    outputs = conversation.outputs(found, turn["turnIndex"], outcome)
    return [
        conversation.closed(found, node, turn, outcome),
        *ended(node, run.interrupts[node.id], given, outcome, []),
        completed(run, node, outputs, given.at),
    ]


def by_itself(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int
) -> list[NewEvent]:
    """A host under trial talks to itself: no person, no model, and nothing of this run or this
    hour in what is said, so that a replay says the same."""
    said, turn = conversation.mocked(run, flow, node, spec)
    name = derived_id("int_", run.run_id, node.id, str(run.nodes[node.id].attempt))
    outcome = turn["content"]
    resolved = {
        "nodeId": node.id,
        "interruptId": name,
        "kind": "conversation.exchange",
        "resumeValue": outcome,
        "resolvedAt": iso(at * 1000),
        "resolvedBy": "mock",
    }
    resumed = {"nodeId": node.id, "interruptId": name, "resumeValue": outcome}
    outputs = {"outcome": outcome, "turnCount": turn["turnIndex"]}
    return [
        *said,
        NewEvent("interrupt.resolved", resolved, node.id),
        NewEvent("node.resumed", resumed, node.id),
        completed(run, node, outputs, at),
    ]
