"""Decide which events a replay copies from the record and which it decides again.

Nodes that are pure functions run again, so that a difference shows. Input of the world (people,
time, other systems) is a fact: the replay copies it and calls no one.
"""

from msgspec import UNSET
from msgspec.structs import replace

from moot.core.agents import refusals
from moot.core.events import Event, NewEvent, payload_bytes, payload_fields, with_fields
from moot.core.payloads.councils import CouncilStopped, MembersInvited
from moot.core.payloads.interrupts import InterruptResolved
from moot.core.payloads.nodes import (
    ChannelWritten,
    LoopbackLimit,
    NodeCancelled,
    NodeCompleted,
    NodeFailed,
    NodeResumed,
    NodeSkipped,
    NodeStarted,
    VariableChanged,
)
from moot.core.payloads.runs import (
    CapBreached,
    PauseBegan,
    PauseRequested,
    ReplayDiverged,
    RunCancelled,
    RunCompleted,
    RunDeadLettered,
    RunFailed,
    RunFork,
    RunResumed,
    RunStarted,
)
from moot.core.payloads.supervisors import SupervisorDecided
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
OPERATOR_EVENTS = (PauseBegan, RunResumed, PauseRequested)

#: results of nodes and of the run
RESULT_EVENTS = frozenset({
    ChannelWritten.event_type, NodeCompleted.event_type, NodeFailed.event_type,
    RunCompleted.event_type, RunFailed.event_type, VariableChanged.event_type,
})  # fmt: skip

#: error codes of runs that a limit ended
LIMIT_CODES = frozenset({"run_timeout", "recursion_limit_exceeded", "loop_limit_exceeded"})

#: kinds of nodes that a replay must not run
WORLD_KINDS = frozenset({NodeKind.ACTIVITY, NodeKind.CHILD})

NO_RECORD = NodeError(
    code="replay_source_missing",
    message="The source run has no recorded outcome for this attempt.",
    retryable=False,
)


def without_cancel(source: list[Event], history: int) -> list[Event]:
    """Return the record without its final cancel; the first ``history`` events always stay."""
    until = len(source)
    if isinstance(source[-1].payload, RunCancelled):
        while until > history and isinstance(
            source[until - 1].payload, NodeCancelled | RunCancelled
        ):
            until -= 1
    return source[:until]


def is_replayed(run: Run, event: Event) -> bool:
    """Return whether a replay repeats the event: of operations, only the end of a copied pause."""
    match event.payload:
        case RunResumed():
            return run.status is Status.PAUSED
        case PauseBegan():
            return run.pause is not None
        case payload:
            return not isinstance(payload, OPERATOR_EVENTS)


def is_fact(flow: Flow, event: Event) -> bool:
    """Return whether the event is input of the world; other events follow from the state."""
    match event.payload:
        case RunStarted() | RunCompleted() | RunDeadLettered() | NodeSkipped() | LoopbackLimit():
            return False
        case CouncilStopped(reason=reason):
            return reason == DAY_BUDGET  # recorded together with the answer of a member
        case MembersInvited():
            return False
        case RunFailed(error=error):
            return error.code in {*LIMIT_CODES, refusals.DIVERGED_CODE}
        case CapBreached() | NodeCancelled() | InterruptResolved() | NodeResumed():
            return True
        case NodeStarted(attempt=attempt):
            return attempt > 1
        case SupervisorDecided():
            return True  # a replay does not ask the supervisor again
        case NodeCompleted() if _is_supervisor(flow, event):
            return True  # recorded together with the decision
        case _:
            return _node_kind(flow, event) is not NodeKind.INSTANT


def _is_supervisor(flow: Flow, event: Event) -> bool:
    node = flow.nodes.get(str(event.node_id))
    return node is not None and node.type.type_id == SUPERVISOR


def _node_kind(flow: Flow, event: Event) -> NodeKind | None:
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node.type.kind if node is not None else None


def can_apply(run: Run, event: Event) -> bool:
    """Return whether the fact can be applied now: its node must be active."""
    if isinstance(event.payload, SupervisorDecided) and event.known_hints.dispatch is not None:
        return event.known_hints.dispatch in run.active  # a person replaced the decision
    return event.node_id is UNSET or event.node_id in run.active


def is_same_step(event: Event, new: NewEvent) -> bool:
    """Return whether type and node are the same; they are the observable order."""
    name = None if event.node_id is UNSET else event.node_id
    return event.type == new.type and name == new.node_id


def has_same_result(event: Event, new: NewEvent, run_id: str) -> bool:
    """Return whether the results are the same, apart from the names and times of each run."""
    if event.type not in RESULT_EVENTS or payload_bytes(event) == payload_bytes(new):
        return True
    recorded, decided = compare.comparable_event(event), compare.comparable_event(new)
    return compare.is_alike(recorded, decided, (event.run_id, run_id))


def repeat_event(event: Event, source_run: str, places: dict[int, int]) -> NewEvent:
    """Return a recorded event for the replay: unchanged, with its recorded ids.

    ``places`` maps sequences of the source to sequences of the new log.
    """
    return NewEvent(
        event.payload,
        None if event.node_id is UNSET else event.node_id,
        cause=_new_cause(event, source_run, places),
        hints=None if event.hints is UNSET else event.hints,
        raw=event.raw,
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
    payload = NodeFailed(node_id=node_id, error=NO_RECORD.as_payload(), attempts=state.attempt)
    hints = {"childStatus": "unknown"} if state.child is not None else None
    return NewEvent(payload, node_id, cause=state.started_seq, hints=hints)


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


def workflow_secrets(flow: Flow) -> dict[str, object]:
    """Return the sensitive defaults of the workflow. Other secrets of the source are not known."""
    return {
        f"var:{variable.name}": variable.default_value
        for variable in flow.definition.variables
        if variable.name in flow.sensitive and variable.default_value is not UNSET
    }


def replay_start(event: Event, from_seq: int) -> Event:
    """Return the source's start as the start of its replay, without a parent or a scope."""
    fork = RunFork(source_run_id=event.run_id, from_seq=from_seq, mode="replay")
    kept = {key: value for key, value in payload_fields(event).items() if key not in PLACE_FIELDS}
    memory = memory_of_fork(event, from_seq)
    start = with_fields(event, {**kept, **memory, "forkedFrom": fork})
    return replace(start, causation_id=UNSET)


def divergence_event(source_run: str, sequence: int, kind: str, new: NewEvent | None) -> NewEvent:
    diverged = ReplayDiverged(
        source_run_id=source_run,
        at_sequence=sequence,
        original_event_id=f"{source_run}.{sequence}",
        divergence_kind=kind,
        divergence_point=None if new is None else new.type,
    )
    return NewEvent(diverged)
