"""What a decision about a schedule relies on, read from the store, and the guards that hold it."""

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster import Roster
from moot.clock import Clock
from moot.core.errors import NotFound
from moot.core.schedule import Bar, Seen
from moot.store.protocol import Guard, Ledger, Store
from moot.store.standing import Record
from moot.triggers import idle
from moot.triggers.plans import (
    KIND,
    Book,
    Plan,
    book_of,
    guard_of,
    plan_of,
)

MOST_KNOWN = 20_000

OFF = Bar(0, None, "disabled")


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

    def __init__(self, store: Store, clock: Clock, roster: Roster) -> None:
        self._store, self._clock, self._roster = store, clock, roster
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
        bars = await self._bars(tenant, plan, guards)
        book = replace(kept, going=await self._going(tenant, kept))
        work = await idle.work(self._store, tenant, plan, book, at)
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

    async def _bars(self, tenant: str, plan: Plan, guards: list[Guard]) -> list[Bar]:
        """What holds a schedule up from outside: its member."""
        bars: list[Bar] = []
        spec = plan.spec
        if spec.roster_id is None:
            return bars
        seat = await self._roster.find(tenant, spec.roster_id)
        if seat is None:
            return [OFF]
        guards.append(seat.guard)
        if not seat.entry.enabled or spec.workflow_id not in seat.entry.workflows:
            bars.append(OFF)
        if (pause := seat.hired.pause) is not None:
            bars.append(Bar(pause.since, pause.until, "paused"))
        return bars

    async def _going(self, tenant: str, book: Book) -> tuple[str, ...]:
        """Of its runs, those that have not ended."""
        going = []
        for run_id in book.going:
            row = await self._store.find_run(tenant, run_id)
            if row is not None and row.ended_at is None:
                going.append(run_id)
        return tuple(going)
