"""Handle the end of a dispatch node's workers: collect, join, give up.

Only a completed worker's outputs are merged.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from moot.core.children import handoff
from moot.core.children.tree_limit import last_report
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.payloads.base import RecordedError
from moot.core.payloads.supervisors import HandoffStepped, WorkersJoined
from moot.core.runs.advance import node_completed_event, node_failed_event
from moot.core.runs.child_outputs import ChildEnded, ChildReport, map_outputs
from moot.core.runs.nodes import variable_events
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.supervisors.worker_join import (
    EndedWorker,
    is_join_settled,
    join_outcome,
    join_policy,
)
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeError

#: status of a worker that the join no longer needed -> its error
LATE_ERRORS = {
    "cancelled": RecordedError(code="cancelled", message="It was not needed any more."),
    "failed": RecordedError(code="failed", message="It failed, and was not needed any more."),
}


def fail_node(node: FlowNode, state: NodeState, code: str, message: str) -> list[NewEvent]:
    error = NodeError(code=code, message=message, retryable=False)
    return [node_failed_event(node, error, state.attempt, state.started_seq)]


def give_up_workers(
    run: Run, node: FlowNode, state: NodeState, reports: dict[str, ChildReport], but: str = ""
) -> list[NewEvent]:
    """Cancel every worker that still runs; report the real end of one that has just ended."""
    return [
        _ended_event(run, None, node, worker) for worker in _lost_workers(run, state, reports, but)
    ]


def _lost_workers(
    run: Run, state: NodeState, reports: dict[str, ChildReport], but: str
) -> list[EndedWorker]:
    assert run.orchestrator is not None
    workers = run.orchestrator.decision["nextWorkerIds"]
    return [
        _lost_worker(child, workers[number], last_report(run, state, reports, child))
        for child, number in state.living.items()
        if child != but
    ]


def _lost_worker(child: str, worker: str, report: ChildReport) -> EndedWorker:
    status = report.status or "cancelled"
    error = LATE_ERRORS.get(status)
    return EndedWorker(child, worker, status, error, lost=True, runs=report.runs)


def end_worker(run: Run, flow: Flow, ended: ChildEnded) -> list[NewEvent]:
    """Decide the end of a worker, once, for the attempt that waits for it."""
    state, node = run.nodes.get(ended.node_id), flow.nodes[ended.node_id]
    if not run.going or state is None or ended.child_run not in state.living:
        return []
    assert run.orchestrator is not None
    worker = run.orchestrator.decision["nextWorkerIds"][state.living[ended.child_run]]
    harvest = _collect_outputs(node, worker, ended)
    end_of_worker = EndedWorker(
        ended.child_run, worker, ended.status, ended.error, harvest, runs=ended.runs
    )
    step = _ended_event(run, flow, node, end_of_worker)
    if ended.cause is not None:
        step.cause = ended.cause
        assert isinstance(step.payload, HandoffStepped)
        step.payload = replace(step.payload, causation_host_id=ended.cause_host)
    if ended.stop:
        step.hints = {**(step.hints or {}), "childRunId": end_of_worker.child}
    try:
        return [step, *_next_events(run, flow, node, state, end_of_worker, ended)]
    except BadRequest as refusal:  # the parent has no variable for an output
        rest = give_up_workers(run, node, state, ended.seen, but=end_of_worker.child)
        return [step, *rest, *fail_node(node, state, refusal.code, refusal.message)]


def _collect_outputs(node: FlowNode, worker: str, ended: ChildEnded) -> dict[str, object] | None:
    """Return a completed worker's outputs under the parent's names; None without a mapping."""
    config = node.definition.config
    mapping = config.get("perWorkerOutputMappings", {}).get(worker, config.get("outputMapping", {}))
    if ended.status != "completed" or not mapping:
        return None
    return map_outputs(mapping, ended.variables)


def _ended_event(run: Run, flow: Flow | None, node: FlowNode, ended: EndedWorker) -> NewEvent:
    """Record a worker's end with what the parent needs of it until the join."""
    if remote_children.is_unnamed(run, ended.child):
        return _unanswered_event(run, node, ended)
    event = handoff.worker_ended_event(
        run, node.id, ended.worker, ended.child, ended.status, ended.error
    )
    result: dict[str, object] = {"worker": ended.worker, "lost": ended.lost}
    if ended.error is not None:
        result["error"] = msgspec.to_builtins(ended.error)
    if ended.harvest is not None and flow is not None:
        hidden = flow.sensitive & set(ended.harvest)
        visible = {mine: None if mine in hidden else ended.harvest[mine] for mine in ended.harvest}
        result["harvest"] = visible
        if hidden:
            event.sealed = {_sealed_key(ended.child, mine): ended.harvest[mine] for mine in hidden}
    event.hints = {"result": result, "runs": ended.runs}
    if ended.lost:
        event.hints["childRunId"] = ended.child  # it is stopped with this event
    return event


def _unanswered_event(run: Run, node: FlowNode, ended: EndedWorker) -> NewEvent:
    """Record that a peer never answered; the host stops whatever that peer begins."""
    began = run.abroad[ended.child].began
    event = handoff.handoff_event(
        run, node.id, "dispatch.failed", ended.worker, began, error=ended.error
    )
    event.hints = {"askId": ended.child, "unsure": ended.child, "runs": ended.runs}
    return event


def _sealed_key(child: str, mine: str) -> str:
    return f"harvest:{child}:{mine}"


def _ended_workers(state: NodeState, sealed: Mapping[str, object]) -> list[EndedWorker]:
    return [
        EndedWorker(
            result["child"],
            result["worker"],
            result["status"],
            msgspec.convert(result.get("error"), RecordedError | None),
            _unseal_outputs(result["child"], result.get("harvest"), sealed),
            result["lost"],
        )
        for result in state.results or []
    ]


def _unseal_outputs(
    child: str, harvest: Mapping[str, object] | None, sealed: Mapping[str, object]
) -> dict[str, object] | None:
    if harvest is None:
        return None
    return {mine: sealed.get(_sealed_key(child, mine), value) for mine, value in harvest.items()}


def _next_events(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, worker: EndedWorker, ended: ChildEnded
) -> list[NewEvent]:
    """Return the events after a worker's end. Raise BadRequest when an output cannot be set."""
    assert run.orchestrator is not None
    workers = run.orchestrator.decision["nextWorkerIds"]
    join = join_policy(node.definition.config, workers)
    if join is None:
        return _next_in_sequence(run, flow, node, state, worker, ended.at)
    ended_workers = [*_ended_workers(state, ended.sealed), worker]
    if not is_join_settled(join, ended_workers, len(workers)):
        return []
    losers = _lost_workers(run, state, ended.seen, worker.child)
    stopped = [_ended_event(run, None, node, loser) for loser in losers]
    ended_workers += [loser for loser in losers if not remote_children.is_unnamed(run, loser.child)]
    return [*stopped, *_join_events(run, flow, node, state, ended_workers, ended.at)]


def _next_in_sequence(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, worker: EndedWorker, at: int
) -> list[NewEvent]:
    assert run.orchestrator is not None
    events = _merge_outputs(run, flow, node, worker, run.next_sequence)
    if state.children < len(run.orchestrator.decision["nextWorkerIds"]):
        return events
    outputs = {"childRunId": worker.child, "childStatus": worker.status}
    return [*events, node_completed_event(node, state, outputs, at)]


def _merge_outputs(
    run: Run, flow: Flow, node: FlowNode, worker: EndedWorker, completed_seq: int
) -> list[NewEvent]:
    """Set the parent's variables. ``completed_seq`` is the sequence of the worker's end."""
    if worker.harvest is None:
        return []
    changes = variable_events(run, flow, worker.harvest, node.id, completed_seq)
    keys = list(worker.harvest)
    harvested = handoff.harvested_event(
        run, node.id, worker.worker, worker.child, keys, completed_seq
    )
    return [*changes, harvested]


def _join_events(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, ended: list[EndedWorker], at: int
) -> list[NewEvent]:
    """Join the workers. One that ended too late to matter is neither counted nor merged."""
    assert run.orchestrator is not None
    workers = run.orchestrator.decision["nextWorkerIds"]
    join = join_policy(node.definition.config, workers)
    assert join is not None
    outcome = join_outcome(join, ended, len(workers))
    counted = [worker for worker in ended if not worker.lost or worker.status == "cancelled"]
    payload = WorkersJoined(
        join_outcome=outcome,
        completed_count=sum(worker.status == "completed" for worker in counted),
        failed_count=sum(worker.status == "failed" for worker in counted),
        cancelled_count=sum(worker.status == "cancelled" for worker in counted),
        merge_order=[worker.child for worker in counted],
    )
    cause = run.orchestrator.decided_seq
    events = [NewEvent(payload, node.id, cause=cause)]
    if outcome == "failed":
        message = "Too few of the workers completed."
        return [*events, *fail_node(node, state, "join_failed", message)]
    for worker in ended:
        place = state.ends.get(worker.child, run.next_sequence)
        events += _merge_outputs(run, flow, node, worker, place)
    outputs = {"joinOutcome": outcome, "children": [_worker_summary(worker) for worker in ended]}
    return [*events, node_completed_event(node, state, outputs, at)]


def _worker_summary(worker: EndedWorker) -> dict[str, object]:
    summary = {
        "workflowId": worker.worker,
        "childRunId": worker.child,
        "childStatus": worker.status,
    }
    error = {"error": {"code": worker.error.code}} if worker.error else {}
    return {**summary, **error}
