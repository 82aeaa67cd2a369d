"""Verify answers to interrupts: the answer is a fact, its consequences are not."""

from collections.abc import Callable
from typing import Any

from moot.core.events import NewEvent, new_event, payload_fields
from moot.core.interrupts import approvals
from moot.core.json import schema
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalOverridden,
    ApprovalReceived,
    ApprovalRejected,
    ClarificationResolved,
    InterruptResolved,
)
from moot.core.payloads.nodes import ChannelWritten
from moot.core.runs.answers import end_interrupt, gate_completed_event
from moot.core.state.interrupt import Interrupt
from moot.core.verify.nodes import ImpossibleEvent, VerificationStep
from moot.core.workflows.node_types import NodeKind


def _open_interrupt(step: VerificationStep) -> Interrupt:
    interrupt = step.run.interrupts.get(step.own_node.id)
    if interrupt is None:
        raise ImpossibleEvent("impossible", "an open question", step.event.type)
    return interrupt


def _decide_resolved(step: VerificationStep) -> list[NewEvent]:
    """Decide the end of an interrupt from its recorded answer."""
    interrupt, payload = _open_interrupt(step), payload_fields(step.event)
    value = payload.get("resumeValue")
    if "resumeValue" not in payload or "resolvedBy" not in payload:
        raise ImpossibleEvent("payload", "an answer and whose it is", payload)
    if interrupt.resume_schema is not None and (
        errors := schema.schema_problems(interrupt.resume_schema, value)
    ):
        raise ImpossibleEvent("payload", errors[0], value)
    meaning, after = _answer_consequences(step, interrupt, value)
    return [
        *end_interrupt(
            step.own_node, interrupt, step.answer_by(payload["resolvedBy"]), value, meaning
        ),
        *after,
    ]


def _answer_consequences(
    step: VerificationStep, interrupt: Interrupt, value: Any
) -> tuple[list[NewEvent], list[NewEvent]]:
    """Return the events of the answer itself, and the events that continue the node."""
    run, node, at = step.run, step.own_node, step.at
    match interrupt.kind:
        case "approval":
            after = [approvals.finish_approval(run, step.flow, node, value, at)]
            gate = node.type.kind is NodeKind.GATE
            return [_approval_received(step, interrupt, value)], after if gate else []
        case "clarification":
            answers = value["answers"]
            by = payload_fields(step.event)["resolvedBy"]
            payload = ClarificationResolved(node_id=node.id, answers=answers, answered_by=by)
            resolved = [NewEvent(payload, node.id)]
            return resolved, [gate_completed_event(run, node, {"answers": answers, **answers}, at)]
        case "low-confidence":
            return [], []
        case "external-event":
            return [], [gate_completed_event(run, node, {"event": value, **value}, at)]
        case kind if kind.startswith("conversation."):
            raise ImpossibleEvent("impossible", "a conversation that is closed first", kind)
        case _:
            outputs = value if isinstance(value, dict) else {"value": value}
            return [], [gate_completed_event(run, node, outputs, at)]


def _approval_received(step: VerificationStep, interrupt: Interrupt, value: Any) -> NewEvent:
    """Return the approval, or raise when the quorum has not reached it and was not overridden."""
    action = value["action"]
    reached = approvals.count_votes(interrupt.data, interrupt.votes)
    free = int(interrupt.data.get("requiredApprovals", 1)) <= 1 or action == "refine"
    overridden = step.own_node.id in step.effects.overridden
    accepted = "accept" if action in ("accept", "edit-accept") else action
    if not free and not overridden and reached != accepted:
        raise ImpossibleEvent("impossible", {"action": reached}, {"action": action})
    if action not in interrupt.data["actions"]:
        raise ImpossibleEvent("payload", interrupt.data["actions"], action)
    by = next(
        (
            payload_fields(e).get("decidedBy")
            for e in step.rest
            if e.type == ApprovalReceived.event_type
        ),
        "",
    )
    return approvals.approval_received_event(step.own_node.id, value, str(by), step.at)


def _decide_vote(step: VerificationStep) -> list[NewEvent]:
    interrupt, event = _open_interrupt(step), step.event
    payload = payload_fields(event)
    if payload.get("gateId") != step.own_node.id:
        raise ImpossibleEvent("payload", {"gateId": step.own_node.id}, payload)
    if event.type == ApprovalGranted.event_type:
        votes = {**interrupt.votes, payload["principal"]: "accept"}
        granted = sum(action in ("accept", "edit-accept") for action in votes.values())
        if payload["quorumProgress"]["granted"] != granted:
            raise ImpossibleEvent("payload", {"granted": granted}, payload["quorumProgress"])
    return [new_event(event.type, payload, step.own_node.id, cause=interrupt.seq)]


def decide_question_back(step: VerificationStep) -> list[NewEvent]:
    """Decide a question that a person asks back instead of answering."""
    interrupt, payload = step.run.interrupts.get(step.own_node.id), payload_fields(step.event)
    if interrupt is None or payload.get("channel") != f"_askExchanges:{step.own_node.id}":
        raise ImpossibleEvent("impossible", "a channel that the node may write to", payload)
    return [
        new_event(
            ChannelWritten.event_type,
            payload,
            step.own_node.id,
            cause=interrupt.seq,
            hints=step.hints,
        )
    ]


ANSWER_DECIDERS: dict[str, Callable[[VerificationStep], list[NewEvent]]] = {
    InterruptResolved.event_type: _decide_resolved,
    ApprovalOverridden.event_type: _decide_vote,
    ApprovalGranted.event_type: _decide_vote,
    ApprovalRejected.event_type: _decide_vote,
}
