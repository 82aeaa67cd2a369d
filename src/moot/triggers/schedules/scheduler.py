"""Decide what is due of each schedule, and write it with the runs it starts.

No state that matters is in memory. The store refuses the second decision on the same ledger
revision, so neither two hosts nor a restart start a slot twice."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.commands import CancelRun
from moot.core.errors import MootError, Unavailable
from moot.core.errors.schedules import ScheduleRefused
from moot.core.errors.triggers import MemberOffDuty, NotInPortfolio, Overtaken
from moot.core.schedules.decide import decide_fires
from moot.core.schedules.manual import retry_fire
from moot.core.schedules.model import Fire, FireDecision
from moot.core.state.run import Run
from moot.core.triggers.subscriptions import ITEM_PREFIX
from moot.engine.host import Host
from moot.engine.start import RunOrder
from moot.engine.streams.hub import inbox_channel
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, LedgerRow
from moot.triggers.notices import NoticeWriter
from moot.triggers.polling import PollingLoop
from moot.triggers.schedules.fire_rows import (
    DEAD,
    FireRows,
    fire_from_row,
    schedule_id_from_key,
    trigger_from_fire,
)
from moot.triggers.schedules.ledger_writer import LedgerWriter
from moot.triggers.schedules.queue_items import hand_over_items, read_queue_items
from moot.triggers.schedules.records import (
    SCHEDULE_KIND,
    SCHEDULE_SOURCE,
    ScheduleRecord,
    schedule_ledger_from_row,
    schedule_row,
)
from moot.triggers.schedules.retries import handle_failed_start, pauses_since
from moot.triggers.schedules.snapshot import ScheduleReader, ScheduleSnapshot
from moot.triggers.start_run import RunClaim, RunStarter

log = logging.getLogger("moot.triggers")

#: schedules decided concurrently
PAGE = 64
MOST_RACES = 20
#: the next look at a schedule that cannot be decided (ms)
PUT_OFF = 60_000


#: a tenant and the id of its schedule
Place = tuple[str, str]


class FireResult(Struct, frozen=True):
    """A fire and the run that it started."""

    fire: Fire
    run_id: str | None = None


class Scheduler:
    """Fires schedules: the loop, requests by hand, and retries."""

    def __init__(
        self,
        host: Host,
        store: Store,
        clock: Clock,
        run_starter: RunStarter,
        reader: ScheduleReader,
    ) -> None:
        self._host, self._store, self._clock = host, store, clock
        self._run_starter, self.reader = run_starter, reader
        self.notices = NoticeWriter(store, lambda tenant: host.hub.ring(inbox_channel(tenant)))
        self.rounds = PollingLoop("Schedules", clock, self.next_due, self._round)
        host.endings.append(self._on_run_ended)
        #: hints: unfinished runs of this host, and schedules with a fire that waits for an end
        self._unfinished: dict[str, Place] = {}
        self._waiting: set[Place] = set()
        #: wakes the courier after a failed start
        self.look_at_retries: Callable[[], None] = lambda: None

    async def next_due(self) -> int | None:
        """Return when (ms) the first schedule must be decided."""
        return await self._store.next_ledger(SCHEDULE_KIND)

    async def _round(self, now: int) -> bool:
        due = await self._store.due_ledgers(SCHEDULE_KIND, now, PAGE)
        decisions = (self._decide_ledger(ledger) for ledger in due)
        for error in await asyncio.gather(*decisions, return_exceptions=True):
            if error is not None:
                raise error
        return len(due) == PAGE

    async def _decide_ledger(self, ledger: LedgerRow) -> None:
        """Decide one schedule. An error does not stop the others."""
        try:
            await self.look(ledger.tenant, ledger.name, ledger=ledger)
        except (Unavailable, Overtaken) as refusal:
            log.warning("Schedule %s waits: %s", ledger.name, refusal)
            await self._put_off(ledger, 1000)
        except ScheduleRefused as refusal:
            log.warning("Schedule %s cannot be read any more: %s", ledger.name, refusal)
            await self._put_off(ledger, PUT_OFF)
        except Exception:
            log.exception("Schedule %s could not be decided", ledger.name)
            await self._put_off(ledger, PUT_OFF)

    async def _put_off(self, ledger: LedgerRow, wait: int) -> None:
        later = replace(ledger, revision=ledger.revision + 1, due_at=self._clock.millis() + wait)
        with suppress(Overtaken):  # another task has decided it
            await self._store.commit(Batch(ledgers=[later]))

    # -- deciding ----------------------------------------------------------------------------

    async def look(
        self, tenant: str, schedule_id: str, now: int | None = None, ledger: LedgerRow | None = None
    ) -> list[FireResult]:
        """Decide all that is due. ``now`` replaces the clock for a trial; ``ledger`` is the row
        just read, if any."""
        results: list[FireResult] = []
        for _ in range(MOST_RACES):
            more = True
            while more:
                snapshot, ledger = await self.reader.read(tenant, schedule_id, now, ledger), None
                if snapshot is None:
                    return results
                decision = decide_fires(snapshot.plan.spec, snapshot.book.decided, snapshot.seen)
                more = decision.more
                try:
                    results += await self.write_decision(snapshot, decision)
                except (Overtaken, MemberOffDuty, NotInPortfolio):
                    self.reader.forget(tenant, schedule_id)
                    break
            else:
                return results
        raise Overtaken(schedule_id)

    async def act(
        self,
        tenant: str,
        schedule_id: str,
        decide: Callable[[ScheduleSnapshot], FireDecision],
        dry: bool,
    ) -> list[FireResult]:
        """Carry out a request by hand, after all that is due. Raise what ``decide`` raises, and
        MemberOffDuty and NotInPortfolio."""
        for _ in range(MOST_RACES):
            if not dry:
                await self.look(tenant, schedule_id)
            snapshot = await self.reader.must_read(tenant, schedule_id)
            decision = decide(snapshot)
            if dry:
                return [FireResult(fire) for fire in decision.fires]
            try:
                return await self.write_decision(snapshot, decision, by_hand=True)
            except Overtaken:
                self.reader.forget(tenant, schedule_id)
        raise Overtaken(schedule_id)

    async def again(self, row: Delivery) -> None:
        """Retry a run that could not start, for the courier."""
        schedule_id = schedule_id_from_key(row.key)
        for _ in range(MOST_RACES):
            snapshot = await self.reader.read(row.tenant, schedule_id)
            if snapshot is None:
                gone = row.next(state="skipped", due_at=None)
                await self._store.commit(Batch(deliveries=[gone]))
                return
            spec, decided, since = snapshot.plan.spec, snapshot.book.decided, row.updated_at
            pauses = await pauses_since(self._store, row.tenant, schedule_id, since)
            observation = replace(snapshot.seen, bars=(*snapshot.seen.bars, *pauses))
            decision = retry_fire(spec, decided, observation, fire_from_row(row), since)
            try:
                await self.write_decision(snapshot, decision)
                return
            except (Overtaken, MemberOffDuty, NotInPortfolio):
                self.reader.forget(row.tenant, schedule_id)
                stored = await self._store.delivery(row.tenant, row.subscription, row.key)
                if stored is None or stored.revision != row.revision:
                    return  # another task has changed it
        raise Overtaken(row.delivery_id)

    # -- writing -----------------------------------------------------------------------------

    async def write_decision(
        self, snapshot: ScheduleSnapshot, decision: FireDecision, by_hand: bool = False
    ) -> list[FireResult]:
        """Write one transaction for each run, the first with everything else that was decided.
        Later starts wait in the ledger, so that none is lost."""
        starts = [fire for fire in decision.fires if fire.act == "start"]
        other_fires = [fire for fire in decision.fires if fire.act != "start"]
        writer = LedgerWriter(snapshot, decision, by_hand)
        rows = FireRows(self._store, snapshot, self._clock.new_id)
        replaced = bool(starts) or any(fire.act == "buffer" for fire in other_fires)
        tail = snapshot.book.tail
        other_rows, last_skip = await rows.rows_without_start(other_fires, tail, replaced)
        writer.book = replace(writer.book, tail=None if starts else last_skip)
        place = snapshot.tenant, snapshot.schedule_id
        if decision.ledger.buffered or len(starts) > 1:
            self._waiting.add(place)
        if not starts:
            await self._write_rows(snapshot, writer, other_rows)
        results = [FireResult(fire) for fire in other_fires]
        for number, fire in enumerate(starts):
            writer.remaining = starts[number + 1 :]
            run = await self._start(snapshot, rows, fire, writer, other_rows)
            other_rows = []
            results.append(FireResult(fire, None if run is None else run.run_id))
            if run is None and by_hand:
                break
        return results

    async def _write_rows(
        self,
        snapshot: ScheduleSnapshot,
        writer: LedgerWriter,
        rows: list[Delivery],
        schedule: ScheduleRecord | None = None,
    ) -> None:
        ledger, before = writer.ledger(writer.book), snapshot.ledger
        if not rows and (ledger.body, ledger.due_at) == (before.body, before.due_at):
            return
        batch = Batch(guards=snapshot.guards, ledgers=[ledger], deliveries=rows)
        if schedule is not None:
            batch.records = [schedule_row(snapshot.tenant, schedule, "moot", snapshot.seen.now)]
            self.reader.forget(snapshot.tenant, schedule.spec.schedule_id)
        await self.notices.commit(batch)

    async def _start(
        self,
        snapshot: ScheduleSnapshot,
        rows: FireRows,
        fire: Fire,
        writer: LedgerWriter,
        other_rows: list[Delivery],
    ) -> Run | None:
        """Start the run of a fire. Return None when it could not start; then the failure is on
        disk."""
        row, delivered = await rows.start(fire)
        spec = snapshot.plan.spec
        order = RunOrder(
            tenant=snapshot.tenant,
            workflow_id=spec.workflow_id,
            source=SCHEDULE_SOURCE,
            principal=snapshot.plan.owner,
            roster_id=spec.roster_id,
            inputs=spec.inputs or {},
            delivered=delivered,
            trigger=trigger_from_fire(snapshot.plan, row, fire),
        )
        place = snapshot.tenant, spec.schedule_id

        def ledger_of(run: Run) -> LedgerRow:
            self._unfinished[run.run_id] = place  # it may end in the commit that starts it
            return writer.with_run(run)

        claim = RunClaim(
            guards=snapshot.guards, deliveries=[row], others=other_rows, ledger_of=ledger_of
        )
        if any(attempt.outcome == DEAD for attempt in row.attempts):
            claim.inboxes = [snapshot.tenant]  # the inbox has a notice that it could not start
        try:
            order = await self._with_items(snapshot, fire, order, claim)
            await self._cancel(order, fire.cancels)
            run = await self._run_starter.start(order, claim)
        except (Overtaken, MemberOffDuty, NotInPortfolio, Unavailable):
            self._unfinished.pop(writer.book.last_run or "", None)
            raise
        except MootError as refusal:
            log.warning("Schedule %s could not start its run: %s", spec.schedule_id, refusal)
            reason = f"{refusal.code}: {refusal.message}"[:500]
            failed = await rows.failed_start(fire, reason)
            await self._record_failed_start(snapshot, writer, other_rows, failed)
            return None
        finally:
            writer.revision += 1
        return run

    async def _with_items(
        self, snapshot: ScheduleSnapshot, fire: Fire, order: RunOrder, claim: RunClaim
    ) -> RunOrder:
        """Add the items of its queue to the run. Raise Overtaken when another run has taken them
        and the fire is for a slot."""
        condition = snapshot.plan.spec.condition
        if condition is None or condition.queue is None:
            return order
        items = await read_queue_items(self._store, snapshot.tenant, condition.queue)
        if not items.rows and fire.cause in ("slot", "catch-up"):
            raise Overtaken(snapshot.plan.spec.schedule_id)
        flow = await self._host.flows.newest(snapshot.tenant, order.workflow_id)
        return hand_over_items(items, order, claim, flow, self._clock.millis())

    async def _record_failed_start(
        self,
        snapshot: ScheduleSnapshot,
        writer: LedgerWriter,
        other_rows: list[Delivery],
        row: Delivery,
    ) -> None:
        """Write a failed start. A request by hand is not retried, because the caller sees the
        error."""
        if writer.by_hand:
            await self._write_rows(snapshot, writer, [*other_rows, row])
            return
        failure = await handle_failed_start(self._store, snapshot, row, self._clock.millis())
        if failure.plan is not None:
            writer.stop()
        await self._write_rows(snapshot, writer, [*other_rows, failure.row], failure.plan)
        self.look_at_retries()

    async def _cancel(self, order: RunOrder, run_ids: tuple[str, ...]) -> None:
        """Cancel runs before the start that replaces them, but only when that start is possible.
        After a crash in between, the slot is decided again."""
        if run_ids:
            await self._run_starter.drawn(order)
        for run_id in run_ids:
            command = CancelRun(self._clock.millis(), "schedule-overlap")
            try:
                await self._host.handle(order.tenant, run_id, command)
            except Unavailable:
                raise
            except MootError:
                continue  # it has ended meanwhile

    # -- ends of runs ------------------------------------------------------------------------

    def _on_run_ended(self, run: Run) -> None:
        """Decide the schedule of an ended run again when a fire waits for it."""
        if run.delivery is None or run.replayed or run.delivery[1].startswith(ITEM_PREFIX):
            return
        place = self._unfinished.pop(run.run_id, None)
        if place is None or place in self._waiting:
            self._waiting.discard(place or ("", ""))
            self._host.tasks.start(self._decide_after_run(run.tenant, run.delivery[1]))

    async def _decide_after_run(self, tenant: str, delivery_id: str) -> None:
        row = await self._store.delivery_by_id(tenant, delivery_id)
        if row is None or row.source != SCHEDULE_SOURCE:
            return
        ledger = await self._store.ledger(tenant, SCHEDULE_KIND, schedule_id_from_key(row.key))
        if ledger is not None and schedule_ledger_from_row(ledger).decided.buffered:
            await self._decide_ledger(ledger)
            self.rounds.look()
