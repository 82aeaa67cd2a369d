"""The children of a dispatch node: how each ends, what flows back, when all have come together.

What a child gives back is harvested only when it completed.
"""

from typing import Any

from moot.core.children import handoff
from moot.core.children.tree_limit import last_seen
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.runs.advance import failed
from moot.core.runs.child_outputs import ChildEnded, Seen
from moot.core.runs.nodes import variable_events
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.supervisors.join import Ended, join_of, outcome, settled
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import NodeError

NOT_NEEDED = {"code": "cancelled", "message": "It was not needed any more."}
FAILED_LATE = {"code": "failed", "message": "It failed, and was not needed any more."}


def completed(node: FlowNode, state: NodeState, outputs: dict[str, Any], at: int) -> NewEvent:
    payload = {
        "nodeId": node.id,
        "outputs": outputs,
        "durationMs": max(0, at - state.started_at),
    }
    return NewEvent("node.completed", payload, node.id, cause=state.started_seq)


def failed_node(node: FlowNode, state: NodeState, code: str, message: str) -> list[NewEvent]:
    error = NodeError(code=code, message=message, retryable=False)
    return [failed(node, error, state.attempt, state.started_seq)]


def given_up(
    run: Run, node: FlowNode, state: NodeState, seen: dict[str, Seen], but: str = ""
) -> list[NewEvent]:
    """Every child that still lives is cancelled with the event that says so; of one that has just
    ended it is said how."""
    return [_over(run, None, node, each) for each in _losers(run, state, seen, but)]


def _losers(run: Run, state: NodeState, seen: dict[str, Seen], but: str) -> list[Ended]:
    assert run.orchestrator is not None
    workers = run.orchestrator.decision["nextWorkerIds"]
    return [
        _lost(child, workers[number], last_seen(run, state, seen, child))
        for child, number in state.living.items()
        if child != but
    ]


def _lost(child: str, worker: str, found: Seen) -> Ended:
    status = found.status or "cancelled"
    return Ended(child, worker, status, _why(status), lost=True, runs=found.runs)


def _why(status: str) -> dict[str, Any] | None:
    return {"cancelled": NOT_NEEDED, "failed": FAILED_LATE}.get(status)


def child_ended(run: Run, flow: Flow, ended: ChildEnded) -> list[NewEvent]:
    """Counts once, and only for the attempt that waits for it."""
    state, node = run.nodes.get(ended.node_id), flow.nodes[ended.node_id]
    if not run.going or state is None or ended.child_run not in state.living:
        return []
    assert run.orchestrator is not None
    worker = run.orchestrator.decision["nextWorkerIds"][state.living[ended.child_run]]
    harvest = _collected(node, worker, ended)
    found = Ended(ended.child_run, worker, ended.status, ended.error, harvest, runs=ended.runs)
    step = _over(run, flow, node, found)
    if ended.cause is not None:
        step.cause = ended.cause
        step.payload["causationHostId"] = ended.cause_host
    if ended.stop:
        step.hints = {**(step.hints or {}), "childRunId": found.child}
    try:
        return [step, *_after(run, flow, node, state, found, ended)]
    except BadRequest as refusal:  # the parent has no place for what it is given
        rest = given_up(run, node, state, ended.seen, but=found.child)
        return [step, *rest, *failed_node(node, state, refusal.code, refusal.message)]


def _collected(node: FlowNode, worker: str, ended: ChildEnded) -> dict[str, Any] | None:
    """What flows back, under the parent's names: only what a completed child has set. None when
    nothing shall."""
    config = node.definition.config
    wanted = config.get("perWorkerOutputMappings", {}).get(worker, config.get("outputMapping", {}))
    if ended.status != "completed" or not wanted:
        return None
    return {
        mine: ended.variables[theirs]
        for mine, theirs in wanted.items()
        if theirs in ended.variables
    }


def _over(run: Run, flow: Flow | None, node: FlowNode, found: Ended) -> NewEvent:
    """The end of a child, with what the parent keeps of it until all have come together."""
    if remote_children.unnamed(run, found.child):
        return _never_there(run, node, found)
    step = handoff.ended(run, node.id, found.worker, found.child, found.status, found.error)
    result: dict[str, Any] = {"worker": found.worker, "lost": found.lost}
    if found.error is not None:
        result["error"] = found.error
    if found.harvest is not None and flow is not None:
        hidden = flow.sensitive & set(found.harvest)
        seen = {mine: None if mine in hidden else found.harvest[mine] for mine in found.harvest}
        result["harvest"] = seen
        if hidden:
            step.sealed = {_place(found.child, mine): found.harvest[mine] for mine in hidden}
    step.hints = {"result": result, "runs": found.runs}
    if found.lost:
        step.hints["childRunId"] = found.child  # it is stopped with this event
    return step


def _never_there(run: Run, node: FlowNode, found: Ended) -> NewEvent:
    """Another host was asked for it and has not answered; whatever it begins is stopped."""
    began = run.abroad[found.child].began
    step = handoff.step(run, node.id, "dispatch.failed", found.worker, began, error=found.error)
    step.hints = {"askId": found.child, "unsure": found.child, "runs": found.runs}
    return step


def _place(child: str, mine: str) -> str:
    return f"harvest:{child}:{mine}"


def _so_far(state: NodeState, sealed: dict[str, Any]) -> list[Ended]:
    return [
        Ended(
            each["child"],
            each["worker"],
            each["status"],
            each.get("error"),
            _unsealed(each, sealed),
            each["lost"],
        )
        for each in state.results or []
    ]


def _unsealed(result: dict[str, Any], sealed: dict[str, Any]) -> dict[str, Any] | None:
    harvest: dict[str, Any] | None = result.get("harvest")
    if harvest is None:
        return None
    child = result["child"]
    return {mine: sealed.get(_place(child, mine), value) for mine, value in harvest.items()}


def _after(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, found: Ended, ended: ChildEnded
) -> list[NewEvent]:
    """What follows the end of a child. Raises BadRequest when its harvest has no place."""
    assert run.orchestrator is not None
    workers = run.orchestrator.decision["nextWorkerIds"]
    join = join_of(node.definition.config, workers)
    if join is None:
        return _one_by_one(run, flow, node, state, found, ended.at)
    over = [*_so_far(state, ended.sealed), found]
    if not settled(join, over, len(workers)):
        return []
    losers = _losers(run, state, ended.seen, found.child)
    stopped = [_over(run, None, node, loser) for loser in losers]
    over += [loser for loser in losers if not remote_children.unnamed(run, loser.child)]
    return [*stopped, *_joined(run, flow, node, state, over, ended.at)]


def _one_by_one(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, found: Ended, at: int
) -> list[NewEvent]:
    assert run.orchestrator is not None
    events = _harvest(run, flow, node, found, run.next_sequence)
    if state.children < len(run.orchestrator.decision["nextWorkerIds"]):
        return events
    outputs = {"childRunId": found.child, "childStatus": found.status}
    return [*events, completed(node, state, outputs, at)]


def _harvest(
    run: Run, flow: Flow, node: FlowNode, found: Ended, completed_seq: int
) -> list[NewEvent]:
    """``completed_seq`` is where the end of the child stands."""
    if found.harvest is None:
        return []
    changes = variable_events(run, flow, found.harvest, node.id, completed_seq)
    keys = list(found.harvest)
    said = handoff.harvested(run, node.id, found.worker, found.child, keys, completed_seq)
    return [*changes, said]


def _joined(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, over: list[Ended], at: int
) -> list[NewEvent]:
    """Who ended by itself, but too late to matter, has no part in it: nothing of it is merged."""
    assert run.orchestrator is not None
    workers = run.orchestrator.decision["nextWorkerIds"]
    join = join_of(node.definition.config, workers)
    assert join is not None
    reached = outcome(join, over, len(workers))
    counted = [each for each in over if not each.lost or each.status == "cancelled"]
    payload = {
        "joinOutcome": reached,
        "completedCount": sum(each.status == "completed" for each in counted),
        "failedCount": sum(each.status == "failed" for each in counted),
        "cancelledCount": sum(each.status == "cancelled" for each in counted),
        "mergeOrder": [each.child for each in counted],
    }
    cause = run.orchestrator.decided_seq
    events = [NewEvent("core.dispatch.join", payload, node.id, cause=cause)]
    if reached == "failed":
        message = "Too few of the workers completed."
        return [*events, *failed_node(node, state, "join_failed", message)]
    for each in over:
        place = state.ends.get(each.child, run.next_sequence)
        events += _harvest(run, flow, node, each, place)
    outputs = {"joinOutcome": reached, "children": [_told(each) for each in over]}
    return [*events, completed(node, state, outputs, at)]


def _told(each: Ended) -> dict[str, Any]:
    found = {
        "workflowId": each.worker,
        "childRunId": each.child,
        "childStatus": each.status,
    }
    error = {"error": {"code": each.error.get("code", "failed")}} if each.error else {}
    return {**found, **error}
