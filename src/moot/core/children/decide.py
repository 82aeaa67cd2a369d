"""Child runs of a node: which one comes next, what flows in, what its end means."""

from typing import Any

from msgspec import Struct

from moot.core.children import handoff, peer_requests, tree_limit
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, event_id
from moot.core.runs.child_outputs import ChildEnded
from moot.core.runs.nodes import finish, variable_events
from moot.core.runs.readiness import PortProblem, asked, call_of
from moot.core.runs.start import Limits, StartRun
from moot.core.secrets import is_secret
from moot.core.state import remote_children
from moot.core.state.memory import ancestors_of, scope_of
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import GOING, NodeStatus
from moot.core.trace import of_run
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import ChildSpec, Failed, NodeError
from moot.core.workflows.peer_ids import is_away


class ChildWaits(Struct, frozen=True, kw_only=True):
    """A child run waits for somebody, or goes on again."""

    node_id: str
    child_run: str
    workflow_id: str
    status: str


def child_waits(run: Run, told: ChildWaits) -> list[NewEvent]:
    """The parent shows how its child waits; what it already shows is not said again."""
    state = _waiting(run, told.node_id)
    if state is None or told.status not in GOING:
        return []
    if told.child_run in state.living:
        shown = state.waits.get(told.child_run, "running")
    elif told.child_run == state.child:
        shown = run.mirrored.get(told.node_id, "running")
    else:
        return []
    status = "running" if remote_children.restless(run, told.child_run) else told.status
    if shown == status:
        return []
    payload = {
        "childRunId": told.child_run,
        "childWorkflowId": told.workflow_id,
        "childStatus": status,
    }
    return [NewEvent("node.dispatched", payload, told.node_id)]


def next_child(
    run: Run, node: FlowNode, at: int, sealed: dict[str, Any], number: int
) -> ChildSpec | None:
    """The child with this number, counted from 0. Raises PortProblem."""
    assert node.type.child is not None
    call = call_of(run, node, at, sealed, run.nodes[node.id].attempt)
    return asked(node.type.child, call, number)


def may_begin(run: Run, flow: Flow, node_id: str, spec: ChildSpec) -> bool:
    """Whether the run may have this child, be its workflow known or not."""
    share = tree_limit.share(run, flow, node_id, away=is_away(spec.workflow_id))
    return tree_limit.refusal(run, share) is None


def dispatch(run: Run, flow: Flow, node_id: str, at: int, sealed: dict[str, Any]) -> list[NewEvent]:
    state = _waiting(run, node_id)
    if state is None or state.child is not None:
        return []
    node = flow.nodes[node_id]
    try:
        spec = next_child(run, node, at, sealed, state.children)
    except PortProblem as problem:
        return finish(run, flow, node_id, state.attempt, Failed(problem.error), at)
    if spec is None:
        return [_done(node, state, at, {}, state.results or [])]
    share = tree_limit.share(run, flow, node_id, away=is_away(spec.workflow_id))
    error = tree_limit.refusal(run, share)
    if error is not None:
        return finish(run, flow, node_id, state.attempt, Failed(error), at)
    if is_away(spec.workflow_id):
        if hidden := secrets(node, spec, sealed):
            return finish(
                run, flow, node_id, state.attempt, Failed(peer_requests.withheld(hidden)), at
            )
        return [peer_requests.asked(run, node, state, spec, share, None)]
    child = peer_requests.child_id(run, node_id, str(state.attempt), str(state.children))
    hints = {"tree": share}
    begun = handoff.dispatched(node_id, child, spec.workflow_id, state.started_seq, hints)
    if spec.attest is None:
        return [begun]
    first, worker = run.next_sequence, spec.workflow_id
    return [
        handoff.step(run, node_id, "dispatch.began", worker, state.started_seq),
        begun,
        handoff.step(run, node_id, "dispatch.succeeded", worker, first, child),
    ]


def spawn(run: Run, node: FlowNode, at: int, sealed: dict[str, Any], limits: Limits) -> StartRun:
    """The command that begins the child just dispatched, from the state after the dispatch."""
    state = run.nodes[node.id]
    spec = next_child(run, node, at, sealed, state.children - 1)
    assert spec is not None
    return StartRun(
        tenant=run.tenant,
        person=run.person,
        principal=run.principal,
        at=at,
        limits=limits,
        seed=spec.seed,
        unset=spec.unset,
        secret=secrets(node, spec, sealed),
        tags=run.tags,
        configurable=_inherited(run.configurable),
        parent_run=run.run_id,
        parent_node=node.id,
        rights=_narrowed(run, spec),
        depth=run.depth + 1,
        tree=_lent(state),
        memory_scope=None if spec.isolated else scope_of(run),
        ancestors=(*ancestors_of(run), run.run_id),
        cause=event_id(run.run_id, run.next_sequence - 1),
        trace=of_run(run.run_id, run.trace),
        members=run.members,
        inherits=run.member.roster_id if run.member is not None else None,
    )


def secrets(node: FlowNode, spec: ChildSpec, sealed: dict[str, Any]) -> tuple[str, ...]:
    """What a parent keeps out of its log stays out of its child's."""
    config = node.definition.config
    wanted = config.get("perWorkerInputMappings", {}).get(
        spec.workflow_id, config.get("inputMapping", {})
    )
    values = [value for value in sealed.values() if is_secret(value)]
    return tuple(
        name
        for name, value in spec.seed.items()
        if f"var:{wanted.get(name)}" in sealed or (is_secret(value) and value in values)
    )


def _lent(state: NodeState) -> int:
    """What the child just dispatched was lent."""
    return list(state.lent.values())[-1]


def _narrowed(run: Run, spec: ChildSpec) -> list[str] | None:
    """A child may do what its parent may, or less."""
    asked = spec.attest.principal_scope if spec.attest is not None else None
    if asked is None:
        return run.rights
    return [scope for scope in asked if run.rights is None or scope in run.rights]


def _inherited(configurable: dict[str, Any]) -> dict[str, Any]:
    """A child has its own caps; everything else it is told as its parent was."""
    own = ("recursionLimit", "runTimeoutMs", "maxLoopIterations")
    return {key: value for key, value in configurable.items() if key not in own}


def child_ended(run: Run, flow: Flow, ended: ChildEnded) -> list[NewEvent]:
    """The end of a child counts once, and only for the attempt that waits for it."""
    state = _waiting(run, ended.node_id)
    if state is None or state.child != ended.child_run:
        return []
    node = flow.nodes[ended.node_id]
    try:
        spec = next_child(run, node, ended.at, ended.sealed, state.children - 1)
        following = next_child(run, node, ended.at, ended.sealed, state.children)
    except PortProblem as problem:
        failed = finish(run, flow, node.id, state.attempt, Failed(problem.error), ended.at)
        return _marked(failed, ended)
    absorbed = spec is not None and spec.absorb
    if ended.status != "completed" and not absorbed:
        failure = failure_of(ended)
        return _marked(finish(run, flow, node.id, state.attempt, failure, ended.at), ended)
    try:
        events = _harvest(run, flow, node, spec, ended)
    except BadRequest as refusal:
        error = NodeError(code=refusal.code, message=refusal.message, retryable=False)
        return _marked(finish(run, flow, node.id, state.attempt, Failed(error), ended.at), ended)
    if following is None:
        results = [*(state.results or []), ended.outputs]
        done = _done(node, state, ended.at, _reported(ended), results)
        return _marked([*events, done], ended)
    payload = {
        "childRunId": ended.child_run,
        "childWorkflowId": spec.workflow_id if spec else following.workflow_id,
        "childStatus": ended.status,
    }
    hints = {"result": ended.outputs, "runs": ended.runs}
    note = NewEvent("node.dispatched", payload, node.id, hints=hints)
    return [*events, note]


def _waiting(run: Run, node_id: str) -> NodeState | None:
    state = run.nodes.get(node_id)
    if not run.going or state is None:
        return None
    return state if state.status is NodeStatus.RUNNING else None


def _harvest(
    run: Run, flow: Flow, node: FlowNode, spec: ChildSpec | None, ended: ChildEnded
) -> list[NewEvent]:
    """Only what a completed child has set flows back; the rest stays as it is."""
    if ended.status != "completed" or spec is None:
        return []
    found = {
        mine: ended.variables[theirs]
        for mine, theirs in spec.collect.items()
        if theirs in ended.variables
    }
    return variable_events(run, flow, found, node.id, None)


def _reported(ended: ChildEnded) -> dict[str, Any]:
    return {"childRunId": ended.child_run, "childStatus": ended.status}


def _done(
    node: FlowNode, state: NodeState, at: int, outputs: dict[str, Any], results: list[Any]
) -> NewEvent:
    outputs = {**outputs, "childOutputs": results[-1] if results else {}}
    if node.type.type_id != "core.subWorkflow":
        outputs = {**outputs, "results": results, "iterations": len(results)}
    payload = {
        "nodeId": node.id,
        "outputs": outputs,
        "durationMs": max(0, at - state.started_at),
    }
    return NewEvent("node.completed", payload, node.id, cause=state.started_seq)


def failure_of(ended: ChildEnded) -> Failed:
    inner = ended.error or {}
    because = f": {inner['message']}" if inner.get("message") else "."
    return Failed(
        NodeError(
            code="child_failed",
            message=f"The child run {ended.status}{because}",
            details={
                "childRunId": ended.child_run,
                "childStatus": ended.status,
                **({"childError": inner} if inner else {}),
            },
        )
    )


def _marked(events: list[NewEvent], ended: ChildEnded) -> list[NewEvent]:
    """The parent's own record of how the child ended, where the payload has no place for it."""
    for event in events:
        if event.type in ("node.completed", "node.failed", "node.retried"):
            event.hints = {"childStatus": ended.status, "runs": ended.runs}
            if ended.stop:
                event.hints["childRunId"] = ended.child_run
    return events
