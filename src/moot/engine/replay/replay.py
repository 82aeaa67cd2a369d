"""Replay a run: repeat its recorded facts and recompute everything else.

No model is called, no person is asked and no time passes. The whole new run is decided at once.
"""

import asyncio

import msgspec
from msgspec import Struct

from moot.core.agents import refusals
from moot.core.commands import Advance, Compute, TimePassed, decide
from moot.core.events import Event, NewEvent, millis
from moot.core.payloads.memory import EffectFinished
from moot.core.payloads.runs import CapBreached, RunResumed
from moot.core.pending import pending
from moot.core.replay.masks import mask_rules
from moot.core.replay.replay import (
    can_apply,
    divergence_event,
    has_same_result,
    is_fact,
    is_replayed,
    is_same_step,
    missing_outcome,
    next_due,
    repeat_event,
    replay_start,
    unfinished_nodes,
    without_cancel,
    workflow_secrets,
)
from moot.core.secrets import mask_event
from moot.core.state.memory import carry_revision
from moot.core.state.run import Run
from moot.core.verify import council_steps
from moot.core.verify.walk import Difference, verify
from moot.core.workflows.node_types import NodeKind
from moot.engine.effects.ledger import effects_made
from moot.engine.head import Head
from moot.engine.host import Host
from moot.engine.memory import refuse_forgotten_memory
from moot.engine.run_cache import refuse_newer_engine
from moot.engine.transaction import ReceiptFor, Transaction


async def replay_run(
    host: Host, tenant: str, run_id: str, from_seq: int, receipt: ReceiptFor | None = None
) -> Run:
    host.refuse_when_stopping()
    source = await host.view(tenant, run_id)
    refuse_newer_engine(source.run)
    log = await host.runs.log(source)
    await refuse_forgotten_memory(host, source.run, log, from_seq)
    prefix = run_id.partition("_")[0]
    head = Head(Run(host.clock.new_id(f"{prefix}_"), tenant=tenant), source.flow)
    transaction = ReplayTransaction(host.flows, host.clock, host.limits)
    await asyncio.to_thread(transaction.build, head, log, from_seq)
    owed = transaction.owed()
    events = transaction.published[head.run.run_id]
    transaction.batch.receipt = receipt(head.run, events) if receipt is not None else None
    await host.commit(transaction, owed)
    return head.run


class ReplayTransaction(Transaction):
    def build(self, head: Head, source: list[Event], from_seq: int) -> None:
        """Copy the events before ``from_seq`` as history and replay the rest."""
        self._source_run = source[0].run_id
        self._history = max(from_seq, 1)
        self._source = without_cancel(source, self._history)
        self._now -= len(source)  # each decision has its own time, none in the future
        self._last_timestamp = ""
        #: whether to scan the whole graph, or only the nodes after ended ones
        self._scan = True
        self._next = 0
        #: sequence in the source -> sequence in the replay
        self._sequences: dict[int, int] = {}
        #: whether the order differs from the record
        self._differs = False
        #: whether the first difference was recorded
        self._recorded_difference = False
        #: with masked values, outputs of nodes may depend on a secret and are not compared
        self._compares_outputs = not mask_rules(head.flow, source[0]).hides
        self._secrets = workflow_secrets(head.flow)
        self.new_heads.append(head)
        self._repeat(head, replay_start(source[0], from_seq))
        while not head.run.terminal and self._step(head):
            pass
        head.unfinished = False
        self._seal(head)

    def _apply_consequences(self, head: Head, new: NewEvent, event: Event) -> None:
        """Keep recomputed secrets for later nodes. Consequences are not repeated."""
        head.sealed.update(new.sealed or {})

    def _seal(self, head: Head) -> None:
        run = head.run
        if run.terminal:
            head.sealed.clear()
        rows = ((name, msgspec.json.encode(value)) for name, value in head.sealed.items())
        self.batch.sealed = [(run.tenant, run.run_id, *row) for row in rows]

    def _step(self, head: Head) -> bool:
        """Do one more step, in the order of the record for as long as both agree."""
        if self._next >= len(self._source):
            return self._decide_next(head) or self._without_record(head)
        event = self._source[self._next]
        if event.sequence < self._history:
            self._repeat_history(head, event)
            return True
        if not is_replayed(head.run, event):
            self._next += 1
            return True
        if self._differs:
            return self._decide_next(head) or self._repeat_fact(head, event)
        if self._is_fact(head, event):
            return self._repeat_fact(head, event)
        return self._follow_on(head)

    def _is_fact(self, head: Head, event: Event) -> bool:
        if isinstance(event.payload, CapBreached):  # the next decision shows which limit it is
            decided = self._next_decision(head)
            return not decided or not is_same_step(event, decided[0])
        return is_fact(head.flow, event) and can_apply(head.run, event)

    def _repeat_history(self, head: Head, event: Event) -> None:
        """Copy history as it was.

        The rest of a decision that the cut tore apart is decided again.
        """
        decided = [] if self._is_fact(head, event) else self._next_decision(head)
        recorded = self._source[self._next : self._next + len(decided)]
        past = [event_before for event_before in recorded if event_before.sequence < self._history]
        if not decided or not all(map(is_same_step, past, decided)):
            past, decided = [event], []
        for event_before in past:
            self._repeat(head, event_before)
        for new in decided[len(past) :]:
            self._record_decided(head, new)

    def _next_decision(self, head: Head) -> list[NewEvent]:
        """Return the events that follow from the state alone."""
        run, flow, at = head.run, head.flow, self._moment()
        after = None if self._scan else tuple(self._ended.get(run.run_id, ()))
        events = decide(run, flow, Advance(at, after))
        if events:
            return events
        self._scan = False
        self._ended.pop(run.run_id, None)
        for name in pending(run, flow).instant:
            if flow.nodes[name].type.kind is NodeKind.INSTANT:
                return decide(run, flow, Compute(name, at, head.sealed))
        for name in council_steps.due_conversations(run):
            return council_steps.decide_step(run, flow, name, self._next_recorded())
        return []

    def _next_recorded(self) -> Event | None:
        """Return the next recorded event while replay and record agree."""
        if self._differs or self._next >= len(self._source):
            return None
        return self._source[self._next]

    def _decide_next(self, head: Head) -> bool:
        events = self._next_decision(head)
        self._now = max(self._now + 1, head.earliest)
        if self._records_difference(head, events):
            events = self._next_decision(head)  # the record of it has shifted the sequence
            self._now = max(self._now + 1, head.earliest)
        for event in events:
            self._record_decided(head, event)
        return bool(events)

    def _records_difference(self, head: Head, events: list[NewEvent]) -> bool:
        """Record a node's output that differs although the order is the same."""
        if self._recorded_difference or not self._compares_outputs:
            return False
        recorded = self._source[self._next : self._next + len(events)]
        for expected, event in zip(recorded, events, strict=False):
            if not is_same_step(expected, event):
                return False
            if not has_same_result(expected, event, head.run.run_id):
                self._record_difference(head, expected.sequence, "output", event)
                return True
        return False

    def _record_decided(self, head: Head, event: NewEvent) -> None:
        self._compare(head, event)
        self._record(head, mask_event(event, self._secrets, head.flow.masking))

    def _follow_on(self, head: Head) -> bool:
        """Decide the next recorded event. Record a difference when nothing follows."""
        if not self._decide_next(head):
            self._diverge(head, self._source[self._next].sequence, "missing", None)
            self._next += 1
        return True

    def _repeat_fact(self, head: Head, event: Event) -> bool:
        """Repeat the next recorded fact if it can happen in this run."""
        if is_fact(head.flow, event) and can_apply(head.run, event):
            for new in mock_divergence(head, event, self._moment()):
                self._record(head, new)
            if not head.run.terminal:
                self._repeat(head, event)
        else:
            self._next += 1
        return True

    def _without_record(self, head: Head) -> bool:
        """Continue after the record: time passes at once, and unfinished work has failed."""
        run, flow = head.run, head.flow
        events: list[NewEvent] = []
        gates = pending(run, flow).instant
        if (due := next_due(run, flow)) is not None:
            events = decide(run, flow, TimePassed(due))
        elif lost := unfinished_nodes(run, flow):
            events = [missing_outcome(run, lost[0])]
        elif gates:
            events = decide(run, flow, Compute(gates[0], self._moment()))
        self._now = max(self._now + 1, head.earliest)
        for event in events:
            self._record_decided(head, event)
        return bool(events)

    def _repeat(self, head: Head, event: Event) -> None:
        self._next += 1
        if event.timestamp != self._last_timestamp:
            self._now, self._last_timestamp = max(self._now + 1, head.earliest), event.timestamp
        self._scan = self._scan or isinstance(event.payload, RunResumed)
        new = repeat_event(event, self._source_run, self._sequences)
        self._sequences[event.sequence] = head.run.next_sequence
        self._record(head, new)

    def _compare(self, head: Head, event: NewEvent) -> None:
        if self._differs or self._next >= len(self._source):
            return  # in the second case the source had not come this far
        expected = self._source[self._next]
        if is_same_step(expected, event):
            carry_revision(expected, event)
            self._sequences[expected.sequence] = head.run.next_sequence
            self._next += 1
        else:
            self._diverge(head, expected.sequence, "type-mismatch", event)

    def _diverge(self, head: Head, sequence: int, kind: str, event: NewEvent | None) -> None:
        """Record a difference. The replay continues in its own order."""
        self._differs = True
        if not self._recorded_difference:
            self._record_difference(head, sequence, kind, event)

    def _record_difference(
        self, head: Head, sequence: int, kind: str, event: NewEvent | None
    ) -> None:
        self._recorded_difference = True
        self._record(head, divergence_event(self._source_run, sequence, kind, event))

    def _moment(self) -> int:
        """Return the recorded time of the next event."""
        place = min(self._next, len(self._source) - 1)
        return millis(self._source[place].timestamp)


def mock_divergence(head: Head, event: Event, at: int) -> list[NewEvent]:
    """Return the end of the replay when a mock model would not answer as recorded.

    A replay asks no model. Only a mock of a test may answer again, to show a refusal that happens
    in the replay alone.
    """
    node = head.flow.nodes.get(str(event.node_id))
    if not isinstance(event.payload, EffectFinished) or node is None or node.type.rehearsed is None:
        return []
    answer = node.type.rehearsed(head.run.tenant, node.id)
    return [] if answer is None else refusals.end_diverged_replay(head.run, event, answer, at)


class VerificationResult(Struct, frozen=True):
    """The number of events and effects, and the first difference."""

    events: int
    calls: int
    first: Difference | None


async def verify_run(host: Host, tenant: str, run_id: str) -> VerificationResult:
    """Compare the bytes with their hashes, then every event with what must follow."""
    head = await host.view(tenant, run_id)
    refuse_newer_engine(head.run)
    calls: list[str] = []
    token = effects_made.set(calls)
    try:
        for problem in await host.store.verify_log(tenant, run_id):
            place = max(0, problem.sequence)
            difference = Difference(place, "hash", "the bytes that were written", problem.what)
            return VerificationResult(head.run.next_sequence, len(calls), difference)
        log = await host.runs.log(head)
        first = await asyncio.to_thread(verify, head.flow, tenant, run_id, log)
    finally:
        effects_made.reset(token)
    return VerificationResult(len(log), len(calls), first)
