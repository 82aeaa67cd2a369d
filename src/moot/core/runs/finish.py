"""End a run: cancel its active nodes, then write the final event."""

from collections.abc import Sequence

from moot.core.events import NewEvent
from moot.core.payloads.base import RecordedError
from moot.core.payloads.nodes import NodeCancelled, NodeStarted
from moot.core.payloads.runs import CapBreached, RunCompleted, RunDeadLettered, RunFailed
from moot.core.state.node import NODE_ENDS, NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow, FlowNode

UNKNOWN_FAILURE = RecordedError(code="node_failed", message="A node failed.")


def cancel_active_nodes(run: Run, reason: str, events: Sequence[NewEvent] = ()) -> list[NewEvent]:
    """Return one ``node.cancelled`` for each node that is still open.

    ``events`` are those of the same decision so far; they may have started or ended nodes.
    """
    started = {
        new.node_id: None for new in events if isinstance(new.payload, NodeStarted) and new.node_id
    }
    ended = {new.node_id for new in events if new.type in NODE_ENDS}
    return [
        NewEvent(
            NodeCancelled(node_id=node_id, reason=reason),
            node_id,
            cause=None if node_id in started else run.nodes[node_id].started_seq,
        )
        for node_id in {**run.active, **started}
        if node_id not in ended
    ]


def fail_at_limit(
    run: Run, cap: CapBreached, error: RecordedError, at: int, prior: Sequence[NewEvent] = ()
) -> list[NewEvent]:
    """Record the breached limit, cancel the active nodes and fail the run.

    ``prior`` are the events of the same decision so far.
    """
    events = [NewEvent(cap, cap.node_id), *cancel_active_nodes(run, error.code, prior)]
    return [*events, _run_failed_event(run, error, cap.node_id, at)]


def finish_run(run: Run, flow: Flow, overlay: dict[str, NodeState], at: int) -> list[NewEvent]:
    """End a run whose nodes have all ended.

    It completes when no last node failed and at least one of them completed.
    """
    states = {node_id: overlay.get(node_id) or run.nodes[node_id] for node_id in flow.ends}
    failed = [node_id for node_id in flow.ends if states[node_id].status is NodeStatus.FAILED]
    done = [node_id for node_id in flow.ends if _is_passed(states[node_id])]
    if failed or not done:
        return _failure_events(run, flow, failed, at)
    outputs: dict[str, object] = {}
    for node_id in sorted(done, key=lambda key: (flow.nodes[key].index, key)):
        outputs.update(states[node_id].outputs or {})
    duration = max(0, at - run.started_at)
    return [NewEvent(RunCompleted(outputs=outputs, duration_ms=duration))]


def _is_passed(state: NodeState) -> bool:
    return state.status is NodeStatus.COMPLETED or state.reason == "disabled"


def _failure_events(run: Run, flow: Flow, failed: list[str], at: int) -> list[NewEvent]:
    """Fail the run with the error of the node that failed first."""
    candidates = failed or [
        node_id for node_id, state in run.nodes.items() if state.status is NodeStatus.FAILED
    ]
    if not candidates:
        message = "Every last node was skipped; no branch reached the end."
        error = RecordedError(code="nothing_completed", message=message)
        return [_run_failed_event(run, error, None, at)]
    first = min(candidates, key=lambda node_id: run.nodes[node_id].ended_seq)
    error = run.nodes[first].error or UNKNOWN_FAILURE
    return [*_dead_letter_events(run, flow.nodes[first]), _run_failed_event(run, error, first, at)]


def _dead_letter_events(run: Run, node: FlowNode) -> list[NewEvent]:
    """Report a node that used up its retries; a node without retries reports nothing."""
    state = run.nodes[node.id]
    if not 0 < node.retries <= state.failures:
        return []
    payload = RunDeadLettered(
        run_id=run.run_id,
        node_id=node.id,
        reason=(state.error or UNKNOWN_FAILURE).code,
        attempts=state.failures + 1,
    )
    return [NewEvent(payload, cause=state.ended_seq)]


def _run_failed_event(run: Run, error: RecordedError, node_id: str | None, at: int) -> NewEvent:
    duration = max(0, at - run.started_at)
    return NewEvent(RunFailed(error=error, duration_ms=duration, failed_node_id=node_id))
