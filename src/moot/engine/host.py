"""Decide commands, write their events and start the effects they cause.

This is the one write path: decide on the head, fold, store, answer, publish, start owed effects.
"""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from moot.agents.invocation.context import Invoke, no_agents
from moot.clock import Clock
from moot.core.commands import CHILD_ENDING_COMMANDS, Advance, Command, ResumeRun, TimePassed
from moot.core.errors import MootError, SequenceConflict, Unavailable
from moot.core.pending import NO_WORK, PendingWork, pending
from moot.core.runs.start import RunLimits, StartRun
from moot.core.state.conversation import THREAD
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow
from moot.engine import children
from moot.engine.councils.speakers import Speakers
from moot.engine.effects.activities import Activities
from moot.engine.head import BasisEvent, Head
from moot.engine.instruments import FaultPoint, Faults, HostMetrics
from moot.engine.memory import MemoryJournal, MemoryRevisions
from moot.engine.peers.remote_runs import RemoteRuns
from moot.engine.recovery import Recovery
from moot.engine.run_cache import RunCache, RunScopes, is_family_complete, refuse_newer_engine
from moot.engine.streams.hub import Hub, inbox_channel
from moot.engine.streams.presence import Presence
from moot.engine.streams.speech import OpenSpeeches
from moot.engine.tasks import Tasks, Timers
from moot.engine.threads.side_threads import SideThreads
from moot.engine.transaction import BatchHook, Outbox, ReceiptFor, Transaction
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch, Receipt, Store

log = logging.getLogger("moot.engine")

MOST_ATTEMPTS = 5


class Host:
    """The runs of every tenant, with one mailbox for each run."""

    def __init__(
        self, store: Store, flows: WorkflowRegistry, clock: Clock,
        limits: RunLimits | None = None, heads: int = 4096, activities: int = 256,
        speaks: Invoke | None = None,
    ) -> None:  # fmt: skip
        self.store, self.flows, self.clock = store, flows, clock
        self.limits = limits or RunLimits()
        self.hub = Hub()
        self.speeches = OpenSpeeches(self.hub, clock)
        self.presence = Presence(self.hub, self.speeches, clock)
        self.faults = Faults()
        self.metrics = HostMetrics()
        self.tasks = Tasks()
        self.activities = Activities(self, activities)
        self.speakers = Speakers(self, speaks or no_agents, activities)
        self.peers = RemoteRuns(self)
        self.sides = SideThreads(self)
        self.timers = Timers(clock, self._on_due)
        self.runs = RunCache(store, flows, heads)
        self.revisions = MemoryRevisions(store)
        self.memory = MemoryJournal(store, clock, self.revisions)
        self._scopes = RunScopes(store)
        self.recovery = Recovery(self)
        self.stopping = False
        self.outbox: Outbox | None = None
        #: callbacks for a run that has ended
        self.endings: list[Callable[[Run], None]] = []

    # -- commands ----------------------------------------------------------------------------

    async def create(
        self,
        flow: Flow,
        command: StartRun,
        receipt: ReceiptFor | None = None,
        dedup: bool = False,
        beside: BatchHook | None = None,
    ) -> Run:
        """Start a run and return when its first events are on disk.

        Raise Overtaken when a guard that ``beside`` added to the batch no longer holds.
        """
        self.refuse_when_stopping()
        if command.tenant not in self.revisions.durable:
            await self.revisions.learn(command.tenant)
        if dedup and command.scope_id:
            await self._scopes.refuse_second(command.tenant, command.scope_id)
        prefix = "th_" if flow.definition.id == THREAD else "run_"
        head = Head(Run(self.clock.new_id(prefix), tenant=command.tenant), flow)
        self._scopes.hold(command.tenant, command.scope_id, head.run.run_id)
        try:
            await self._act(head, command, {}, receipt, beside)
        except BaseException:
            self._scopes.release(command.tenant, command.scope_id, head.run.run_id)
            raise
        return head.run

    async def handle(
        self, tenant: str, run_id: str, command: Command,
        receipt: ReceiptFor | None = None, basis: BasisEvent | None = None,
    ) -> Run:  # fmt: skip
        """Decide a command on the run's head, again on fresh state after a lost race.

        Raise Conflict when the event that the command relies on was lost.
        """
        if tenant not in self.revisions.durable:
            await self.revisions.learn(tenant)
        for _ in range(MOST_ATTEMPTS):
            head = await self.runs.head(tenant, run_id)
            refuse_newer_engine(head.run)
            if basis is not None:
                basis.refuse_lost()
            if head.run.children:
                if await self._try_with_family(head, command, receipt):
                    return head.run
                continue
            try:
                await self._act(head, command, {}, receipt)
            except SequenceConflict:
                continue
            return head.run
        raise Unavailable("The run is too busy just now; try again.")

    async def _try_with_family(
        self, head: Head, command: Command, receipt: ReceiptFor | None
    ) -> bool:
        """Pin the heads while descendants are read, so that each run keeps exactly one head."""
        pinned = [head]
        head.pins += 1
        try:
            family = await self.runs.family(head, pinned)
            if isinstance(command, CHILD_ENDING_COMMANDS):
                await self.runs.at_rest(family)
            if head.broken or not is_family_complete(head, family):
                return False
            await self._act(head, command, family, receipt)
        except SequenceConflict:
            return False
        else:
            return True
        finally:
            for member in pinned:
                member.pins -= 1

    async def remember(self, receipt: Receipt) -> None:
        """Store the answer to a request that changed no run."""
        await self.store.commit(Batch(receipt=receipt))

    async def _act(
        self,
        head: Head, command: Command, family: dict[str, Head],
        receipt: ReceiptFor | None, beside: BatchHook | None = None,
    ) -> None:  # fmt: skip
        """Decide a command and commit it. Nothing awaits from decide to the store's queue."""
        if isinstance(command, TimePassed):
            command = replace(command, heard=self.speakers.silences(head, command.at))
        transaction = Transaction(self.flows, self.clock, self.limits, self.revisions)
        if not head.run.next_sequence:
            transaction.new_heads.append(head)
        try:
            transaction.take(head, command, family)
            owed = transaction.owed()
            events = transaction.published.get(head.run.run_id, [])
            transaction.batch.receipt = receipt(head.run, events) if receipt is not None else None
            if beside is not None:
                beside(head.run, transaction.batch)
        except BaseException:
            for touched in transaction.heads.values():
                self._drop(touched, touched.inflight > 0)  # its commits may leave effects owed
            raise
        for missing in transaction.missing_workflows:
            self.tasks.start(self._fetch(*missing))
        if not transaction.heads:
            await self._on_disk(head)
            if transaction.batch.receipt is None:
                return
        await self.commit(transaction, owed)
        if isinstance(command, ResumeRun):
            self._report_children(head.run, owed[head.run.run_id].children)

    def _report_children(self, run: Run, waiting_for: list[str]) -> None:
        """Look at the children of a resumed run, which may have ended meanwhile."""
        for child_run in waiting_for:
            self.tasks.start(self._report_child_end(run.tenant, run.run_id, child_run))

    async def _on_disk(self, head: Head) -> None:
        """Wait until the head is on disk: a repeat is acknowledged no sooner than its original."""
        for _ in range(head.inflight):
            if not head.inflight:
                break
            await head.settled()
        if head.broken:
            raise SequenceConflict(head.run.run_id)

    async def commit(self, transaction: Transaction, owed: dict[str, PendingWork]) -> None:
        for head in transaction.heads.values():
            head.inflight += 1
        for head in transaction.new_heads:
            self.runs.put(head)
        try:
            if not self.stopping:
                transaction.batch.more = self.speakers.follow(transaction, owed)
            if self.outbox is not None:
                transaction.post(self.outbox)
            if self.faults.planned:
                self.faults.at(FaultPoint.BEFORE_APPEND)
            await self.store.commit(transaction.batch)
        except BaseException as failure:
            self._on_commit_failed(transaction, failure)
            raise
        self._on_committed(transaction, owed)

    def _on_committed(self, transaction: Transaction, owed: dict[str, PendingWork]) -> None:
        heads, batch = transaction.heads, transaction.batch
        if batch.notes:
            self.revisions.keep(batch.notes)
        if self.faults.planned:
            self.faults.at(FaultPoint.AFTER_APPEND)
        for run_id, head in heads.items():
            published = transaction.published[run_id]
            head.durable = published[-1].sequence + 1
            head.settle()
            self.hub.publish(run_id, published)
            self.metrics.count(published)
        if transaction.inboxes or batch.inboxes:
            for tenant in transaction.inboxes.union(batch.inboxes):
                self.hub.ring(inbox_channel(tenant))
        if batch.deliveries and self.outbox is not None:
            self.outbox.look()
        for run_id, head in heads.items():
            self._tend(head, owed[run_id], run_id in transaction.unfinished)

    def _on_commit_failed(self, transaction: Transaction, failure: BaseException) -> None:
        """Break the heads of a failed batch. Effects owed before it are still owed."""
        for head in transaction.heads.values():
            head.broken = True
            self.speakers.take_back(head)
        if isinstance(failure, MootError) or self.stopping:
            for head in transaction.heads.values():
                head.settle()
                self._drop(head, head not in transaction.new_heads)
        else:
            self.tasks.start(self._settle_later(list(transaction.heads.values())))

    async def _settle_later(self, heads: list[Head]) -> None:
        """Keep the runs in flight until the store has passed an interrupted write, because no
        command may be decided on less state than the log may hold."""
        try:
            await self.store.settled()
        finally:
            for head in heads:
                head.settle()
                self._drop(head, look=True)

    def _drop(self, head: Head, look: bool) -> None:
        """Drop the head. ``look`` also schedules a check of the effects it is owed."""
        self.runs.discard(head)
        if look:
            self.look_again(head.run.tenant, head.run.run_id)

    def _tend(self, head: Head, owed: PendingWork, unfinished: bool) -> None:
        """Start owed effects that are not under way, after every commit and at every start."""
        run = head.run
        if head.broken or self.stopping:
            return
        if run.terminal:
            if not head.inflight:  # else the commit of its end may still fail
                self._on_run_ended(run)
                self.sides.report_closed(run)
                if owed is not NO_WORK or self.peers.running:
                    self.peers.tend(head, owed.abroad)
            return
        rests_as_before = owed is NO_WORK is head.tended and run.parent_run is None
        if rests_as_before and not (unfinished or self.sides.waiting):
            self.speakers.notify(run.run_id)
            return
        head.tended = owed
        if run.parent_run is not None and head.mirrored_status != run.status.value:
            head.mirrored_status = run.status.value
            self.tasks.start(self._mirror(run))
        self.timers.set(run.tenant, run.run_id, owed.due)
        self.sides.watch(run, owed.sides)
        self.activities.keep(run.run_id, owed.activities)
        for node_id, attempt in owed.activities:
            self.activities.start(head, node_id, attempt)
        self.speakers.keep(run.run_id, owed.speakers, head.durable)
        self.speakers.notify(run.run_id)
        for node_id, wake_id in owed.speakers:
            self.speakers.start(head, node_id, wake_id)
        self.peers.tend(head, owed.abroad)
        if unfinished or owed.instant or owed.dispatches or owed.talks:
            self.tasks.start(self._advance(run.tenant, run.run_id))

    def _on_run_ended(self, run: Run) -> None:
        self.timers.set(run.tenant, run.run_id, None)
        self.activities.keep(run.run_id, [])
        self.speakers.keep(run.run_id, [])
        self._scopes.release(run.tenant, run.scope_id, run.run_id)
        for callback in self.endings:
            callback(run)
        if run.parent_run is not None and not self.runs.parent_knows_end(run):
            self.tasks.start(self._report_child_end(run.tenant, run.parent_run, run.run_id))

    def _on_due(self, tenant: str, run_id: str) -> None:
        self.tasks.start(self._try_command(tenant, run_id, TimePassed(self.clock.millis())))

    async def _fetch(self, tenant: str, run_id: str, workflow_id: str) -> None:
        """Load a workflow that only a decision names, then advance the run."""
        try:
            await self.flows.load_worker(tenant, workflow_id)
        except Unavailable:
            self.look_again(tenant, run_id)
        else:
            await self._advance(tenant, run_id)

    async def _advance(self, tenant: str, run_id: str) -> None:
        await self._try_command(tenant, run_id, Advance(self.clock.millis()))

    async def _try_command(self, tenant: str, run_id: str, command: Command) -> None:
        """Run a command of the host itself. When the disk refuses it, try again later."""
        try:
            await self.handle(tenant, run_id, command)
        except Unavailable as refusal:
            log.warning("A run waits for the disk", extra={"run_id": run_id, "code": refusal.code})
            self.look_again(tenant, run_id)
        except MootError as refusal:
            log.exception("A run cannot go on", extra={"run_id": run_id, "code": refusal.code})

    async def _mirror(self, child: Run) -> None:
        """Show the child's waiting status in its parent."""
        if child.parent_run is not None and child.parent_node is not None and child.going:
            command = children.child_waits(child, child.parent_node)
            await self._try_command(child.tenant, child.parent_run, command)

    async def _report_child_end(self, tenant: str, parent_run: str, child_run: str) -> None:
        """Report a child's end to its parent, or later when the child cannot be read now."""
        try:
            await self._send_child_status(tenant, parent_run, child_run)
        except Unavailable:
            self.look_again(tenant, parent_run)

    async def _send_child_status(self, tenant: str, parent_run: str, child_run: str) -> None:
        head = await self.whole(tenant, child_run)
        child = head.run
        if not child.terminal:
            await self._mirror(child)
        elif child.parent_node is not None:
            parent = await self.runs.head(tenant, parent_run)
            command = children.child_ended(head, parent, self.clock.millis())
            await self._try_command(tenant, parent_run, command)

    async def recover(self) -> int:
        """Take up every run that is owed an effect, by the same path as normal running."""
        return await self.recovery.all()

    def look_again(self, tenant: str, run_id: str) -> None:
        """Check the run again in a moment, when the failed step may work."""
        self.recovery.later(tenant, run_id)

    async def take_up(self, tenant: str, run_id: str) -> None:
        """Check a run as if another host had left it behind."""
        await self.runs.head(tenant, run_id)
        await self._try_command(tenant, run_id, TimePassed(self.clock.millis()))
        await self._try_command(tenant, run_id, Advance(self.clock.millis()))
        head = await self.runs.head(tenant, run_id)
        owed = pending(head.run, head.flow)
        self._tend(head, owed, False)
        for child_run in owed.children:
            await self._report_child_end(tenant, run_id, child_run)

    # -- reading -----------------------------------------------------------------------------

    async def view(self, tenant: str, run_id: str) -> Head:
        """Return the run as it is on disk, without anything a failed commit could take back."""
        return await self.runs.view(tenant, run_id)

    async def whole(self, tenant: str, run_id: str) -> Head:
        """Return the run as it is on disk; ``messages`` holds its message channels."""
        return await self.runs.whole(tenant, run_id)

    def refuse_when_stopping(self) -> None:
        if self.stopping:
            raise Unavailable("The server is stopping; send this again in a moment.", 2)

    async def aclose(self) -> None:
        """Stop effects and streams. Accepted commands are on disk and continue later."""
        self.stopping = True
        self.timers.close()
        self.hub.close()
        await self.activities.aclose()
        await self.speakers.aclose()
        await self.tasks.aclose()
        await self.peers.aclose()
        await self.store.aclose()
