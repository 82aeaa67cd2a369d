"""Whether a log is one that this engine has written: each event worked out anew and compared.

What the engine decides follows from the state, to the last word. What the world said cannot be
worked out, but it can be impossible. Nothing is called and nothing is written.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct

from moot.core.commands import Advance, Compute, Dispatch, decide
from moot.core.councils.decide import Participate
from moot.core.errors import MootError
from moot.core.events import CATALOGUE, Event, NewEvent, millis
from moot.core.pending import pending
from moot.core.replay.compare import CLOCKS, said
from moot.core.replay.masks import Veil, veil_of
from moot.core.replay.replay import LIMITS
from moot.core.state import initiation, lineage
from moot.core.state.memory import MARK
from moot.core.state.node import NODE_ENDS
from moot.core.state.run import HANDLERS, Run, apply
from moot.core.verify import council_steps, recorded_commands
from moot.core.verify import start as told_start
from moot.core.verify.nodes import Kept
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import Kind

KNOWN = frozenset(row.name for row in CATALOGUE)

#: what working with a payload of no known form may come to
SENSELESS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, StopIteration, TypeError,
    ValueError,
)  # fmt: skip

#: hints that only a fork writes
OWN_HINTS = ("dueAt", "editedBy")


class Difference(Struct, frozen=True):
    """The first thing that is not as it must be."""

    sequence: int
    kind: str
    expected: Any
    found: Any


class _Differs(Exception):
    def __init__(self, sequence: int, kind: str, expected: Any, found: Any) -> None:
        super().__init__(kind)
        self.difference = Difference(sequence, kind, expected, found)


def verify(flow: Flow, tenant: str, run_id: str, log: Sequence[Event]) -> Difference | None:
    """The first difference between the log and what it must be, given its facts; None if there is
    none."""
    walk = _Walk(flow, tenant, run_id, log)
    try:
        walk.go()
    except _Differs as differs:
        return differs.difference
    except SENSELESS as error:
        place = min(walk.run.next_sequence, len(log) - 1)
        return Difference(place, "impossible", repr(error), log[place].payload)
    return None


class _Walk:
    """From the first event to the last, a decision at a time."""

    def __init__(self, flow: Flow, tenant: str, run_id: str, log: Sequence[Event]) -> None:
        self.flow, self.log = flow, log
        self.run = Run(run_id, tenant=tenant)
        self._before = ""
        #: nodes that have ended since the graph was last looked at; None looks at all of it
        self._ended: list[str] | None = None
        self._veil = Veil(flow)
        #: whether the decision at hand was made by a node that may have seen a secret
        self._free = False
        self._kept = Kept()

    def go(self) -> None:
        if not self.log:
            raise _Differs(0, "missing", "run.started", None)
        self._take(0)
        start = self.log[0]
        delivered = any(event.type == initiation.DELIVERED for event in self.log[1:3])
        if problem := told_start.start(self.flow, self.run, start, delivered):
            raise _Differs(0, *problem)
        self._veil = veil_of(self.flow, start)
        while self.run.next_sequence < len(self.log):
            self._decision(self.run.next_sequence)

    def _decision(self, first: int) -> None:
        event = self.log[first]
        self._envelope(event)
        edited = lineage.edited(self.run, event)
        self._free = False
        if (begun := initiation.told(self.run, event)) is not None:
            self._group(first, [NewEvent(event.type, begun)])
            return
        try:
            found = [] if edited else self._follows(event)
            if not found:
                found = recorded_commands.caused(
                    self.run, self.flow, self.log, first, self._veil, self._kept
                )
                self._free = self._is_child_of_secrets(event)
        except recorded_commands.Impossible as problem:
            raise _Differs(first, problem.kind, problem.expected, problem.found) from None
        except MootError as refusal:
            raise _Differs(first, "impossible", refusal.message, event.type) from None
        if not found:
            raise _Differs(first, "impossible", "something that comes of a command", event.type)
        self._group(first, found)

    # -- what follows from the state

    def _follows(self, event: Event) -> list[NewEvent]:
        """What the engine decides next by itself, when that is what is told."""
        run, flow, at = self.run, self.flow, millis(event.timestamp)
        if not run.going:
            return []
        after = None if self._ended is None else tuple(self._ended)
        events = decide(run, flow, Advance(at, after))
        if events and (_named(events[0], event) or not _is_fact(run, flow, event)):
            return events
        if not events:
            self._ended = []
        owed = pending(run, flow)
        for name in owed.instant if run.replayed else owed.instant[:1]:
            events = decide(run, flow, Compute(name, at))
            if events and self._meant(events, event, name):
                return self._masked(events, name)
        told_by = (_plain(event.hints) or {}).get("dispatch", event.node_id)
        for name in owed.dispatches:
            if told_by == name:
                events = decide(run, flow, Dispatch(name, at))
                if events and _named(events[0], event) and self._goes_on(events):
                    self._free = self._veil.covers(run, flow.nodes[name])
                    return events
        return self._step(event)

    def _step(self, event: Event) -> list[NewEvent]:
        """What a led conversation goes on with."""
        run = self.run
        for name in council_steps.owed(run):
            if event.node_id == name and council_steps.is_step(event):
                if event.sequence < run.inherited:
                    return council_steps.worked_out(run, self.flow, name, event)
                return decide(run, self.flow, Participate(name, millis(event.timestamp)))
        return []

    def _meant(self, events: list[NewEvent], event: Event, name: str) -> bool:
        return _named(events[0], event) or (
            event.node_id == name and not _is_fact(self.run, self.flow, event)
        )

    def _masked(self, events: list[NewEvent], name: str) -> list[NewEvent]:
        """Of a node that may have seen a secret only the record knows what came of it."""
        node = self.flow.nodes[name]
        self._free = self._veil.covers(self.run, node)
        return [] if self._free and node.type.instant is not None else events

    def _is_child_of_secrets(self, event: Event) -> bool:
        """What a child was given may be a secret, and what comes of its end with it."""
        node = self.flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
        return (
            node is not None and node.type.kind is Kind.CHILD and self._veil.covers(self.run, node)
        )

    def _goes_on(self, events: list[NewEvent]) -> bool:
        """A worker that could not be begun is told by the same first words as one that was."""
        second = self.log[self.run.next_sequence + 1 :][:1]
        return len(events) < 2 or not second or second[0].type == events[1].type

    # -- one decision

    def _group(self, first: int, events: list[NewEvent]) -> None:
        """Every event of it, to the end; a fork that edits may break off in its history."""
        for number, new in enumerate(events):
            place = first + number
            if number and place == self.run.inherited:
                return
            if place >= len(self.log):
                raise _Differs(place, "missing", new.type, None)
            self._compare(self.log[place], new)
            self._take(place)

    def _compare(self, event: Event, new: NewEvent) -> None:
        self._envelope(event)
        place = event.sequence
        if event.type != new.type:
            raise _Differs(place, "type", new.type, event.type)
        if event.node_id != (UNSET if new.node_id is None else new.node_id):
            raise _Differs(place, "node", new.node_id, _plain(event.node_id))
        runs = None
        if place < self.run.inherited:
            runs = (self.run.run_id, str((self.run.forked_from or {}).get("sourceRunId")))
        expected = said(new.type, new.payload, new.hints)
        found = said(event.type, event.payload, event.hints)
        if not self._free and not self._veil.alike(expected, found, runs):
            raise _Differs(place, "payload", new.payload, event.payload)
        self._clocks(event, new)
        hints = {k: v for k, v in (_plain(event.hints) or {}).items() if k not in OWN_HINTS}
        self._remembers(event, hints.pop(MARK, None))
        wanted = {k: v for k, v in (new.hints or {}).items() if k not in OWN_HINTS}
        if not self._free and not self._veil.alike(wanted, hints, runs):
            raise _Differs(place, "hints", wanted, hints)
        self._cause(event, new)

    def _remembers(self, event: Event, revision: Any) -> None:
        """How far memory had come is told where a turn of the supervisor begins, and only there;
        it never goes back."""
        known = self.run.memory.revision if self.run.memory is not None else None
        begins = recorded_commands.is_turn(self.flow, event)
        if revision is None:
            if begins and known is not None and not self.run.replayed:
                raise _Differs(event.sequence, "hints", {MARK: f"at least {known}"}, {})
        elif not begins or type(revision) is not int or revision < (known or 0):
            raise _Differs(event.sequence, "hints", {MARK: known}, {MARK: revision})

    def _clocks(self, event: Event, new: NewEvent) -> None:
        """A decision is written a little later than it was made, never sooner. What a fork has
        from elsewhere was timed elsewhere."""
        if event.sequence < self.run.inherited:
            return
        for key in CLOCKS & {*new.payload, *event.payload}:
            latest, found = new.payload.get(key), event.payload.get(key)
            if type(latest) is not type(found) or not _not_after(found, latest):
                raise _Differs(event.sequence, "clock", {key: latest}, {key: found})

    def _cause(self, event: Event, new: NewEvent) -> None:
        cause = event.sequence - 1 if new.cause is None else new.cause
        expected = initiation.id_at(self.run, cause) if isinstance(cause, int) else cause
        if event.sequence < self.run.inherited and self._is_earlier(event):
            return  # where it stands in its source, something else may have come before
        if event.causation_id != expected:
            raise _Differs(event.sequence, "cause", expected, _plain(event.causation_id))

    def _is_earlier(self, event: Event) -> bool:
        run_id, _, place = str(event.causation_id).rpartition(".")
        return run_id == self.run.run_id and place.isdigit() and int(place) < event.sequence

    # -- every event

    def _envelope(self, event: Event) -> None:
        place = self.run.next_sequence
        for kind, expected, found in (
            ("sequence", place, event.sequence),
            ("runId", self.run.run_id, event.run_id),
            ("eventId", initiation.own_id(self.run, event), event.event_id),
            ("schemaVersion", 1, _plain(event.schema_version)),
        ):
            if expected != found:
                raise _Differs(place, kind, expected, found)
        if event.type not in KNOWN:
            raise _Differs(place, "type", "an event that this host writes", event.type)
        if place and event.engine_version != self.run.engine_version:
            raise _Differs(
                place, "engineVersion", self.run.engine_version, _plain(event.engine_version)
            )
        if (
            not recorded_commands.TIMESTAMP.fullmatch(event.timestamp)
            or event.timestamp < self._before
        ):
            raise _Differs(place, "timestamp", f"{self._before} or later", event.timestamp)
        if (event.type == "run.started") != (place == 0) or self.run.terminal:
            raise _Differs(place, "order", "a beginning, a life and an end", event.type)

    def _take(self, place: int) -> None:
        event = self.log[place]
        self._envelope(event)
        try:
            apply(self.run, event, strict=True)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _Differs(place, "payload", repr(error), event.payload) from None
        self._before = event.timestamp
        self._kept.hear(event)
        if event.type == "run.resumed":
            self._ended = None
        elif event.type in NODE_ENDS and self._ended is not None and event.node_id is not UNSET:
            self._ended.append(event.node_id)


def _named(new: NewEvent, event: Event) -> bool:
    return (new.type, new.node_id) == (event.type, _plain(event.node_id))


def _plain(value: Any) -> Any:
    return None if value is UNSET else value


def _not_after(found: Any, latest: Any) -> bool:
    if isinstance(found, str):
        return bool(recorded_commands.TIMESTAMP.fullmatch(found)) and found <= latest
    return isinstance(found, int) and 0 <= found <= latest


#: what only the engine says by itself
CONSEQUENCES = frozenset(
    {"node.skipped", "run.completed", "run.dead_lettered", "workflow.loopback-limit"}
)


def _is_fact(run: Run, flow: Flow, event: Event) -> bool:
    """Whether the world may have said it just now, whatever the engine would decide next."""
    if event.type == "run.failed":
        return run.replayed and event.payload.get("error", {}).get("code") in LIMITS
    if event.type in CONSEQUENCES:
        return False
    if event.type == "node.started":
        return bool(event.payload.get("attempt", 1) > 1)
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    return node is None or node.type.instant is None or event.type not in HANDLERS
