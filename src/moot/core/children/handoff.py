"""The handoff of work from a planner to a worker, as one table of transitions.

Each transition that happens is an event, caused by the one before it; the first by the decision.
"""

from typing import Any

from moot.core.events import NewEvent
from moot.core.state.run import Run

#: phase -> the phases it may follow; the first one follows a decision
TRANSITIONS: dict[str, tuple[str, ...]] = {
    "dispatch.began": (),
    "dispatch.succeeded": ("dispatch.began",),
    "dispatch.failed": ("dispatch.began",),
    "child.completed": ("dispatch.succeeded",),
    "child.failed": ("dispatch.succeeded",),
    "child.cancelled": ("dispatch.succeeded",),
    "output.harvested": ("child.completed",),
}

ENDS = {
    "completed": "child.completed",
    "failed": "child.failed",
    "cancelled": "child.cancelled",
}


def step(
    run: Run,
    node_id: str,
    phase: str,
    worker: str,
    cause: int,
    child: str | None = None,
    **more: Any,
) -> NewEvent:
    payload: dict[str, Any] = {"phase": phase, "workerId": worker, "parentRunId": run.run_id}
    if child is not None:
        payload["childRunId"] = child
    return NewEvent("core.workflowChain.event", {**payload, **more}, node_id, cause=cause)


def dispatched(
    node_id: str, child: str, worker: str, cause: int, hints: dict[str, Any]
) -> NewEvent:
    """The child is there. That it runs again says the same; only here there are such hints."""
    payload = {"childRunId": child, "childWorkflowId": worker, "childStatus": "running"}
    return NewEvent("node.dispatched", payload, node_id, cause=cause, hints=hints)


def begun(
    run: Run, node_id: str, worker: str, child: str, first: int, hints: dict[str, Any]
) -> list[NewEvent]:
    """The child exists with this decision. ``first`` is where these events come to stand;
    ``hints`` say which worker it is and how many runs it may lead to."""
    assert run.orchestrator is not None
    decided = run.orchestrator.decided_seq
    return [
        step(run, node_id, "dispatch.began", worker, decided),
        dispatched(node_id, child, worker, decided, hints),
        step(run, node_id, "dispatch.succeeded", worker, first, child),
    ]


def refused(
    run: Run, node_id: str, worker: str, error: dict[str, Any], first: int
) -> list[NewEvent]:
    """There is no child: nothing follows for this worker."""
    assert run.orchestrator is not None
    return [
        step(run, node_id, "dispatch.began", worker, run.orchestrator.decided_seq),
        step(run, node_id, "dispatch.failed", worker, first, error=error),
    ]


def ended(
    run: Run, node_id: str, worker: str, child: str, status: str, error: dict[str, Any] | None
) -> NewEvent:
    assert run.orchestrator is not None
    cause = run.orchestrator.links.get(child, run.orchestrator.decided_seq)
    return step(run, node_id, ENDS[status], worker, cause, child, **why(status, error))


def why(status: str, error: dict[str, Any] | None) -> dict[str, Any]:
    """What the end of a child says besides, when it did not end well."""
    if status == "completed":
        return {}
    inner = error or {}
    code, message = inner.get("code", status), inner.get("message", f"The child run {status}.")
    return {"error": {"code": str(code), "message": str(message)}}


def harvested(
    run: Run, node_id: str, worker: str, child: str, keys: list[str], cause: int
) -> NewEvent:
    return step(run, node_id, "output.harvested", worker, cause, child, harvestedKeys=keys)
