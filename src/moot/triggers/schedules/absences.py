"""Times when a standing agent was away, as bars of its schedules.

The times come from the history of the member, so a member that is back before the next look is
still counted as absent for that time."""

from collections import OrderedDict

from msgspec import Struct

from moot.agents.roster.members import MemberVersion, PausePeriod, RosterService, member_from_record
from moot.core.schedules.model import BlockedPeriod
from moot.store.records import Record

MOST_KNOWN = 10_000

#: the bar of a member that does not exist
MEMBER_GONE = BlockedPeriod(0, None, "disabled")


class MemberPeriod(Struct, frozen=True):
    """One version of a member and the time it was valid."""

    since: int
    until: int | None
    on: bool
    pause: PausePeriod | None
    workflows: tuple[str, ...]

    def bars(self, workflow_id: str | None) -> list[BlockedPeriod]:
        bars = []
        if not self.on or (workflow_id is not None and workflow_id not in self.workflows):
            bars.append(BlockedPeriod(self.since, self.until, "disabled"))
        if self.pause is not None:
            ends = [end for end in (self.until, self.pause.until) if end is not None]
            since, until = max(self.since, self.pause.since), min(ends, default=None)
            if until is None or since < until:
                bars.append(BlockedPeriod(since, until, "paused"))
        return bars


class Absences:
    """Reads the history of members, once for each version."""

    def __init__(self, roster: RosterService) -> None:
        self._roster = roster
        self._cache: OrderedDict[tuple[str, str], tuple[int, list[MemberPeriod]]] = OrderedDict()

    async def bars_of(
        self, tenant: str, member: MemberVersion, workflow_id: str | None, after: int
    ) -> list[BlockedPeriod]:
        """Return the bars of a member that end after ``after``. With ``workflow_id``, add the
        times when that was not its workflow. They are valid while the guard of the member
        holds."""
        periods = await self._periods(tenant, member)
        return [
            bar
            for period in periods
            if period.until is None or period.until > after
            for bar in period.bars(workflow_id)
            if bar.until is None or bar.until > after
        ]

    async def _periods(self, tenant: str, member: MemberVersion) -> list[MemberPeriod]:
        """Return the periods from the newest version to the oldest."""
        key, revision = (tenant, member.entry.roster_id), member.guard.revision
        cached = self._cache.get(key)
        if cached is not None and cached[0] == revision:
            return cached[1]
        history = await self._roster.history(*key)
        history = [record for record in history if record.revision <= revision]
        ends = [None, *(record.created_at for record in history)]
        periods = [_period(record, end) for record, end in zip(history, ends, strict=False)]
        self._cache[key] = revision, periods
        if len(self._cache) > MOST_KNOWN:
            self._cache.popitem(last=False)
        return periods


def _period(record: Record, until: int | None) -> MemberPeriod:
    member = member_from_record(record)
    on = member.entry.enabled and not record.gone
    return MemberPeriod(record.created_at, until, on, member.pause, member.entry.workflows)
