"""Decide about a node's child runs: dispatch the next one, handle its end."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.children import handoff, peer_requests, tree_limit
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, event_id
from moot.core.payloads.nodes import NodeCompleted, NodeDispatched, NodeFailed, NodeRetried
from moot.core.runs.advance import node_completed_event
from moot.core.runs.child_outputs import ChildEnded, map_outputs
from moot.core.runs.nodes import finish_attempt, variable_events
from moot.core.runs.readiness import PortProblem, build_node_call, call_node_type
from moot.core.runs.start import RunLimits, StartRun
from moot.core.secrets import is_secret
from moot.core.state import remote_children
from moot.core.state.memory import ancestor_runs, memory_scope
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import GOING, NodeStatus
from moot.core.trace import run_trace
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ChildSpec, Failed, NodeError
from moot.core.workflows.peer_ids import is_peer_id


class ChildWaits(Struct, frozen=True, kw_only=True):
    """A child run waits for an answer, or runs again."""

    node_id: str
    child_run: str
    workflow_id: str
    status: str


def mirror_child_status(run: Run, command: ChildWaits) -> list[NewEvent]:
    """Record the child's status in the parent when it differs from the recorded one."""
    state = _running_node(run, command.node_id)
    if state is None or command.status not in GOING:
        return []
    if command.child_run in state.living:
        recorded = state.waits.get(command.child_run, "running")
    elif command.child_run == state.child:
        recorded = run.mirrored.get(command.node_id, "running")
    else:
        return []
    status = (
        "running"
        if remote_children.has_waited_too_often(run, command.child_run)
        else command.status
    )
    if recorded == status:
        return []
    payload = NodeDispatched(
        child_run_id=command.child_run, child_workflow_id=command.workflow_id, child_status=status
    )
    return [NewEvent(payload, command.node_id)]


def child_spec(
    run: Run, node: FlowNode, at: int, sealed: Mapping[str, object], number: int
) -> ChildSpec | None:
    """Return the spec of the child with this number, counted from 0. Raise PortProblem."""
    assert node.type.child is not None
    call = build_node_call(run, node, at, sealed, run.nodes[node.id].attempt)
    return call_node_type(node.type.child, call, number)


def can_begin_child(run: Run, flow: Flow, node_id: str, spec: ChildSpec) -> bool:
    """Return whether the run may start this child, whether or not its workflow exists."""
    share = tree_limit.next_share(run, flow, node_id, away=is_peer_id(spec.workflow_id))
    return tree_limit.child_refusal(run, share) is None


def dispatch_child(
    run: Run, flow: Flow, node_id: str, at: int, sealed: Mapping[str, object]
) -> list[NewEvent]:
    state = _running_node(run, node_id)
    if state is None or state.child is not None:
        return []
    node = flow.nodes[node_id]
    try:
        spec = child_spec(run, node, at, sealed, state.children)
    except PortProblem as problem:
        return finish_attempt(run, flow, node_id, state.attempt, Failed(problem.error), at)
    if spec is None:
        return [_completed_event(node, state, at, {}, state.results or [])]
    share = tree_limit.next_share(run, flow, node_id, away=is_peer_id(spec.workflow_id))
    error = tree_limit.child_refusal(run, share)
    if error is not None:
        return finish_attempt(run, flow, node_id, state.attempt, Failed(error), at)
    if is_peer_id(spec.workflow_id):
        if hidden := secret_seeds(node, spec, sealed):
            return finish_attempt(
                run,
                flow,
                node_id,
                state.attempt,
                Failed(peer_requests.secret_withheld_error(hidden)),
                at,
            )
        return [peer_requests.peer_request_event(run, node, state, spec, share, None)]
    child = peer_requests.new_child_id(run, node_id, str(state.attempt), str(state.children))
    hints = {"tree": share}
    event = handoff.dispatched_event(node_id, child, spec.workflow_id, state.started_seq, hints)
    if spec.attest is None:
        return [event]
    first, worker = run.next_sequence, spec.workflow_id
    return [
        handoff.handoff_event(run, node_id, "dispatch.began", worker, state.started_seq),
        event,
        handoff.handoff_event(run, node_id, "dispatch.succeeded", worker, first, child),
    ]


def child_start_command(
    run: Run, node: FlowNode, at: int, sealed: Mapping[str, object], limits: RunLimits
) -> StartRun:
    """Return the command that starts the child just dispatched.

    ``run`` is the state after the dispatch.
    """
    state = run.nodes[node.id]
    spec = child_spec(run, node, at, sealed, state.children - 1)
    assert spec is not None
    return StartRun(
        tenant=run.tenant,
        person=run.person,
        principal=run.principal,
        at=at,
        limits=limits,
        seed=spec.seed,
        unset=spec.unset,
        secret=secret_seeds(node, spec, sealed),
        tags=run.tags,
        configurable=_child_configurable(run.configurable),
        parent_run=run.run_id,
        parent_node=node.id,
        rights=_child_rights(run, spec),
        depth=run.depth + 1,
        tree=_lent_share(state),
        memory_scope=None if spec.isolated else memory_scope(run),
        ancestors=(*ancestor_runs(run), run.run_id),
        cause=event_id(run.run_id, run.next_sequence - 1),
        trace=run_trace(run.run_id, run.trace),
        members=run.members,
        inherits=run.member.roster_id if run.member is not None else None,
    )


def secret_seeds(node: FlowNode, spec: ChildSpec, sealed: Mapping[str, object]) -> tuple[str, ...]:
    """Return the seeds that the child must keep out of its log, as its parent does."""
    config = node.definition.config
    mapping = config.get("perWorkerInputMappings", {}).get(
        spec.workflow_id, config.get("inputMapping", {})
    )
    values = [value for value in sealed.values() if is_secret(value)]
    return tuple(
        name
        for name, value in spec.seed.items()
        if f"var:{mapping.get(name)}" in sealed or (is_secret(value) and value in values)
    )


def _lent_share(state: NodeState) -> int:
    """Return the number of runs lent to the child just dispatched."""
    return list(state.lent.values())[-1]


def _child_rights(run: Run, spec: ChildSpec) -> list[str] | None:
    """Return the rights of the child: those of its parent, or fewer."""
    scopes = spec.attest.principal_scope if spec.attest is not None else None
    if scopes is None:
        return run.rights
    return [scope for scope in scopes if run.rights is None or scope in run.rights]


def _child_configurable(configurable: Mapping[str, object]) -> dict[str, object]:
    """Return the parent's options without its limits; a child has its own."""
    limits = ("recursionLimit", "runTimeoutMs", "maxLoopIterations")
    return {key: value for key, value in configurable.items() if key not in limits}


def end_child(run: Run, flow: Flow, ended: ChildEnded) -> list[NewEvent]:
    """Decide the end of a child, once, for the attempt that waits for it."""
    state = _running_node(run, ended.node_id)
    if state is None or state.child != ended.child_run:
        return []
    node = flow.nodes[ended.node_id]
    try:
        spec = child_spec(run, node, ended.at, ended.sealed, state.children - 1)
        next_spec = child_spec(run, node, ended.at, ended.sealed, state.children)
    except PortProblem as problem:
        failure_events = finish_attempt(
            run, flow, node.id, state.attempt, Failed(problem.error), ended.at
        )
        return _mark_child_end(failure_events, ended)
    absorbed = spec is not None and spec.absorb
    if ended.status != "completed" and not absorbed:
        failure = child_failure(ended)
        return _mark_child_end(
            finish_attempt(run, flow, node.id, state.attempt, failure, ended.at), ended
        )
    try:
        events = _merge_outputs(run, flow, node, spec, ended)
    except BadRequest as refusal:
        error = NodeError(code=refusal.code, message=refusal.message, retryable=False)
        return _mark_child_end(
            finish_attempt(run, flow, node.id, state.attempt, Failed(error), ended.at), ended
        )
    if next_spec is None:
        outputs = {"childRunId": ended.child_run, "childStatus": ended.status}
        results = [*(state.results or []), ended.outputs]
        done = _completed_event(node, state, ended.at, outputs, results)
        return _mark_child_end([*events, done], ended)
    payload = NodeDispatched(
        child_run_id=ended.child_run,
        child_workflow_id=spec.workflow_id if spec else next_spec.workflow_id,
        child_status=ended.status,
    )
    hints = {"result": ended.outputs, "runs": ended.runs}
    note = NewEvent(payload, node.id, hints=hints)
    return [*events, note]


def _running_node(run: Run, node_id: str) -> NodeState | None:
    state = run.nodes.get(node_id)
    if not run.going or state is None:
        return None
    return state if state.status is NodeStatus.RUNNING else None


def _merge_outputs(
    run: Run, flow: Flow, node: FlowNode, spec: ChildSpec | None, ended: ChildEnded
) -> list[NewEvent]:
    """Set the mapped variables that a completed child has set; leave the others unchanged."""
    if ended.status != "completed" or spec is None:
        return []
    values = map_outputs(spec.collect, ended.variables)
    return variable_events(run, flow, values, node.id, None)


def _completed_event(
    node: FlowNode, state: NodeState, at: int, outputs: Mapping[str, object], results: list[Any]
) -> NewEvent:
    outputs = {**outputs, "childOutputs": results[-1] if results else {}}
    if node.type.type_id != "core.subWorkflow":
        outputs = {**outputs, "results": results, "iterations": len(results)}
    return node_completed_event(node, state, outputs, at)


def child_failure(ended: ChildEnded) -> Failed:
    error = ended.error
    because = f": {error.message}" if error is not None and error.message else "."
    inner = {} if error is None else {"childError": msgspec.to_builtins(error)}
    return Failed(
        NodeError(
            code="child_failed",
            message=f"The child run {ended.status}{because}",
            details={
                "childRunId": ended.child_run,
                "childStatus": ended.status,
                **inner,
            },
        )
    )


def _mark_child_end(events: list[NewEvent], ended: ChildEnded) -> list[NewEvent]:
    """Add the child's end as hints where the payload has no field for it."""
    for event in events:
        if isinstance(event.payload, NodeCompleted | NodeFailed | NodeRetried):
            event.hints = {"childStatus": ended.status, "runs": ended.runs}
            if ended.stop:
                event.hints["childRunId"] = ended.child_run
    return events
