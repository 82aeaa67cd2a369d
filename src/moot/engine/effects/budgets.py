"""Budgets: of standing agents for a day and a month, of a tenant for a day.

Usage is counted from the log, so that no restart forgets it and no second account exists.
"""

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime

from msgspec import Struct

from moot.agents.roster.members import MemberVersion, RosterService
from moot.clock import Clock
from moot.core.errors import MootError
from moot.core.errors.models import DailyBudgetUsedUp, MemberBudgetUsedUp
from moot.core.errors.triggers import Overtaken
from moot.core.tenants import parent_tenant
from moot.store.protocol import Batch, LogStore
from moot.store.records import Delivery

log = logging.getLogger("moot.engine")

DAY_MS = 86_400_000
#: parts of one unit of money
MONEY_PARTS = 1_000_000
#: the used share of a limit at which people are warned
WARN_AT = 0.8
_EPOCH = date(1970, 1, 1).toordinal()
MOST_REMEMBERED = 4096
#: source of a notice about a limit, and its levels
BUDGET = "budget"
WARNED, STOPPED = "warned", "stopped"
#: with this many tokens left, one check a second is enough
PLENTY_TOKENS, PLENTY_MS = 2_000_000, 1000
MOST_TENANTS = 10_000


class BudgetLimit(Struct, frozen=True, kw_only=True, rename="camel"):
    """One limit of a standing agent, and how much of it is used."""

    name: str
    most: float
    used: float

    @property
    def share(self) -> float:
        return self.used / self.most


class AgentBudgets:
    """Checks the budgets of standing agents and writes notices about them."""

    def __init__(self, store: LogStore, clock: Clock, roster: RosterService) -> None:
        self._store, self._clock, self._roster = store, clock, roster
        #: (tenant, member, first day, today) -> usage before today, which no longer changes
        self._before: dict[tuple[str, str, int, int], tuple[int, int]] = {}
        #: (tenant, member, limit, day) of warnings given to the agent
        self._warned: set[tuple[str, str, str, int]] = set()
        #: (tenant, member, key) of notices that are on disk
        self._noticed: set[tuple[str, str, str]] = set()
        #: called with the tenant whose inbox has a new notice
        self.ring: Callable[[str], None] = lambda _: None

    async def first(self, tenant: str, names: tuple[str, ...]) -> str | None:
        for name in names:
            if await self._roster.find(tenant, name) is not None:
                return name
        return None

    async def bounds(self, tenant: str, member: MemberVersion) -> list[BudgetLimit]:
        """Return each limit of the member with its current usage."""
        budget, roster_id = member.hired.budget, member.entry.roster_id
        if budget is None:
            return []
        first, today = month_and_day(self._clock.millis())
        spent = await self._store.member_spending(tenant, roster_id, today, today)
        limits = _limits(budget.tokens_per_day, budget.money_per_day, spent, "Day")
        if budget.tokens_per_month is not None or budget.money_per_month is not None:
            before = await self._earlier(tenant, roster_id, first, today)
            total = (before[0] + spent[0], before[1] + spent[1])
            limits += _limits(budget.tokens_per_month, budget.money_per_month, total, "Month")
        return limits

    async def _bounds_of(self, tenant: str, name: str) -> list[BudgetLimit]:
        member = await self._roster.find(tenant, name)
        return [] if member is None else await self.bounds(tenant, member)

    async def check(self, tenant: str, member: str) -> str | None:
        """Raise MemberBudgetUsedUp before a model call, or return a warning once a day."""
        warning = None
        for limit in await self._bounds_of(tenant, member):
            if limit.used >= limit.most:
                refusal = _member_used_up_error(member, limit)
                await self._notice(tenant, member, limit, STOPPED, refusal.message)
                raise refusal
            if limit.share >= WARN_AT and self._is_first_warning(tenant, member, limit):
                warning = _warning_text(member, limit)
                await self._notice(tenant, member, limit, WARNED, warning)
        return warning

    async def warn_people(self, tenant: str, member: str) -> None:
        """Warn people after a model call, before the next one may be refused."""
        for limit in await self._bounds_of(tenant, member):
            if limit.share >= WARN_AT:
                await self._notice(tenant, member, limit, WARNED, _warning_text(member, limit))

    def _is_first_warning(self, tenant: str, member: str, limit: BudgetLimit) -> bool:
        key = (tenant, member, f"{limit.name}:{limit.most:g}", self._clock.millis() // DAY_MS)
        if key in self._warned:
            return False
        if len(self._warned) >= MOST_REMEMBERED:
            self._warned.clear()
        self._warned.add(key)
        return True

    async def _notice(
        self, tenant: str, member: str, limit: BudgetLimit, level: str, text: str
    ) -> None:
        """Write a notice for people once in a day or month, also over restarts."""
        now = self._clock.millis()
        row = Delivery(
            tenant=tenant,
            subscription=member,
            key=budget_notice_key(limit, level, now),
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
        if len(self._noticed) >= MOST_REMEMBERED:
            self._noticed.clear()
        try:
            await self._store.commit(Batch(deliveries=[row], inboxes=[tenant]))
        except Overtaken:
            pass  # the notice is on disk already
        except MootError:
            return  # the next call writes it
        self._noticed.add(place)
        self.ring(tenant)

    async def _earlier(self, tenant: str, member: str, first: int, today: int) -> tuple[int, int]:
        if first == today:
            return (0, 0)
        key = (tenant, member, first, today)
        if key not in self._before:
            if len(self._before) >= MOST_REMEMBERED:
                self._before.clear()
            self._before[key] = await self._store.member_spending(tenant, member, first, today - 1)
        return self._before[key]


def budget_notice_key(limit: BudgetLimit, level: str, now: int) -> str:
    """Return the key of a notice, unique for limit, amount, period and level."""
    month, today = month_and_day(now)
    period = month if limit.name.endswith("Month") else today
    return f"{limit.name}:{limit.most:.15g}:{period}:{level}"


def month_and_day(now: int) -> tuple[int, int]:
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    return today.replace(day=1).toordinal() - _EPOCH, today.toordinal() - _EPOCH


def _limits(
    tokens: int | None, money: float | None, spent: tuple[int, int], period: str
) -> list[BudgetLimit]:
    limits = []
    if tokens is not None:
        limits.append(BudgetLimit(name=f"tokensPer{period}", most=tokens, used=spent[0]))
    if money is not None:
        used = spent[1] / MONEY_PARTS
        limits.append(BudgetLimit(name=f"moneyPer{period}", most=money, used=used))
    return limits


def _limit_text(limit: BudgetLimit) -> str:
    return f"{limit.name} ({limit.used:g} of {limit.most:g})"


def _warning_text(member: str, limit: BudgetLimit) -> str:
    return f"{member} has used {limit.share:.0%} of its limit {_limit_text(limit)}."


def _member_used_up_error(member: str, limit: BudgetLimit) -> MemberBudgetUsedUp:
    when = "month" if limit.name.endswith("Month") else "day"
    return MemberBudgetUsedUp(
        f"{member} has used up its limit {_limit_text(limit)}; raise it, or wait for the next"
        f" {when} (UTC).",
        rosterId=member,
        limit=limit.name,
    )


class TenantBudget:
    """Checked before each model call; calls under way are still paid. A limit of 0 means none."""

    def __init__(self, store: LogStore, clock: Clock, tokens: int = 0, money: float = 0.0) -> None:
        self._store, self._clock = store, clock
        self._tokens, self._money = tokens, money
        #: tenant -> time until which it has plenty of tokens
        self._plenty: dict[str, int] = {}
        #: budgets of standing agents
        self.agent_budgets: AgentBudgets | None = None

    async def payer(self, tenant: str, names: tuple[str, ...]) -> str | None:
        return None if self.agent_budgets is None else await self.agent_budgets.first(tenant, names)

    async def check_call(self, tenant: str, member: str | None) -> str | None:
        """Raise BudgetUsedUp, or return a warning when a standing agent has little left."""
        await self.refuse_used_up(tenant)
        if member is None or self.agent_budgets is None:
            return None
        return await self.agent_budgets.check(tenant, member)

    async def warn_after_call(self, tenant: str, member: str | None) -> None:
        """Check the agent's limits after a call. Errors are only logged."""
        if member is None or self.agent_budgets is None:
            return
        try:
            await self.agent_budgets.warn_people(tenant, member)
        except MootError:
            return
        except Exception:
            log.exception("What %s has used up could not be looked at", member)

    async def refuse_used_up(self, tenant: str) -> None:
        now = self._clock.millis()
        if not (self._tokens or self._money) or now < self._plenty.get(tenant, 0):
            return
        tokens, money = await self._store.spent(parent_tenant(tenant), now // DAY_MS)
        if self._tokens and tokens >= self._tokens:
            raise _day_used_up_error("tokens", self._tokens, "MOOT_TENANT_TOKENS_PER_DAY")
        if self._money and money >= self._money * MONEY_PARTS:
            raise _day_used_up_error("money", self._money, "MOOT_TENANT_MONEY_PER_DAY")
        has_plenty = not self._money and self._tokens - tokens >= PLENTY_TOKENS
        if has_plenty and len(self._plenty) < MOST_TENANTS:
            self._plenty[tenant] = now + PLENTY_MS
        else:
            self._plenty.pop(tenant, None)


def _day_used_up_error(what: str, limit: float, setting: str) -> DailyBudgetUsedUp:
    return DailyBudgetUsedUp(
        f"The day's limit of {limit:.15g} ({what}) is reached; counting begins anew at midnight,"
        f" UTC. Whoever runs this host can raise {setting}, or set it to 0 for no bound.",
        limit=what,
    )
