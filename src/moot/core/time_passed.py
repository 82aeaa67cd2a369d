"""Decide the effects of time: timers, retries, time limits, unanswered questions."""

from moot.core.children.tree_limit import last_report
from moot.core.councils import timeouts
from moot.core.councils.mutes import end_mutes
from moot.core.events import NewEvent
from moot.core.interrupts.deadlines import expire_interrupt
from moot.core.payloads.base import RecordedError
from moot.core.payloads.nodes import NodeCompleted
from moot.core.payloads.runs import CapBreached, RunFailed
from moot.core.pending import attempt_deadline, run_deadline
from moot.core.runs import finish
from moot.core.runs.advance import start_attempt
from moot.core.runs.child_outputs import ChildReport
from moot.core.runs.nodes import failure_events
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.supervisors.workers import give_up_workers
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import Failed, NodeError, NodeKind


def decide_time_passed(
    run: Run, flow: Flow, at: int, children: dict[str, ChildReport], silences: dict[str, int]
) -> list[NewEvent]:
    """Return the events of everything that is due.

    ``children`` maps living children to their last known state, ``silences`` maps invitations of
    members at work to their silence in ms.
    """
    if not run.going:
        return []
    limit = run_deadline(run)
    if limit is not None and at >= limit:
        return _fail_run_timeout(run, at)
    events: list[NewEvent] = []
    for node_id in run.active:
        events += decide_node_due(run, flow, node_id, at, events, children, silences)
        if events and isinstance(events[-1].payload, RunFailed):
            break
    return events


def decide_node_due(
    run: Run,
    flow: Flow,
    node_id: str,
    at: int,
    events: list[NewEvent],
    children: dict[str, ChildReport],
    silences: dict[str, int] | None = None,
) -> list[NewEvent]:
    node, state = flow.nodes[node_id], run.nodes[node_id]
    if state.status is NodeStatus.RETRYING and state.due is not None and at >= state.due:
        return [] if run.pause else start_attempt(run, node, at, state.attempt + 1, events)
    if state.status is NodeStatus.SUSPENDED:
        interrupt = run.interrupts.get(node.id)
        is_late = interrupt is not None and interrupt.due is not None and at >= interrupt.due
        if interrupt is not None and is_late:
            return expire_interrupt(run, flow, node, interrupt, at)
        conversation = run.conversations.get(node.id)
        if conversation is None:
            return []
        unmuted = [] if run.replayed else end_mutes(node, conversation, at)
        return [*timeouts.time_out_members(node, conversation, at, silences or {}), *unmuted]
    if state.status is not NodeStatus.RUNNING:
        return []
    if node.type.kind is NodeKind.TIMER and state.due is not None and at >= state.due:
        payload = NodeCompleted(
            node_id=node.id, outputs={}, duration_ms=max(0, at - state.started_at)
        )
        return [NewEvent(payload, node.id, cause=state.started_seq)]
    limit = attempt_deadline(node, state)
    if limit is not None and at >= limit:
        error = NodeError(
            code="node_timeout", message=f"The node did not finish within {node.timeout_ms} ms."
        )
        return _cancel_children(
            run, failure_events(run, node, state, Failed(error), at), node, state, children
        )
    return []


def _cancel_children(
    run: Run,
    events: list[NewEvent],
    node: FlowNode,
    state: NodeState,
    children: dict[str, ChildReport],
) -> list[NewEvent]:
    """Cancel the children of an attempt that has failed, unless they may live on."""
    if state.living:
        return [*give_up_workers(run, node, state, children), *events]
    if state.child is not None and node.definition.config.get("propagateCancellation") is not False:
        runs = last_report(run, state, children, state.child).runs
        events[-1].hints = {"childRunId": state.child, "childStatus": "cancelled", "runs": runs}
    return events


def _fail_run_timeout(run: Run, at: int) -> list[NewEvent]:
    limit = run.limits.duration_ms
    observed = max(limit + 1, run.active_ms + at - run.active_since)
    cap = CapBreached(kind="run-duration", limit=limit, observed=observed)
    message = f"The run was active for longer than its limit of {limit} ms."
    error = RecordedError(code="run_timeout", message=message)
    return finish.fail_at_limit(run, cap, error, at)
