"""How a run ends: what is still running is stopped first, the end is the last event."""

from collections.abc import Sequence
from typing import Any

from moot.core.events import NewEvent
from moot.core.state.node import NODE_ENDS, NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.graph import Flow, FlowNode


def stop_active(run: Run, reason: str, said: Sequence[NewEvent] = ()) -> list[NewEvent]:
    """One ``node.cancelled`` for each node that holds the run open.

    ``said`` is what the same decision has caused so far: it may have begun or ended nodes.
    """
    begun = {new.node_id: None for new in said if new.type == "node.started" and new.node_id}
    over = {new.node_id for new in said if new.type in NODE_ENDS}
    return [
        NewEvent(
            "node.cancelled",
            {"nodeId": node_id, "reason": reason},
            node_id,
            cause=None if node_id in begun else run.nodes[node_id].started_seq,
        )
        for node_id in {**run.active, **begun}
        if node_id not in over
    ]


def breach(
    run: Run, cap: dict[str, Any], error: dict[str, Any], at: int, said: Sequence[NewEvent] = ()
) -> list[NewEvent]:
    """A limit of the run was reached: the cap, the stopped nodes, the end."""
    node_id = cap.get("nodeId")
    events = [NewEvent("cap.breached", cap, node_id), *stop_active(run, error["code"], said)]
    return [*events, _failed(run, error, node_id, at)]


def finish(run: Run, flow: Flow, overlay: dict[str, NodeState], at: int) -> list[NewEvent]:
    """Every node has ended. Completed when no last node failed and one of them completed."""
    states = {node_id: overlay.get(node_id) or run.nodes[node_id] for node_id in flow.ends}
    failed = [node_id for node_id in flow.ends if states[node_id].status is NodeStatus.FAILED]
    done = [node_id for node_id in flow.ends if _passed(states[node_id])]
    if failed or not done:
        return _failure(run, flow, failed, at)
    outputs: dict[str, Any] = {}
    for node_id in sorted(done, key=lambda key: (flow.nodes[key].index, key)):
        outputs.update(states[node_id].outputs or {})
    duration = max(0, at - run.started_at)
    return [NewEvent("run.completed", {"outputs": outputs, "durationMs": duration})]


def _passed(state: NodeState) -> bool:
    return state.status is NodeStatus.COMPLETED or state.reason == "disabled"


def _failure(run: Run, flow: Flow, failed: list[str], at: int) -> list[NewEvent]:
    """The error of the run is that of the node that failed first."""
    candidates = failed or [
        node_id for node_id, state in run.nodes.items() if state.status is NodeStatus.FAILED
    ]
    if not candidates:
        error = {
            "code": "nothing_completed",
            "message": "Every last node was skipped; no branch reached the end.",
        }
        return [_failed(run, error, None, at)]
    first = min(candidates, key=lambda node_id: run.nodes[node_id].ended_seq)
    error = run.nodes[first].error or {"code": "node_failed", "message": "A node failed."}
    return [*_given_up(run, flow.nodes[first]), _failed(run, error, first, at)]


def _given_up(run: Run, node: FlowNode) -> list[NewEvent]:
    """Says that a node was tried as often as it may be. One that is never tried again uses up
    nothing."""
    state = run.nodes[node.id]
    if not 0 < node.retries <= state.failures:
        return []
    payload = {
        "runId": run.run_id,
        "nodeId": node.id,
        "reason": (state.error or {}).get("code", "node_failed"),
        "attempts": state.failures + 1,
    }
    return [NewEvent("run.dead_lettered", payload, cause=state.ended_seq)]


def _failed(run: Run, error: dict[str, Any], node_id: str | None, at: int) -> NewEvent:
    payload: dict[str, Any] = {"error": error, "durationMs": max(0, at - run.started_at)}
    if node_id is not None:
        payload["failedNodeId"] = node_id
    return NewEvent("run.failed", payload)
