"""Read everything that a decision about a schedule relies on, with its guards."""

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import RosterService
from moot.clock import Clock
from moot.core.errors import MootError, NotFound
from moot.core.runs import standing_agents
from moot.core.schedules.model import BlockedPeriod, ScheduleFacts
from moot.engine.start import MOST_MEMBERS
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Store
from moot.store.records import Guard, LedgerRow, Record
from moot.triggers.schedules import conditions
from moot.triggers.schedules.absences import MEMBER_GONE, Absences
from moot.triggers.schedules.records import (
    SCHEDULE_KIND,
    ScheduleLedger,
    ScheduleRecord,
    ledger_row,
    schedule_from_record,
    schedule_ledger_from_row,
)

MOST_KNOWN = 20_000


class ScheduleSnapshot(Struct, frozen=True, kw_only=True):
    """A schedule at one time. A decision on it is valid only while its guards hold."""

    tenant: str
    record: Record
    plan: ScheduleRecord
    ledger: LedgerRow
    book: ScheduleLedger
    seen: ScheduleFacts
    guards: list[Guard]
    #: the value of its condition
    observed: str | None = None

    @property
    def schedule_id(self) -> str:
        return self.record.name

    def next_ledger(
        self, book: ScheduleLedger, due_at: int | None, gone: bool = False
    ) -> LedgerRow:
        """Return the ledger that follows the one of this snapshot."""
        before = self.ledger.revision
        return ledger_row(self.tenant, self.schedule_id, book, before, due_at, gone)


class ScheduleReader:
    """Reads schedules, and caches their records. A guard fails when a cached record has changed."""

    def __init__(
        self, store: Store, clock: Clock, roster: RosterService, flows: WorkflowRegistry
    ) -> None:
        self._store, self._clock, self._roster, self._flows = store, clock, roster, flows
        self._absences = Absences(roster)
        self._cache: OrderedDict[tuple[str, str], tuple[Record, ScheduleRecord]] = OrderedDict()

    def forget(self, tenant: str, schedule_id: str) -> None:
        self._cache.pop((tenant, schedule_id), None)

    async def must_read(self, tenant: str, schedule_id: str) -> ScheduleSnapshot:
        """Return the schedule as it is on disk now. Raise NotFound."""
        self.forget(tenant, schedule_id)
        snapshot = await self.read(tenant, schedule_id)
        if snapshot is None:
            message = "There is no such schedule; see the list of them."
            raise NotFound(message, scheduleId=schedule_id[:128])
        return snapshot

    async def read(
        self, tenant: str, schedule_id: str, now: int | None = None, ledger: LedgerRow | None = None
    ) -> ScheduleSnapshot | None:
        """Return the schedule, or None when it does not exist."""
        ledger = ledger or await self._store.ledger(tenant, SCHEDULE_KIND, schedule_id)
        cached = await self._record(tenant, schedule_id)
        if cached is None or ledger is None:
            return None
        record, schedule = cached
        at = self._clock.millis() if now is None else now
        stored_ledger, guards = schedule_ledger_from_row(ledger), [record.guard]
        bars = await self._bars(tenant, schedule, stored_ledger, guards)
        book = replace(stored_ledger, going=await self._unfinished_runs(tenant, stored_ledger))
        work = await conditions.evaluate_condition(self._store, tenant, schedule, book, at)
        facts = ScheduleFacts(now=at, going=book.going, work=work.there, bars=tuple(bars))
        return ScheduleSnapshot(
            tenant=tenant, record=record, plan=schedule, ledger=ledger, book=book, seen=facts,
            guards=guards, observed=work.observed,
        )  # fmt: skip

    async def _record(self, tenant: str, schedule_id: str) -> tuple[Record, ScheduleRecord] | None:
        cached = self._cache.get((tenant, schedule_id))
        if cached is not None:
            return cached
        record = await self._store.record(tenant, SCHEDULE_KIND, schedule_id)
        if record is None:
            return None
        self._cache[tenant, schedule_id] = entry = (record, schedule_from_record(record))
        if len(self._cache) > MOST_KNOWN:
            self._cache.popitem(last=False)
        return entry

    async def _bars(
        self,
        tenant: str,
        schedule: ScheduleRecord,
        schedule_ledger: ScheduleLedger,
        guards: list[Guard],
    ) -> list[BlockedPeriod]:
        """Return the bars of its member and of the members that its workflow needs, since the last
        decision. Add their guards."""
        spec, bars = schedule.spec, list[BlockedPeriod]()
        decided = schedule_ledger.decided
        since = min((decided.decided, *(slot.since for slot in decided.buffered)))
        if spec.roster_id is not None:
            member = await self._roster.find(tenant, spec.roster_id)
            if member is None:
                guards.append(await self._roster.guard(tenant, spec.roster_id))
                return [MEMBER_GONE]
            guards.append(member.guard)
            bars += await self._absences.bars_of(tenant, member, spec.workflow_id, since)
        for handle in await self._workflow_members(tenant, spec.workflow_id):
            member = await self._roster.find(tenant, handle) if handle != spec.roster_id else None
            if member is not None:
                guards.append(member.guard)
                bars += await self._absences.bars_of(tenant, member, None, since)
        return bars

    async def _workflow_members(self, tenant: str, workflow_id: str) -> list[str]:
        """Return the members that carry out nodes of the workflow. A workflow that cannot start
        fails at its start."""
        try:
            flow = await self._flows.newest(tenant, workflow_id)
        except MootError:
            return []
        return list(standing_agents.node_handles(flow)[:MOST_MEMBERS])

    async def _unfinished_runs(
        self, tenant: str, schedule_ledger: ScheduleLedger
    ) -> tuple[str, ...]:
        """Return those of its runs that have not ended."""
        rows = [await self._store.find_run(tenant, run_id) for run_id in schedule_ledger.going]
        return tuple(row.run_id for row in rows if row is not None and row.ended_at is None)
