"""Time has passed: timers, retries, time limits of nodes and of the run, unanswered questions."""

from typing import Any

from moot.core.children.tree_limit import last_seen
from moot.core.councils import timeouts
from moot.core.events import NewEvent
from moot.core.interrupts import decide
from moot.core.pending import deadline, time_limit
from moot.core.runs import finish
from moot.core.runs.advance import begin
from moot.core.runs.child_outputs import Seen
from moot.core.runs.nodes import failure
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.supervisors.workers import given_up
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Failed, Kind, NodeError


def wake(
    run: Run, flow: Flow, at: int, seen: dict[str, Seen], heard: dict[str, int]
) -> list[NewEvent]:
    """Everything that has fallen due. ``seen`` is what became of children that are given up,
    ``heard`` for how long members at work have been silent."""
    if not run.going:
        return []
    limit = deadline(run)
    if limit is not None and at >= limit:
        return _out_of_time(run, at)
    events: list[NewEvent] = []
    for node_id in run.active:
        events += wake_node(run, flow, node_id, at, events, seen, heard)
        if events and events[-1].type == "run.failed":
            break
    return events


def wake_node(
    run: Run,
    flow: Flow,
    node_id: str,
    at: int,
    said: list[NewEvent],
    seen: dict[str, Seen],
    heard: dict[str, int] | None = None,
) -> list[NewEvent]:
    node, state = flow.nodes[node_id], run.nodes[node_id]
    if state.status is NodeStatus.RETRYING and state.due is not None and at >= state.due:
        return [] if run.pause else begin(run, node, at, state.attempt + 1, said)
    if state.status is NodeStatus.SUSPENDED:
        found = run.interrupts.get(node.id)
        late = found is not None and found.due is not None and at >= found.due
        if found is not None and late:
            return decide.expired(run, flow, node, found, at)
        talk = run.conversations.get(node.id)
        if talk is None:
            return []
        back = [] if run.replayed else timeouts.unmuted(node, talk, at)
        return [*timeouts.silent(node, talk, at, heard or {}), *back]
    if state.status is not NodeStatus.RUNNING:
        return []
    if node.type.kind is Kind.TIMER and state.due is not None and at >= state.due:
        payload = {"nodeId": node.id, "outputs": {}, "durationMs": max(0, at - state.started_at)}
        return [NewEvent("node.completed", payload, node.id, cause=state.started_seq)]
    limit = time_limit(node, state)
    if limit is not None and at >= limit:
        error = NodeError(
            code="node_timeout", message=f"The node did not finish within {node.timeout_ms} ms."
        )
        return _left_behind(run, failure(run, node, state, Failed(error), at), node, state, seen)
    return []


def _left_behind(
    run: Run, events: list[NewEvent], node: FlowNode, state: NodeState, seen: dict[str, Seen]
) -> list[NewEvent]:
    """The children of an attempt that is given up are cancelled with it, unless they may live
    on."""
    if state.living:
        return [*given_up(run, node, state, seen), *events]
    if state.child is not None and node.definition.config.get("propagateCancellation") is not False:
        runs = last_seen(run, state, seen, state.child).runs
        events[-1].hints = {"childRunId": state.child, "childStatus": "cancelled", "runs": runs}
    return events


def _out_of_time(run: Run, at: int) -> list[NewEvent]:
    limit = run.limits["durationMs"]
    observed = max(limit + 1, run.active_ms + at - run.active_since)
    cap: dict[str, Any] = {"kind": "run-duration", "limit": limit, "observed": observed}
    error = {
        "code": "run_timeout",
        "message": f"The run was active for longer than its limit of {limit} ms.",
    }
    return finish.breach(run, cap, error, at)
