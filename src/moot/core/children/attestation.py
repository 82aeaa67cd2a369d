"""Attest the outputs of a child: checksum them and have a person accept them.

Nothing is merged without an acceptance. A rejection, a timeout or a cancelled run leaves the parent
unchanged.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from moot.core.children import decide, handoff
from moot.core.children.decide import child_spec
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.interrupts.decide import request_interrupt
from moot.core.json.canonical import canonical_digest
from moot.core.payloads.hints import HeldOutputs
from moot.core.payloads.supervisors import HandoffStepped
from moot.core.runs.advance import node_completed_event, node_failed_event
from moot.core.runs.child_outputs import ChildEnded, collect_outputs, map_outputs, sensitive_outputs
from moot.core.runs.nodes import finish_attempt, variable_events
from moot.core.runs.readiness import PortProblem
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ATTESTATION, ChildSpec, Failed, GateSpec, NodeError

ALGORITHM = "sha256"
OUTPUTS = "sub-run-outputs"


def is_attested(node: FlowNode) -> bool:
    return node.type.attests and bool(node.definition.config.get(ATTESTATION))


def end_attested_child(run: Run, flow: Flow, ended: ChildEnded) -> list[NewEvent]:
    """Decide the end of an attested child, once, for the attempt that waits for it."""
    state, node = run.nodes.get(ended.node_id), flow.nodes[ended.node_id]
    running = state is not None and state.status is NodeStatus.RUNNING
    if not run.going or state is None or not running or state.child != ended.child_run:
        return []
    try:
        spec = child_spec(run, node, ended.at, ended.sealed, state.children - 1)
    except PortProblem as problem:
        return finish_attempt(run, flow, node.id, state.attempt, Failed(problem.error), ended.at)
    assert spec is not None
    event = _ended_event(run, node, state, spec, ended)
    event.hints = {"runs": ended.runs}
    if ended.status == "completed":
        return _complete_child(run, flow, node, spec, ended, event)
    if spec.absorb:
        outputs = {"childRunId": ended.child_run, "childStatus": ended.status, "childOutputs": {}}
        return [event, node_completed_event(node, state, outputs, ended.at)]
    failure = decide.child_failure(ended)
    return [event, *finish_attempt(run, flow, node.id, state.attempt, failure, ended.at)]


def _ended_event(
    run: Run, node: FlowNode, state: NodeState, spec: ChildSpec, ended: ChildEnded
) -> NewEvent:
    error, phase = handoff.handoff_error(ended.status, ended.error), handoff.ENDS[ended.status]
    return handoff.handoff_event(
        run, node.id, phase, spec.workflow_id, state.link, ended.child_run, error=error
    )


def _complete_child(
    run: Run, flow: Flow, node: FlowNode, spec: ChildSpec, ended: ChildEnded, event: NewEvent
) -> list[NewEvent]:
    """Merge the outputs at once, or hold them until a person has answered."""
    assert spec.attest is not None
    state, harvest = run.nodes[node.id], collect_outputs(spec, ended)
    hidden = sensitive_outputs(flow, spec.collect) & set(harvest)
    try:
        checksum = canonical_digest(harvest) if spec.attest.checksum else None
    except ValueError as problem:
        return [event, _failed_event(node, state, "output_not_json", str(problem))]
    visible = {key: None if key in hidden else value for key, value in harvest.items()}
    held = HeldOutputs(
        child=ended.child_run, workflow=spec.workflow_id, harvest=visible, checksum=checksum
    )
    if not spec.attest.require_approval:
        try:
            merged = _merge_outputs(run, flow, node, held, harvest, run.next_sequence, ended.at)
        except BadRequest as refusal:  # the parent has no variable for an output
            return [event, _failed_event(node, state, refusal.code, refusal.message)]
        return [event, *merged]
    event.hints = {"held": msgspec.to_builtins(held), "runs": ended.runs}
    if hidden:
        event.sealed = {_sealed_key(ended.child_run, key): harvest[key] for key in hidden}
    gate = _question(run, held, spec.attest.timeout_ms)
    return [event, *request_interrupt(run, flow, node, gate, ended.at)]


def _question(run: Run, held: HeldOutputs, timeout_ms: int | None) -> GateSpec:
    description = f"Run {held.child} of {held.workflow} has completed."
    if held.checksum is not None:
        description += f" {ALGORITHM} of its outputs: {held.checksum}"
    data = {
        "artifactId": derived_id("art_", run.run_id, held.child),
        "artifactType": OUTPUTS,
        "artifactData": held.harvest,
        "title": f"Merge the outputs of {held.workflow}?",
        "description": description,
        "actions": ["accept", "reject", "edit-accept", "ask"],
    }
    return GateSpec(kind="approval", data=data, timeout_ms=timeout_ms)


def settle_attestation(
    run: Run, flow: Flow, node_id: str, at: int, sealed: Mapping[str, object]
) -> list[NewEvent]:
    """Merge or reject the held outputs after a person's answer or a timeout."""
    state, node = run.nodes[node_id], flow.nodes[node_id]
    if not run.going or state.status is not NodeStatus.RUNNING or state.held is None:
        return []
    held, value = state.held, state.answer[0] if state.answer else {}
    action = value.get("action") if isinstance(value, dict) else None
    if action not in ("accept", "edit-accept"):
        return [_rejection_event(node, state, action, at)]
    harvest = {
        key: sealed.get(_sealed_key(held.child, key), visible)
        for key, visible in held.harvest.items()
    }
    if action == "edit-accept":
        harvest = value["editedArtifactData"]
    try:
        return _merge_outputs(run, flow, node, held, harvest, state.link, at)
    except BadRequest as refusal:
        return [_failed_event(node, state, refusal.code, refusal.message)]


def _failed_event(node: FlowNode, state: NodeState, code: str, message: str) -> NewEvent:
    return node_failed_event(
        node, NodeError(code=code, message=message, retryable=False), state.attempt
    )


def _rejection_event(node: FlowNode, state: NodeState, action: str | None, at: int) -> NewEvent:
    """Merge nothing and treat the rejection as a failed child."""
    assert state.held is not None
    if node.definition.config.get("onChildFailure") == "absorb":
        outputs = {"childRunId": state.held.child, "childStatus": "completed", "merged": False}
        return node_completed_event(
            node, state, {**outputs, **_attestation(state.held), "childOutputs": {}}, at
        )
    if action == "timeout":
        return _failed_event(
            node, state, "interrupt_timeout", "Nobody accepted the outputs in time."
        )
    return _failed_event(
        node, state, "approval_rejected", "A person rejected the outputs of the child."
    )


def _merge_outputs(
    run: Run,
    flow: Flow,
    node: FlowNode,
    held: HeldOutputs,
    harvest: Mapping[str, object],
    cause: int,
    at: int,
) -> list[NewEvent]:
    """Set the parent's variables. ``cause`` is the child's end. Raise BadRequest."""
    collect: dict[str, str] = node.definition.config.get("outputMapping", {})
    values = map_outputs(collect, harvest)
    events = variable_events(run, flow, values, node.id, cause)
    attestation = _attestation(held)
    if collect:
        harvested = handoff.harvested_event(
            run, node.id, held.workflow, held.child, list(values), cause
        )
        assert isinstance(harvested.payload, HandoffStepped)
        harvested.payload = replace(harvested.payload, attestation=attestation.get("attestation"))
        events.append(harvested)
    hidden = sensitive_outputs(flow, collect)
    outputs: dict[str, object] = {
        "childRunId": held.child,
        "childStatus": "completed",
        "childOutputs": {key: value for key, value in harvest.items() if key not in hidden},
        **attestation,
    }
    state = run.nodes[node.id]
    if state.held is not None:  # a person has accepted them
        outputs |= {"merged": True, "action": state.answer[0]["action"]}
    return [*events, node_completed_event(node, state, outputs, at)]


def _attestation(held: HeldOutputs) -> dict[str, dict[str, str]]:
    """Return the checksum of the child's own outputs, also when a person edited them."""
    if held.checksum is None:
        return {}
    return {"attestation": {"checksum": held.checksum, "algorithm": ALGORITHM}}


def _sealed_key(child: str, key: str) -> str:
    return f"held:{child}:{key}"
