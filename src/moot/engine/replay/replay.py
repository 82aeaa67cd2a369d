"""Replay: a new run that says again what another one was told, and works out the rest anew.

Nothing is called, nobody is asked, no time passes: the whole fork is decided in one go.
"""

import asyncio

import msgspec

from moot.core.commands import Advance, Compute, Wake, decide
from moot.core.events import Event, NewEvent, millis
from moot.core.pending import pending
from moot.core.replay.masks import veil_of
from moot.core.replay.replay import (
    counts,
    diverged,
    fits,
    gives_the_same,
    is_fact,
    meant,
    missing,
    next_moment,
    retold,
    same,
    secrets,
    started,
    unfinished,
)
from moot.core.secrets import sealed_event
from moot.core.state.memory import carried
from moot.core.state.run import Run
from moot.core.verify import council_steps
from moot.core.workflows.node_types import Kind
from moot.engine.head import Head
from moot.engine.host import Host
from moot.engine.memory.journal import refuse_forgotten
from moot.engine.replay import mock_refusals
from moot.engine.run_cache import refuse_newer
from moot.engine.transaction import ReceiptFor, Turn


async def replay(
    host: Host, tenant: str, run_id: str, from_seq: int, receipt: ReceiptFor | None = None
) -> Run:
    """A new run that says this one again."""
    host.refuse_when_stopping()
    source = await host.view(tenant, run_id)
    refuse_newer(source.run)
    log = await host.runs.log(source)
    await refuse_forgotten(host, source.run, log, from_seq)
    prefix = run_id.partition("_")[0]
    head = Head(Run(host.clock.new_id(f"{prefix}_"), tenant=tenant), source.flow)
    turn = Replay(host.flows, host.clock, host.limits)
    await asyncio.to_thread(turn.tell, head, log, from_seq)
    owed = turn.owed()
    events = turn.published[head.run.run_id]
    turn.batch.receipt = receipt(head.run, events) if receipt is not None else None
    await host.commit(turn, owed)
    return head.run


class Replay(Turn):
    """The batch of a record."""

    def tell(self, head: Head, source: list[Event], asked: int) -> None:
        """Everything before the sequence that was asked for is history; from there on it is lived
        again."""
        self._source_run = source[0].run_id
        self._history = max(asked, 1)
        self._source = meant(source, self._history)
        self._now -= len(source)  # each decision has a moment of its own, none of them to come
        self._said = ""
        #: whether the graph must be looked at whole: else only at what comes after ended nodes
        self._scan = True
        self._next = 0
        #: sequence in the source -> in the fork
        self._places: dict[int, int] = {}
        #: whether the order has become another one
        self._differs = False
        #: whether a difference was told: the first one is
        self._told_so = False
        #: where something is hidden, what nodes gave may have come of a secret
        self._plain = not veil_of(head.flow, source[0]).hides
        self._secrets = secrets(head.flow)
        self.born.append(head)
        self._say_again(head, started(source[0], asked))
        while not head.run.terminal and self._step(head):
            pass
        head.unfinished = False
        self._seal(head)

    def _beside(self, head: Head, new: NewEvent, event: Event) -> None:
        """What the source caused elsewhere is not caused again. What was worked out anew and must
        not be shown is known to the nodes that come after."""
        head.sealed.update(new.sealed or {})

    def _seal(self, head: Head) -> None:
        run = head.run
        if run.terminal:
            head.sealed.clear()
        self.batch.sealed = [
            (run.tenant, run.run_id, name, msgspec.json.encode(value))
            for name, value in head.sealed.items()
        ]

    def _step(self, head: Head) -> bool:
        """One thing more, in the order of the record for as long as both go the same way."""
        if self._next >= len(self._source):
            return self._think(head) or self._without_record(head)
        event = self._source[self._next]
        if event.sequence < self._history:
            self._remember(head, event)
            return True
        if not counts(head.run, event):
            self._next += 1
            return True
        if self._differs:
            return self._think(head) or self._hear(head, event)
        return self._hear(head, event) if self._is_fact(head, event) else self._follow_on(head)

    def _is_fact(self, head: Head, event: Event) -> bool:
        if event.type == "cap.breached":  # an attempt began again, or one more node: what came?
            found = self._next_decision(head)
            return not found or not same(event, found[0])
        return is_fact(head.flow, event) and fits(head.run, event)

    def _remember(self, head: Head, event: Event) -> None:
        """History is said as it was; a decision that was cut in two is decided again for the
        rest."""
        found = [] if self._is_fact(head, event) else self._next_decision(head)
        known = self._source[self._next : self._next + len(found)]
        past = [was for was in known if was.sequence < self._history]
        if not found or not all(map(same, past, found)):
            past, found = [event], []
        for was in past:
            self._say_again(head, was)
        for new in found[len(past) :]:
            self._work_out(head, new)

    def _next_decision(self, head: Head) -> list[NewEvent]:
        """What follows from the state alone."""
        run, flow, at = head.run, head.flow, self._moment()
        after = None if self._scan else tuple(self._ended.get(run.run_id, ()))
        events = decide(run, flow, Advance(at, after))
        if events:
            return events
        self._scan = False
        self._ended.pop(run.run_id, None)
        for name in pending(run, flow).instant:
            if flow.nodes[name].type.kind is Kind.INSTANT:
                return decide(run, flow, Compute(name, at, head.sealed))
        for name in council_steps.owed(run):
            return council_steps.worked_out(run, flow, name, self._told())
        return []

    def _told(self) -> Event | None:
        """What the record says next, for as long as both go the same way."""
        if self._differs or self._next >= len(self._source):
            return None
        return self._source[self._next]

    def _think(self, head: Head) -> bool:
        events = self._next_decision(head)
        self._now = max(self._now + 1, head.earliest)
        if self._says_otherwise(head, events):
            events = self._next_decision(head)  # it stands one place further on now
            self._now = max(self._now + 1, head.earliest)
        for event in events:
            self._work_out(head, event)
        return bool(events)

    def _says_otherwise(self, head: Head, events: list[NewEvent]) -> bool:
        """Whether, in the order of the record, something else comes of a node; that is told, and
        the order goes on."""
        if self._told_so or not self._plain:
            return False
        known = self._source[self._next : self._next + len(events)]
        for expected, event in zip(known, events, strict=False):
            if not same(expected, event):
                return False
            if not gives_the_same(expected, event, head.run.run_id):
                self._tell(head, expected.sequence, "output", event)
                return True
        return False

    def _work_out(self, head: Head, event: NewEvent) -> None:
        self._compare(head, event)
        self._record(head, sealed_event(event, self._secrets, head.flow.masking))

    def _follow_on(self, head: Head) -> bool:
        """The record says what should follow; when nothing does, that is a difference."""
        if not self._think(head):
            self._note(head, self._source[self._next].sequence, "missing", None)
            self._next += 1
        return True

    def _hear(self, head: Head, event: Event) -> bool:
        """The next thing the world said, if it can be said of this run."""
        if is_fact(head.flow, event) and fits(head.run, event):
            for new in mock_refusals.shifted(head, event, self._moment()):
                self._record(head, new)
            if not head.run.terminal:
                self._say_again(head, event)
        else:
            self._next += 1
        return True

    def _without_record(self, head: Head) -> bool:
        """Time is over at once; what only the world could end has failed."""
        run, flow = head.run, head.flow
        events: list[NewEvent] = []
        gates = pending(run, flow).instant
        if (due := next_moment(run, flow)) is not None:
            events = decide(run, flow, Wake(due))
        elif lost := unfinished(run, flow):
            events = [missing(run, lost[0])]
        elif gates:
            events = decide(run, flow, Compute(gates[0], self._moment()))
        self._now = max(self._now + 1, head.earliest)
        for event in events:
            self._work_out(head, event)
        return bool(events)

    def _say_again(self, head: Head, event: Event) -> None:
        self._next += 1
        if event.timestamp != self._said:
            self._now, self._said = max(self._now + 1, head.earliest), event.timestamp
        self._scan = self._scan or event.type == "run.resumed"
        new = retold(event, self._source_run, self._places)
        self._places[event.sequence] = head.run.next_sequence
        self._record(head, new)

    def _compare(self, head: Head, event: NewEvent) -> None:
        if self._differs:
            return
        if self._next >= len(self._source):
            return  # the source had not come so far
        expected = self._source[self._next]
        if same(expected, event):
            carried(expected, event)
            self._places[expected.sequence] = head.run.next_sequence
            self._next += 1
        else:
            self._note(head, expected.sequence, "type-mismatch", event)

    def _note(self, head: Head, sequence: int, kind: str, event: NewEvent | None) -> None:
        """From here on the replay goes on in an order of its own."""
        self._differs = True
        if not self._told_so:
            self._tell(head, sequence, kind, event)

    def _tell(self, head: Head, sequence: int, kind: str, event: NewEvent | None) -> None:
        self._told_so = True
        self._record(head, diverged(self._source_run, sequence, kind, event))

    def _moment(self) -> int:
        """The time it was, as far as the record tells."""
        place = min(self._next, len(self._source) - 1)
        return millis(self._source[place].timestamp)
