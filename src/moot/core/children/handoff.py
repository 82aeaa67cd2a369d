"""Hand work from a supervisor to a worker, as a table of transitions.

Each transition is an event, caused by the one before it. The decision causes the first one.
"""

from collections.abc import Mapping
from typing import Any

from moot.core.events import NewEvent
from moot.core.payloads.base import RecordedError
from moot.core.payloads.nodes import NodeDispatched
from moot.core.payloads.supervisors import HandoffStepped
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


def handoff_event(
    run: Run,
    node_id: str,
    phase: str,
    worker: str,
    cause: int,
    child: str | None = None,
    **more: Any,
) -> NewEvent:
    payload = HandoffStepped(
        phase=phase, worker_id=worker, parent_run_id=run.run_id, child_run_id=child, **more
    )
    return NewEvent(payload, node_id, cause=cause)


def dispatched_event(
    node_id: str, child: str, worker: str, cause: int, hints: Mapping[str, object]
) -> NewEvent:
    """Record that the child exists. Only this first such event of a child has hints."""
    payload = NodeDispatched(child_run_id=child, child_workflow_id=worker, child_status="running")
    return NewEvent(payload, node_id, cause=cause, hints=hints)


def worker_begun_events(
    run: Run, node_id: str, worker: str, child: str, first: int, hints: Mapping[str, object]
) -> list[NewEvent]:
    """Begin a worker's child run with this decision.

    ``first`` is the sequence of the first event. ``hints`` hold the worker's number and its share
    of the run tree.
    """
    assert run.orchestrator is not None
    decided = run.orchestrator.decided_seq
    return [
        handoff_event(run, node_id, "dispatch.began", worker, decided),
        dispatched_event(node_id, child, worker, decided, hints),
        handoff_event(run, node_id, "dispatch.succeeded", worker, first, child),
    ]


def worker_refused_events(
    run: Run, node_id: str, worker: str, error: RecordedError, first: int
) -> list[NewEvent]:
    """Record that a worker could not be started."""
    assert run.orchestrator is not None
    return [
        handoff_event(run, node_id, "dispatch.began", worker, run.orchestrator.decided_seq),
        handoff_event(run, node_id, "dispatch.failed", worker, first, error=error),
    ]


def worker_ended_event(
    run: Run, node_id: str, worker: str, child: str, status: str, error: RecordedError | None
) -> NewEvent:
    assert run.orchestrator is not None
    cause = run.orchestrator.links.get(child, run.orchestrator.decided_seq)
    error = handoff_error(status, error)
    return handoff_event(run, node_id, ENDS[status], worker, cause, child, error=error)


def handoff_error(status: str, error: RecordedError | None) -> RecordedError | None:
    """Return the error to add to the end of a child that did not complete."""
    if status == "completed":
        return None
    if error is None:
        return RecordedError(code=status, message=f"The child run {status}.")
    return RecordedError(code=error.code, message=error.message)


def harvested_event(
    run: Run, node_id: str, worker: str, child: str, keys: list[str], cause: int
) -> NewEvent:
    return handoff_event(
        run, node_id, "output.harvested", worker, cause, child, harvested_keys=keys
    )
