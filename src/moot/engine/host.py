"""Commands in, events out. The one write path, short enough to read aloud:

decide on the tentative head, fold, hand the batch to the store, answer when it is on disk,
publish, and see to what is owed.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from moot.clock import Clock
from moot.core import events
from moot.core.children import ChildEnded, ChildWaits
from moot.core.commands import Advance, Command, Wake
from moot.core.errors import (
    EngineVersionMismatch,
    MootError,
    RunAlreadyActive,
    RunNotFound,
    SequenceConflict,
    Unavailable,
)
from moot.core.events import ENGINE_VERSION
from moot.core.flow import Flow
from moot.core.pending import Owed, pending
from moot.core.run import FOLD_VERSION, Run, apply
from moot.core.starting import Limits, StartRun
from moot.engine.activities import Activities
from moot.engine.faults import FaultPoint, Faults
from moot.engine.flows import Flows
from moot.engine.head import Head, Heads
from moot.engine.hub import Hub
from moot.engine.metrics import Metrics
from moot.engine.tasks import Tasks
from moot.engine.timers import Timers
from moot.engine.turn import Turn, inbox_rows
from moot.store.protocol import Batch, Receipt, Store, WorkRow

log = logging.getLogger("moot.engine")

MOST_ATTEMPTS = 5
RECOVERY_LANES = 8
PAGE = 2000

#: makes the remembered answer of a request from the state the command led to
ReceiptFor = Callable[[Run], Receipt]

_state = msgspec.json.Decoder(Run)


def _collect(messages: dict[str, list[Any]], row: bytes) -> None:
    if b'"reducer":"message"' not in row:
        return
    said = events.decode(row).payload
    messages.setdefault(said["channel"], []).append(said["value"])


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
    ) -> None:
        self.store, self.flows, self.clock = store, flows, clock
        self.limits = limits or Limits()
        self.hub = Hub()
        self.faults = Faults()
        self.metrics = Metrics()
        self.tasks = Tasks()
        self.activities = Activities(self, activities)
        self.timers = Timers(clock, self._ring)
        self._heads = Heads(heads)
        self._opening: dict[tuple[str, str], asyncio.Future[Head]] = {}
        self._scopes: dict[tuple[str, str], str] = {}
        self._stopping = False

    # -- commands ----------------------------------------------------------------------------

    async def create(
        self, flow: Flow, command: StartRun, receipt: ReceiptFor | None = None, dedup: bool = False
    ) -> Run:
        """Begin a run. Answers when its first events are on disk."""
        self._refuse_when_stopping()
        scope = (command.tenant, command.scope_id) if command.scope_id else None
        if dedup and scope:
            await self._refuse_second(*scope)
        head = Head(Run(self.clock.new_id("run_"), tenant=command.tenant), flow)
        self._heads.put(head)
        if scope:
            self._scopes[scope] = head.run.run_id
        await self._act(head, command, {}, receipt)
        return head.run

    async def handle(
        self, tenant: str, run_id: str, command: Command, receipt: ReceiptFor | None = None
    ) -> Run:
        """Decide a command on the run's head; a lost race is decided again on fresh state."""
        for _ in range(MOST_ATTEMPTS):
            head = await self._head(tenant, run_id)
            self._refuse_newer(head.run)
            family = await self._family(head)
            if head.broken or (head.run.children and not self._complete(head, family)):
                continue
            try:
                await self._act(head, command, family, receipt)
            except SequenceConflict:
                continue
            return head.run
        raise Unavailable("The run is too busy just now; try again.")

    async def remember(self, receipt: Receipt) -> None:
        """Keep the answer of a request that changed no run."""
        await self.store.commit(Batch(receipt=receipt))

    async def _act(
        self, head: Head, command: Command, family: dict[str, Head], receipt: ReceiptFor | None
    ) -> None:
        """From decide to the queue nothing awaits."""
        turn = Turn(self.flows, self.clock, self.limits)
        try:
            turn.take(head, command, family)
        except BaseException:
            for touched in turn.heads.values():
                self._break(touched)
            raise
        if not turn.heads and receipt is None:
            return
        owed = turn.owed()
        if receipt is not None:
            turn.batch.receipt = receipt(head.run)
        await self._commit(turn, owed)

    async def _commit(self, turn: Turn, owed: dict[str, Owed]) -> None:
        for head in turn.born:
            self._heads.put(head)
        for head in turn.heads.values():
            head.inflight += 1
        try:
            self.faults.at(FaultPoint.BEFORE_APPEND)
            await self.store.commit(turn.batch)
        except BaseException:
            for head in turn.heads.values():
                head.settle()
                self._break(head)
            raise
        self.faults.at(FaultPoint.AFTER_APPEND)
        for run_id, head in turn.heads.items():
            head.settle()
            self.hub.publish(run_id, turn.published[run_id])
            self.metrics.count(turn.published[run_id])
        for run_id, head in turn.heads.items():
            self._tend(head, owed[run_id], run_id in turn.unfinished)

    def _break(self, head: Head) -> None:
        """Tentative state is worthless now: the next command reads the log."""
        head.broken = True
        if not head.inflight:
            self._heads.drop(head)

    # -- what is owed ------------------------------------------------------------------------

    def _tend(self, head: Head, owed: Owed, unfinished: bool) -> None:
        """Start what is owed and not yet under way. The same path after every commit and at
        every start."""
        run = head.run
        if head.broken or self._stopping:
            return
        if run.terminal:
            self._finished(run)
            return
        if run.parent_run is not None and head.told != run.status.value:
            head.told = run.status.value
            self.tasks.start(self._mirror(run))
        self.timers.set(run.tenant, run.run_id, owed.due)
        self.activities.keep(run.run_id, owed.activities)
        for node_id, attempt in owed.activities:
            self.activities.start(head, node_id, attempt)
        if unfinished or owed.instant or owed.dispatches:
            self.tasks.start(self._go_on(run.tenant, run.run_id))

    def _finished(self, run: Run) -> None:
        self.timers.set(run.tenant, run.run_id, None)
        self.activities.keep(run.run_id, [])
        if run.scope_id and self._scopes.get((run.tenant, run.scope_id)) == run.run_id:
            del self._scopes[run.tenant, run.scope_id]
        if run.parent_run is not None:
            self.tasks.start(self._harvest(run.tenant, run.parent_run, run.run_id))

    def _ring(self, tenant: str, run_id: str) -> None:
        self.tasks.start(self._quietly(tenant, run_id, Wake(self.clock.millis())))

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
            command = ChildWaits(
                node_id=child.parent_node,
                child_run=child.run_id,
                workflow_id=child.workflow_id,
                status=child.status.value,
            )
            await self._quietly(child.tenant, child.parent_run, command)

    async def _harvest(self, tenant: str, parent_run: str, child_run: str) -> None:
        """Tell a parent that its child has ended."""
        child = (await self.view(tenant, child_run)).run
        if child.terminal and child.parent_node is not None:
            parent = await self._head(tenant, parent_run)
            command = ChildEnded(
                node_id=child.parent_node,
                child_run=child_run,
                status=child.status.value,
                at=self.clock.millis(),
                variables={**child.variables, **child.channels},
                outputs=child.outputs or {},
                error=child.error,
                sealed=parent.sealed,
            )
            await self._quietly(tenant, parent_run, command)

    async def recover(self) -> int:
        """Take up every run that is owed something: the same path as normal running."""
        found = await self.store.work(2**62, 2**31)
        now = self.clock.millis()
        ready = [row for row in found if row.due_at <= now]
        for row in found:
            if row.due_at > now:
                self.timers.set(row.tenant, row.run_id, row.due_at)
        for lane in range(RECOVERY_LANES):
            self.tasks.start(self._take_up_all(ready[lane::RECOVERY_LANES]))
        return len(found)

    async def _take_up_all(self, rows: list[WorkRow]) -> None:
        for row in rows:
            try:
                await self._take_up(row.tenant, row.run_id)
            except MootError as refusal:
                log.exception(
                    "A run cannot be taken up", extra={"run_id": row.run_id, "code": refusal.code}
                )

    def look_again(self, tenant: str, run_id: str) -> None:
        """In a second, when what failed may work again."""
        loop = asyncio.get_running_loop()
        loop.call_later(
            1, lambda: self._stopping or self.tasks.start(self._take_up(tenant, run_id))
        )

    async def _take_up(self, tenant: str, run_id: str) -> None:
        await self._quietly(tenant, run_id, Wake(self.clock.millis()))
        await self._quietly(tenant, run_id, Advance(self.clock.millis()))
        head = await self._head(tenant, run_id)
        owed = pending(head.run, head.flow)
        self._tend(head, owed, False)
        for child_run in owed.children:
            await self._harvest(tenant, run_id, child_run)

    # -- reading -----------------------------------------------------------------------------

    async def view(self, tenant: str, run_id: str) -> Head:
        """The run as it is on disk. Nothing is shown that a failed commit could take back."""
        head = await self._head(tenant, run_id)
        for _ in range(16):
            if not head.inflight:
                return head
            await head.settled()
            if head.broken:
                return await self._load(tenant, run_id)
        return await self._load(tenant, run_id)

    async def messages(self, head: Head) -> dict[str, list[Any]]:
        """What the run's channels of messages hold: read from the log, from where it was left."""
        run = head.run
        if not run.messages:
            return {}
        while head.messages_at < run.next_sequence:
            after = head.messages_at - 1
            rows = await self.store.read(run.tenant, run.run_id, after, PAGE)
            if head.messages_at - 1 != after:
                continue  # another reader was quicker
            for row in rows:
                _collect(head.messages, row)
            head.messages_at += len(rows)
            if not rows:
                break
        return head.messages

    async def at(self, tenant: str, run_id: str, sequence: int) -> Head:
        """A copy of the run as it was right after an event, for the caller to fold on."""
        head = await self.view(tenant, run_id)
        run = Run(run_id, tenant=tenant)
        while run.next_sequence <= sequence:
            left = min(PAGE, sequence + 1 - run.next_sequence)
            rows = await self.store.read(tenant, run_id, run.next_sequence - 1, left)
            if not rows:
                break
            for row in rows:
                apply(run, events.decode(row))
        return Head(run, head.flow)

    async def _head(self, tenant: str, run_id: str) -> Head:
        while True:
            head = self._heads.get(tenant, run_id)
            if head is None:
                return await self._open(tenant, run_id)
            if not head.broken:
                return head
            if head.inflight:
                await head.settled()
            else:
                self._heads.drop(head)

    async def _open(self, tenant: str, run_id: str) -> Head:
        """Read a run into memory once, however many ask for it."""
        key = (tenant, run_id)
        opening = self._opening.get(key)
        if opening is None:
            opening = asyncio.ensure_future(self._load(tenant, run_id))
            self._opening[key] = opening
            opening.add_done_callback(lambda done: self._opened(key, done))
        return await asyncio.shield(opening)

    def _opened(self, key: tuple[str, str], done: "asyncio.Future[Head]") -> None:
        self._opening.pop(key, None)
        if not done.cancelled() and done.exception() is None and self._heads.get(*key) is None:
            self._heads.put(done.result())

    async def _load(self, tenant: str, run_id: str) -> Head:
        """The last cached fold and the tail of the log."""
        cached = await self.store.snapshot(tenant, run_id, FOLD_VERSION)
        run = _state.decode(cached.state) if cached else Run(run_id, tenant=tenant)
        while rows := await self.store.read(tenant, run_id, run.next_sequence - 1, PAGE):
            for row in rows:
                apply(run, events.decode(row))
            if len(rows) < PAGE:
                break
        if not run.next_sequence:
            raise RunNotFound(run_id)
        flow = await self.flows.by_digest(tenant, run.definition)
        sealed = {}
        if not run.terminal:
            rows_sealed = await self.store.sealed(tenant, run_id)
            sealed = {name: msgspec.json.decode(value) for name, value in rows_sealed.items()}
        head = Head(run, flow, sealed)
        head.asks = inbox_rows(run)
        return head

    async def _family(self, head: Head) -> dict[str, Head]:
        """Every living descendant, so that a cancel reaches them in the same batch."""
        family: dict[str, Head] = {}
        waiting = [child for child, status in head.run.children.items() if status is None]
        while waiting:
            child = await self._head(head.run.tenant, waiting.pop())
            family[child.run.run_id] = child
            waiting += [name for name, status in child.run.children.items() if status is None]
        return family

    def _complete(self, head: Head, family: dict[str, Head]) -> bool:
        """Whether nothing was born or broken while the family was gathered."""
        living = [head, *family.values()]
        return all(
            status is not None or (child in family and not family[child].broken)
            for member in living
            for child, status in member.run.children.items()
            if not member.run.terminal
        )

    # -- limits ------------------------------------------------------------------------------

    async def _refuse_second(self, tenant: str, scope_id: str) -> None:
        stored = await self.store.active_run(tenant, scope_id)
        active = self._scopes.get((tenant, scope_id)) or stored
        if active is not None:
            raise RunAlreadyActive(active)

    def _refuse_newer(self, run: Run) -> None:
        if run.engine_version.isdigit() and int(run.engine_version) > ENGINE_VERSION + 1:
            raise EngineVersionMismatch(
                "The run was written by a newer engine; update this host.",
                runId=run.run_id,
                persistedVersion=run.engine_version,
                currentVersion=str(ENGINE_VERSION),
            )

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise Unavailable("The server is stopping; send this again in a moment.", 2)

    async def aclose(self) -> None:
        """Stop effects and streams; what was accepted is on disk and goes on at the next start."""
        self._stopping = True
        self.timers.close()
        self.hub.close()
        await self.activities.aclose()
        await self.tasks.aclose()
        await self.store.aclose()
