"""Suspend a node with an interrupt, and resume it with the answer.

The suspension is recorded before the question is sent. An answer and the end of the suspension are
one decision, so a crash cannot separate them.
"""

from collections.abc import Mapping

from msgspec import UNSET

from moot.core.conversations import decide
from moot.core.councils.invitations import end_invitations_for_turn
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
    RunPaused,
)
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.interrupts import approvals, clarifications, escalations
from moot.core.json import schema
from moot.core.payloads.interrupts import InterruptRequested
from moot.core.payloads.nodes import NodeSuspended
from moot.core.runs.answers import GateAnswer, end_interrupt, gate_completed_event
from moot.core.runs.nodes import finish_attempt
from moot.core.runs.readiness import PortProblem, build_node_call, is_same_json
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import Failed, GateSpec, NodeError, error_from_exception
from moot.core.workflows.supervisor_decisions import parse_decision

AUTH_REQUIRED = "openwop-interrupt-auth-required"


def begin_gate(
    run: Run, flow: Flow, node_id: str, at: int, sealed: Mapping[str, object]
) -> list[NewEvent]:
    """Ask the question of a gate that has started. The node fails when the gate cannot ask."""
    node, state = flow.nodes[node_id], run.nodes[node_id]
    if not run.going or state.status is not NodeStatus.RUNNING:
        return []
    assert node.type.gate is not None
    try:
        spec = node.type.gate(build_node_call(run, node, at, sealed, state.attempt))
    except PortProblem as problem:
        return finish_attempt(run, flow, node_id, state.attempt, Failed(problem.error), at)
    except MootError as refusal:
        error = NodeError(
            code=refusal.code, message=refusal.message, details=refusal.details, retryable=False
        )
        return finish_attempt(run, flow, node_id, state.attempt, Failed(error), at)
    except Exception as error:  # an error of the node type fails the node
        return finish_attempt(
            run, flow, node_id, state.attempt, Failed(error_from_exception(error)), at
        )
    if mistake := node.type.check and node.type.check(node.definition.config):
        # the config was valid when the run began and no longer is
        refused = NodeError(code=BadRequest.code, message=mistake, retryable=False)
        return finish_attempt(run, flow, node_id, state.attempt, Failed(refused), at)
    events = request_interrupt(run, flow, node, spec, at)
    if spec.conversation is not None and spec.conversation.mock_turns is not None:
        events += decide.mock_conversation(run, flow, node, spec.conversation, at)
    return events


def request_interrupt(
    run: Run, flow: Flow, node: FlowNode, spec: GateSpec, at: int, number: int = 0
) -> list[NewEvent]:
    """Suspend the node with a question. ``number`` distinguishes questions of one attempt."""
    state = run.nodes[node.id]
    key_parts = (run.run_id, node.id, str(state.attempt), *([str(number)] if number else []))
    interrupt_id = derived_id("int_", *key_parts)
    key = ":".join(key_parts)
    requested = InterruptRequested(
        kind=spec.kind,
        key=key,
        data=spec.data,
        resume_schema=spec.resume_schema,
        timeout_ms=spec.timeout_ms,
    )
    return [
        NewEvent(requested, node.id, cause=state.started_seq),
        NewEvent(_suspension(node, spec, interrupt_id, key, at), node.id),
        *_kind_events(run, flow, node, spec, interrupt_id, at),
    ]


def _suspension(
    node: FlowNode, spec: GateSpec, interrupt_id: str, key: str, at: int
) -> NodeSuspended:
    reason = "conversation-input" if spec.conversation is not None else None
    is_unsure = spec.kind == "low-confidence"
    return NodeSuspended(
        node_id=node.id,
        interrupt_id=interrupt_id,
        kind=spec.kind,
        key=key,
        due_at=None if spec.timeout_ms is None else iso((at + spec.timeout_ms) * 1000),
        profile=spec.profile,
        escalation_kind=spec.escalation,
        reason=spec.kind if is_unsure else reason,
        agent_id=spec.data["agentId"] if is_unsure else None,
        threshold=spec.data["threshold"] if is_unsure else None,
        observed=spec.data["observed"] if is_unsure else None,
    )


def _kind_events(
    run: Run, flow: Flow, node: FlowNode, spec: GateSpec, interrupt_id: str, at: int
) -> list[NewEvent]:
    """Return the events that this kind of interrupt adds to the suspension."""
    if spec.kind == "approval":
        return [approvals.approval_requested_event(node, spec, interrupt_id)]
    if spec.kind == "clarification":
        return [clarifications.clarification_requested_event(node, spec, interrupt_id)]
    if spec.conversation is not None:
        return decide.open_conversation(run, flow, node, spec.conversation, at)
    return []


def answer_interrupt(run: Run, flow: Flow, answer: GateAnswer) -> list[NewEvent]:
    """Return the events of an answer. Exactly one answer ends an interrupt.

    A later answer gets an error that names the first one.
    """
    interrupt = _open_interrupt(run, answer)
    node = flow.nodes[answer.node_id]
    if answer.interrupt_id is not None and interrupt.profile == AUTH_REQUIRED:
        raise Forbidden("This gate takes answers with a key only, not by link.")
    if interrupt.resume_schema is not None and (
        problems := schema.schema_problems(interrupt.resume_schema, answer.value)
    ):
        raise BadRequest(f"The answer does not fit: {problems[0]}", fields=problems)
    if interrupt.kind.startswith("conversation."):
        events = decide.answer_conversation(run, flow, node, answer)
        return [*end_invitations_for_turn(run, node, events, answer.at), *events]
    return ANSWER_HANDLERS.get(interrupt.kind, _answer_custom)(run, flow, node, interrupt, answer)


def _open_interrupt(run: Run, answer: GateAnswer) -> Interrupt:
    interrupt = run.interrupts.get(answer.node_id)
    if interrupt is None or answer.interrupt_id not in (None, interrupt.interrupt_id):
        raise too_late_error(run, answer.node_id)
    check_not_paused(run)
    if run.replayed:
        raise Conflict("A replay only says again what was recorded.", runId=run.run_id)
    if interrupt.due is not None and answer.at >= interrupt.due:
        raise InterruptAlreadyResolved(
            "It ran out of time.", runId=run.run_id, nodeId=answer.node_id, reason="timeout"
        )
    return interrupt


def check_not_paused(run: Run) -> None:
    if run.status is Status.PAUSED:
        raise RunPaused(run.run_id)


def too_late_error(run: Run, node_id: str) -> MootError:
    first_answer = run.answered.get(node_id)
    if first_answer is not None:
        details = {"resolvedAt": iso(first_answer.at * 1000)}
        if first_answer.by:
            details["resolvedBy"] = first_answer.by
        if first_answer.action is not None:
            details["action"] = first_answer.action
        message = (
            f"Already answered by {first_answer.by}." if first_answer.by else "It ran out of time."
        )
        return InterruptAlreadyResolved(message, runId=run.run_id, nodeId=node_id, **details)
    state = run.nodes.get(node_id)
    if run.status is Status.CANCELLED and state is not None:
        if run.with_parent:
            return InterruptGone("The run was cancelled with its parent.", runId=run.run_id)
        return InterruptCancelled("The run was cancelled while it waited.", runId=run.run_id)
    if run.terminal and state is not None:
        return InterruptAlreadyResolved(
            "The run has ended.", runId=run.run_id, nodeId=node_id, runStatus=run.status.value
        )
    return InterruptNotFound(run.run_id, node_id)


def _answer_external_event(
    run: Run, flow: Flow, node: FlowNode, interrupt: Interrupt, answer: GateAnswer
) -> list[NewEvent]:
    correlation = interrupt.data["correlation"]
    if not isinstance(answer.value, dict):
        raise BadRequest("An external event is an object.", field="resumeValue")
    mismatched = [
        key
        for key, value in correlation.items()
        if not is_same_json(answer.value.get(key, UNSET), value)
    ]
    if mismatched:
        raise CorrelationMismatch(
            f"The event does not match in {', '.join(mismatched)}.", mismatched=mismatched
        )
    outputs = {"event": answer.value, **answer.value}
    return [
        *end_interrupt(node, interrupt, answer, answer.value, []),
        gate_completed_event(run, node, outputs, answer.at),
    ]


def _answer_custom(
    run: Run, flow: Flow, node: FlowNode, interrupt: Interrupt, answer: GateAnswer
) -> list[NewEvent]:
    outputs = answer.value if isinstance(answer.value, dict) else {"value": answer.value}
    return [
        *end_interrupt(node, interrupt, answer, answer.value, []),
        gate_completed_event(run, node, outputs, answer.at),
    ]


def _answer_escalation(
    run: Run, flow: Flow, node: FlowNode, interrupt: Interrupt, answer: GateAnswer
) -> list[NewEvent]:
    """Resume the node with the decision that a person accepted, edited or rejected."""
    if not answer.who.speaks_for_people:  # otherwise an unsure agent could confirm its own decision
        raise Forbidden("This waits for a person; no agent passes it.")
    decision = escalations.parse_ratification(answer.value, interrupt.data.get("decision"))
    if decision is not None and node.type.type_id == SUPERVISOR:
        parse_decision(decision)
    value: dict[str, object] = {"action": "reject"}
    if decision is not None:  # the decision keeps the agent that proposed it
        value = {"action": "accept", "decision": decision, "agentId": interrupt.data.get("agentId")}
    return end_interrupt(node, interrupt, answer, value, [])


ANSWER_HANDLERS = {
    "approval": approvals.answer_approval,
    "clarification": clarifications.answer_clarification,
    "low-confidence": _answer_escalation,
    "external-event": _answer_external_event,
}
