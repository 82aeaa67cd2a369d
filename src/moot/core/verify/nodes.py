"""Verify ends of nodes, and define the step that all verification works on.

Each event is read as the command behind it, and that command is decided again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, field

from moot.core.events import Event, NewEvent, iso, millis, new_event, payload_fields, set_fields
from moot.core.payloads.interrupts import ApprovalOverridden, InterruptRequested
from moot.core.payloads.memory import EffectStarted
from moot.core.payloads.nodes import NodeCompleted, NodeFailed, NodeRetried
from moot.core.payloads.runs import CapBreached
from moot.core.payloads.supervisors import SupervisorDecided
from moot.core.replay.compare import CLOCK_FIELDS
from moot.core.replay.lineage import is_edited
from moot.core.replay.masks import MaskRules
from moot.core.runs.advance import node_failed_event
from moot.core.runs.answers import GateAnswer
from moot.core.runs.nodes import failure_events
from moot.core.speaker import Speaker
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.supervisors import decide
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import Decided, Failed, NodeError, NodeKind


class ImpossibleEvent(Exception):
    """No command could have caused the event."""

    def __init__(self, kind: str, expected: Any, events: Any) -> None:
        super().__init__(kind)
        self.kind, self.expected, self.found = kind, expected, events


class RecordedEffects(Struct):
    """Earlier facts that the state does not hold: started effects and overridden gates."""

    started: set[tuple[str, Any]] = field(default_factory=set)
    overridden: set[str] = field(default_factory=set)

    def record(self, event: Event) -> None:
        if event.type == EffectStarted.event_type:
            self.started.add((str(event.node_id), payload_fields(event).get("ordinal")))
        elif event.type == ApprovalOverridden.event_type:
            self.overridden.add(str(event.node_id))


class VerificationStep(Struct):
    """One event to verify, with the state before it and the log."""

    run: Run
    flow: Flow
    node: FlowNode | None
    log: Sequence[Event]
    first: int
    at: int
    masks: MaskRules
    effects: RecordedEffects

    @property
    def event(self) -> Event:
        return self.log[self.first]

    @property
    def rest(self) -> Sequence[Event]:
        """The events of this decision from this event on: all with the same timestamp."""
        until = self.first + 1
        while until < len(self.log) and self.log[until].timestamp == self.event.timestamp:
            until += 1
        return self.log[self.first : until]

    @property
    def hints(self) -> Mapping[str, object] | None:
        return None if self.event.hints is UNSET else self.event.hints

    @property
    def is_masked(self) -> bool:
        """Whether the node may have seen a secret, so that its result cannot be checked."""
        return self.masks.covers(self.run, self.node)

    @property
    def own_node(self) -> FlowNode:
        assert self.node is not None
        return self.node

    def fits(self, events: list[NewEvent]) -> bool:
        """Return whether the log continues with events of these types, nodes and error codes."""
        return len(self.rest) >= len(events) and all(
            (new.type, new.node_id) == (was.type, None if was.node_id is UNSET else was.node_id)
            and _error_code(payload_fields(new)) == _error_code(payload_fields(was))
            for new, was in zip(events, self.rest, strict=False)
        )

    @property
    def is_copied(self) -> bool:
        """Whether the event is copied from another run, whose times do not count here."""
        return self.first < self.run.inherited

    @property
    def is_edited(self) -> bool:
        """Whether the creator of a fork wrote this event."""
        return is_edited(self.run, self.event)

    def as_recorded(self) -> NewEvent:
        """Return the recorded event as a fact without consequences."""
        cause = self.event.causation_id
        place = "" if cause is UNSET else cause.rpartition(".")[2]
        return new_event(
            self.event.type,
            payload_fields(self.event),
            None if self.node is None else self.node.id,
            cause=int(place) if place.isdigit() else None,
            hints=self.hints,
        )

    def is_caused_by_previous(self) -> bool:
        return self.event.causation_id == f"{self.run.run_id}.{self.first - 1}"

    def answer_by(self, principal: Any) -> GateAnswer:
        speaker = Speaker(str(principal), admin=True)
        return GateAnswer(node_id=self.own_node.id, value=None, who=speaker, at=self.at)


def _error_code(payload: Mapping[str, object]) -> Any:
    error = payload.get("error", payload.get("lastError"))
    return error.get("code") if isinstance(error, dict) else None


# -- ends of nodes ---------------------------------------------------------------------------------

INTERRUPT_REQUESTED = InterruptRequested.event_type
OUTCOME_EVENTS = (
    NodeCompleted.event_type,
    NodeFailed.event_type,
    NodeRetried.event_type,
    SupervisorDecided.event_type,
    INTERRUPT_REQUESTED,
)


def decide_outcome(step: VerificationStep, state: NodeState) -> list[NewEvent]:
    """Decide the end of an attempt: its result is a fact, a retry follows from the state."""
    event, node = step.event, step.own_node
    free = (
        step.is_masked
        or step.is_edited
        or (step.is_copied and node.type.kind is not NodeKind.INSTANT)
    )
    if node.type.kind not in (NodeKind.ACTIVITY, NodeKind.CHILD) and not free:
        raise ImpossibleEvent("impossible", "what follows from the state", event.type)
    if event.type == INTERRUPT_REQUESTED and node.type.type_id != SUPERVISOR:
        raise ImpossibleEvent("impossible", "a report of a node at work", event.type)
    if event.type in (SupervisorDecided.event_type, INTERRUPT_REQUESTED):
        decided = _supervisor_decision(event)
        return decide.finish_supervisor(
            step.run, step.flow, node.id, state.attempt, decided, step.at
        )
    if event.type == NodeCompleted.event_type:
        payload = NodeCompleted(
            node_id=node.id,
            outputs=payload_fields(event)["outputs"],
            duration_ms=max(0, step.at - state.started_at),
        )
        done = NewEvent(payload, node.id, cause=state.started_seq)
        done.hints = step.hints
        return [done]
    return _decide_failure(step, state)


def _supervisor_decision(event: Event) -> Decided:
    """Read a supervisor's decision from its event, or from the question about an unsure one."""
    if event.type != INTERRUPT_REQUESTED:
        payload = payload_fields(event)
        return Decided(agent_id=payload["agentId"], decision=payload["decision"], ratified=True)
    payload = payload_fields(event)["data"]
    return Decided(
        agent_id=payload["agentId"],
        decision=payload["decision"],
        confidence=payload["observed"],
        threshold=payload["threshold"],
    )


def _decide_failure(step: VerificationStep, state: NodeState) -> list[NewEvent]:
    event, node = step.event, step.own_node
    error_payload = payload_fields(event).get(
        "error" if event.type == NodeFailed.event_type else "lastError"
    )
    error = error_from_payload(error_payload)
    if step.run.replayed and error.code == "replay_source_missing":
        failure_event = node_failed_event(node, error, state.attempt, state.started_seq)
        failure_event.hints = step.hints
        return [failure_event]
    events = failure_events(step.run, node, state, Failed(error), step.at)
    events[-1].hints = step.hints
    if events[-1].type == event.type and step.first and step.is_caused_by_previous():
        events[-1].cause = None  # an event of the node explains it
    return events


def error_from_payload(payload: Any) -> NodeError:
    if not isinstance(payload, dict) or not isinstance(payload.get("code"), str):
        raise ImpossibleEvent("payload", "an error", payload)
    return NodeError(
        code=payload["code"],
        message=payload.get("message", ""),
        details=payload.get("details", {}),
        retryable=payload.get("retryable", True),
    )


def shift_clocks(events: list[NewEvent], by_ms: int) -> list[NewEvent]:
    """Move the times of the events to the latest possible time: the time of writing."""
    for new in events:
        for key in CLOCK_FIELDS.intersection(payload_fields(new)):
            value = payload_fields(new)[key]
            later = value + by_ms if isinstance(value, int) else _shift_timestamp(value, by_ms)
            set_fields(new, {**payload_fields(new), key: later})
    return events


def _shift_timestamp(timestamp: str, by_ms: int) -> str:
    return iso((millis(timestamp) + by_ms) * 1000)


def copy_observed(events: list[NewEvent], event: Event) -> list[NewEvent]:
    """Copy the recorded duration; its exact value depends on when the host checked."""
    cap, step = payload_fields(events[0]), payload_fields(event).get("observed")
    if events[0].type == CapBreached.event_type and isinstance(step, int) and step > cap["limit"]:
        set_fields(events[0], {**cap, "observed": step})
    return events
