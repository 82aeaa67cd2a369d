"""Decide which events a replay copies from the record and which it decides again.

Nodes that are pure functions run again, so that a difference shows. Input of the world (people,
time, other systems) is a fact: the replay copies it and calls no one.
"""

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.core.agents import refusals
from moot.core.events import Event, NewEvent
from moot.core.replay import compare
from moot.core.replay.lineage import PLACE_FIELDS
from moot.core.state.floor import DAY_BUDGET
from moot.core.state.memory import memory_of_fork
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeError, NodeKind

#: operations on the source that a replay leaves out
OPERATOR_EVENTS = frozenset({"run.paused", "run.resumed", "moot.pause.requested"})
CANCEL_EVENTS = frozenset({"node.cancelled", "run.cancelled"})

#: results of nodes and of the run
RESULT_EVENTS = frozenset({
    "channel.written", "node.completed", "node.failed", "run.completed", "run.failed",
    "variable.changed",
})  # fmt: skip

#: error codes of runs that a limit ended
LIMIT_CODES = frozenset({"run_timeout", "recursion_limit_exceeded", "loop_limit_exceeded"})

#: kinds of nodes that a replay must not run
WORLD_KINDS = frozenset({NodeKind.ACTIVITY, NodeKind.CHILD})

_bytes = msgspec.json.Encoder().encode

NO_RECORD = NodeError(
    code="replay_source_missing",
    message="The source run has no recorded outcome for this attempt.",
    retryable=False,
)


def without_cancel(source: list[Event], history: int) -> list[Event]:
    """Return the record without its final cancel; the first ``history`` events always stay."""
    until = len(source)
    if source[-1].type == "run.cancelled":
        while until > history and source[until - 1].type in CANCEL_EVENTS:
            until -= 1
    return source[:until]


def is_replayed(run: Run, event: Event) -> bool:
    """Return whether a replay repeats the event: of operations, only the end of a copied pause."""
    match event.type:
        case "run.resumed":
            return run.status is Status.PAUSED
        case "run.paused":
            return run.pause is not None
        case _:
            return event.type not in OPERATOR_EVENTS


def is_fact(flow: Flow, event: Event) -> bool:
    """Return whether the event is input of the world; other events follow from the state."""
    payload = event.payload
    match event.type:
        case (
            "run.started"
            | "run.completed"
            | "run.dead_lettered"
            | "node.skipped"
            | "workflow.loopback-limit"
        ):
            return False
        case "moot.participation.stopped" if payload.get("reason") == DAY_BUDGET:
            return True  # recorded together with the answer of a member
        case "moot.participation.decided" | "moot.participation.stopped":
            return False
        case "run.failed":
            return bool(
                payload.get("error", {}).get("code") in {*LIMIT_CODES, refusals.DIVERGED_CODE}
            )
        case "cap.breached" | "node.cancelled" | "interrupt.resolved" | "node.resumed":
            return True
        case "node.started":
            return bool(payload.get("attempt", 1) > 1)
        case "runOrchestrator.decided":
            return True  # a replay does not ask the supervisor again
        case "node.completed" if _is_supervisor(flow, event):
            return True  # recorded together with the decision
        case _:
            return _node_kind(flow, event) is not NodeKind.INSTANT


def _is_supervisor(flow: Flow, event: Event) -> bool:
    node = flow.nodes.get(str(event.node_id))
    return node is not None and node.type.type_id == SUPERVISOR


def _node_kind(flow: Flow, event: Event) -> NodeKind | None:
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node.type.kind if node is not None else None


def _waiting_node(event: Event) -> str | None:
    """Return the waiting node when a person replaced the supervisor's decision."""
    return event.hints.get("dispatch") if event.hints is not UNSET else None


def can_apply(run: Run, event: Event) -> bool:
    """Return whether the fact can be applied now: its node must be active."""
    if event.type == "runOrchestrator.decided" and (node_id := _waiting_node(event)) is not None:
        return node_id in run.active
    return event.node_id is UNSET or event.node_id in run.active


def is_same_step(event: Event, new: NewEvent) -> bool:
    """Return whether type and node are the same; they are the observable order."""
    name = None if event.node_id is UNSET else event.node_id
    return event.type == new.type and name == new.node_id


def has_same_result(event: Event, new: NewEvent, run_id: str) -> bool:
    """Return whether the results are the same, apart from the names and times of each run."""
    if event.type not in RESULT_EVENTS or _bytes(event.payload) == _bytes(new.payload):
        return True
    recorded = compare.comparable_payload(event.type, event.payload, event.hints)
    decided = compare.comparable_payload(new.type, new.payload, new.hints)
    return compare.is_alike(recorded, decided, (event.run_id, run_id))


def repeat_event(event: Event, source_run: str, places: dict[int, int]) -> NewEvent:
    """Return a recorded event for the replay: unchanged, with its recorded ids.

    ``places`` maps sequences of the source to sequences of the new log.
    """
    return NewEvent(
        event.type,
        event.payload,
        None if event.node_id is UNSET else event.node_id,
        cause=_new_cause(event, source_run, places),
        hints=None if event.hints is UNSET else event.hints,
    )


def _new_cause(event: Event, source_run: str, places: dict[int, int]) -> int | str | None:
    """Return the cause as a sequence of the new log."""
    cause = event.causation_id
    if cause is UNSET:
        return None
    run_id, _, sequence = cause.rpartition(".")
    return places.get(int(sequence)) if run_id == source_run and sequence.isdigit() else cause


def missing_outcome(run: Run, node_id: str) -> NewEvent:
    """Return the failure of a node without a recorded outcome.

    A child of the source does not belong to the replay: it is neither awaited nor ended.
    """
    state = run.nodes[node_id]
    payload = {"nodeId": node_id, "error": NO_RECORD.as_payload(), "attempts": state.attempt}
    hints = {"childStatus": "unknown"} if state.child is not None else None
    return NewEvent("node.failed", payload, node_id, cause=state.started_seq, hints=hints)


def unfinished_nodes(run: Run, flow: Flow) -> list[str]:
    """Return the active nodes that a replay must not run."""
    return [
        node_id
        for node_id in run.active
        if run.going
        and run.nodes[node_id].status in (NodeStatus.RUNNING, NodeStatus.RETRYING)
        and flow.nodes[node_id].type.kind in WORLD_KINDS
    ]


def next_due(run: Run, flow: Flow) -> int | None:
    """Return the earliest due time of nodes that need no outside work."""
    moments = [
        state.due
        for node_id in run.active
        if run.going
        and (state := run.nodes[node_id]).due is not None
        and state.status is not NodeStatus.SUSPENDED
        and flow.nodes[node_id].type.kind not in WORLD_KINDS
    ]
    return min(moments, default=None)


def workflow_secrets(flow: Flow) -> dict[str, Any]:
    """Return the sensitive defaults of the workflow. Other secrets of the source are not known."""
    return {
        f"var:{variable.name}": variable.default_value
        for variable in flow.definition.variables
        if variable.name in flow.sensitive and variable.default_value is not UNSET
    }


def replay_start(event: Event, from_seq: int) -> Event:
    """Return the source's start as the start of its replay, without a parent or a scope."""
    payload = {key: value for key, value in event.payload.items() if key not in PLACE_FIELDS}
    fork = {"sourceRunId": event.run_id, "fromSeq": from_seq, "mode": "replay"}
    memory = memory_of_fork(event, from_seq)
    return replace(event, payload={**payload, **memory, "forkedFrom": fork}, causation_id=UNSET)


def divergence_event(source_run: str, sequence: int, kind: str, new: NewEvent | None) -> NewEvent:
    payload: dict[str, Any] = {
        "sourceRunId": source_run,
        "atSequence": sequence,
        "originalEventId": f"{source_run}.{sequence}",
        "divergenceKind": kind,
    }
    if new is not None:
        payload["divergencePoint"] = new.type
    return NewEvent("replay.diverged", payload)
