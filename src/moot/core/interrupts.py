"""Interrupts: one suspension of a node until somebody answers.

A suspension is recorded before anybody is asked. An answer, what it means, and the node's going on
are one decision, so that a crash cannot come between them.
"""

from typing import Any

from msgspec import Struct

from moot.core import approvals, clarifications, conversation, schemas
from moot.core.conversation import Speaker
from moot.core.errors import (
    BadRequest,
    Conflict,
    CorrelationMismatch,
    Forbidden,
    InterruptAlreadyResolved,
    InterruptCancelled,
    InterruptGone,
    InterruptNotFound,
    MootError,
)
from moot.core.events import NewEvent, iso
from moot.core.flow import Flow, FlowNode
from moot.core.graph import PortProblem, call_of
from moot.core.ids import derived_id
from moot.core.nodework import finish
from moot.core.outcomes import ConversationSpec, Failed, GateSpec, NodeError
from moot.core.run import Run
from moot.core.status import NodeStatus, Status
from moot.core.waiting import Conversation, Interrupt

AUTH_REQUIRED = "openwop-interrupt-auth-required"
OPERATIONS = ("exchange", "close")


class Answer(Struct, frozen=True, kw_only=True):
    """Somebody answers an interrupt. Who it is comes from the key, never from the value."""

    node_id: str
    value: Any
    who: Speaker
    at: int
    #: set when the answer came with a signed token: it is good for this interrupt only
    interrupt_id: str | None = None


def begin(run: Run, flow: Flow, node_id: str, at: int, sealed: dict[str, Any]) -> list[NewEvent]:
    """A gate has started: ask, and wait. A gate that cannot ask fails."""
    node, state = flow.nodes[node_id], run.nodes[node_id]
    if not run.going or state.status is not NodeStatus.RUNNING:
        return []
    assert node.type.gate is not None
    try:
        spec = node.type.gate(call_of(run, node, at, sealed, state.attempt))
    except PortProblem as problem:
        return finish(run, flow, node_id, state.attempt, Failed(problem.error), at)
    except MootError as refusal:
        error = NodeError(
            code=refusal.code, message=refusal.message, details=refusal.details, retryable=False
        )
        return finish(run, flow, node_id, state.attempt, Failed(error), at)
    events = request(run, flow, node, spec, at)
    if spec.conversation is not None and spec.conversation.mock_turns is not None:
        events += _by_itself(run, flow, node, spec.conversation, at)
    return events


def _by_itself(
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
        _completed(run, node, outputs, at),
    ]


def request(run: Run, flow: Flow, node: FlowNode, spec: GateSpec, at: int) -> list[NewEvent]:
    """The node waits from here on."""
    state = run.nodes[node.id]
    name = derived_id("int_", run.run_id, node.id, str(state.attempt))
    asked: dict[str, Any] = {
        "kind": spec.kind,
        "key": f"{run.run_id}:{node.id}:{state.attempt}",
        "data": spec.data,
    }
    waits: dict[str, Any] = {
        "nodeId": node.id,
        "interruptId": name,
        "kind": spec.kind,
        "key": asked["key"],
    }
    if spec.resume_schema is not None:
        asked["resumeSchema"] = spec.resume_schema
    if spec.timeout_ms is not None:
        asked["timeoutMs"] = spec.timeout_ms
        waits["dueAt"] = iso((at + spec.timeout_ms) * 1000)
    if spec.profile is not None:
        waits["profile"] = spec.profile
    if spec.conversation is not None:
        waits["reason"] = "conversation-input"
    return [
        NewEvent("interrupt.requested", asked, node.id, cause=state.started_seq),
        NewEvent("node.suspended", waits, node.id),
        *_announced(run, flow, node, spec, name, at),
    ]


def _announced(
    run: Run, flow: Flow, node: FlowNode, spec: GateSpec, name: str, at: int
) -> list[NewEvent]:
    """What else each kind says when it begins to wait."""
    if spec.kind == "approval":
        return [approvals.requested(node, spec, name)]
    if spec.kind == "clarification":
        payload = {"nodeId": node.id, "interruptId": name, "questions": spec.data["questions"]}
        return [NewEvent("clarification.requested", payload, node.id)]
    if spec.conversation is not None:
        return [conversation.opened(run, node, spec.conversation, at)]
    return []


def answer(run: Run, flow: Flow, given: Answer) -> list[NewEvent]:
    """What an answer causes. Exactly one ends the wait; who comes later learns who did."""
    found = _open_interrupt(run, given)
    node = flow.nodes[given.node_id]
    if given.interrupt_id is not None and found.profile == AUTH_REQUIRED:
        raise Forbidden("This gate takes answers with a key only, not by link.")
    if found.resume_schema is not None and (
        problems := schemas.problems(found.resume_schema, given.value)
    ):
        raise BadRequest(f"The answer does not fit: {problems[0]}", fields=problems)
    if found.kind.startswith("conversation."):
        return _talk(run, flow, node, given)
    return ANSWERS.get(found.kind, _custom)(run, flow, node, found, given)


def _open_interrupt(run: Run, given: Answer) -> Interrupt:
    found = run.interrupts.get(given.node_id)
    if found is None or given.interrupt_id not in (None, found.interrupt_id):
        raise _too_late(run, given.node_id)
    if run.status is Status.PAUSED:
        raise Conflict(
            "The run is paused; resume it first.", runId=run.run_id, runStatus=run.status.value
        )
    return found


def _too_late(run: Run, node_id: str) -> MootError:
    winner = run.answered.get(node_id)
    if winner is not None:
        details = {"resolvedBy": winner.by, "resolvedAt": iso(winner.at * 1000)}
        if winner.action is not None:
            details["action"] = winner.action
        return InterruptAlreadyResolved(
            f"Already answered by {winner.by}.", runId=run.run_id, nodeId=node_id, **details
        )
    state = run.nodes.get(node_id)
    if run.status is Status.CANCELLED and state is not None:
        if run.parent_run is not None:
            return InterruptGone("The run was cancelled with its parent.", runId=run.run_id)
        return InterruptCancelled("The run was cancelled while it waited.", runId=run.run_id)
    if run.terminal and state is not None:
        return InterruptAlreadyResolved(
            "The run has ended.", runId=run.run_id, nodeId=node_id, runStatus=run.status.value
        )
    return InterruptNotFound(run.run_id, node_id)


def _ended(
    node: FlowNode, found: Interrupt, given: Answer, value: Any, said: list[NewEvent]
) -> list[NewEvent]:
    """The wait is over: who ended it, what the kind says about it, the node goes on."""
    resolved = {
        "nodeId": node.id,
        "interruptId": found.interrupt_id,
        "kind": found.kind,
        "resumeValue": value,
        "resolvedAt": iso(given.at * 1000),
        "resolvedBy": given.who.principal,
    }
    resumed = {"nodeId": node.id, "interruptId": found.interrupt_id, "resumeValue": value}
    return [
        NewEvent("interrupt.resolved", resolved, node.id, cause=found.seq),
        *said,
        NewEvent("node.resumed", resumed, node.id),
    ]


def _completed(run: Run, node: FlowNode, outputs: dict[str, Any], at: int) -> NewEvent:
    state = run.nodes[node.id]
    payload = {
        "nodeId": node.id,
        "outputs": outputs,
        "durationMs": max(0, at - state.started_at),
    }
    return NewEvent("node.completed", payload, node.id)


def _failed(run: Run, node: FlowNode, error: NodeError) -> NewEvent:
    payload = {
        "nodeId": node.id,
        "error": error.as_payload(),
        "attempts": run.nodes[node.id].attempt,
    }
    return NewEvent("node.failed", payload, node.id)


def _approval(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    value = approvals.answer_of(given.value, found.data["actions"])
    approvals.check_eligible(found.data, (given.who.principal, *given.who.names), given.who.admin)
    if value["action"] == "ask":
        return [_question(run, node, value, given)]
    voter = approvals.voter(value, given.who)
    events = []
    if value["action"] in ("accept", "edit-accept", "reject"):
        votes = {**found.votes, voter: value["action"]}
        outcome = approvals.outcome(found.data, votes)
        if int(found.data.get("requiredApprovals", 1)) > 1:
            events.append(approvals.voted(node.id, voter, value, found.data, votes))
        if outcome is None:
            return events
        value = {**value, "action": outcome if outcome == "reject" else value["action"]}
    by = approvals.decided_by(found.data, voter)
    said = [approvals.received(node.id, value, by, given.at)]
    ended = _ended(node, found, given, value, said)
    return [*events, *ended, _approved(run, flow, node, value, given.at)]


def _question(run: Run, node: FlowNode, value: dict[str, Any], given: Answer) -> NewEvent:
    """A question does not end the wait; it is kept beside the gate."""
    entry = {
        "question": value.get("question", value.get("comment")),
        "askedBy": given.who.principal,
        "timestamp": iso(given.at * 1000),
    }
    payload = {
        "channel": f"_askExchanges:{node.id}",
        "value": entry,
        "reducer": "append",
        "writtenAt": iso(given.at * 1000),
        "nodeId": node.id,
    }
    return NewEvent("channel.written", payload, node.id)


def _approved(run: Run, flow: Flow, node: FlowNode, value: dict[str, Any], at: int) -> NewEvent:
    """A rejection ends the node badly unless an edge takes it."""
    action = value["action"]
    if action == "reject" and not _has_port(flow, node, "reject"):
        message = value.get("comment") or value.get("feedback") or "The approval was rejected."
        error = NodeError(code="approval_rejected", message=str(message), retryable=False)
        return _failed(run, node, error)
    outputs = {"action": action, action: value}
    for key in ("editedArtifactData", "refineFeedback", "comment"):
        if key in value:
            outputs[key] = value[key]
    return _completed(run, node, outputs, at)


def _has_port(flow: Flow, node: FlowNode, port: str) -> bool:
    return any(
        edge.source_node_id == node.id and edge.source_output == port
        for target in node.targets
        for edge in flow.nodes[target].incoming
    )


def _clarification(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    answers = clarifications.answers_of(given.value, found.data["questions"])
    payload = {"nodeId": node.id, "answers": answers, "answeredBy": given.who.principal}
    said = [NewEvent("clarification.resolved", payload, node.id)]
    ended = _ended(node, found, given, {"answers": answers}, said)
    return [*ended, _completed(run, node, {"answers": answers, **answers}, given.at)]


def _external(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    wanted = found.data["correlation"]
    if not isinstance(given.value, dict):
        raise BadRequest("An external event is an object.", field="resumeValue")
    wrong = [key for key, value in wanted.items() if given.value.get(key) != value]
    if wrong:
        raise CorrelationMismatch(
            f"The event does not match in {', '.join(wrong)}.", mismatched=wrong
        )
    outputs = {"event": given.value, **given.value}
    return [
        *_ended(node, found, given, given.value, []),
        _completed(run, node, outputs, given.at),
    ]


def _custom(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    outputs = given.value if isinstance(given.value, dict) else {"value": given.value}
    return [
        *_ended(node, found, given, given.value, []),
        _completed(run, node, outputs, given.at),
    ]


ANSWERS = {
    "approval": _approval,
    "clarification": _clarification,
    "external-event": _external,
}


def _talk(run: Run, flow: Flow, node: FlowNode, given: Answer) -> list[NewEvent]:
    """A turn never resumes the node; only a close does."""
    talk = conversation.must_be_open(run.conversations.get(node.id), run, node.id)
    operation, said, outcome = _operation(given.value)
    if operation == "close":
        return _close(run, node, talk, said, outcome, given)
    turn = conversation.turn_of(talk, said, given.who, given.at)
    events = conversation.exchanged(run, flow, node, talk, turn)
    limit = close_after(node)
    if limit is not None and turn["turnIndex"] >= limit:
        events += _close_by_itself(run, node, talk, turn, given)
    return events


def close_after(node: FlowNode) -> int | None:
    config = node.definition.config
    return int(config.get("turnCount", 1)) if config.get("lifecycle") else None


def _operation(value: Any) -> tuple[str, Any, Any]:
    """``{operation, turn, outcome}``; a bare turn is an exchange."""
    if not isinstance(value, dict):
        raise BadRequest("Answer with {operation, turn} or with a turn.", field="resumeValue")
    if "operation" not in value and "turn" not in value:
        return "exchange", value, None
    operation = value.get("operation", "exchange")
    if operation not in OPERATIONS:
        raise BadRequest(f"operation must be one of {', '.join(OPERATIONS)}.", field="operation")
    return operation, value.get("turn"), value.get("outcome")


def _close(
    run: Run, node: FlowNode, talk: Conversation, said: Any, outcome: Any, given: Answer
) -> list[NewEvent]:
    if said is None:
        turn = conversation.system_turn(talk, "The conversation was closed.", given.at)
        turn["via"] = given.who.principal
    else:
        turn = conversation.turn_of(talk, said, given.who, given.at)
    return _closing(run, node, talk, turn, outcome, given)


def _close_by_itself(
    run: Run, node: FlowNode, talk: Conversation, last: dict[str, Any], given: Answer
) -> list[NewEvent]:
    turn = conversation.system_turn(talk, "All turns have been taken.", given.at, ahead=2)
    return _closing(run, node, talk, turn, last["content"], given)


def _closing(
    run: Run, node: FlowNode, talk: Conversation, turn: dict[str, Any], outcome: Any, given: Answer
) -> list[NewEvent]:
    found = run.interrupts[node.id]
    outputs = conversation.outputs(talk, turn["turnIndex"], outcome)
    return [
        conversation.closed(talk, node, turn, outcome),
        *_ended(node, found, given, outcome, []),
        _completed(run, node, outputs, given.at),
    ]


def expired(run: Run, node: FlowNode, found: Interrupt, at: int) -> list[NewEvent]:
    """Nobody answered in time. Nothing is ever approved by waiting."""
    resolved = {
        "nodeId": node.id,
        "interruptId": found.interrupt_id,
        "kind": found.kind,
        "resolvedAt": iso(at * 1000),
        "outcome": "rejected",
        "reason": "timeout",
    }
    events = []
    talk = run.conversations.get(node.id)
    if found.kind.startswith("conversation.") and talk is not None and talk.open:
        turn = conversation.system_turn(talk, "The conversation timed out.", at)
        events.append(conversation.closed(talk, node, turn, None))
    events.append(NewEvent("interrupt.resolved", resolved, node.id, cause=found.seq))
    if found.kind == "approval":
        payload = {"nodeId": node.id, "action": "timeout", "decidedAt": iso(at * 1000)}
        events.append(NewEvent("approval.received", payload, node.id))
    if node.definition.config.get("onTimeout") == "complete":
        events.append(_completed(run, node, {"outcome": None, "timedOut": True}, at))
    else:
        error = NodeError(
            code="interrupt_timeout", message="Nobody answered in time.", retryable=False
        )
        events.append(_failed(run, node, error))
    return events
