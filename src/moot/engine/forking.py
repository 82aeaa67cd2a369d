"""Replay: a new run that says again what another one was told, and works out the rest anew.

Nothing is called, nobody is asked, no time passes: the whole fork is decided in one go.
"""

import asyncio

from moot.core import replay as record
from moot.core.commands import Advance, Compute, Wake, decide
from moot.core.events import Event, NewEvent, millis
from moot.core.outcomes import Kind
from moot.core.pending import pending
from moot.core.run import Run
from moot.engine.head import Head
from moot.engine.host import Host, ReceiptFor
from moot.engine.turn import Turn


async def replay(
    host: Host, tenant: str, run_id: str, from_seq: int, receipt: ReceiptFor | None = None
) -> Run:
    """A new run that says this one again."""
    host.refuse_when_stopping()
    source = await host.view(tenant, run_id)
    host.refuse_newer(source.run)
    log = await host.runs.log(source)
    head = Head(Run(host.clock.new_id("run_"), tenant=tenant), source.flow)
    turn = Replay(host.flows, host.clock, host.limits)
    await asyncio.to_thread(turn.tell, head, log, from_seq)
    owed = turn.owed()
    turn.batch.receipt = receipt(head.run) if receipt is not None else None
    await host.commit(turn, owed)
    return head.run


class Replay(Turn):
    """The batch of a record."""

    def tell(self, head: Head, source: list[Event], asked: int) -> None:
        """Everything before the sequence that was asked for is history; from there on it is lived
        again."""
        self._source_run = source[0].run_id
        from_seq = max(asked, 1)
        lived = [event for event in source[from_seq:] if event.type not in record.OPERATORS]
        self._source = [*source[:from_seq], *lived]
        self._next = 0
        #: sequence in the source -> in the fork
        self._places: dict[int, int] = {}
        self._differs = False
        self.born.append(head)
        self._say_again(head, record.started(source[0], asked))
        for event in source[1:from_seq]:
            self._say_again(head, event)
        while not head.run.terminal and (self._think(head) or self._hear(head)):
            pass
        head.unfinished = False

    def _beside(self, head: Head, new: NewEvent, event: Event) -> None:
        """What the source caused elsewhere is not caused again."""

    def _think(self, head: Head) -> bool:
        """What follows from the state alone."""
        run, flow, at = head.run, head.flow, self._moment()
        events = decide(run, flow, Advance(at))
        if not events:
            ready = [
                name for name in pending(run, flow).instant
                if flow.nodes[name].type.kind is Kind.INSTANT
            ]  # fmt: skip
            if ready:
                events = decide(run, flow, Compute(ready[0], at, head.sealed))
        for event in events:
            self._compare(head, event)
            self._record(head, event)
        return bool(events)

    def _hear(self, head: Head) -> bool:
        """The next thing the world said; when it said no more, what that means."""
        while self._next < len(self._source):
            event = self._source[self._next]
            if record.is_fact(head.flow, event) and record.fits(head.run, event):
                self._say_again(head, event)
                return True
            self._next += 1
            self._note(head, event.sequence, "missing", None)
        return self._without_record(head)

    def _without_record(self, head: Head) -> bool:
        """Timers are over at once; what only the world could end has failed."""
        run, flow = head.run, head.flow
        timers = [name for name in run.active if flow.nodes[name].type.kind is Kind.TIMER]
        moments = [due for name in timers if (due := run.nodes[name].due) is not None]
        if moments:
            for event in decide(run, flow, Wake(min(moments))):
                self._record(head, event)
            return True
        lost = record.unfinished(run, flow)
        if lost:
            self._record(head, record.missing(run, lost[0]))
            return True
        gates = pending(run, flow).instant
        for event in decide(run, flow, Compute(gates[0], self._moment())) if gates else []:
            self._record(head, event)
        return bool(gates)

    def _say_again(self, head: Head, event: Event) -> None:
        self._next += 1
        new = record.retold(event, self._source_run, head.run.run_id, self._places)
        self._places[event.sequence] = head.run.next_sequence
        self._record(head, new)

    def _compare(self, head: Head, event: NewEvent) -> None:
        if self._differs:
            return
        if self._next >= len(self._source):
            return  # the source had not come so far
        expected = self._source[self._next]
        if record.same(expected, event):
            self._places[expected.sequence] = head.run.next_sequence
            self._next += 1
        else:
            self._note(head, expected.sequence, "type-mismatch", event)

    def _note(self, head: Head, sequence: int, kind: str, event: NewEvent | None) -> None:
        """The first difference is told; the replay goes on."""
        if not self._differs:
            self._differs = True
            self._record(head, record.diverged(self._source_run, sequence, kind, event))

    def _moment(self) -> int:
        """The time it was, as far as the record tells."""
        place = min(self._next, len(self._source) - 1)
        return millis(self._source[place].timestamp)
