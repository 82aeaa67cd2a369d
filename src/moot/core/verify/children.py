"""Verify events of children: waits, ends and answers of peers.

Each event is read as the command behind it, and that command is decided again.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from moot.core.children import attestation
from moot.core.children.decide import ChildWaits, child_spec
from moot.core.commands import decide
from moot.core.events import Event, NewEvent, payload_fields
from moot.core.payloads.base import RecordedError
from moot.core.payloads.hints import EventHints
from moot.core.payloads.nodes import (
    NodeCompleted,
    NodeDispatched,
    NodeFailed,
    NodeRetried,
    VariableChanged,
)
from moot.core.payloads.supervisors import HandoffStepped
from moot.core.runs.advance import node_failed_event
from moot.core.runs.child_outputs import ChildEnded, ChildReport
from moot.core.runs.readiness import PortProblem
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.supervisors.decide import WorkerRefused
from moot.core.supervisors.peer_answers import PeerFound, PeerRefused, PeerStopped
from moot.core.verify import nodes
from moot.core.verify.nodes import ImpossibleEvent, VerificationStep

HANDOFF_STEP = HandoffStepped.event_type
END_STATUSES = ("completed", "failed", "cancelled")
FAILURE_EVENTS = (NodeFailed.event_type, NodeRetried.event_type)


def decide_child_event(step: VerificationStep, state: NodeState) -> list[NewEvent]:
    event, payload, hints = step.event, payload_fields(step.event), step.event.known_hints
    status = payload.get("childStatus")
    if event.type == NodeDispatched.event_type and hints.ask_id is not None:
        command = PeerFound(
            ask_id=hints.ask_id,
            child_run=payload["childRunId"],
            host_id=hints.host_id,
            at=step.at,
        )
        return decide(step.run, step.flow, command)
    is_waiting = status is not None and status not in END_STATUSES and hints.tree is None
    if event.type == NodeDispatched.event_type and is_waiting:
        waits = ChildWaits(
            node_id=step.own_node.id,
            child_run=payload["childRunId"],
            workflow_id=payload["childWorkflowId"],
            status=str(status),
        )
        return decide(step.run, step.flow, waits)
    if hints.ask_id is not None and hints.ask_id in step.run.abroad:
        return _decide_peer_refused(step, hints.ask_id)
    if step.own_node.type.dispatches:
        return _decide_worker(step, state)
    if state.child is None:
        return nodes.decide_outcome(step, state)
    if attestation.is_attested(step.own_node):
        return _decide_attested_child(step, state)
    return _decide_child_ended(step, state)


def _decide_peer_refused(step: VerificationStep, ask_id: str) -> list[NewEvent]:
    """Decide the refusal of a peer, or an answer that leaves open whether the child began."""
    payload = payload_fields(step.event)
    refused = PeerRefused(
        ask_id=ask_id,
        error=nodes.error_from_payload(payload.get("lastError", payload.get("error"))),
        unsure=step.event.known_hints.unsure is not None,
        at=step.at,
        seen=abandoned_children(step),
    )
    return decide(step.run, step.flow, refused)


def decide_peer_stopped(step: VerificationStep) -> list[NewEvent]:
    """Decide the stop of a remote child."""
    payload = payload_fields(step.event)
    if step.run.replayed:
        return [step.as_recorded()]  # the child was another run's: a replay has none to stop
    return decide(
        step.run, step.flow, PeerStopped(ask_id=payload["askId"], outcome=payload["outcome"])
    )


def abandoned_children(step: VerificationStep) -> dict[str, ChildReport]:
    """Return the last state of the children that this decision abandons."""
    children: dict[str, ChildReport] = {}
    for event in step.rest:
        hints, child_run = event.known_hints, event.known_hints.child_run_id
        if child_run is not None and hints.runs is not None:
            phase = payload_fields(event).get("phase", "child.cancelled").removeprefix("child.")
            children.setdefault(child_run, ChildReport(phase, _count_runs(step, child_run, hints)))
    return children


def _count_runs(step: VerificationStep, name: str, hints: EventHints) -> int:
    """Return how many runs the child has led to. Raise unless it is 1 up to its loan."""
    runs = hints.runs
    if runs is None or runs < 1:
        raise ImpossibleEvent("hints", "how many runs the child has led to", step.hints)
    for state in step.run.nodes.values():
        if runs > state.lent.get(name, runs):
            raise ImpossibleEvent("hints", {"runs": f"at most {state.lent[name]}"}, {"runs": runs})
    return runs


def _child_ended(
    step: VerificationStep, name: str, status: str, hints: EventHints, **more: Any
) -> ChildEnded:
    """Build the command for a child's end. A remote child may be the cause, or may still run."""
    is_remote = remote_children.find_remote_child(step.run, name) is not None
    host_id = payload_fields(step.event).get("causationHostId")
    cause = step.event.causation_id
    return ChildEnded(
        node_id=step.own_node.id,
        child_run=name,
        status=status,
        at=step.at,
        runs=_count_runs(step, name, hints),
        seen=abandoned_children(step),
        cause=str(cause) if is_remote and host_id is not None else None,
        cause_host=str(host_id or ""),
        stop=is_remote and hints.child_run_id == name,
        **more,
    )


def _decide_child_ended(step: VerificationStep, state: NodeState) -> list[NewEvent]:
    """Decide the end of the child that a node waits for; the child's outputs are a fact."""
    node, name = step.own_node, str(state.child)
    last = next(
        e for e in step.rest if e.type != VariableChanged.event_type or e.node_id != node.id
    )
    hints = last.known_hints
    status = hints.child_status or payload_fields(last).get("childStatus")
    if status not in END_STATUSES or (
        hints.child_run_id is not None and remote_children.find_remote_child(step.run, name) is None
    ):
        return nodes.decide_outcome(step, state)  # the node failed by itself
    changes = {
        payload_fields(e)["name"]: payload_fields(e).get("next")
        for e in step.log[step.first : last.sequence]
    }
    collect = _collected_variables(step, state)
    outputs = payload_fields(last).get("outputs", {})
    ended = _child_ended(
        step, name, status, hints,
        variables={collect[mine]: value for mine, value in changes.items() if mine in collect},
        outputs=outputs.get("childOutputs", {}) if hints.result is UNSET else hints.result,
        error=_child_error(last),
    )  # fmt: skip
    events = decide(step.run, step.flow, ended)
    if not step.fits(events) and last.type in FAILURE_EVENTS:
        return nodes.decide_outcome(step, state)
    return events


def _collected_variables(step: VerificationStep, state: NodeState) -> dict[str, str]:
    try:
        spec = child_spec(step.run, step.own_node, step.at, {}, state.children - 1)
    except PortProblem:
        return {}
    return spec.collect if spec is not None else {}


def _child_error(event: Event) -> RecordedError | None:
    """Return the child's error from the parent's event."""
    error = payload_fields(event).get("error") or payload_fields(event).get("lastError") or {}
    return msgspec.convert(error.get("details", {}).get("childError"), RecordedError | None)


def _decide_attested_child(step: VerificationStep, state: NodeState) -> list[NewEvent]:
    """Decide the end of a child whose outputs are attested, with the use of its outputs."""
    event, hints, name = step.event, step.event.known_hints, str(state.child)
    phase = payload_fields(event).get("phase", "")
    if event.type != HANDOFF_STEP or not phase.startswith("child."):
        return nodes.decide_outcome(step, state)
    after = next((e for e in step.rest[1:] if e.type != VariableChanged.event_type), event)
    harvest = _harvested_values(step, hints)
    error = (
        _child_error(after)
        if after.type in FAILURE_EVENTS
        else msgspec.convert(payload_fields(event).get("error"), RecordedError | None)
    )
    ended = _child_ended(
        step, name, phase.removeprefix("child."), hints,
        variables=harvest, outputs=harvest, error=error,
    )  # fmt: skip
    events = decide(step.run, step.flow, ended)
    if (
        not step.fits(events) and after.type == NodeFailed.event_type
    ):  # outputs that cannot be merged are not recorded
        return [
            events[0],
            node_failed_event(
                step.own_node,
                nodes.error_from_payload(payload_fields(after)["error"]),
                state.attempt,
            ),
        ]
    return events


def _harvested_values(step: VerificationStep, hints: EventHints) -> dict[str, Any]:
    if hints.held is not None:
        return hints.held.harvest
    done = next((e for e in step.rest if e.type == NodeCompleted.event_type), None)
    outputs = payload_fields(done).get("outputs", {}) if done is not None else {}
    return dict(outputs.get("childOutputs", {}))


def _decide_worker(step: VerificationStep, state: NodeState) -> list[NewEvent]:
    event, payload = step.event, payload_fields(step.event)
    phase = payload.get("phase", "")
    if event.type == HANDOFF_STEP and phase == "dispatch.began":
        end = next(e for e in step.rest if e.type == NodeFailed.event_type)
        error = nodes.error_from_payload(payload_fields(end)["error"])
        refused = WorkerRefused(
            step.own_node.id, payload["workerId"], error, step.at, abandoned_children(step)
        )
        return decide(step.run, step.flow, refused)
    if event.type != HANDOFF_STEP or not phase.startswith("child."):
        return nodes.decide_outcome(step, state)
    hints = step.event.known_hints
    result = hints.result
    config, worker = step.own_node.definition.config, payload["workerId"]
    wanted = config.get("perWorkerOutputMappings", {}).get(worker, config.get("outputMapping", {}))
    ended = _child_ended(
        step, payload["childRunId"], phase.removeprefix("child."), hints,
        variables={wanted[mine]: value for mine, value in (result.get("harvest") or {}).items()},
        error=msgspec.convert(result.get("error"), RecordedError | None),
    )  # fmt: skip
    return decide(step.run, step.flow, ended)
