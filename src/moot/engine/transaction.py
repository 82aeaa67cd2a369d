"""Decide one command with all its direct consequences, as one batch.

Nothing here awaits, so rows reach the store in the order of the decisions.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.catalogue import TERMINAL_TYPES
from moot.core.children import peer_requests
from moot.core.children.decide import can_begin_child, child_spec, child_start_command
from moot.core.commands import (
    CHILD_ENDING_COMMANDS,
    Advance,
    CancelRun,
    Command,
    Compute,
    Dispatch,
    FinishNode,
    ResumeRun,
    decide,
)
from moot.core.councils.decide import AdvanceCouncil, InvitationReport
from moot.core.events import Event, NewEvent, encode, event_id, iso
from moot.core.payloads.memory import MemoryWritten
from moot.core.payloads.nodes import NodeDispatched, VariableChanged
from moot.core.payloads.supervisors import HandoffStepped
from moot.core.pending import NO_WORK, PendingWork, pending
from moot.core.replay.replay import NO_RECORD
from moot.core.runs.answers import GateAnswer
from moot.core.runs.nodes import Emit
from moot.core.runs.readiness import PortProblem
from moot.core.runs.start import RunLimits, StartRun
from moot.core.search.indexed_text import TYPES_WITH_TEXT
from moot.core.secrets import mask_event
from moot.core.state.initiation import event_id_at
from moot.core.state.memory import BEGINNINGS, record_revision
from moot.core.state.node import NODE_ENDS
from moot.core.state.run import FOLD_VERSION, Run, apply
from moot.core.state.status import NodeStatus
from moot.core.supervisors.decide import WorkerRefused
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import Failed
from moot.engine.children import child_ended, child_statuses, is_detached
from moot.engine.derived_rows import (
    EFFECT_EVENTS,
    EVENTS_WITH_MESSAGE_ID,
    effect_rows,
    inbox_rows,
    message_ids,
    next_due,
    run_row,
    text_rows,
)
from moot.engine.head import Head
from moot.engine.memory.journal import MemoryRevisions, note_from_write
from moot.engine.streams.hub import Published
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Append, ArtifactRow, Batch, Receipt
from moot.store.records import Delivery

#: a batch with more events than this is cut; the rest follows in the next commit
MOST_EVENTS = 512
SNAPSHOT_EVERY = 1000

#: events with consequences outside their own log
EVENTS_WITH_SIDE_EFFECTS = TERMINAL_TYPES | {
    payload.event_type for payload in (NodeDispatched, MemoryWritten, *EFFECT_EVENTS)
}

#: commands that only report facts or answers: other nodes start only when a node has ended
REPORTING_COMMANDS = (Emit, GateAnswer, InvitationReport)

#: makes the receipt of a request from the new state and events; the host commits it with them
ReceiptFor = Callable[[Run, list[Published]], Receipt | None]
#: adds rows to the batch before it is committed: a claim, a guard
BatchHook = Callable[[Run, Batch], None]

_json = msgspec.json.Encoder()


class Outbox(Protocol):
    """Outside receivers of events, such as webhooks."""

    def letters(self, run: Run, published: list[Published]) -> list[Delivery]:
        """Return the deliveries for a run's new events; they are written in the same batch."""

    def look(self) -> None:
        """Start sending: the store has new deliveries."""


class Transaction:
    """The batch of one command, over as many runs as it reaches."""

    def __init__(
        self, flows: WorkflowRegistry, clock: Clock, limits: RunLimits,
        revisions: MemoryRevisions | None = None,
    ) -> None:  # fmt: skip
        self._flows, self._clock, self._limits = flows, clock, limits
        #: revisions of the memory journal; None in a replay, which records none
        self._revisions = revisions
        self.batch = Batch()
        self.heads: dict[str, Head] = {}
        self.new_heads: list[Head] = []
        self.published: dict[str, list[Published]] = {}
        self._appends: dict[str, Append] = {}
        self._family: dict[str, Head] = {}
        #: nodes that have ended since the graph was last looked at
        self._ended: dict[str, list[str]] = {}
        #: runs with more to decide than fits into this batch
        self.unfinished: set[str] = set()
        #: (tenant, run, workflow) that must be loaded before a run can advance
        self.missing_workflows: set[tuple[str, str, str]] = set()
        #: parent -> children that started and ended in this batch, not yet folded by the parent
        self._ended_children: dict[str, list[Head]] = {}
        #: tenants whose inbox this changes
        self.inboxes: set[str] = set()
        #: run -> the sequence it rests at, and the effects owed there
        self._resting: dict[str, tuple[int, PendingWork]] = {}
        self._size = 0
        #: all events of one decision have this time, and no other decision has it
        self._now = clock.micros()

    def take(self, head: Head, command: Command, family: dict[str, Head]) -> bool:
        """Decide a command and all that follows at once. Return whether anything changed."""
        self._family = family
        self._decide(head, command)
        if isinstance(command, REPORTING_COMMANDS) and not (
            self._ended or head.unfinished or _resumes_work(head.run, command)
        ):
            return bool(self.heads)  # a report starts and ends no node
        if head.run.run_id in self.heads or isinstance(command, Advance):
            self._follow(head, scan=head.unfinished or isinstance(command, Advance | ResumeRun))
        return bool(self.heads)

    def owed(self) -> dict[str, PendingWork]:
        """Return the effects each run is owed after this batch, and fill in the derived rows."""
        owed_by_run = {}
        for run_id, head in self.heads.items():
            rest_sequence, resting = self._resting.get(run_id, (-1, NO_WORK))
            rests = rest_sequence == head.run.next_sequence
            owed_by_run[run_id] = owed = resting if rests else pending(head.run, head.flow)
            append = self._appends[run_id]
            append.row = run_row(head.run)
            append.work = 0 if head.unfinished and not head.run.terminal else next_due(owed)
            if head.inbox_rows or head.run.interrupts:
                self._update_inbox(head, append)
            self._maybe_snapshot(head, append)
        self.batch.appends = list(self._appends.values())
        return owed_by_run

    def post(self, outbox: Outbox | None) -> None:
        if outbox is None:
            return
        for run_id, head in self.heads.items():
            self.batch.deliveries += outbox.letters(head.run, self.published[run_id])

    def _decide(self, head: Head, command: Command) -> list[NewEvent]:
        if isinstance(command, CHILD_ENDING_COMMANDS):
            command = replace(command, seen=child_statuses(head.run, self._family))
        events = decide(head.run, head.flow, command)
        if events:
            self._now = max(self._now, head.earliest)
            for event in events:
                self._record(head, event)
        return events

    def _follow(self, head: Head, scan: bool = False) -> None:
        """Decide until only the world can advance the run. ``scan`` looks at the whole graph."""
        run, run_id = head.run, head.run.run_id
        look = True
        #: dispatch nodes whose workers must be loaded first
        waiting: set[str] = set()
        while self._size < MOST_EVENTS and not run.terminal:
            self._now = max(self._clock.micros(), self._now + 1, head.earliest)
            at = self._now // 1000
            if look or scan or run_id in self._ended:
                after = None if scan else tuple(self._ended.pop(run_id, ()))
                scan = bool(self._decide(head, Advance(at, after))) and scan
                look = False
                continue
            owed = pending(run, head.flow)
            if owed.instant:
                self._decide(head, Compute(owed.instant[0], at, head.sealed))
            elif dispatches := [name for name in owed.dispatches if name not in waiting]:
                before = run.next_sequence
                self._dispatch(head, dispatches[0], at)
                if run.next_sequence == before:
                    waiting.add(dispatches[0])
            elif over := self._ended_children.get(run_id):
                self._decide(head, child_ended(over.pop(0), head, at))
            elif owed.talks:
                self._decide(head, AdvanceCouncil(owed.talks[0], at))
            else:
                head.unfinished = False
                self._resting[run_id] = (run.next_sequence, owed)
                return
            look = run.pause is not None  # the pause may have waited for this retry or child only
        if not run.terminal:
            head.unfinished = True
            self.unfinished.add(run_id)

    def _dispatch(self, head: Head, node_id: str, at: int) -> None:
        node = head.flow.nodes[node_id]
        state = head.run.nodes[node_id]
        try:
            spec = child_spec(head.run, node, at, head.sealed, state.children)
        except PortProblem:
            spec = None
        if spec is not None and head.run.replayed:
            self._decide(head, FinishNode(node_id, state.attempt, Failed(NO_RECORD), at))
            return
        here = spec is None or self._flows.is_available(head.run.tenant, spec.workflow_id)
        if spec and not here and can_begin_child(head.run, head.flow, node_id, spec):
            self._load_workflow(head, node, spec.workflow_id, at)
            return
        self._decide(head, Dispatch(node_id, at, head.sealed))

    def _load_workflow(self, head: Head, node: FlowNode, workflow_id: str, at: int) -> None:
        """Load a missing workflow that only a decision names; otherwise refuse it."""
        tenant = head.run.tenant
        if node.type.dispatches and not self._flows.is_missing(tenant, workflow_id):
            self.missing_workflows.add((tenant, head.run.run_id, workflow_id))
            return
        error = peer_requests.unknown_worker_error(workflow_id)
        if node.type.dispatches:
            self._decide(head, WorkerRefused(node.id, workflow_id, error, at))
        else:
            attempt = head.run.nodes[node.id].attempt
            self._decide(head, FinishNode(node.id, attempt, Failed(error), at))

    def _record(self, head: Head, new: NewEvent) -> None:
        run = head.run
        if head.sealed:
            new = mask_event(new, head.sealed, head.flow.masking)
            if isinstance(new.payload, VariableChanged):
                self._unseal(head, new, f"var:{new.payload.name}")
        run_id, type_, now = run.run_id, new.type, self._now
        if type_ in BEGINNINGS and self._revisions is not None:
            record_revision(new, head.flow, self._revisions.now(run.tenant))
        head.earliest = max(now, head.earliest) + 1
        event = stamp_event(run, new, now)
        body = encode(event)
        append = self._appends.get(run_id) or self._begin(head)
        append.events.append(body)
        self.published[run_id].append(Published(run.next_sequence, type_, body))
        apply(run, event, now // 1000)
        if head.tracks_messages:
            head.follow_decided(event)
        if type_ in EVENTS_WITH_MESSAGE_ID:
            append.messages += message_ids(event)
        if type_ in TYPES_WITH_TEXT:
            append.texts += text_rows(run, event, now // 1000)
        self._size += 1
        if type_ in NODE_ENDS and new.node_id is not None:
            self._ended.setdefault(run_id, []).append(new.node_id)
        if new.sealed or new.artifact is not None or new.hints or type_ in EVENTS_WITH_SIDE_EFFECTS:
            self._apply_consequences(head, new, event)
        if new.begins is not None:
            self._start_run(new.begins.run_id, new.begins.flow, new.begins.command)

    def _begin(self, head: Head) -> Append:
        run = head.run
        append = Append(tenant=run.tenant, run_id=run.run_id, first=run.next_sequence, events=[])
        self._appends[run.run_id] = append
        self.heads[run.run_id] = head
        self.published[run.run_id] = []
        return append

    def _apply_consequences(self, head: Head, new: NewEvent, event: Event) -> None:
        """Write rows that go to disk with the event, and cause its consequences in other runs."""
        run = head.run
        if new.sealed:
            head.sealed.update(new.sealed)
            items = new.sealed.items()
            rows = [(run.tenant, run.run_id, name, _json.encode(value)) for name, value in items]
            self.batch.sealed += rows
        if new.artifact is not None:
            artifact = ArtifactRow(
                tenant=run.tenant,
                run_id=run.run_id,
                artifact_id=str(new.artifact["artifactId"]),
                body=_json.encode(new.artifact),
            )
            self.batch.artifacts.append(artifact)
        if new.note is not None and self._revisions is not None:
            revision = self._revisions.next(run.tenant)
            self.batch.notes.append(
                note_from_write(run, new.note, event, revision, self._now // 1000)
            )
        elif isinstance(new.payload, EFFECT_EVENTS):
            self.batch.effects += effect_rows(run, event)
        elif isinstance(new.payload, NodeDispatched) and peer_requests.is_local_dispatch(new):
            self._spawn(head, str(new.node_id), new.payload.child_run_id)
        elif new.type in TERMINAL_TYPES:
            self._end(head)
        elif new.hints and "childRunId" in new.hints:
            is_lost = isinstance(new.payload, HandoffStepped)
            reason = "not-needed" if is_lost else "parent-node-failed"
            self._cancel(head, str(new.hints["childRunId"]), reason)

    def _unseal(self, head: Head, new: NewEvent, name: str) -> None:
        """Delete the sealed value of a variable that no longer holds a secret."""
        if name in head.sealed and name not in (new.sealed or {}):
            del head.sealed[name]
            self.batch.sealed.append((head.run.tenant, head.run.run_id, name, None))

    def _spawn(self, parent: Head, node_id: str, child_run: str) -> None:
        """Start the child in the same batch as the event that names it."""
        node = parent.flow.nodes[node_id]
        at = self._now // 1000
        command = child_start_command(parent.run, node, at, parent.sealed, self._limits)
        number = parent.run.nodes[node_id].children - 1
        spec = child_spec(parent.run, node, at, parent.sealed, number)
        flow = self._flows.known(parent.run.tenant, spec.workflow_id) if spec else None
        assert flow is not None
        child = self._start_run(child_run, flow, command)
        if child.run.terminal and not child.run.messages:  # messages are read from the disk
            self._ended_children.setdefault(parent.run.run_id, []).append(child)

    def _start_run(self, run_id: str, flow: Flow, command: StartRun) -> Head:
        """Start a run that exists if and only if this batch is committed."""
        head, now = Head(Run(run_id, tenant=command.tenant), flow), self._now
        self.new_heads.append(head)
        self._family[run_id] = head
        self._decide(head, command)
        self._follow(head)
        self._now = now  # the decision that started it may have further events
        return head

    def _end(self, head: Head) -> None:
        """Cancel the children of an ended run and delete its sealed values."""
        run = head.run
        if head.sealed:
            self.batch.unseal.append((run.tenant, run.run_id))
        reason = "parent-cancelled" if run.status == "cancelled" else f"parent-{run.status}"
        for child_run, status in run.children.items():
            if status is None:
                self._cancel(head, child_run, reason)

    def _cancel(self, parent: Head, child_run: str, reason: str) -> None:
        child = self._family.get(child_run)
        if child is not None and not is_detached(parent, child):
            now = self._now
            command = CancelRun(now // 1000, reason=reason, parent_run=parent.run.run_id)
            self._decide(child, command)
            self._now = now

    def _update_inbox(self, head: Head, append: Append) -> None:
        """Write the run's inbox rows when they have changed."""
        rows = inbox_rows(head.run)
        if rows != head.inbox_rows:
            head.inbox_rows = append.inbox = rows
            self.inboxes.add(append.tenant)

    def _maybe_snapshot(self, head: Head, append: Append) -> None:
        if head.run.next_sequence - head.snapshot_at >= SNAPSHOT_EVERY:
            head.snapshot_at = head.run.next_sequence
            append.snapshot = _json.encode(head.run)
            append.fold_version = FOLD_VERSION


def _resumes_work(run: Run, command: Command) -> bool:
    """Return whether the answer lets a node or a member continue; a gate just ends."""
    if not isinstance(command, GateAnswer):
        return False
    conversation = run.conversations.get(command.node_id)
    if conversation is not None and conversation.floor is not None:
        return True  # a member may get the floor
    state = run.nodes.get(command.node_id)
    return state is not None and state.status is NodeStatus.RUNNING


def stamp_event(run: Run, new: NewEvent, micros: int) -> Event:
    """Return the new event as a fact of the run, with its id, time, sequence and cause."""
    run_id, sequence, cause = run.run_id, run.next_sequence, new.cause
    if cause is None:
        cause = sequence - 1
    if isinstance(cause, int):
        cause = event_id_at(run, cause) if 0 <= cause < sequence else ""
    version = run.engine_version or getattr(new.payload, "engine_version", "")
    return Event(
        event_id=new.event_id or event_id(run_id, sequence),
        run_id=run_id,
        sequence=sequence,
        type=new.type,
        timestamp=iso(micros),
        payload=new.payload,
        schema_version=1,
        engine_version=version,
        node_id=new.node_id if new.node_id is not None else UNSET,
        causation_id=cause or UNSET,
        hints=new.hints if new.hints is not None else UNSET,
        raw=new.raw,
    )
