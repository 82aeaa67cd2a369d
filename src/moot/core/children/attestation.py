"""A child whose outputs are attested: a checksum over them, and a person before they are merged.

Nothing is merged without an acceptance. A refusal, a wait that ran out, a cancelled run leave the
parent as it was.
"""

from typing import Any

from moot.core.children import decide, handoff
from moot.core.children.decide import next_child
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.interrupts.decide import request
from moot.core.json.canonical import digest
from moot.core.runs.advance import failed
from moot.core.runs.child_outputs import ChildEnded, harvest_of, hidden_in, mapped
from moot.core.runs.nodes import finish, variable_events
from moot.core.runs.readiness import PortProblem
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import ATTESTED, ChildSpec, Failed, GateSpec, NodeError

ALGORITHM = "sha256"
OUTPUTS = "sub-run-outputs"


def attests(node: FlowNode) -> bool:
    return node.type.attests and bool(node.definition.config.get(ATTESTED))


def child_ended(run: Run, flow: Flow, ended: ChildEnded) -> list[NewEvent]:
    """Counts once, and only for the attempt that waits for it."""
    state, node = run.nodes.get(ended.node_id), flow.nodes[ended.node_id]
    at_work = state is not None and state.status is NodeStatus.RUNNING
    if not run.going or state is None or not at_work or state.child != ended.child_run:
        return []
    try:
        spec = next_child(run, node, ended.at, ended.sealed, state.children - 1)
    except PortProblem as problem:
        return finish(run, flow, node.id, state.attempt, Failed(problem.error), ended.at)
    assert spec is not None
    step = _ended(run, node, state, spec, ended)
    step.hints = {"runs": ended.runs}
    if ended.status == "completed":
        return _completed(run, flow, node, spec, ended, step)
    if spec.absorb:
        outputs = {"childRunId": ended.child_run, "childStatus": ended.status, "childOutputs": {}}
        return [step, _done(node, state, outputs, ended.at)]
    failure = decide.failure_of(ended)
    return [step, *finish(run, flow, node.id, state.attempt, failure, ended.at)]


def _ended(
    run: Run, node: FlowNode, state: NodeState, spec: ChildSpec, ended: ChildEnded
) -> NewEvent:
    more = handoff.why(ended.status, ended.error)
    phase = handoff.ENDS[ended.status]
    return handoff.step(run, node.id, phase, spec.workflow_id, state.link, ended.child_run, **more)


def _completed(
    run: Run, flow: Flow, node: FlowNode, spec: ChildSpec, ended: ChildEnded, step: NewEvent
) -> list[NewEvent]:
    """Merged at once, or kept until a person has looked at it."""
    assert spec.attest is not None
    state, harvest = run.nodes[node.id], harvest_of(spec, ended)
    hidden = hidden_in(flow, spec.collect) & set(harvest)
    held: dict[str, Any] = {
        "child": ended.child_run,
        "workflow": spec.workflow_id,
        "harvest": {key: None if key in hidden else value for key, value in harvest.items()},
    }
    if spec.attest.checksum:
        try:
            held["checksum"] = digest(harvest)
        except ValueError as problem:
            return [step, _failed(node, state, "output_not_json", str(problem))]
    if not spec.attest.require_approval:
        try:
            merged = _merged(run, flow, node, held, harvest, run.next_sequence, ended.at)
        except BadRequest as refusal:  # the parent has no place for what it is given
            return [step, _failed(node, state, refusal.code, refusal.message)]
        return [step, *merged]
    step.hints = {"held": held, "runs": ended.runs}
    if hidden:
        step.sealed = {_place(ended.child_run, key): harvest[key] for key in hidden}
    gate = _question(run, state, held, spec.attest.timeout_ms)
    return [step, *request(run, flow, node, gate, ended.at)]


def _question(run: Run, state: NodeState, held: dict[str, Any], timeout_ms: int | None) -> GateSpec:
    about = f"Run {held['child']} of {held['workflow']} has completed."
    if "checksum" in held:
        about += f" {ALGORITHM} of its outputs: {held['checksum']}"
    data = {
        "artifactId": derived_id("art_", run.run_id, held["child"]),
        "artifactType": OUTPUTS,
        "artifactData": held["harvest"],
        "title": f"Merge the outputs of {held['workflow']}?",
        "description": about,
        "actions": ["accept", "reject", "edit-accept", "ask"],
    }
    return GateSpec(kind="approval", data=data, timeout_ms=timeout_ms)


def settle(run: Run, flow: Flow, node_id: str, at: int, sealed: dict[str, Any]) -> list[NewEvent]:
    """A person has answered, or nobody did in time."""
    state, node = run.nodes[node_id], flow.nodes[node_id]
    if not run.going or state.status is not NodeStatus.RUNNING or state.held is None:
        return []
    held, value = state.held, state.answer[0] if state.answer else {}
    action = value.get("action") if isinstance(value, dict) else None
    if action not in ("accept", "edit-accept"):
        return [_refused(node, state, action, at)]
    harvest = {
        key: sealed.get(_place(held["child"], key), shown) for key, shown in held["harvest"].items()
    }
    if action == "edit-accept":
        harvest = value["editedArtifactData"]
    try:
        return _merged(run, flow, node, {**held, "action": action}, harvest, state.link, at)
    except BadRequest as refusal:
        return [_failed(node, state, refusal.code, refusal.message)]


def _failed(node: FlowNode, state: NodeState, code: str, message: str) -> NewEvent:
    return failed(node, NodeError(code=code, message=message, retryable=False), state.attempt)


def _refused(node: FlowNode, state: NodeState, action: str | None, at: int) -> NewEvent:
    """Nothing flows back; what that means is what a failed child means."""
    assert state.held is not None
    if node.definition.config.get("onChildFailure") == "absorb":
        told = {"childRunId": state.held["child"], "childStatus": "completed", "merged": False}
        return _done(node, state, {**told, **_attestation(state.held), "childOutputs": {}}, at)
    if action == "timeout":
        return _failed(node, state, "interrupt_timeout", "Nobody accepted the outputs in time.")
    return _failed(node, state, "approval_rejected", "A person rejected the outputs of the child.")


def _merged(
    run: Run,
    flow: Flow,
    node: FlowNode,
    held: dict[str, Any],
    harvest: dict[str, Any],
    cause: int,
    at: int,
) -> list[NewEvent]:
    """``cause`` is where the end of the child stands. Raises BadRequest."""
    collect: dict[str, str] = node.definition.config.get("outputMapping", {})
    found = mapped(collect, harvest)
    events = variable_events(run, flow, found, node.id, cause)
    told = _attestation(held)
    if collect:
        place = (held["workflow"], cause, held["child"])
        more = {"harvestedKeys": list(found), **told}
        events.append(handoff.step(run, node.id, "output.harvested", *place, **more))
    hidden = hidden_in(flow, collect)
    outputs = {
        "childRunId": held["child"],
        "childStatus": "completed",
        "childOutputs": {key: value for key, value in harvest.items() if key not in hidden},
        **told,
        **({"merged": True, "action": held["action"]} if "action" in held else {}),
    }
    return [*events, _done(node, run.nodes[node.id], outputs, at)]


def _attestation(held: dict[str, Any]) -> dict[str, Any]:
    """It is about what the child gave, whatever a person has made of it."""
    if "checksum" not in held:
        return {}
    return {"attestation": {"checksum": held["checksum"], "algorithm": ALGORITHM}}


def _done(node: FlowNode, state: NodeState, outputs: dict[str, Any], at: int) -> NewEvent:
    payload = {
        "nodeId": node.id,
        "outputs": outputs,
        "durationMs": max(0, at - state.started_at),
    }
    return NewEvent("node.completed", payload, node.id, cause=state.started_seq)


def _place(child: str, key: str) -> str:
    return f"held:{child}:{key}"
