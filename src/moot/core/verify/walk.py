"""Verify a log: decide each event again and compare.

Events of the engine follow from the state exactly. A fact of the world cannot be decided again, but
it can be impossible. Verification calls nothing and writes nothing.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct

from moot.core.catalogue import CATALOGUE
from moot.core.commands import Advance, Compute, Dispatch, decide
from moot.core.councils.decide import AdvanceCouncil
from moot.core.errors import MootError
from moot.core.events import Event, NewEvent, millis, new_event, payload_fields
from moot.core.payloads.nodes import LoopbackLimit, NodeSkipped, NodeStarted
from moot.core.payloads.runs import (
    DeliveryAttempted,
    RunCompleted,
    RunDeadLettered,
    RunFailed,
    RunResumed,
    RunStarted,
)
from moot.core.pending import pending
from moot.core.replay.compare import CLOCK_FIELDS, comparable_event
from moot.core.replay.lineage import is_edited
from moot.core.replay.masks import MaskRules, mask_rules
from moot.core.replay.replay import LIMIT_CODES
from moot.core.state import initiation
from moot.core.state.memory import REVISION_HINT
from moot.core.state.node import NODE_ENDS
from moot.core.state.run import HANDLED_TYPES, Run, apply
from moot.core.verify import council_steps, recorded_commands
from moot.core.verify.nodes import ImpossibleEvent, RecordedEffects
from moot.core.verify.start import check_start
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeKind

KNOWN_TYPES = frozenset(row.name for row in CATALOGUE)

#: exceptions that a malformed payload may cause
PAYLOAD_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, StopIteration, TypeError,
    ValueError,
)  # fmt: skip

#: hints that only a fork writes
OWN_HINTS = ("dueAt", "editedBy")


class Difference(Struct, frozen=True):
    """The first event that is not as it must be."""

    sequence: int
    kind: str
    expected: Any
    found: Any


class _DifferenceFound(Exception):
    """Carries a difference out of the walk."""

    def __init__(self, sequence: int, kind: str, expected: Any, found: Any) -> None:
        super().__init__(kind)
        self.difference = Difference(sequence, kind, expected, found)


def verify(flow: Flow, tenant: str, run_id: str, log: Sequence[Event]) -> Difference | None:
    """Return the first difference between the log and the events that its facts must lead to."""
    walk = _Walk(flow, tenant, run_id, log)
    try:
        walk.verify()
    except _DifferenceFound as differs:
        return differs.difference
    except PAYLOAD_ERRORS as error:
        place = min(walk.run.next_sequence, len(log) - 1)
        return Difference(place, "impossible", repr(error), payload_fields(log[place]))
    return None


class _Walk:
    """Verifies a log from its first event to its last, one decision at a time."""

    def __init__(self, flow: Flow, tenant: str, run_id: str, log: Sequence[Event]) -> None:
        self.flow, self.log = flow, log
        self.run = Run(run_id, tenant=tenant)
        self._last_timestamp = ""
        #: nodes that have ended since the last advance; None advances the whole graph
        self._ended: list[str] | None = None
        self._masks = MaskRules(flow)
        #: the node of this decision may have seen a secret
        self._is_masked = False
        self._effects = RecordedEffects()

    def verify(self) -> None:
        if not self.log:
            raise _DifferenceFound(0, "missing", RunStarted.event_type, None)
        self._apply(0)
        start = self.log[0]
        delivered = any(event.type == DeliveryAttempted.event_type for event in self.log[1:3])
        if problem := check_start(self.flow, self.run, start, delivered):
            raise _DifferenceFound(0, *problem)
        self._masks = mask_rules(self.flow, start)
        while self.run.next_sequence < len(self.log):
            self._verify_decision(self.run.next_sequence)

    def _verify_decision(self, first: int) -> None:
        event = self.log[first]
        self._check_envelope(event)
        edited = is_edited(self.run, event)
        self._is_masked = False
        if (expected := initiation.expected_initiation(self.run, event)) is not None:
            self._check_decision(first, [new_event(event.type, expected)])
            return
        try:
            events = [] if edited else self._engine_events(event)
            if not events:
                events = recorded_commands.decide_recorded_command(
                    self.run, self.flow, self.log, first, self._masks, self._effects
                )
                self._is_masked = self._is_child_masked(event)
        except ImpossibleEvent as problem:
            raise _DifferenceFound(first, problem.kind, problem.expected, problem.found) from None
        except MootError as refusal:
            raise _DifferenceFound(first, "impossible", refusal.message, event.type) from None
        if not events:
            raise _DifferenceFound(
                first, "impossible", "something that comes of a command", event.type
            )
        self._check_decision(first, events)

    # -- events that follow from the state

    def _engine_events(self, event: Event) -> list[NewEvent]:
        """Return the engine's next events, if they are the recorded ones; else an empty list."""
        run, flow, at = self.run, self.flow, millis(event.timestamp)
        if not run.going:
            return []
        after = None if self._ended is None else tuple(self._ended)
        events = decide(run, flow, Advance(at, after))
        if events and (_is_same_step(events[0], event) or not _is_fact(run, flow, event)):
            return events
        if not events:
            self._ended = []
        work = pending(run, flow)
        for name in work.instant if run.replayed else work.instant[:1]:
            events = decide(run, flow, Compute(name, at))
            if events and self._is_recorded(events, event, name):
                return self._unless_masked(events, name)
        node_id = (_none_if_unset(event.hints) or {}).get("dispatch", event.node_id)
        for name in work.dispatches:
            if node_id == name:
                events = decide(run, flow, Dispatch(name, at))
                if events and _is_same_step(events[0], event) and self._is_same_dispatch(events):
                    self._is_masked = self._masks.covers(run, flow.nodes[name])
                    return events
        return self._council_step(event)

    def _council_step(self, event: Event) -> list[NewEvent]:
        """Return the next step of a council, if it is the recorded one."""
        run = self.run
        for name in council_steps.due_conversations(run):
            if event.node_id == name and council_steps.is_step(event):
                if event.sequence < run.inherited:
                    return council_steps.decide_step(run, self.flow, name, event)
                return decide(run, self.flow, AdvanceCouncil(name, millis(event.timestamp)))
        return []

    def _is_recorded(self, events: list[NewEvent], event: Event, name: str) -> bool:
        return _is_same_step(events[0], event) or (
            event.node_id == name and not _is_fact(self.run, self.flow, event)
        )

    def _unless_masked(self, events: list[NewEvent], name: str) -> list[NewEvent]:
        """Return an empty list for a node that may have seen a secret: its result is a fact."""
        node = self.flow.nodes[name]
        self._is_masked = self._masks.covers(self.run, node)
        return [] if self._is_masked and node.type.instant is not None else events

    def _is_child_masked(self, event: Event) -> bool:
        """Return whether the child may have had secret inputs, and so a secret result."""
        node = self.flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
        return (
            node is not None
            and node.type.kind is NodeKind.CHILD
            and self._masks.covers(self.run, node)
        )

    def _is_same_dispatch(self, events: list[NewEvent]) -> bool:
        """Return whether the second event matches; a refused worker has the same first event."""
        second = self.log[self.run.next_sequence + 1 :][:1]
        return len(events) < 2 or not second or second[0].type == events[1].type

    # -- one decision

    def _check_decision(self, first: int, events: list[NewEvent]) -> None:
        """Compare all events of a decision; an edited fork may end within its copied events."""
        for number, new in enumerate(events):
            sequence = first + number
            if number and sequence == self.run.inherited:
                return
            if sequence >= len(self.log):
                raise _DifferenceFound(sequence, "missing", new.type, None)
            self._check_event(self.log[sequence], new)
            self._apply(sequence)

    def _check_event(self, event: Event, new: NewEvent) -> None:
        self._check_envelope(event)
        place = event.sequence
        if event.type != new.type:
            raise _DifferenceFound(place, "type", new.type, event.type)
        if event.node_id != (UNSET if new.node_id is None else new.node_id):
            raise _DifferenceFound(place, "node", new.node_id, _none_if_unset(event.node_id))
        runs = None
        if place < self.run.inherited:
            fork = self.run.forked_from
            runs = (self.run.run_id, str(fork.source_run_id if fork is not None else None))
        expected, recorded = comparable_event(new), comparable_event(event)
        if not self._is_masked and not self._masks.is_alike(expected, recorded, runs):
            raise _DifferenceFound(place, "payload", payload_fields(new), payload_fields(event))
        self._check_clocks(event, new)
        hints = {k: v for k, v in (_none_if_unset(event.hints) or {}).items() if k not in OWN_HINTS}
        self._check_revision(event, hints.pop(REVISION_HINT, None))
        wanted = {k: v for k, v in (new.hints or {}).items() if k not in OWN_HINTS}
        if not self._is_masked and not self._masks.is_alike(wanted, hints, runs):
            raise _DifferenceFound(place, "hints", wanted, hints)
        self._check_cause(event, new)

    def _check_revision(self, event: Event, revision: Any) -> None:
        """Check that the revision of memory is recorded at each supervisor's turn only, and that
        it never decreases."""
        current = self.run.memory.revision if self.run.memory is not None else None
        begins = recorded_commands.is_supervisor_turn(self.flow, event)
        if revision is None:
            if begins and current is not None and not self.run.replayed:
                raise _DifferenceFound(
                    event.sequence, "hints", {REVISION_HINT: f"at least {current}"}, {}
                )
        elif not begins or type(revision) is not int or revision < (current or 0):
            raise _DifferenceFound(
                event.sequence, "hints", {REVISION_HINT: current}, {REVISION_HINT: revision}
            )

    def _check_clocks(self, event: Event, new: NewEvent) -> None:
        """Check that no time is after the event was written. Copied events have other clocks."""
        if event.sequence < self.run.inherited:
            return
        for key in CLOCK_FIELDS & {*payload_fields(new), *payload_fields(event)}:
            latest, recorded = payload_fields(new).get(key), payload_fields(event).get(key)
            if type(latest) is not type(recorded) or not _is_not_after(recorded, latest):
                raise _DifferenceFound(event.sequence, "clock", {key: latest}, {key: recorded})

    def _check_cause(self, event: Event, new: NewEvent) -> None:
        cause = event.sequence - 1 if new.cause is None else new.cause
        expected = initiation.event_id_at(self.run, cause) if isinstance(cause, int) else cause
        if event.sequence < self.run.inherited and self._is_earlier(event):
            return  # in the source another event may precede it
        if event.causation_id != expected:
            raise _DifferenceFound(
                event.sequence, "cause", expected, _none_if_unset(event.causation_id)
            )

    def _is_earlier(self, event: Event) -> bool:
        run_id, _, place = str(event.causation_id).rpartition(".")
        return run_id == self.run.run_id and place.isdigit() and int(place) < event.sequence

    # -- checks of every event

    def _check_envelope(self, event: Event) -> None:
        place = self.run.next_sequence
        for kind, expected, recorded in (
            ("sequence", place, event.sequence),
            ("runId", self.run.run_id, event.run_id),
            ("eventId", initiation.next_event_id(self.run, event), event.event_id),
            ("schemaVersion", 1, _none_if_unset(event.schema_version)),
        ):
            if expected != recorded:
                raise _DifferenceFound(place, kind, expected, recorded)
        if event.type not in KNOWN_TYPES:
            raise _DifferenceFound(place, "type", "an event that this host writes", event.type)
        if place and event.engine_version != self.run.engine_version:
            raise _DifferenceFound(
                place,
                "engineVersion",
                self.run.engine_version,
                _none_if_unset(event.engine_version),
            )
        if (
            not recorded_commands.TIMESTAMP.fullmatch(event.timestamp)
            or event.timestamp < self._last_timestamp
        ):
            raise _DifferenceFound(
                place, "timestamp", f"{self._last_timestamp} or later", event.timestamp
            )
        if (event.type == RunStarted.event_type) != (place == 0) or self.run.terminal:
            raise _DifferenceFound(place, "order", "a beginning, a life and an end", event.type)

    def _apply(self, place: int) -> None:
        event = self.log[place]
        self._check_envelope(event)
        try:
            apply(self.run, event, strict=True)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _DifferenceFound(place, "payload", repr(error), payload_fields(event)) from None
        self._last_timestamp = event.timestamp
        self._effects.record(event)
        if event.type == RunResumed.event_type:
            self._ended = None
        elif event.type in NODE_ENDS and self._ended is not None and event.node_id is not UNSET:
            self._ended.append(event.node_id)


def _is_same_step(new: NewEvent, event: Event) -> bool:
    return (new.type, new.node_id) == (event.type, _none_if_unset(event.node_id))


def _none_if_unset(value: Any) -> Any:
    return None if value is UNSET else value


def _is_not_after(recorded: Any, latest: Any) -> bool:
    if isinstance(recorded, str):
        return bool(recorded_commands.TIMESTAMP.fullmatch(recorded)) and recorded <= latest
    return isinstance(recorded, int) and 0 <= recorded <= latest


#: events that only the engine causes
CONSEQUENCES = frozenset(
    {
        NodeSkipped.event_type,
        RunCompleted.event_type,
        RunDeadLettered.event_type,
        LoopbackLimit.event_type,
    }
)


def _is_fact(run: Run, flow: Flow, event: Event) -> bool:
    """Return whether the event may be a fact of the world, whatever the engine decides next."""
    if event.type == RunFailed.event_type:
        return run.replayed and payload_fields(event).get("error", {}).get("code") in LIMIT_CODES
    if event.type in CONSEQUENCES:
        return False
    if event.type == NodeStarted.event_type:
        return bool(payload_fields(event).get("attempt", 1) > 1)
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node is None or node.type.instant is None or event.type not in HANDLED_TYPES
