"""One command and everything it causes without the world: decided, folded, gathered in a batch.

Nothing in here awaits, so commands on one run are decided one after another and their rows reach
the store in that order.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.children import peer_requests
from moot.core.children.decide import may_begin, next_child, spawn
from moot.core.commands import (
    ENDING,
    Advance,
    CancelRun,
    Command,
    Compute,
    Dispatch,
    FinishNode,
    ResumeRun,
    decide,
)
from moot.core.councils.decide import Participate, WakeReport
from moot.core.events import TERMINAL_TYPES, Event, NewEvent, encode
from moot.core.pending import NOTHING, Owed, pending
from moot.core.replay.replay import NO_RECORD
from moot.core.runs.answers import Answer
from moot.core.runs.nodes import Emit
from moot.core.runs.readiness import PortProblem
from moot.core.runs.start import Limits, StartRun
from moot.core.search.indexed_text import FOUND
from moot.core.secrets import sealed_event
from moot.core.state.memory import BEGINNINGS, marked
from moot.core.state.node import NODE_ENDS
from moot.core.state.run import FOLD_VERSION, Run, apply
from moot.core.state.status import NodeStatus
from moot.core.supervisors.decide import WorkerRefused
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Failed
from moot.engine.children import children_of, end_of
from moot.engine.derived_rows import (
    NAMED,
    due_of,
    effect_rows,
    inbox_rows,
    message_ids,
    row_of,
    text_rows,
)
from moot.engine.head import Head
from moot.engine.memory.journal import Revisions, note_of
from moot.engine.stamp import stamped
from moot.engine.streams.hub import Published
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Append, ArtifactRow, Batch, Delivery, Receipt

#: a decision that causes more events than this is cut; the rest follows in the next commit
MOST_EVENTS = 512
SNAPSHOT_EVERY = 1000

#: events that cause something outside of their own log
REACHING = TERMINAL_TYPES | {
    "node.dispatched", "moot.effect.started", "moot.effect.finished", "moot.effect.abandoned",
    "memory.written",
}  # fmt: skip

#: what nodes report and people answer: only the end of a node lets others begin
WORDS = (Emit, Answer, WakeReport)

#: told the state a command led to and the run's new events, before they are committed: the answer
#: to a request, kept with them when its caller sent a key
ReceiptFor = Callable[[Run, list[Published]], Receipt | None]
#: the same, for what is to be written in the same transaction: a claim, a guard
Beside = Callable[[Run, Batch], None]

_json = msgspec.json.Encoder()


class Outbox(Protocol):
    """Others who are told of what happens."""

    def letters(self, run: Run, published: list[Published]) -> list[Delivery]:
        """What is to be told of a run's new events, written with them."""

    def look(self) -> None:
        """There is something to tell."""


class Turn:
    """The batch of one command, over as many runs as it reaches."""

    def __init__(
        self, flows: Flows, clock: Clock, limits: Limits, revisions: Revisions | None = None
    ) -> None:
        self._flows, self._clock, self._limits = flows, clock, limits
        #: of the journal of memory; a record that is said again has its own
        self._revisions = revisions
        self.batch = Batch()
        self.heads: dict[str, Head] = {}
        self.born: list[Head] = []
        self.published: dict[str, list[Published]] = {}
        self._appends: dict[str, Append] = {}
        self._family: dict[str, Head] = {}
        #: nodes that have ended since the graph was last looked at
        self._ended: dict[str, list[str]] = {}
        #: runs that could go on at once but have filled this batch
        self.unfinished: set[str] = set()
        #: (tenant, run, workflow): what must be read before a run can go on
        self.wanted: set[tuple[str, str, str]] = set()
        #: parent -> its children that began and ended in this batch, which it is yet to be told
        self._over: dict[str, list[Head]] = {}
        #: tenants whose inbox this changes
        self.inboxes: set[str] = set()
        self._rest: dict[str, tuple[int, Owed]] = {}  #: where a run rests, what it is owed there
        self._size = 0
        #: what one decision causes happens at one time, and no other decision does
        self._now = clock.micros()

    def take(self, head: Head, command: Command, family: dict[str, Head]) -> bool:
        """Decide, then do what follows at once. False when nothing was to be done."""
        self._family = family
        self._decide(head, command)
        if isinstance(command, WORDS) and not (
            self._ended or head.unfinished or _goes_on(head.run, command)
        ):
            return bool(self.heads)  # nothing begins or ends by what is said on the way
        if head.run.run_id in self.heads or isinstance(command, Advance):
            self._follow(head, scan=head.unfinished or isinstance(command, Advance | ResumeRun))
        return bool(self.heads)

    def owed(self) -> dict[str, Owed]:
        """What each run is owed after this; fills in the derived rows."""
        found = {}
        for run_id, head in self.heads.items():
            place, known = self._rest.get(run_id, (-1, NOTHING))
            rests = place == head.run.next_sequence
            found[run_id] = owed = known if rests else pending(head.run, head.flow)
            append = self._appends[run_id]
            append.row = row_of(head.run)
            append.work = 0 if head.unfinished and not head.run.terminal else due_of(owed)
            if head.asks or head.run.interrupts:
                self._ask(head, append)
            self._maybe_snapshot(head, append)
        self.batch.appends = list(self._appends.values())
        return found

    def post(self, outbox: Outbox | None) -> None:
        if outbox is None:
            return
        for run_id, head in self.heads.items():
            self.batch.deliveries += outbox.letters(head.run, self.published[run_id])

    def _decide(self, head: Head, command: Command) -> list[NewEvent]:
        if isinstance(command, ENDING):
            command = replace(command, seen=children_of(head.run, self._family))
        events = decide(head.run, head.flow, command)
        if events:
            self._now = max(self._now, head.earliest)
            for event in events:
                self._record(head, event)
        return events

    def _follow(self, head: Head, scan: bool = False) -> None:
        """Start, compute and dispatch until only the world can go on.

        ``scan`` looks at the whole graph, for a run whose last step is not known here.
        """
        run, run_id = head.run, head.run.run_id
        look = True
        #: dispatch nodes whose workers must be looked for first
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
            elif over := self._over.get(run_id):
                self._decide(head, end_of(over.pop(0), head, at))
            elif owed.talks:
                self._decide(head, Participate(owed.talks[0], at))
            else:
                head.unfinished = False
                self._rest[run_id] = (run.next_sequence, owed)
                return
            look = run.pause is not None  # a retry or a child may be all it has waited for
        if not run.terminal:
            head.unfinished = True
            self.unfinished.add(run_id)

    def _dispatch(self, head: Head, node_id: str, at: int) -> None:
        node = head.flow.nodes[node_id]
        state = head.run.nodes[node_id]
        try:
            spec = next_child(head.run, node, at, head.sealed, state.children)
        except PortProblem:
            spec = None
        if spec is not None and head.run.replayed:
            self._decide(head, FinishNode(node_id, state.attempt, Failed(NO_RECORD), at))
            return
        here = spec is None or self._flows.at_hand(head.run.tenant, spec.workflow_id)
        if spec and not here and may_begin(head.run, head.flow, node_id, spec):
            self._without(head, node, spec.workflow_id, at)
            return
        self._decide(head, Dispatch(node_id, at, head.sealed))

    def _without(self, head: Head, node: FlowNode, workflow_id: str, at: int) -> None:
        """A workflow that is not in memory: looked for first when only a decision names it."""
        tenant = head.run.tenant
        if node.type.dispatches and not self._flows.is_missing(tenant, workflow_id):
            self.wanted.add((tenant, head.run.run_id, workflow_id))
            return
        error = peer_requests.nobody(workflow_id)
        if node.type.dispatches:
            self._decide(head, WorkerRefused(node.id, workflow_id, error, at))
        else:
            attempt = head.run.nodes[node.id].attempt
            self._decide(head, FinishNode(node.id, attempt, Failed(error), at))

    def _record(self, head: Head, new: NewEvent) -> None:
        run = head.run
        if head.sealed:
            new = sealed_event(new, head.sealed, head.flow.masking)
            if new.type == "variable.changed":
                self._unseal(head, new)
        run_id, type_, now = run.run_id, new.type, self._now
        if type_ in BEGINNINGS and self._revisions is not None:
            marked(new, head.flow, self._revisions.now(run.tenant))
        head.earliest = max(now, head.earliest) + 1
        event = stamped(run, new, now)
        body = encode(event)
        append = self._appends.get(run_id) or self._begin(head)
        append.events.append(body)
        self.published[run_id].append(Published(run.next_sequence, type_, body))
        apply(run, event, now // 1000)
        if head.listening:
            head.heed(event)
        if type_ in NAMED:
            append.messages += message_ids(event)
        if type_ in FOUND:
            append.texts += text_rows(run, event, now // 1000)
        self._size += 1
        if type_ in NODE_ENDS and new.node_id is not None:
            self._ended.setdefault(run_id, []).append(new.node_id)
        if new.sealed or new.artifact is not None or new.hints or type_ in REACHING:
            self._beside(head, new, event)
        if new.begins is not None:
            self._bear(new.begins.run_id, new.begins.flow, new.begins.command)

    def _begin(self, head: Head) -> Append:
        run = head.run
        append = Append(tenant=run.tenant, run_id=run.run_id, first=run.next_sequence, events=[])
        self._appends[run.run_id] = append
        self.heads[run.run_id] = head
        self.published[run.run_id] = []
        return append

    def _beside(self, head: Head, new: NewEvent, event: Event) -> None:
        """What goes to disk with the event but not into it, and what it causes elsewhere."""
        run = head.run
        if new.sealed:
            head.sealed.update(new.sealed)
            self.batch.sealed += [
                (run.tenant, run.run_id, name, _json.encode(value))
                for name, value in new.sealed.items()
            ]
        if new.artifact is not None:
            artifact_id = new.artifact["artifactId"]
            self.batch.artifacts.append(
                ArtifactRow(
                    tenant=run.tenant,
                    run_id=run.run_id,
                    artifact_id=artifact_id,
                    body=_json.encode(new.artifact),
                )
            )
        if new.note is not None and self._revisions is not None:
            revision = self._revisions.next(run.tenant)
            self.batch.notes.append(note_of(run, new.note, event, revision, self._now // 1000))
        elif new.type.startswith("moot.effect."):
            self.batch.effects += effect_rows(run, event)
        elif new.type == "node.dispatched" and peer_requests.begins_here(new):
            self._spawn(head, str(new.node_id), str(new.payload["childRunId"]))
        elif new.type in TERMINAL_TYPES:
            self._end(head)
        elif new.hints and "childRunId" in new.hints:
            lost = new.type == "core.workflowChain.event"
            reason = "not-needed" if lost else "parent-node-failed"
            self._cancel(head, str(new.hints["childRunId"]), reason)

    def _unseal(self, head: Head, new: NewEvent) -> None:
        """A variable that held a secret and now holds none."""
        name = f"var:{new.payload['name']}"
        if name in head.sealed and name not in (new.sealed or {}):
            del head.sealed[name]
            self.batch.sealed.append((head.run.tenant, head.run.run_id, name, None))

    def _spawn(self, parent: Head, node_id: str, child_run: str) -> None:
        """The child begins in the same batch as the event that names it."""
        node = parent.flow.nodes[node_id]
        at = self._now // 1000
        command = spawn(parent.run, node, at, parent.sealed, self._limits)
        spec = next_child(
            parent.run, node, at, parent.sealed, parent.run.nodes[node_id].children - 1
        )
        flow = self._flows.known(parent.run.tenant, spec.workflow_id) if spec else None
        assert flow is not None
        child = self._bear(child_run, flow, command)
        if child.run.terminal and not child.run.messages:  # those are read from the disk
            self._over.setdefault(parent.run.run_id, []).append(child)

    def _bear(self, run_id: str, flow: Flow, command: StartRun) -> Head:
        """A run that is there with what was just recorded, or not at all."""
        head, now = Head(Run(run_id, tenant=command.tenant), flow), self._now
        self.born.append(head)
        self._family[run_id] = head
        self._decide(head, command)
        self._follow(head)
        self._now = now  # the decision that began it may say more
        return head

    def _end(self, head: Head) -> None:
        """An ended run takes its children with it and forgets what was sealed."""
        run = head.run
        if head.sealed:
            self.batch.unseal.append((run.tenant, run.run_id))
        reason = "parent-cancelled" if run.status == "cancelled" else f"parent-{run.status}"
        for child_run, status in run.children.items():
            if status is None:
                self._cancel(head, child_run, reason)

    def _cancel(self, parent: Head, child_run: str, reason: str) -> None:
        child = self._family.get(child_run)
        if child is not None and not detached(parent, child):
            now = self._now
            command = CancelRun(now // 1000, reason=reason, parent_run=parent.run.run_id)
            self._decide(child, command)
            self._now = now

    def _ask(self, head: Head, append: Append) -> None:
        """The run's rows of the inbox, when they are not the ones it has."""
        rows = inbox_rows(head.run)
        if rows != head.asks:
            head.asks = append.inbox = rows
            self.inboxes.add(append.tenant)

    def _maybe_snapshot(self, head: Head, append: Append) -> None:
        if head.run.next_sequence - head.snapshot_at >= SNAPSHOT_EVERY:
            head.snapshot_at = head.run.next_sequence
            append.snapshot = _json.encode(head.run)
            append.fold_version = FOLD_VERSION


def _goes_on(run: Run, command: Command) -> bool:
    """Whether somebody was answered who carries on by itself: a gate ends with its answer."""
    if not isinstance(command, Answer):
        return False
    talk = run.conversations.get(command.node_id)
    if talk is not None and talk.floor is not None:
        return True  # somebody may be given the floor
    state = run.nodes.get(command.node_id)
    return state is not None and state.status is NodeStatus.RUNNING


def detached(parent: Head, child: Head) -> bool:
    """Whether the node that started the child lets it live on when the parent is cancelled."""
    node = parent.flow.nodes.get(child.run.parent_node or "")
    return node is not None and node.definition.config.get("propagateCancellation") is False
