"""Schedules as people make, change and end them, and what they ask of one by hand."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Pause, Roster
from moot.clock import Clock
from moot.core.errors import BadRequest, Conflict, NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.errors.triggers import MemberGone, Overtaken
from moot.core.runs.start import check_inputs
from moot.core.schedules.decide import barred, opened, retimed, unbarred
from moot.core.schedules.manual import backfill, run_now, skip_next, unskip
from moot.core.schedules.model import HORIZON, Decision, Overlap, Schedule
from moot.core.schedules.model import Ledger as Decided
from moot.core.schedules.parse import edit_schedule, read_schedule, retimes
from moot.core.schedules.slots import ticks
from moot.core.workflows.graph import Flow
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Batch, Delivery, Guard, Store
from moot.store.records import DeliveryFilter, Record
from moot.triggers.schedules.conditions import check_condition
from moot.triggers.schedules.fire_rows import fire_of
from moot.triggers.schedules.queue_items import given_by
from moot.triggers.schedules.records import (
    KIND,
    Book,
    Plan,
    guard_of,
    ledger_row,
    plan_of,
    plan_record,
    subscription_record,
)
from moot.triggers.schedules.scheduler import MOST_RACES, Clockwork, Done
from moot.triggers.schedules.snapshot import Case

#: schedules of one tenant
MOST_SCHEDULES = 20_000
PAGE = 200
MOST_PAGES = 1000
#: fires that are not done with
OWED = ("waiting", "retrying", "missed", "dead")

#: the next version of a schedule, and what is to be kept of its decisions
Step = Callable[[Case], tuple[Plan, Decided]]


class Schedules:
    """A change is made after all that was due before it is decided, unless it stops things."""

    def __init__(
        self, store: Store, clock: Clock, flows: Flows, roster: Roster, clockwork: Clockwork
    ) -> None:
        self._store, self._clock, self._flows, self._roster = store, clock, flows, roster
        self._clockwork = clockwork
        #: tenant -> how many it has
        self._counts: dict[str, int] = {}

    # -- reading -----------------------------------------------------------------------------

    async def find(self, tenant: str, schedule_id: str) -> Case:
        """Raises NotFound."""
        return await self._clockwork.sight.must(tenant, schedule_id)

    async def all(self, tenant: str) -> list[Plan]:
        """By id."""
        return [plan_of(record) for record in await self._store.records(tenant, KIND)]

    async def history(self, tenant: str, schedule_id: str) -> list[Record]:
        await self.find(tenant, schedule_id)
        return await self._store.record_history(tenant, KIND, schedule_id)

    # -- making and changing -----------------------------------------------------------------

    async def read(self, tenant: str, body: bytes, schedule_id: str) -> Schedule:
        """A schedule as it would be kept. Raises ScheduleRefused, ScheduleHorizonExceeded."""
        return (await self._read(tenant, body, schedule_id))[0]

    async def _read(
        self, tenant: str, body: bytes, schedule_id: str
    ) -> tuple[Schedule, list[Guard]]:
        spec = read_schedule(body, schedule_id, self._clock.millis())
        return spec, await self.check(tenant, spec)

    async def make(self, tenant: str, body: bytes, by: str, schedule_id: str | None = None) -> Case:
        await self._refuse_too_many(tenant)
        name = schedule_id or self._clock.new_id("sch_")
        spec, guards = await self._read(tenant, body, name)
        now = self._clock.millis()
        plan = Plan(spec=spec, subscription=self._clock.new_id("sub_"), owner=by, did="made")
        decided = opened(spec, now)
        first = next(ticks(spec, decided.decided), None) if spec.enabled else None
        due = first.due if first is not None else None
        ledger = ledger_row(tenant, spec.schedule_id, Book(decided=decided), 0, due)
        batch = Batch(
            guards=[await self._nothing(tenant, spec.schedule_id), *guards],
            records=[
                plan_record(tenant, plan, by, now),
                subscription_record(tenant, plan, by, now),
            ],
            ledgers=[ledger],
        )
        await self._store.commit(batch)
        self._counts[tenant] += 1
        self._clockwork.rounds.look()
        return await self.find(tenant, spec.schedule_id)

    async def _nothing(self, tenant: str, schedule_id: str) -> Guard:
        """That there is no schedule of this name, or none any more. Raises Conflict."""
        known = await self._store.record_history(tenant, KIND, schedule_id)
        if known and not known[0].gone:
            raise Conflict("There is such a schedule already.", scheduleId=schedule_id)
        revision = known[0].revision if known else 0
        return Guard(tenant=tenant, kind=KIND, name=schedule_id, revision=revision)

    async def change(self, tenant: str, schedule_id: str, patch: bytes, by: str) -> Case:
        """Other times, policies or inputs; what was due before goes by the old ones."""

        def step(case: Case) -> tuple[Plan, Decided]:
            was, now, kept = case.plan.spec, case.seen.now, case.book.decided
            spec = edit_schedule(was, patch, now, HORIZON)
            if _retimes(was, spec):
                kept = retimed(kept, now)
            if was.enabled != spec.enabled:
                kept = (unbarred if spec.enabled else barred)(kept, now, "disabled")
            return replace(case.plan, spec=spec, did="changed"), kept

        off = _switches_off(patch)
        return await self._step(tenant, schedule_id, by, step, settle=not off)

    async def pause(
        self, tenant: str, schedule_id: str, by: str, reason: str, until: int | None
    ) -> Case:
        def step(case: Case) -> tuple[Plan, Decided]:
            now = case.seen.now
            if until is not None and until <= now:
                raise BadRequest("until has passed; name a time to come.", field="until")
            pause = Pause(since=now, by=by, reason=reason, until=until)
            kept = barred(case.book.decided, now, "paused", until)
            return replace(case.plan, pause=pause, stopped=None, did="paused"), kept

        return await self._step(tenant, schedule_id, by, step, settle=False)

    async def resume(self, tenant: str, schedule_id: str, by: str) -> Case:
        def step(case: Case) -> tuple[Plan, Decided]:
            kept = unbarred(case.book.decided, case.seen.now, "paused")
            return replace(case.plan, pause=None, stopped=None, did="resumed"), kept

        return await self._step(tenant, schedule_id, by, step)

    async def remove(self, tenant: str, schedule_id: str, by: str) -> None:
        """What it has started goes on; nothing of it waits any more, or for anybody."""
        for _ in range(MOST_RACES):
            case, now = await self.find(tenant, schedule_id), self._clock.millis()
            rows = await self._let_go_to_the_last(case)
            plan = replace(case.plan, did="removed")
            batch = Batch(
                guards=[guard_of(case.record)],
                records=[
                    plan_record(tenant, plan, by, now, gone=True),
                    subscription_record(tenant, plan, by, now, gone=True),
                ],
                ledgers=[
                    ledger_row(tenant, schedule_id, case.book, case.ledger.revision, None, True)
                ],
                deliveries=[_let_go(row, now) for row in rows],
            )
            if await self._committed(tenant, schedule_id, batch, rows):
                if tenant in self._counts:
                    self._counts[tenant] -= 1
                return
        raise Overtaken(schedule_id)

    async def _let_go_to_the_last(self, case: Case) -> list[Delivery]:
        """What asks for somebody, or waits, is let go page by page; the last page is given back."""
        where = DeliveryFilter(subscription=case.plan.subscription, states=OWED)
        for _ in range(MOST_PAGES):
            rows, cursor = await self._store.deliveries(case.tenant, where, None, PAGE)
            if cursor is None:
                return rows
            now = self._clock.millis()
            with suppress(Overtaken):  # somebody was at one of them: they are read again
                await self._store.commit(Batch(deliveries=[_let_go(row, now) for row in rows]))
        raise Overtaken(case.plan.spec.schedule_id)

    async def _step(
        self, tenant: str, schedule_id: str, by: str, step: Step, settle: bool = True
    ) -> Case:
        """What is to stop does not begin anything on the way there: then nothing is settled."""
        for _ in range(MOST_RACES):
            if settle:
                await self._settle(tenant, schedule_id)
            case = await self.find(tenant, schedule_id)
            plan, kept = step(case)
            now = case.seen.now
            guards = [guard_of(case.record)]
            if plan.spec != case.plan.spec:
                guards += await self.check(tenant, plan.spec)
            elif case.plan.pause is not None and plan.pause is None:
                guards += await self._whose(tenant, plan.spec)
            book, before = replace(case.book, decided=kept), case.ledger.revision
            batch = Batch(
                guards=guards,
                records=[plan_record(tenant, plan, by, now)],
                ledgers=[ledger_row(tenant, schedule_id, book, before, now)],
            )
            if await self._committed(tenant, schedule_id, batch):
                await self._settle(tenant, schedule_id)
                self._clockwork.rounds.look()
                return await self.find(tenant, schedule_id)
        raise Overtaken(schedule_id)

    async def _settle(self, tenant: str, schedule_id: str) -> None:
        """A spec that cannot be read any more has nothing due, and can be changed."""
        try:
            await self._clockwork.look(tenant, schedule_id)
        except ScheduleRefused:
            return

    async def _committed(
        self, tenant: str, schedule_id: str, batch: Batch, was: Iterable[Delivery] = ()
    ) -> bool:
        try:
            await self._clockwork.news.commit(batch, was)
        except Overtaken:
            return False
        finally:
            self._clockwork.sight.forget(tenant, schedule_id)
        return True

    # -- by hand -----------------------------------------------------------------------------

    async def run(
        self, tenant: str, schedule_id: str, overlap: Overlap | None, dry: bool
    ) -> list[Done]:
        """Now, of no slot. Raises ScheduleOff, ScheduleBusy, MemberOffDuty, NotInPortfolio."""

        def decide(case: Case) -> Decision:
            return run_now(case.plan.spec, case.book.decided, case.seen, overlap)

        return await self._clockwork.act(tenant, schedule_id, decide, dry)

    async def skip(
        self, tenant: str, schedule_id: str, by: str, dry: bool, undo: bool = False
    ) -> int:
        """Leaves the next slot out, or takes the last one in again, and says which. Raises
        ScheduleRefused if none is to come."""

        def decided(case: Case) -> tuple[int, Decided]:
            kept = case.book.decided
            return unskip(kept) if undo else skip_next(case.plan.spec, kept)

        if dry:
            return decided(await self.find(tenant, schedule_id))[0]
        slot = 0

        def step(case: Case) -> tuple[Plan, Decided]:
            nonlocal slot
            slot, kept = decided(case)
            return replace(case.plan, did="unskipped" if undo else "skipped"), kept

        await self._step(tenant, schedule_id, by, step)
        return slot

    async def backfill(
        self, tenant: str, schedule_id: str, between: tuple[int, int],
        overlap: Overlap | None, dry: bool, paused: bool = False,
    ) -> list[Done]:  # fmt: skip
        """Slots of the past that have had no run. Raises ScheduleOff, ScheduleBusy,
        ScheduleRefused."""
        ran = await self._ran(tenant, schedule_id, between)

        def decide(case: Case) -> Decision:
            policy, kept = overlap or "buffer-all", case.book.decided
            return backfill(case.plan.spec, kept, case.seen, between, ran, policy, paused)

        return await self._clockwork.act(tenant, schedule_id, decide, dry)

    async def run_missed(
        self, tenant: str, schedule_id: str, delivery_id: str, dry: bool
    ) -> list[Done]:
        """The newest slot of a row of missed ones, which then are nobody's matter any more; or that
        of a run that could not begin, which is none either once it has begun."""
        case = await self.find(tenant, schedule_id)
        row = await self._row(case, delivery_id)
        fire = fire_of(row)
        slot = fire.slot if fire.until is None else fire.until
        policy = case.plan.spec.overlap
        done = await self.backfill(tenant, schedule_id, (slot, slot), policy, dry, paused=True)
        if not done:
            message = "That slot has had its run, or the schedule has other times now; run it now."
            raise ScheduleRefused("fire", message)
        if not dry and row.state == "missed":
            await self.dismiss(tenant, schedule_id, delivery_id)
        return done

    async def dismiss(self, tenant: str, schedule_id: str, delivery_id: str) -> Delivery:
        """A row of missed slots, or a run that could not begin, is nobody's matter any more."""
        for _ in range(MOST_RACES):
            case = await self.find(tenant, schedule_id)
            row = await self._row(case, delivery_id)
            if row.state not in ("missed", "dead"):
                return row
            now = self._clock.millis()
            seen = _let_go(row, now)
            book = replace(case.book, tail=None)
            ledger = ledger_row(tenant, schedule_id, book, case.ledger.revision, case.ledger.due_at)
            batch = Batch(deliveries=[seen], ledgers=[ledger])
            if await self._committed(tenant, schedule_id, batch, [row]):
                return seen
        raise Overtaken(schedule_id)

    async def _row(self, case: Case, delivery_id: str) -> Delivery:
        row = await self._store.delivery_by_id(case.tenant, delivery_id)
        if row is None or row.subscription != case.plan.subscription:
            raise NotFound("There is no such fire; see those of the schedule.", id=delivery_id)
        return row

    async def _ran(self, tenant: str, schedule_id: str, between: tuple[int, int]) -> set[int]:
        """Slots that have had a run; rows are newest first, and no run is older than its slot."""
        case, ran, cursor = await self.find(tenant, schedule_id), set(), None
        where = DeliveryFilter(subscription=case.plan.subscription, states=("delivered",))
        while True:
            found, cursor = await self._store.deliveries(tenant, where, cursor, PAGE)
            ran |= {fire.slot for fire in map(fire_of, found) if fire.cause != "manual"}
            if cursor is None or not found or found[-1].received_at < between[0]:
                return ran

    # -- checks ------------------------------------------------------------------------------

    async def _refuse_too_many(self, tenant: str) -> None:
        if tenant not in self._counts:
            self._counts[tenant] = len(await self._store.records(tenant, KIND))
        if self._counts[tenant] >= MOST_SCHEDULES:
            raise BadRequest(f"There are {MOST_SCHEDULES} schedules; remove one first.")

    async def check(self, tenant: str, spec: Schedule, flow: Flow | None = None) -> list[Guard]:
        """What it names is there, and its inputs and its condition can be used; so long as the
        guards hold. ``flow`` is a workflow that is not registered yet."""
        check_condition(spec.condition)
        try:
            flow = flow or await self._flows.newest(tenant, spec.workflow_id)
        except NotFound as refusal:
            raise ScheduleRefused("workflowId", refusal.message) from None
        check_inputs(flow, {**given_by(spec, flow), **(spec.inputs or {})})
        if spec.roster_id is None:
            return []
        try:
            seat = await self._roster.must_find(tenant, spec.roster_id)
        except NotFound as refusal:
            raise ScheduleRefused("rosterId", refusal.message) from None
        if spec.workflow_id not in seat.entry.workflows:
            message = f"{spec.workflow_id} is none of the workflows of {spec.roster_id}."
            raise ScheduleRefused("workflowId", message)
        return [seat.guard]

    async def _whose(self, tenant: str, spec: Schedule) -> list[Guard]:
        """That whoever it belongs to is here. Raises MemberGone."""
        if spec.roster_id is None:
            return []
        seat = await self._roster.find(tenant, spec.roster_id)
        if seat is None:
            raise MemberGone(spec.roster_id)
        return [seat.guard]


def _let_go(row: Delivery, now: int) -> Delivery:
    return replace(row, state="skipped", revision=row.revision + 1, updated_at=now, due_at=None)


class _Switch(Struct):
    enabled: Any = None


def _switches_off(patch: bytes) -> bool:
    try:
        return msgspec.json.decode(patch, type=_Switch).enabled is False
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False  # whoever reads it all says what is wrong


def _retimes(was: Schedule, spec: Schedule) -> bool:
    try:
        return retimes(was, spec)
    except ScheduleRefused:
        return True  # the times it had cannot be read any more
