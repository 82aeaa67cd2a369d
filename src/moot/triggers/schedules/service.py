"""Make, change and remove schedules, and run them by hand."""

from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec.structs import replace

from moot.agents.roster.members import PausePeriod, RosterService
from moot.clock import Clock
from moot.core.errors import BadRequest, Conflict, NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.errors.triggers import MemberGone, Overtaken
from moot.core.runs.start import check_inputs
from moot.core.schedules.decide import new_ledger, retime_ledger
from moot.core.schedules.manual import backfill, run_now, skip_next_slot, unskip_last_slot
from moot.core.schedules.model import (
    FireDecision,
    OverlapPolicy,
    Schedule,
    SlotLedger,
)
from moot.core.schedules.parse import edit_schedule, parse_schedule
from moot.core.schedules.pauses import block_starts, unblock_starts
from moot.core.schedules.slots import iterate_due_slots
from moot.core.workflows.flow import Flow
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, DeliveryFilter, Guard, Record
from moot.triggers.schedules.conditions import check_condition
from moot.triggers.schedules.fire_rows import closed_row, fire_from_row
from moot.triggers.schedules.queue_items import empty_items_input
from moot.triggers.schedules.records import (
    SCHEDULE_KIND,
    ScheduleLedger,
    ScheduleRecord,
    changes_times,
    disables_schedule,
    ledger_row,
    schedule_from_record,
    schedule_row,
    subscription_row,
)
from moot.triggers.schedules.scheduler import MOST_RACES, FireResult, Scheduler
from moot.triggers.schedules.snapshot import ScheduleSnapshot

#: schedules of one tenant
MOST_SCHEDULES = 20_000
PAGE = 200
MOST_PAGES = 1000
#: states of fires that are still open
OWED = ("waiting", "retrying", "missed", "dead")

#: returns the next version of a schedule and its decisions
ScheduleChange = Callable[[ScheduleSnapshot], tuple[ScheduleRecord, SlotLedger]]


class ScheduleService:
    """The operations of people on schedules. A change first decides all that is due, unless it
    stops the schedule."""

    def __init__(
        self, store: Store, clock: Clock, flows: WorkflowRegistry, roster: RosterService,
        scheduler: Scheduler,
    ) -> None:  # fmt: skip
        self._store, self._clock, self._flows, self._roster = store, clock, flows, roster
        self._scheduler = scheduler
        #: tenant -> the number of its schedules
        self._counts: dict[str, int] = {}

    # -- reading -----------------------------------------------------------------------------

    async def find(self, tenant: str, schedule_id: str) -> ScheduleSnapshot:
        """Return the schedule. Raise NotFound."""
        return await self._scheduler.reader.must_read(tenant, schedule_id)

    async def all(self, tenant: str) -> list[ScheduleRecord]:
        """Return all schedules, by id."""
        records = await self._store.records(tenant, SCHEDULE_KIND)
        return [schedule_from_record(record) for record in records]

    async def history(self, tenant: str, schedule_id: str) -> list[Record]:
        await self.find(tenant, schedule_id)
        return await self._store.record_history(tenant, SCHEDULE_KIND, schedule_id)

    # -- making and changing -----------------------------------------------------------------

    async def read(self, tenant: str, body: bytes, schedule_id: str) -> Schedule:
        """Parse and check a schedule without storing it. Raise ScheduleRefused or
        ScheduleHorizonExceeded."""
        return (await self._read(tenant, body, schedule_id))[0]

    async def _read(
        self, tenant: str, body: bytes, schedule_id: str
    ) -> tuple[Schedule, list[Guard]]:
        spec = parse_schedule(body, schedule_id, self._clock.millis())
        return spec, await self.check(tenant, spec)

    async def make(
        self, tenant: str, body: bytes, by: str, schedule_id: str | None = None
    ) -> ScheduleSnapshot:
        await self._refuse_too_many(tenant)
        name = schedule_id or self._clock.new_id("sch_")
        spec, guards = await self._read(tenant, body, name)
        now = self._clock.millis()
        subscription = self._clock.new_id("sub_")
        schedule = ScheduleRecord(spec=spec, subscription=subscription, owner=by, did="made")
        decided = new_ledger(spec, now)
        dues = (slot.due for slot in iterate_due_slots(spec, decided.decided))
        due = next(dues, None) if spec.enabled else None
        ledger = ledger_row(tenant, spec.schedule_id, ScheduleLedger(decided=decided), 0, due)
        batch = Batch(
            guards=[await self._guard_unused_id(tenant, spec.schedule_id), *guards],
            records=[
                schedule_row(tenant, schedule, by, now),
                subscription_row(tenant, schedule, by, now),
            ],
            ledgers=[ledger],
        )
        await self._store.commit(batch)
        self._counts[tenant] += 1
        self._scheduler.rounds.look()
        return await self.find(tenant, spec.schedule_id)

    async def _guard_unused_id(self, tenant: str, schedule_id: str) -> Guard:
        """Return a guard for an id without a schedule. Raise Conflict when there is one."""
        history = await self._store.record_history(tenant, SCHEDULE_KIND, schedule_id)
        if history and not history[0].gone:
            raise Conflict("There is such a schedule already.", scheduleId=schedule_id)
        revision = history[0].revision if history else 0
        return Guard(tenant=tenant, kind=SCHEDULE_KIND, name=schedule_id, revision=revision)

    async def change(
        self, tenant: str, schedule_id: str, patch: bytes, by: str
    ) -> ScheduleSnapshot:
        """Change times, policies or inputs. Slots that were due before follow the old ones."""

        def step(snapshot: ScheduleSnapshot) -> tuple[ScheduleRecord, SlotLedger]:
            old, now, decided = snapshot.plan.spec, snapshot.seen.now, snapshot.book.decided
            spec = edit_schedule(old, patch, now)
            if changes_times(old, spec):
                decided = retime_ledger(decided, now)
            if old.enabled != spec.enabled:
                switch = unblock_starts if spec.enabled else block_starts
                decided = switch(decided, now, "disabled")
            return replace(snapshot.plan, spec=spec, did="changed"), decided

        disables = disables_schedule(patch)
        return await self._step(tenant, schedule_id, by, step, settle=not disables)

    async def pause(
        self, tenant: str, schedule_id: str, by: str, reason: str, until: int | None
    ) -> ScheduleSnapshot:
        def step(snapshot: ScheduleSnapshot) -> tuple[ScheduleRecord, SlotLedger]:
            now = snapshot.seen.now
            if until is not None and until <= now:
                raise BadRequest("until has passed; name a time to come.", field="until")
            pause = PausePeriod(since=now, by=by, reason=reason, until=until)
            decided = block_starts(snapshot.book.decided, now, "paused", until)
            return replace(snapshot.plan, pause=pause, stopped=None, did="paused"), decided

        return await self._step(tenant, schedule_id, by, step, settle=False)

    async def resume(self, tenant: str, schedule_id: str, by: str) -> ScheduleSnapshot:
        def step(snapshot: ScheduleSnapshot) -> tuple[ScheduleRecord, SlotLedger]:
            decided = unblock_starts(snapshot.book.decided, snapshot.seen.now, "paused")
            return replace(snapshot.plan, pause=None, stopped=None, did="resumed"), decided

        return await self._step(tenant, schedule_id, by, step)

    async def remove(self, tenant: str, schedule_id: str, by: str) -> None:
        """Remove a schedule. Its runs continue; its open fires are closed."""
        for _ in range(MOST_RACES):
            snapshot, now = await self.find(tenant, schedule_id), self._clock.millis()
            rows = await self._close_fires(snapshot)
            schedule = replace(snapshot.plan, did="removed")
            batch = Batch(
                guards=[snapshot.record.guard],
                records=[
                    schedule_row(tenant, schedule, by, now, gone=True),
                    subscription_row(tenant, schedule, by, now, gone=True),
                ],
                ledgers=[snapshot.next_ledger(snapshot.book, None, gone=True)],
                deliveries=[closed_row(row, now) for row in rows],
            )
            if await self._try_commit(tenant, schedule_id, batch, rows):
                if tenant in self._counts:
                    self._counts[tenant] -= 1
                return
        raise Overtaken(schedule_id)

    async def _close_fires(self, snapshot: ScheduleSnapshot) -> list[Delivery]:
        """Close all open fires page by page, except the last page, which is returned."""
        where = DeliveryFilter(subscription=snapshot.plan.subscription, states=OWED)
        for _ in range(MOST_PAGES):
            rows, cursor = await self._store.deliveries(snapshot.tenant, where, None, PAGE)
            if cursor is None:
                return rows
            now = self._clock.millis()
            with suppress(Overtaken):  # one of them has changed: read the page again
                await self._store.commit(Batch(deliveries=[closed_row(row, now) for row in rows]))
        raise Overtaken(snapshot.plan.spec.schedule_id)

    async def _step(
        self, tenant: str, schedule_id: str, by: str, step: ScheduleChange, settle: bool = True
    ) -> ScheduleSnapshot:
        """Write the next version of a schedule. Without ``settle`` nothing due is decided first,
        so a stop starts no run."""
        for _ in range(MOST_RACES):
            if settle:
                await self._settle(tenant, schedule_id)
            snapshot = await self.find(tenant, schedule_id)
            schedule, decided = step(snapshot)
            now = snapshot.seen.now
            guards = [snapshot.record.guard]
            if schedule.spec != snapshot.plan.spec:
                guards += await self.check(tenant, schedule.spec)
            elif snapshot.plan.pause is not None and schedule.pause is None:
                guards += await self._guard_member(tenant, schedule.spec)
            ledger = snapshot.next_ledger(replace(snapshot.book, decided=decided), now)
            record = schedule_row(tenant, schedule, by, now)
            batch = Batch(guards=guards, records=[record], ledgers=[ledger])
            if await self._try_commit(tenant, schedule_id, batch):
                await self._settle(tenant, schedule_id)
                self._scheduler.rounds.look()
                return await self.find(tenant, schedule_id)
        raise Overtaken(schedule_id)

    async def _settle(self, tenant: str, schedule_id: str) -> None:
        """Decide what is due. A spec that cannot be parsed any more has nothing due, and can still
        be changed."""
        with suppress(ScheduleRefused):
            await self._scheduler.look(tenant, schedule_id)

    async def _try_commit(
        self, tenant: str, schedule_id: str, batch: Batch, before: Iterable[Delivery] = ()
    ) -> bool:
        try:
            await self._scheduler.notices.commit(batch, before)
        except Overtaken:
            return False
        finally:
            self._scheduler.reader.forget(tenant, schedule_id)
        return True

    # -- by hand -----------------------------------------------------------------------------

    async def run(
        self, tenant: str, schedule_id: str, overlap: OverlapPolicy | None, dry: bool
    ) -> list[FireResult]:
        """Run the workflow now, outside of any slot. Raise ScheduleOff, ScheduleBusy,
        MemberOffDuty or NotInPortfolio."""

        def decide(snapshot: ScheduleSnapshot) -> FireDecision:
            return run_now(snapshot.plan.spec, snapshot.book.decided, snapshot.seen, overlap)

        return await self._scheduler.act(tenant, schedule_id, decide, dry)

    async def skip(
        self, tenant: str, schedule_id: str, by: str, dry: bool, undo: bool = False
    ) -> int:
        """Skip the next slot, or undo the last skip, and return the slot. Raise ScheduleRefused
        when there is none."""

        def choose(snapshot: ScheduleSnapshot) -> tuple[int, SlotLedger]:
            spec, decided = snapshot.plan.spec, snapshot.book.decided
            return unskip_last_slot(decided) if undo else skip_next_slot(spec, decided)

        if dry:
            return choose(await self.find(tenant, schedule_id))[0]
        slot = 0

        def step(snapshot: ScheduleSnapshot) -> tuple[ScheduleRecord, SlotLedger]:
            nonlocal slot
            slot, decided = choose(snapshot)
            return replace(snapshot.plan, did="unskipped" if undo else "skipped"), decided

        await self._step(tenant, schedule_id, by, step)
        return slot

    async def backfill(
        self, tenant: str, schedule_id: str, between: tuple[int, int],
        overlap: OverlapPolicy | None, dry: bool, paused: bool = False,
    ) -> list[FireResult]:  # fmt: skip
        """Run past slots without a run. Raise ScheduleOff, ScheduleBusy or ScheduleRefused."""
        slots_run = await self._slots_run(tenant, schedule_id, between)

        def decide(snapshot: ScheduleSnapshot) -> FireDecision:
            policy, decided = overlap or "buffer-all", snapshot.book.decided
            spec, facts = snapshot.plan.spec, snapshot.seen
            return backfill(spec, decided, facts, between, slots_run, policy, paused)

        return await self._scheduler.act(tenant, schedule_id, decide, dry)

    async def run_missed(
        self, tenant: str, schedule_id: str, delivery_id: str, dry: bool
    ) -> list[FireResult]:
        """Run the newest slot of a missed fire, or retry a run that could not start. Its notice
        then disappears."""
        snapshot = await self.find(tenant, schedule_id)
        row = await self._row(snapshot, delivery_id)
        fire = fire_from_row(row)
        slot = fire.slot if fire.until is None else fire.until
        policy = snapshot.plan.spec.overlap
        results = await self.backfill(tenant, schedule_id, (slot, slot), policy, dry, paused=True)
        if not results:
            message = "That slot has had its run, or the schedule has other times now; run it now."
            raise ScheduleRefused("fire", message)
        if not dry and row.state == "missed":
            await self.dismiss(tenant, schedule_id, delivery_id)
        return results

    async def dismiss(self, tenant: str, schedule_id: str, delivery_id: str) -> Delivery:
        """Remove the notice of missed slots or of a run that could not start."""
        for _ in range(MOST_RACES):
            snapshot = await self.find(tenant, schedule_id)
            row = await self._row(snapshot, delivery_id)
            if row.state not in ("missed", "dead"):
                return row
            dismissed = closed_row(row, self._clock.millis())
            book = replace(snapshot.book, tail=None)
            ledger = snapshot.next_ledger(book, snapshot.ledger.due_at)
            batch = Batch(deliveries=[dismissed], ledgers=[ledger])
            if await self._try_commit(tenant, schedule_id, batch, [row]):
                return dismissed
        raise Overtaken(schedule_id)

    async def _row(self, snapshot: ScheduleSnapshot, delivery_id: str) -> Delivery:
        row = await self._store.delivery_by_id(snapshot.tenant, delivery_id)
        if row is None or row.subscription != snapshot.plan.subscription:
            raise NotFound("There is no such fire; see those of the schedule.", id=delivery_id)
        return row

    async def _slots_run(self, tenant: str, schedule_id: str, between: tuple[int, int]) -> set[int]:
        """Return the slots that have had a run. Rows are newest first, and no run is older than
        its slot."""
        snapshot, slots, cursor = await self.find(tenant, schedule_id), set(), None
        where = DeliveryFilter(subscription=snapshot.plan.subscription, states=("delivered",))
        while True:
            rows, cursor = await self._store.deliveries(tenant, where, cursor, PAGE)
            slots |= {fire.slot for fire in map(fire_from_row, rows) if fire.cause != "manual"}
            if cursor is None or not rows or rows[-1].received_at < between[0]:
                return slots

    # -- checks ------------------------------------------------------------------------------

    async def _refuse_too_many(self, tenant: str) -> None:
        if tenant not in self._counts:
            self._counts[tenant] = len(await self._store.records(tenant, SCHEDULE_KIND))
        if self._counts[tenant] >= MOST_SCHEDULES:
            raise BadRequest(f"There are {MOST_SCHEDULES} schedules; remove one first.")

    async def check(self, tenant: str, spec: Schedule, flow: Flow | None = None) -> list[Guard]:
        """Check the workflow, member, inputs and condition of a schedule, and return guards for
        them. ``flow`` is a workflow that is not registered yet."""
        check_condition(spec.condition)
        try:
            flow = flow or await self._flows.newest(tenant, spec.workflow_id)
        except NotFound as refusal:
            raise ScheduleRefused("workflowId", refusal.message) from None
        check_inputs(flow, {**empty_items_input(spec, flow), **(spec.inputs or {})})
        if spec.roster_id is None:
            return []
        try:
            member = await self._roster.must_find(tenant, spec.roster_id)
        except NotFound as refusal:
            raise ScheduleRefused("rosterId", refusal.message) from None
        if spec.workflow_id not in member.entry.workflows:
            message = f"{spec.workflow_id} is none of the workflows of {spec.roster_id}."
            raise ScheduleRefused("workflowId", message)
        return [member.guard]

    async def _guard_member(self, tenant: str, spec: Schedule) -> list[Guard]:
        """Return a guard for its member. Raise MemberGone."""
        if spec.roster_id is None:
            return []
        member = await self._roster.find(tenant, spec.roster_id)
        if member is not None:
            return [member.guard]
        raise MemberGone(spec.roster_id)
