"""What standing agents may use up in a day and in a month. Counted by the log, as their runs are:
no restart forgets it, and nobody keeps a second account."""

from collections.abc import Callable
from datetime import UTC, date, datetime

from msgspec import Struct

from moot.agents.roster.members import Roster, Seat
from moot.clock import Clock
from moot.core.errors import MootError
from moot.core.errors.models import MemberBudgetUsedUp
from moot.core.errors.triggers import Overtaken
from moot.store.protocol import Batch, Delivery, LogStore

DAY_MS = 86_400_000
#: money is counted in these parts
PARTS = 1_000_000
#: the share of a bound from which on it is said
WARN_AT = 0.8
_EPOCH = date(1970, 1, 1).toordinal()
MOST_KNOWN = 4096
#: source of a notice about a limit, and what it says
BUDGET = "budget"
WARNED, STOPPED = "warned", "stopped"


class Bound(Struct, frozen=True, kw_only=True, rename="camel"):
    """One limit of a member, and how much of it is used up."""

    name: str
    most: float
    used: float

    @property
    def share(self) -> float:
        return self.used / self.most


class Allowances:
    def __init__(self, store: LogStore, clock: Clock, roster: Roster) -> None:
        self._store, self._clock, self._roster = store, clock, roster
        #: (tenant, member, first day, today) -> what was used up before today; that is over
        self._before: dict[tuple[str, str, int, int], tuple[int, int]] = {}
        #: (tenant, member, bound, day) of what was said
        self._warned: set[tuple[str, str, str, int]] = set()
        #: (tenant, member, key) of notices that are on disk
        self._noticed: set[tuple[str, str, str]] = set()
        #: told of the tenant whose inbox has one more
        self.ring: Callable[[str], None] = lambda _: None

    async def first(self, tenant: str, names: tuple[str, ...]) -> str | None:
        """The first of them that is a standing agent."""
        for name in names:
            if await self._roster.find(tenant, name) is not None:
                return name
        return None

    async def bounds(self, tenant: str, seat: Seat) -> list[Bound]:
        """Each limit it has, as it stands now."""
        budget, member = seat.hired.budget, seat.entry.roster_id
        if budget is None:
            return []
        first, today = days(self._clock.millis())
        spent = await self._store.spent_by(tenant, member, today, today)
        found = _bounds(budget.tokens_per_day, budget.money_per_day, spent, "Day")
        if budget.tokens_per_month is not None or budget.money_per_month is not None:
            before = await self._earlier(tenant, member, first, today)
            total = (before[0] + spent[0], before[1] + spent[1])
            found += _bounds(budget.tokens_per_month, budget.money_per_month, total, "Month")
        return found

    async def check(self, tenant: str, member: str) -> str | None:
        """Before a call of a model. Raises MemberBudgetUsedUp; says once a day what is nearly
        used up."""
        seat = await self._roster.find(tenant, member)
        if seat is None or seat.hired.budget is None:
            return None
        said = None
        for bound in await self.bounds(tenant, seat):
            if bound.used >= bound.most:
                refusal = _used_up(member, bound)
                await self._notice(tenant, member, bound, STOPPED, refusal.message)
                raise refusal
            if bound.share >= WARN_AT and self._first(tenant, member, bound):
                said = _nearly(member, bound)
                await self._notice(tenant, member, bound, WARNED, said)
        return said

    async def note(self, tenant: str, member: str) -> None:
        """After a call of a model: people hear what is nearly used up before the next one, which
        may be refused."""
        seat = await self._roster.find(tenant, member)
        if seat is None or seat.hired.budget is None:
            return
        for bound in await self.bounds(tenant, seat):
            if bound.share >= WARN_AT:
                await self._notice(tenant, member, bound, WARNED, _nearly(member, bound))

    def _first(self, tenant: str, member: str, bound: Bound) -> bool:
        key = (tenant, member, f"{bound.name}:{bound.most:g}", self._clock.millis() // DAY_MS)
        if key in self._warned:
            return False
        if len(self._warned) >= MOST_KNOWN:
            self._warned.clear()
        self._warned.add(key)
        return True

    async def _notice(self, tenant: str, member: str, bound: Bound, level: str, text: str) -> None:
        """For people, once in a day or a month: on disk, so that no restart says it again."""
        now = self._clock.millis()
        row = Delivery(
            tenant=tenant,
            subscription=member,
            key=notice_key(bound, level, now),
            delivery_id=self._clock.new_id("ntc_"),
            source=BUDGET,
            state="notice",
            received_at=now,
            updated_at=now,
            member=member,
            subject=level,
            reason=text,
        )
        place = (tenant, member, row.key)
        if place in self._noticed:
            return
        if len(self._noticed) >= MOST_KNOWN:
            self._noticed.clear()
        try:
            await self._store.commit(Batch(deliveries=[row], inboxes=[tenant]))
        except Overtaken:
            pass  # it is on disk
        except MootError:
            return  # the next call says it again
        self._noticed.add(place)
        self.ring(tenant)

    async def _earlier(self, tenant: str, member: str, first: int, today: int) -> tuple[int, int]:
        if first == today:
            return (0, 0)
        key = (tenant, member, first, today)
        if key not in self._before:
            if len(self._before) >= MOST_KNOWN:
                self._before.clear()
            self._before[key] = await self._store.spent_by(tenant, member, first, today - 1)
        return self._before[key]


def notice_key(bound: Bound, level: str, now: int) -> str:
    """Of a limit as high as this, in the day or month of ``now``: one notice of each level."""
    month, today = days(now)
    period = month if bound.name.endswith("Month") else today
    return f"{bound.name}:{bound.most:.15g}:{period}:{level}"


def days(now: int) -> tuple[int, int]:
    """The first day of this month and today, by UTC."""
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    return today.replace(day=1).toordinal() - _EPOCH, today.toordinal() - _EPOCH


def _bounds(
    tokens: int | None, money: float | None, spent: tuple[int, int], period: str
) -> list[Bound]:
    found = []
    if tokens is not None:
        found.append(Bound(name=f"tokensPer{period}", most=tokens, used=spent[0]))
    if money is not None:
        found.append(Bound(name=f"moneyPer{period}", most=money, used=spent[1] / PARTS))
    return found


def _told(bound: Bound) -> str:
    return f"{bound.name} ({bound.used:g} of {bound.most:g})"


def _nearly(member: str, bound: Bound) -> str:
    return f"{member} has used {bound.share:.0%} of its limit {_told(bound)}."


def _used_up(member: str, bound: Bound) -> MemberBudgetUsedUp:
    when = "month" if bound.name.endswith("Month") else "day"
    return MemberBudgetUsedUp(
        f"{member} has used up its limit {_told(bound)}; raise it, or wait for the next {when}"
        " (UTC).",
        rosterId=member,
        limit=bound.name,
    )
