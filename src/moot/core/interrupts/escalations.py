"""Escalate decisions with low confidence to a person.

A supervisor below the threshold (0.7) has its decision held until a person ratifies it. A decision
that states a confidence below the floor (0.5) is recorded, but not carried out before a person
approves it.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.payloads.supervisors import ConfidenceEscalated
from moot.core.state.run import Run
from moot.core.state.supervisor import DECISION
from moot.core.workflows.flow import FlowNode
from moot.core.workflows.node_types import GateSpec, NodeError

FLOOR = 0.5
THRESHOLD = 0.7
#: the kind of interrupt that asks for the approval
ESCALATION_KIND = "approval"


class DecisionRejected(Exception):
    """A person has rejected an unsure decision."""

    error = NodeError(
        code="decision_rejected", message="A person rejected the decision.", retryable=False
    )


def is_unsure(run: Run, confidence: Any, usual: Any = None) -> bool:
    """Return whether the confidence is below the threshold.

    A confidence that is not a number passes. ``usual`` is the threshold of the agent.
    """
    threshold = escalation_threshold(run.configurable, usual)
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    return number and isfinite(confidence) and confidence < threshold


def escalation_threshold(configurable: Mapping[str, object], usual: Any = None) -> float:
    """Return the threshold of the run, else of the agent, else the default."""
    threshold = configurable.get("escalationThreshold", THRESHOLD if usual is None else usual)
    return float(threshold) if isinstance(threshold, (int, float)) else THRESHOLD


def low_confidence_gate(
    run: Run, agent_id: str, observed: float, decision: Any, usual: Any = None
) -> GateSpec:
    """Return the question whether to take a decision."""
    data = {
        "agentId": agent_id,
        "threshold": escalation_threshold(run.configurable, usual),
        "observed": observed,
        "decision": decision,
    }
    return GateSpec(kind="low-confidence", data=data)


def is_weak(run: Run) -> bool:
    """Return whether the newest decision states a confidence below the floor."""
    orchestrator = run.orchestrator
    if orchestrator is None:
        return False
    confidence = orchestrator.decision.get("confidence")
    return confidence is not None and confidence < FLOOR


def escalate_decision(run: Run, node: FlowNode) -> tuple[NewEvent, GateSpec]:
    """Return the event of the escalation, and the approval it asks for."""
    assert run.orchestrator is not None
    decision = run.orchestrator.decision
    escalated = ConfidenceEscalated(
        confidence=decision["confidence"],
        floor=FLOOR,
        escalation_kind="escalate",
        parent_run_id=run.run_id,
        original_decision=decision,
        worker_id=decision["nextWorkerIds"][0] if decision["kind"] == "next-worker" else None,
    )
    event = NewEvent(escalated, node.id, cause=run.orchestrator.decided_seq)
    spec = GateSpec(
        kind=ESCALATION_KIND,
        data={
            "artifactId": derived_id("art_", run.run_id, str(run.orchestrator.decided_seq)),
            "artifactType": DECISION,
            "artifactData": decision,
            "title": f"Carry out a decision with confidence {decision['confidence']}?",
            "actions": ["accept", "reject", "edit-accept"],
        },
    )
    return event, spec


def parse_ratification(value: Any, decision: Any) -> Any:
    """Return the decision that a person accepted or edited, or None for a rejection.

    Raise BadRequest when the answer is none of these.
    """
    if not isinstance(value, dict):
        raise BadRequest("Answer with {action: accept | reject | edit-accept}.", field="action")
    action = value.get("action", "accept")
    if action == "accept":
        return value.get("decision", decision)
    if action in ("edit", "edit-accept"):
        edited = value.get("editedArtifactData", value.get("decision"))
        if edited is None:
            raise BadRequest(
                "To accept an edit, send it: editedArtifactData.", field="editedArtifactData"
            )
        return edited
    if action == "reject":
        return None
    raise BadRequest("action must be accept, reject or edit-accept.", field="action")
