"""Decisions that nobody is sure enough of wait for a person.

There are two measures. A supervisor that is itself unsure (below 0.7) has its decision held back;
it becomes one when a person ratifies it. A decision that says of itself that it is weak (below
0.5) is recorded, and not carried out before a person has agreed.
"""

from math import isfinite
from typing import Any

from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.state.run import Run
from moot.core.state.supervisor import DECISION
from moot.core.workflows.graph import FlowNode
from moot.core.workflows.node_types import GateSpec, NodeError

FLOOR = 0.5
THRESHOLD = 0.7
#: the kind of question that asks for it
INTERRUPT = "approval"


class DecisionRejected(Exception):
    """A person has looked at an unsure decision and does not want it."""

    error = NodeError(
        code="decision_rejected", message="A person rejected the decision.", retryable=False
    )


def is_unsure(run: Run, confidence: Any, usual: Any = None) -> bool:
    """Below the threshold; equal goes on, and so does what is no number. ``usual`` is the
    threshold of the agent itself."""
    threshold = threshold_of(run.configurable, usual)
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    return number and isfinite(confidence) and confidence < threshold


def threshold_of(configurable: dict[str, Any], usual: Any = None) -> float:
    """What the run asks for, else what the agent itself wants, else the usual."""
    asked = configurable.get("escalationThreshold", THRESHOLD if usual is None else usual)
    return float(asked) if isinstance(asked, (int, float)) else THRESHOLD


def held(run: Run, agent_id: str, observed: float, decision: Any, usual: Any = None) -> GateSpec:
    """The question whether a decision shall be one."""
    data = {
        "agentId": agent_id,
        "threshold": threshold_of(run.configurable, usual),
        "observed": observed,
        "decision": decision,
    }
    return GateSpec(kind="low-confidence", data=data)


def is_weak(run: Run) -> bool:
    """Whether the newest decision says of itself that it must not be carried out unseen."""
    found = run.orchestrator
    if found is None:
        return False
    confidence = found.decision.get("confidence")
    return confidence is not None and confidence < FLOOR


def escalated(run: Run, node: FlowNode) -> tuple[NewEvent, GateSpec]:
    """The event that says so, and the approval that is asked for."""
    assert run.orchestrator is not None
    decision = run.orchestrator.decision
    payload: dict[str, Any] = {
        "confidence": decision["confidence"],
        "floor": FLOOR,
        "escalationKind": "escalate",
        "parentRunId": run.run_id,
        "originalDecision": decision,
    }
    if decision["kind"] == "next-worker":
        payload["workerId"] = decision["nextWorkerIds"][0]
    event = NewEvent(
        "core.workflowChain.confidence-escalated",
        payload,
        node.id,
        cause=run.orchestrator.decided_seq,
    )
    spec = GateSpec(
        kind=INTERRUPT,
        data={
            "artifactId": derived_id("art_", run.run_id, str(run.orchestrator.decided_seq)),
            "artifactType": DECISION,
            "artifactData": decision,
            "title": f"Carry out a decision with confidence {decision['confidence']}?",
            "actions": ["accept", "reject", "edit-accept"],
        },
    )
    return event, spec


def ratified(value: Any, decision: Any) -> Any:
    """What a person has made of a held decision; None when it shall be none.

    Raises BadRequest when the answer is neither.
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
