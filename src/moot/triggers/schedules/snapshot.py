"""What a decision about a schedule relies on, read from the store, and the guards that hold it."""

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Roster
from moot.clock import Clock
from moot.core.errors import MootError, NotFound
from moot.core.runs import handles
from moot.core.schedules.model import Bar, Seen
from moot.engine.agents.pins import MOST_MEMBERS
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Guard, Ledger, Store
from moot.store.records import Record
from moot.triggers.schedules import conditions
from moot.triggers.schedules.absences import GONE, Absences
from moot.triggers.schedules.records import KIND, Book, Plan, book_of, guard_of, plan_of

MOST_KNOWN = 20_000


class Case(Struct, frozen=True, kw_only=True):
    """A schedule as it was seen. What is decided on it holds only while the guards do."""

    tenant: str
    record: Record
    plan: Plan
    ledger: Ledger
    book: Book
    seen: Seen
    guards: list[Guard]
    #: what its condition has seen
    observed: str | None = None


class Sight:
    """Records that were read before are not read again: if one has changed, its guard says so."""

    def __init__(self, store: Store, clock: Clock, roster: Roster, flows: Flows) -> None:
        self._store, self._clock, self._roster, self._flows = store, clock, roster, flows
        self._absences = Absences(roster)
        self._known: OrderedDict[tuple[str, str], tuple[Record, Plan]] = OrderedDict()

    def forget(self, tenant: str, schedule_id: str) -> None:
        self._known.pop((tenant, schedule_id), None)

    async def must(self, tenant: str, schedule_id: str) -> Case:
        """As it is on disk now. Raises NotFound."""
        self.forget(tenant, schedule_id)
        case = await self.case(tenant, schedule_id)
        if case is None:
            raise NotFound(
                "There is no such schedule; see the list of them.", scheduleId=schedule_id[:128]
            )
        return case

    async def case(
        self, tenant: str, schedule_id: str, now: int | None = None, ledger: Ledger | None = None
    ) -> Case | None:
        """None when there is no such schedule; then nothing is left of it."""
        ledger = ledger or await self._store.ledger(tenant, KIND, schedule_id)
        found = await self._record(tenant, schedule_id)
        if found is None or ledger is None:
            return None
        record, plan = found
        at = self._clock.millis() if now is None else now
        kept, guards = book_of(ledger), [guard_of(record)]
        bars = await self._bars(tenant, plan, kept, guards)
        book = replace(kept, going=await self._going(tenant, kept))
        work = await conditions.work(self._store, tenant, plan, book, at)
        seen = Seen(
            now=at,
            going=book.going,
            work=work.there,
            bars=tuple(bars),
        )
        return Case(
            tenant=tenant,
            record=record,
            plan=plan,
            ledger=ledger,
            book=book,
            seen=seen,
            guards=guards,
            observed=work.observed,
        )

    async def _record(self, tenant: str, schedule_id: str) -> tuple[Record, Plan] | None:
        known = self._known.get((tenant, schedule_id))
        if known is not None:
            return known
        record = await self._store.record(tenant, KIND, schedule_id)
        if record is None:
            return None
        self._known[tenant, schedule_id] = found = (record, plan_of(record))
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return found

    async def _bars(self, tenant: str, plan: Plan, book: Book, guards: list[Guard]) -> list[Bar]:
        """What holds a schedule up from outside: its member, and whoever its workflow cannot begin
        without. Also what has, since its slots were last decided."""
        spec, bars = plan.spec, list[Bar]()
        after = min((book.decided.decided, *(one.since for one in book.decided.buffered)))
        if spec.roster_id is not None:
            seat = await self._roster.find(tenant, spec.roster_id)
            if seat is None:
                guards.append(await self._roster.guard(tenant, spec.roster_id))
                return [GONE]
            guards.append(seat.guard)
            bars += await self._absences.of(tenant, seat, spec.workflow_id, after)
        for handle in await self._named(tenant, spec.workflow_id):
            seat = await self._roster.find(tenant, handle) if handle != spec.roster_id else None
            if seat is not None:
                guards.append(seat.guard)
                bars += await self._absences.of(tenant, seat, None, after)
        return bars

    async def _named(self, tenant: str, workflow_id: str) -> list[str]:
        """Who carries out nodes of it. What cannot be begun at all says so when it is to begin."""
        try:
            flow = await self._flows.newest(tenant, workflow_id)
        except MootError:
            return []
        return handles.own(flow)[:MOST_MEMBERS]

    async def _going(self, tenant: str, book: Book) -> tuple[str, ...]:
        """Of its runs, those that have not ended."""
        going = []
        for run_id in book.going:
            row = await self._store.find_run(tenant, run_id)
            if row is not None and row.ended_at is None:
                going.append(run_id)
        return tuple(going)
