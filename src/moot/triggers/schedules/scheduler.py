"""Schedules turn here: what is due is read, decided purely, and written with the runs it starts.

Nothing is kept in memory that matters. Whoever decides on the same ledger second is refused by the
store and looks again, so two hosts or a restart start no slot twice.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.commands import CancelRun
from moot.core.errors import MootError, Unavailable
from moot.core.errors.schedules import ScheduleRefused
from moot.core.errors.triggers import MemberOffDuty, NotInPortfolio, Overtaken
from moot.core.schedules.decide import bar_at, barred, decide_fires
from moot.core.schedules.manual import try_again
from moot.core.schedules.model import Decision, Fire, Seen
from moot.core.schedules.slots import ticks
from moot.core.state.run import Run
from moot.core.triggers.subscriptions import ITEM
from moot.engine.host import Host
from moot.engine.streams.hub import inbox_of
from moot.store.protocol import Batch, Delivery, Ledger, Store
from moot.triggers.notices import News
from moot.triggers.polling import Rounds
from moot.triggers.schedules.fire_rows import DEAD, Rows, fire_of, schedule_of, told, waiting
from moot.triggers.schedules.queue_items import hand_over, taken
from moot.triggers.schedules.records import (
    KIND,
    MOST_GOING,
    SOURCE,
    Book,
    Plan,
    book_of,
    ledger_row,
    plan_record,
)
from moot.triggers.schedules.retries import failed, stops_since
from moot.triggers.schedules.snapshot import Case, Sight
from moot.triggers.start_run import Claim, Firing, Order

log = logging.getLogger("moot.triggers")

#: schedules looked at side by side
PAGE = 64
MOST_RACES = 20
#: what waits for a run to end is looked at so often, whoever may have missed that end (ms)
GLANCE = 60_000
#: a schedule that cannot be decided is left alone so long (ms)
PUT_OFF = 60_000


#: a tenant and the id of its schedule
Place = tuple[str, str]


class Done(Struct, frozen=True):
    """A fire and the run that it began."""

    fire: Fire
    run_id: str | None = None


class Clockwork:
    def __init__(
        self, host: Host, store: Store, clock: Clock, firing: Firing, sight: Sight
    ) -> None:
        self._host, self._store, self._clock = host, store, clock
        self._firing, self.sight = firing, sight
        self.news = News(store, lambda tenant: host.hub.ring(inbox_of(tenant)))
        self.rounds = Rounds("Schedules", clock, self.next_due, self._round)
        host.endings.append(self._ended)
        #: hints: what this host has begun and not seen end, and where something waits for an end
        self._begun: dict[str, Place] = {}
        self._waiting: set[Place] = set()
        #: tells whoever carries what is tried again
        self.look_at_retries: Callable[[], None] = lambda: None

    async def next_due(self) -> int | None:
        """When (ms) the first schedule must be looked at."""
        return await self._store.next_ledger(KIND)

    async def _round(self, now: int) -> bool:
        due = await self._store.due_ledgers(KIND, now, PAGE)
        tended = await asyncio.gather(*(self._tend(each) for each in due), return_exceptions=True)
        for failure in tended:
            if failure is not None:
                raise failure
        return len(due) == PAGE

    async def _tend(self, ledger: Ledger) -> None:
        """One that cannot be decided does not hold up the others."""
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

    async def _put_off(self, ledger: Ledger, wait: int) -> None:
        later = replace(ledger, revision=ledger.revision + 1, due_at=self._clock.millis() + wait)
        try:
            await self._store.commit(Batch(ledgers=[later]))
        except Overtaken:
            return  # somebody has decided it

    # -- deciding ----------------------------------------------------------------------------

    async def look(
        self, tenant: str, schedule_id: str, now: int | None = None, ledger: Ledger | None = None
    ) -> list[Done]:
        """Decides all that is due. ``now`` is another instant than the clock's, for a trial;
        ``ledger`` the one that was just read."""
        done: list[Done] = []
        for _ in range(MOST_RACES):
            more = True
            while more:
                case, ledger = await self.sight.case(tenant, schedule_id, now, ledger), None
                if case is None:
                    return done
                decision = decide_fires(case.plan.spec, case.book.decided, case.seen)
                more = decision.more
                try:
                    done += await self.carry(case, decision)
                except (Overtaken, MemberOffDuty, NotInPortfolio):
                    self.sight.forget(tenant, schedule_id)
                    break
            else:
                return done
        raise Overtaken(schedule_id)

    async def act(
        self, tenant: str, schedule_id: str, decide: Callable[[Case], Decision], dry: bool
    ) -> list[Done]:
        """What somebody asks for by hand, after all that is due. Raises what ``decide`` raises, and
        MemberOffDuty and NotInPortfolio."""
        for _ in range(MOST_RACES):
            if not dry:
                await self.look(tenant, schedule_id)
            case = await self.sight.must(tenant, schedule_id)
            decision = decide(case)
            if dry:
                return [Done(fire) for fire in decision.fires]
            try:
                return await self.carry(case, decision, by_hand=True)
            except Overtaken:
                self.sight.forget(tenant, schedule_id)
        raise Overtaken(schedule_id)

    async def again(self, row: Delivery) -> None:
        """For the courier: another try of a run that could not be begun."""
        name = schedule_of(row.key)
        for _ in range(MOST_RACES):
            case = await self.sight.case(row.tenant, name)
            if case is None:
                gone = replace(row, state="skipped", due_at=None, revision=row.revision + 1)
                await self._store.commit(Batch(deliveries=[gone]))
                return
            spec, kept, since = case.plan.spec, case.book.decided, row.updated_at
            stops = await stops_since(self._store, row.tenant, name, since)
            seen = replace(case.seen, bars=(*case.seen.bars, *stops))
            try:
                await self.carry(case, try_again(spec, kept, seen, fire_of(row), since))
                return
            except (Overtaken, MemberOffDuty, NotInPortfolio):
                self.sight.forget(row.tenant, name)
                known = await self._store.delivery(row.tenant, row.subscription, row.key)
                if known is None or known.revision != row.revision:
                    return  # somebody else was at it
        raise Overtaken(row.delivery_id)

    # -- writing -----------------------------------------------------------------------------

    async def carry(self, case: Case, decision: Decision, by_hand: bool = False) -> list[Done]:
        """One transaction for each run, the first one with everything else that was decided.
        Starts after the first wait in the ledger until theirs, so that none is lost."""
        starts = [fire for fire in decision.fires if fire.act == "start"]
        others = [fire for fire in decision.fires if fire.act != "start"]
        writing = _Writing(case, decision, by_hand)
        rows = Rows(self._store, case.tenant, case.plan, case.seen.now, self._clock.new_id)
        placed = any(fire.act == "buffer" for fire in others)
        letters, tail = await rows.of(others, case.book.tail, bool(starts) or placed)
        writing.book = replace(writing.book, tail=None if starts else tail)
        place = case.tenant, case.plan.spec.schedule_id
        if decision.ledger.buffered or len(starts) > 1:
            self._waiting.add(place)
        if not starts:
            await self._write(case, writing, letters)
            return [Done(fire) for fire in others]
        done = [Done(fire) for fire in others]
        for number, fire in enumerate(starts):
            run = await self._start(case, rows, fire, writing.rest(starts[number + 1 :]), letters)
            letters = []
            done.append(Done(fire, None if run is None else run.run_id))
            if run is None and by_hand:
                break
        return done

    async def _write(
        self, case: Case, writing: "_Writing", letters: list[Delivery], plan: Plan | None = None
    ) -> None:
        after = writing.ledger(writing.book)
        if not letters and after.body == case.ledger.body and after.due_at == case.ledger.due_at:
            return
        batch = Batch(guards=case.guards, ledgers=[after], deliveries=letters)
        if plan is not None:
            batch.records = [plan_record(case.tenant, plan, "moot", case.seen.now)]
            self.sight.forget(case.tenant, plan.spec.schedule_id)
        await self.news.commit(batch)

    async def _start(
        self, case: Case, rows: Rows, fire: Fire, writing: "_Writing", letters: list[Delivery]
    ) -> Run | None:
        """The run of a fire; None when it could not be begun, which is then on disk instead."""
        row, delivered = await rows.start(fire)
        spec = case.plan.spec
        order = Order(
            tenant=case.tenant,
            workflow_id=spec.workflow_id,
            source=SOURCE,
            principal=case.plan.owner,
            roster_id=spec.roster_id,
            inputs=spec.inputs or {},
            delivered=delivered,
            trigger=told(case.plan, row, fire),
        )
        place = case.tenant, spec.schedule_id

        def ledger_of(run: Run) -> Ledger:
            self._begun[run.run_id] = place  # it may end with the commit that begins it
            return writing.with_run(run)

        claim = Claim(guards=case.guards, deliveries=[row], others=letters, ledger_of=ledger_of)
        if any(each.outcome == DEAD for each in row.attempts):
            claim.inboxes = [case.tenant]  # people were told that it could not begin
        try:
            order = await self._with_items(case, fire, order, claim)
            await self._cancel(order, fire.cancels)
            run = await self._firing.start(order, claim)
        except (Overtaken, MemberOffDuty, NotInPortfolio, Unavailable):
            self._begun.pop(writing.book.last_run or "", None)
            raise
        except MootError as refusal:
            log.warning("Schedule %s could not start its run: %s", spec.schedule_id, refusal)
            why = f"{refusal.code}: {refusal.message}"[:500]
            await self._unbegun(case, writing, letters, await rows.failed(fire, why))
            return None
        finally:
            writing.revision += 1
        return run

    async def _with_items(self, case: Case, fire: Fire, order: Order, claim: Claim) -> Order:
        """A schedule that waits for work is given the work. Raises Overtaken when somebody else
        took it, and the time goes without."""
        condition = case.plan.spec.condition
        if condition is None or condition.queue is None:
            return order
        found = await taken(self._store, case.tenant, condition.queue)
        if not found.rows and fire.cause in ("slot", "catch-up"):
            raise Overtaken(case.plan.spec.schedule_id)
        flow = await self._host.flows.newest(case.tenant, order.workflow_id)
        return hand_over(found, order, claim, flow, self._clock.millis())

    async def _unbegun(
        self, case: Case, writing: "_Writing", letters: list[Delivery], row: Delivery
    ) -> None:
        """Whoever asks for a run by hand is told, and may ask again; others are tried again."""
        if writing.by_hand:
            await self._write(case, writing, [*letters, row])
            return
        found = await failed(self._store, case, row, self._clock.millis())
        if found.plan is not None:
            writing.stop()
        await self._write(case, writing, [*letters, found.row], found.plan)
        self.look_at_retries()

    async def _cancel(self, order: Order, run_ids: tuple[str, ...]) -> None:
        """What makes room goes first, so that a crash in between leaves the slot to be decided
        again; but only when there is something to make room for."""
        if run_ids:
            await self._firing.drawn(order)
        for run_id in run_ids:
            command = CancelRun(self._clock.millis(), "schedule-overlap")
            try:
                await self._host.handle(order.tenant, run_id, command)
            except Unavailable:
                raise
            except MootError:
                continue  # it has ended meanwhile

    # -- ends of runs ------------------------------------------------------------------------

    def _ended(self, run: Run) -> None:
        """What waits for a run of the same schedule has its turn now."""
        if run.delivery is None or run.replayed or run.delivery[1].startswith(ITEM):
            return
        place = self._begun.pop(run.run_id, None)
        if place is None or place in self._waiting:
            self._waiting.discard(place or ("", ""))
            self._host.tasks.start(self._after(run.tenant, run.delivery[1]))

    async def _after(self, tenant: str, delivery_id: str) -> None:
        row = await self._store.delivery_by_id(tenant, delivery_id)
        if row is None or row.source != SOURCE:
            return
        ledger = await self._store.ledger(tenant, KIND, schedule_of(row.key))
        if ledger is not None and book_of(ledger).decided.buffered:
            await self._tend(ledger)
            self.rounds.look()


class _Writing:
    """The ledger as it goes on from one transaction of a decision to the next."""

    def __init__(self, case: Case, decision: Decision, by_hand: bool) -> None:
        self._case, self._decision, self.by_hand = case, decision, by_hand
        self.book = replace(case.book, decided=decision.ledger)
        if any(fire.cause != "manual" and not fire.waited for fire in decision.fires):
            self.book = replace(self.book, observed=case.observed)
        self.revision = case.ledger.revision
        self._rest: list[Fire] = []

    def rest(self, starts: list[Fire]) -> "_Writing":
        """The next transaction: these starts are still to come."""
        self._rest = starts
        return self

    def stop(self) -> None:
        """Nothing starts from now on."""
        stopped = barred(self._decision.ledger, self._case.seen.now, "paused")
        self._decision = replace(self._decision, ledger=stopped)

    def with_run(self, run: Run) -> Ledger:
        now = self._case.seen.now
        going = (*self.book.going, run.run_id)[-MOST_GOING:]
        self.book = replace(self.book, going=going, last_run=run.run_id, last_fire=now)
        return self.ledger(self.book)

    def ledger(self, book: Book) -> Ledger:
        case, now = self._case, self._case.seen.now
        kept = self._decision.ledger
        if self._rest:
            later = tuple(waiting(fire, now) for fire in self._rest)
            kept = replace(kept, buffered=(*later, *kept.buffered))
        book = replace(book, decided=kept)
        due = now if self._rest or self._decision.more else _due(case, self._decision)
        name = case.plan.spec.schedule_id
        return ledger_row(case.tenant, name, book, self.revision, due)


def _due(case: Case, decision: Decision) -> int | None:
    """When to look again. While only others hold it up, every slot is recorded as it passes."""
    now, spec, kept = case.seen.now, case.plan.spec, decision.ledger
    due = decision.wake_at
    own = bar_at(spec, kept, Seen(now=now), now)
    if own is not None:
        due = own.until
    elif any(bar.holds(now) for bar in case.seen.bars):
        following = next(ticks(spec, kept.decided), None)
        due = following.due if following is not None else None
    if kept.buffered:
        due = now + GLANCE if due is None else min(due, now + GLANCE)
    return due
