"""What a replay takes from the record and what it works out anew.

Nodes that are pure functions run again, so that a difference shows. Everything that the world
said (people, time, other systems) is a fact: it is said again as it was recorded, to nobody.
"""

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.core.agents import refusals
from moot.core.events import Event, NewEvent
from moot.core.replay import compare
from moot.core.state.floor import DAY
from moot.core.state.lineage import PLACE
from moot.core.state.memory import forked
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import Kind, NodeError

#: what operators did to the source is not part of what it meant
OPERATORS = frozenset({"run.paused", "run.resumed", "moot.pause.requested"})
CANCEL = frozenset({"node.cancelled", "run.cancelled"})

#: what nodes and the run come to
RESULTS = frozenset({
    "channel.written", "node.completed", "node.failed", "run.completed", "run.failed",
    "variable.changed",
})  # fmt: skip

#: ends of a run that a limit brought about, not its nodes
LIMITS = frozenset({"run_timeout", "recursion_limit_exceeded", "loop_limit_exceeded"})

#: kinds of node whose work a replay must not do
WORLDLY = frozenset({Kind.ACTIVITY, Kind.CHILD})

_bytes = msgspec.json.Encoder().encode

NO_RECORD = NodeError(
    code="replay_source_missing",
    message="The source run has no recorded outcome for this attempt.",
    retryable=False,
)


def meant(source: list[Event], history: int) -> list[Event]:
    """The record without its cancel: what would have come is not known. History stays."""
    until = len(source)
    if source[-1].type == "run.cancelled":
        while until > history and source[until - 1].type in CANCEL:
            until -= 1
    return source[:until]


def counts(run: Run, event: Event) -> bool:
    """An operator's doing is said again only where a pause has become history."""
    match event.type:
        case "run.resumed":
            return run.status is Status.PAUSED
        case "run.paused":
            return run.pause is not None
        case _:
            return event.type not in OPERATORS


def is_fact(flow: Flow, event: Event) -> bool:
    """Whether the world said it. What is left follows from the state."""
    said = event.payload
    match event.type:
        case (
            "run.started"
            | "run.completed"
            | "run.dead_lettered"
            | "node.skipped"
            | "workflow.loopback-limit"
        ):
            return False
        case "moot.participation.stopped" if said.get("reason") == DAY:
            return True  # said with the answer of a member
        case "moot.participation.decided" | "moot.participation.stopped":
            return False
        case "run.failed":
            return bool(said.get("error", {}).get("code") in {*LIMITS, refusals.CODE})
        case "cap.breached" | "node.cancelled" | "interrupt.resolved" | "node.resumed":
            return True
        case "node.started":
            return bool(said.get("attempt", 1) > 1)
        case "runOrchestrator.decided":
            return True  # who decided is not asked again
        case "node.completed" if _supervises(flow, event):
            return True  # said with the decision
        case _:
            return _kind(flow, event) is not Kind.INSTANT


def _supervises(flow: Flow, event: Event) -> bool:
    node = flow.nodes.get(str(event.node_id))
    return node is not None and node.type.type_id == SUPERVISOR


def _kind(flow: Flow, event: Event) -> Kind | None:
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node.type.kind if node is not None else None


def _edited(event: Event) -> str | None:
    """The node that waited, where a person put a decision in the place of a supervisor's."""
    return event.hints.get("dispatch") if event.hints is not UNSET else None


def fits(run: Run, event: Event) -> bool:
    """Whether a fact can be said of this run now: its node must be at work."""
    if event.type == "runOrchestrator.decided" and (waited := _edited(event)) is not None:
        return waited in run.active
    return event.node_id is UNSET or event.node_id in run.active


def same(event: Event, new: NewEvent) -> bool:
    """The observable order is the type and the node."""
    name = None if event.node_id is UNSET else event.node_id
    return event.type == new.type and name == new.node_id


def gives_the_same(event: Event, new: NewEvent, run_id: str) -> bool:
    """Whether nodes and the run come to the same, each with names and a clock of its own."""
    if event.type not in RESULTS or _bytes(event.payload) == _bytes(new.payload):
        return True
    was = compare.said(event.type, event.payload, event.hints)
    now = compare.said(new.type, new.payload, new.hints)
    return compare.alike(was, now, (event.run_id, run_id))


def retold(event: Event, source_run: str, places: dict[int, int]) -> NewEvent:
    """A recorded event as the replay says it: word for word, with the ids it was recorded with.

    ``places`` says where in the new log the source's events stand.
    """
    return NewEvent(
        event.type,
        event.payload,
        None if event.node_id is UNSET else event.node_id,
        cause=_cause(event, source_run, places),
        hints=None if event.hints is UNSET else event.hints,
    )


def _cause(event: Event, source_run: str, places: dict[int, int]) -> int | str | None:
    """The same place in the new log."""
    cause = event.causation_id
    if cause is UNSET:
        return None
    run_id, _, sequence = cause.rpartition(".")
    return places.get(int(sequence)) if run_id == source_run and sequence.isdigit() else cause


def missing(run: Run, node_id: str) -> NewEvent:
    """The record does not say how this ended, and nobody is asked again. A child of the source
    is none of the replay's: it is not waited for, nor ended with it."""
    state = run.nodes[node_id]
    payload = {"nodeId": node_id, "error": NO_RECORD.as_payload(), "attempts": state.attempt}
    hints = {"childStatus": "unknown"} if state.child is not None else None
    return NewEvent("node.failed", payload, node_id, cause=state.started_seq, hints=hints)


def unfinished(run: Run, flow: Flow) -> list[str]:
    """Nodes at work on something that a replay must not do."""
    return [
        node_id
        for node_id in run.active
        if run.going
        and run.nodes[node_id].status in (NodeStatus.RUNNING, NodeStatus.RETRYING)
        and flow.nodes[node_id].type.kind in WORLDLY
    ]


def next_moment(run: Run, flow: Flow) -> int | None:
    """When the next node goes on by itself."""
    moments = [
        state.due
        for node_id in run.active
        if run.going
        and (state := run.nodes[node_id]).due is not None
        and state.status is not NodeStatus.SUSPENDED
        and flow.nodes[node_id].type.kind not in WORLDLY
    ]
    return min(moments, default=None)


def secrets(flow: Flow) -> dict[str, Any]:
    """What the workflow itself holds and no log may show. What else was secret is not known."""
    return {
        f"var:{variable.name}": variable.default_value
        for variable in flow.definition.variables
        if variable.name in flow.sensitive and variable.default_value is not UNSET
    }


def started(event: Event, from_seq: int) -> Event:
    """The beginning of the source, as that of its replay: nobody's child, in nobody's place."""
    said = {key: value for key, value in event.payload.items() if key not in PLACE}
    fork = {"sourceRunId": event.run_id, "fromSeq": from_seq, "mode": "replay"}
    kept = forked(event, from_seq)
    return replace(event, payload={**said, **kept, "forkedFrom": fork}, causation_id=UNSET)


def diverged(source_run: str, sequence: int, kind: str, new: NewEvent | None) -> NewEvent:
    payload: dict[str, Any] = {
        "sourceRunId": source_run,
        "atSequence": sequence,
        "originalEventId": f"{source_run}.{sequence}",
        "divergenceKind": kind,
    }
    if new is not None:
        payload["divergencePoint"] = new.type
    return NewEvent("replay.diverged", payload)
