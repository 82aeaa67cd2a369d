"""Commands in, events out. The one write path, short enough to read aloud:

decide on the tentative head, fold, hand the batch to the store, answer when it is on disk,
publish, and see to what is owed.
"""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from moot.agents.invocation.desk import Invoke, nobody
from moot.clock import Clock
from moot.core.commands import ENDING, Advance, Command, ResumeRun, Wake
from moot.core.errors import MootError, SequenceConflict, Unavailable
from moot.core.pending import Owed, pending
from moot.core.runs.start import Limits, StartRun
from moot.core.state.conversation import THREAD
from moot.core.state.run import Run
from moot.core.workflows.graph import Flow
from moot.engine import children
from moot.engine.councils.speakers import Speakers
from moot.engine.effects.activities import Activities
from moot.engine.faults import FaultPoint, Faults
from moot.engine.head import Ground, Head
from moot.engine.memory.journal import Recollections, Revisions
from moot.engine.metrics import Metrics
from moot.engine.peers.remote_runs import Peers
from moot.engine.recovery import Recovery
from moot.engine.run_cache import Runs, complete, refuse_newer
from moot.engine.run_scopes import Scopes
from moot.engine.streams.hub import Hub, inbox_of
from moot.engine.streams.presence import Presence
from moot.engine.streams.speech import Speeches
from moot.engine.tasks import Tasks
from moot.engine.threads.side_threads import Sides
from moot.engine.timers import Timers
from moot.engine.transaction import Beside, Outbox, ReceiptFor, Turn
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Batch, Receipt, Store

log = logging.getLogger("moot.engine")

MOST_ATTEMPTS = 5


class Host:
    """Runs of every tenant, one mailbox each."""

    def __init__(
        self,
        store: Store,
        flows: Flows,
        clock: Clock,
        limits: Limits | None = None,
        heads: int = 4096,
        activities: int = 256,
        speaks: Invoke | None = None,
    ) -> None:
        self.store, self.flows, self.clock = store, flows, clock
        self.limits = limits or Limits()
        self.hub = Hub()
        self.speeches = Speeches(self.hub, clock)
        self.presence = Presence(self.hub, self.speeches, clock)
        self.faults = Faults()
        self.metrics = Metrics()
        self.tasks = Tasks()
        self.activities = Activities(self, activities)
        self.speakers = Speakers(self, speaks or nobody, activities)
        self.peers = Peers(self)
        self.sides = Sides(self)
        self.timers = Timers(clock, self._ring)
        self.runs = Runs(store, flows, heads)
        self.revisions = Revisions(store)
        self.memory = Recollections(store, clock, self.revisions)
        self._scopes = Scopes(store)
        self.recovery = Recovery(self)
        self.stopping = False
        self.outbox: Outbox | None = None
        #: who is told that a run has ended
        self.endings: list[Callable[[Run], None]] = []

    # -- commands ----------------------------------------------------------------------------

    async def create(
        self,
        flow: Flow,
        command: StartRun,
        receipt: ReceiptFor | None = None,
        dedup: bool = False,
        beside: Beside | None = None,
    ) -> Run:
        """Begin a run. Answers when its first events are on disk, with all that goes beside them;
        raises Overtaken when that no longer holds."""
        self.refuse_when_stopping()
        if command.tenant not in self.revisions:
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
        receipt: ReceiptFor | None = None, ground: Ground | None = None,
    ) -> Run:  # fmt: skip
        """Decide a command on the run's head; a lost race is decided again on fresh state, unless
        what the command goes back to was lost with it."""
        if tenant not in self.revisions:
            await self.revisions.learn(tenant)
        for _ in range(MOST_ATTEMPTS):
            head = await self.runs.head(tenant, run_id)
            refuse_newer(head.run)
            if ground is not None:
                ground.refuse_lost()
            if not head.run.children:
                taken = await self._try(head, command, {}, receipt)
            else:
                taken = await self._try_with_family(head, command, receipt)
            if taken:
                return head.run
        raise Unavailable("The run is too busy just now; try again.")

    async def _try(
        self, head: Head, command: Command, family: dict[str, Head], receipt: ReceiptFor | None
    ) -> bool:
        try:
            await self._act(head, command, family, receipt)
        except SequenceConflict:
            return False
        return True

    async def _try_with_family(
        self, head: Head, command: Command, receipt: ReceiptFor | None
    ) -> bool:
        """The heads are held while others are read in: a second one would know too little."""
        held = [head]
        head.pins += 1
        try:
            family = await self.runs.family(head, held)
            if isinstance(command, ENDING):
                await self.runs.at_rest(family)
            if head.broken or not complete(head, family):
                return False
            return await self._try(head, command, family, receipt)
        finally:
            for member in held:
                member.pins -= 1

    async def remember(self, receipt: Receipt) -> None:
        """Keep the answer of a request that changed no run."""
        await self.store.commit(Batch(receipt=receipt))

    async def _act(
        self,
        head: Head, command: Command, family: dict[str, Head],
        receipt: ReceiptFor | None, beside: Beside | None = None,
    ) -> None:  # fmt: skip
        """From decide to the queue nothing awaits."""
        command = self._with_what_was_heard(head, command)
        turn = Turn(self.flows, self.clock, self.limits, self.revisions)
        if not head.run.next_sequence:
            turn.born.append(head)
        try:
            turn.take(head, command, family)
            owed = turn.owed()
            events = turn.published.get(head.run.run_id, [])
            turn.batch.receipt = receipt(head.run, events) if receipt is not None else None
            if beside is not None:
                beside(head.run, turn.batch)
        except BaseException:
            for touched in turn.heads.values():
                self._drop(touched, touched.inflight > 0)  # what is on its way is owed something
            raise
        for wanted in turn.wanted:
            self.tasks.start(self._fetch(*wanted))
        if not turn.heads:
            await self._on_disk(head)
            if turn.batch.receipt is None:
                return
        await self.commit(turn, owed)
        if isinstance(command, ResumeRun):
            for child_run in owed[head.run.run_id].children:  # it may have ended meanwhile
                self.tasks.start(self._harvest(head.run.tenant, head.run.run_id, child_run))

    def _with_what_was_heard(self, head: Head, command: Command) -> Command:
        if isinstance(command, Wake) and head.run.conversations:
            return replace(command, heard=self.speakers.heard(head, command.at))
        return command

    async def _on_disk(self, head: Head) -> None:
        """A repeat is acknowledged no sooner than what it repeats."""
        for _ in range(head.inflight):
            if not head.inflight:
                break
            await head.settled()
        if head.broken:
            raise SequenceConflict(head.run.run_id)

    async def commit(self, turn: Turn, owed: dict[str, Owed]) -> None:
        for head in turn.heads.values():
            head.inflight += 1
        for head in turn.born:
            self.runs.put(head)
        try:
            if not self.stopping:
                turn.batch.more = self.speakers.follow(turn, owed)
            turn.post(self.outbox)
            self.faults.at(FaultPoint.BEFORE_APPEND)
            await self.store.commit(turn.batch)
        except BaseException as failure:
            self._failed(turn, failure)
            raise
        self.revisions.keep(turn.batch.notes)
        self.faults.at(FaultPoint.AFTER_APPEND)
        for run_id, head in turn.heads.items():
            head.kept = turn.published[run_id][-1].sequence + 1
            head.settle()
            self.hub.publish(run_id, turn.published[run_id])
            self.metrics.count(turn.published[run_id])
        for tenant in {*turn.inboxes, *turn.batch.inboxes}:
            self.hub.ring(inbox_of(tenant))
        if self.outbox is not None and turn.batch.deliveries:
            self.outbox.look()
        for run_id, head in turn.heads.items():
            self._tend(head, owed[run_id], run_id in turn.unfinished)

    def _failed(self, turn: Turn, failure: BaseException) -> None:
        """What was owed before is still owed, and a refused write has led to nothing more."""
        for head in turn.heads.values():
            head.broken = True
            self.speakers.take_back(head)
        if isinstance(failure, MootError) or self.stopping:
            for head in turn.heads.values():
                head.settle()
                self._drop(head, head not in turn.born)
        else:
            self.tasks.start(self._find_out(list(turn.heads.values())))

    async def _find_out(self, heads: list[Head]) -> None:
        """A wait that was cut short does not tell whether there was a write. Until the store has
        come past it these runs are still in flight: nobody may decide on less than there is."""
        try:
            await self.store.settled()
        finally:
            for head in heads:
                head.settle()
                self._drop(head, look=True)

    def _drop(self, head: Head, look: bool) -> None:
        """The next command reads the log; so does the host itself, when something may be owed."""
        self.runs.break_off(head)
        if look:
            self.look_again(head.run.tenant, head.run.run_id)

    # -- what is owed ------------------------------------------------------------------------

    def _tend(self, head: Head, owed: Owed, unfinished: bool) -> None:
        """Start what is owed and not yet under way. The same path after every commit and at
        every start."""
        run = head.run
        if head.broken or self.stopping:
            return
        if run.terminal:
            if not head.inflight:  # else its end is on its way, and may yet fail
                self._finished(run)
                self.sides.ended(run)
                self.peers.tend(head, owed.abroad)
            return
        if run.parent_run is not None and head.told != run.status.value:
            head.told = run.status.value
            self.tasks.start(self._mirror(run))
        self.timers.set(run.tenant, run.run_id, owed.due)
        self.sides.watch(run, owed.sides)
        self.activities.keep(run.run_id, owed.activities)
        for node_id, attempt in owed.activities:
            self.activities.start(head, node_id, attempt)
        self.speakers.keep(run.run_id, owed.speakers, head.kept)
        self.speakers.tell(run.run_id)
        for node_id, wake_id in owed.speakers:
            self.speakers.start(head, node_id, wake_id)
        self.peers.tend(head, owed.abroad)
        if unfinished or owed.instant or owed.dispatches or owed.talks:
            self.tasks.start(self._go_on(run.tenant, run.run_id))

    def _finished(self, run: Run) -> None:
        self.timers.set(run.tenant, run.run_id, None)
        self.activities.keep(run.run_id, [])
        self.speakers.keep(run.run_id, [])
        self._scopes.release(run.tenant, run.scope_id, run.run_id)
        for tell in self.endings:
            tell(run)
        if run.parent_run is not None and not self.runs.knows(run):
            self.tasks.start(self._harvest(run.tenant, run.parent_run, run.run_id))

    def _ring(self, tenant: str, run_id: str) -> None:
        self.tasks.start(self._quietly(tenant, run_id, Wake(self.clock.millis())))

    async def _fetch(self, tenant: str, run_id: str, workflow_id: str) -> None:
        """A decision names a workflow that nothing else refers to: read it, then go on."""
        try:
            await self.flows.look_for(tenant, workflow_id)
        except Unavailable:
            self.look_again(tenant, run_id)
        else:
            await self._go_on(tenant, run_id)

    async def _go_on(self, tenant: str, run_id: str) -> None:
        await self._quietly(tenant, run_id, Advance(self.clock.millis()))

    async def _quietly(self, tenant: str, run_id: str, command: Command) -> None:
        """A command of the host itself. When the disk refuses, it is tried again later."""
        try:
            await self.handle(tenant, run_id, command)
        except Unavailable as refusal:
            log.warning("A run waits for the disk", extra={"run_id": run_id, "code": refusal.code})
            self.look_again(tenant, run_id)
        except MootError as refusal:
            log.exception("A run cannot go on", extra={"run_id": run_id, "code": refusal.code})

    async def _mirror(self, child: Run) -> None:
        """Let a parent show how its child waits."""
        if child.parent_run is not None and child.parent_node is not None and child.going:
            command = children.waits(child, child.parent_node)
            await self._quietly(child.tenant, child.parent_run, command)

    async def _harvest(self, tenant: str, parent_run: str, child_run: str) -> None:
        """Tell a parent that its child has ended. What cannot be read now is told later."""
        try:
            await self._tell(tenant, parent_run, child_run)
        except Unavailable:
            self.look_again(tenant, parent_run)

    async def _tell(self, tenant: str, parent_run: str, child_run: str) -> None:
        head = await self.whole(tenant, child_run)
        child = head.run
        if not child.terminal:
            await self._mirror(child)
        elif child.parent_node is not None:
            parent = await self.runs.head(tenant, parent_run)
            command = children.end_of(head, parent, self.clock.millis())
            await self._quietly(tenant, parent_run, command)

    async def recover(self) -> int:
        """Take up every run that is owed something: the same path as normal running."""
        return await self.recovery.all()

    def look_again(self, tenant: str, run_id: str) -> None:
        """In a moment, when what failed may work again."""
        self.recovery.later(tenant, run_id)

    async def take_up(self, tenant: str, run_id: str) -> None:
        """Look at a run as at one that was left by another host."""
        await self.runs.head(tenant, run_id)
        await self._quietly(tenant, run_id, Wake(self.clock.millis()))
        await self._quietly(tenant, run_id, Advance(self.clock.millis()))
        head = await self.runs.head(tenant, run_id)
        owed = pending(head.run, head.flow)
        self._tend(head, owed, False)
        for child_run in owed.children:
            await self._harvest(tenant, run_id, child_run)

    # -- reading -----------------------------------------------------------------------------

    async def view(self, tenant: str, run_id: str) -> Head:
        """The run as it is on disk. Nothing is shown that a failed commit could take back."""
        return await self.runs.view(tenant, run_id)

    async def whole(self, tenant: str, run_id: str) -> Head:
        """The same, and ``messages`` holds what the run's channels of messages hold."""
        return await self.runs.whole(tenant, run_id)

    async def at(self, tenant: str, run_id: str, sequence: int) -> Head:
        """A copy of the run as it was right after an event, for the caller to fold on."""
        return await self.runs.at(tenant, run_id, sequence)

    # -- limits ------------------------------------------------------------------------------

    def refuse_when_stopping(self) -> None:
        if self.stopping:
            raise Unavailable("The server is stopping; send this again in a moment.", 2)

    async def aclose(self) -> None:
        """Stop effects and streams; what was accepted is on disk and goes on at the next start."""
        self.stopping = True
        self.timers.close()
        self.hub.close()
        await self.activities.aclose()
        await self.speakers.aclose()
        await self.tasks.aclose()
        await self.store.aclose()
