"""Daily budget of a tenant, counted from the log, so that no restart forgets it."""

import logging

from moot.clock import Clock
from moot.core.errors import MootError
from moot.core.errors.models import DailyBudgetUsedUp
from moot.core.tenants import parent_tenant
from moot.engine.effects.agent_budgets import DAY_MS, MONEY_PARTS, AgentBudgets
from moot.store.protocol import LogStore

log = logging.getLogger("moot.engine")

#: with this many tokens left, one check a second is enough
PLENTY_TOKENS, PLENTY_MS = 2_000_000, 1000
MOST_TENANTS = 10_000


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
        """Return the first name that is a standing agent."""
        return None if self.agent_budgets is None else await self.agent_budgets.first(tenant, names)

    async def check_call(self, tenant: str, member: str | None) -> str | None:
        """Raise BudgetUsedUp, or return a warning when a standing agent has little left."""
        await self.refuse_used_up(tenant)
        if member is None or self.agent_budgets is None:
            return None
        return await self.agent_budgets.check(tenant, member)

    async def warn_after_call(self, tenant: str, member: str | None) -> None:
        """Check the agent's limits after a call. Errors are only logged, because the answer is
        there."""
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
            raise _used_up_error("tokens", self._tokens, "MOOT_TENANT_TOKENS_PER_DAY")
        if self._money and money >= self._money * MONEY_PARTS:
            raise _used_up_error("money", self._money, "MOOT_TENANT_MONEY_PER_DAY")
        if (
            not self._money
            and self._tokens - tokens >= PLENTY_TOKENS
            and len(self._plenty) < MOST_TENANTS
        ):
            self._plenty[tenant] = now + PLENTY_MS
        else:
            self._plenty.pop(tenant, None)


def _used_up_error(what: str, limit: float, setting: str) -> DailyBudgetUsedUp:
    return DailyBudgetUsedUp(
        f"The day's limit of {limit:.15g} ({what}) is reached; counting begins anew at midnight,"
        f" UTC. Whoever runs this host can raise {setting}, or set it to 0 for no bound.",
        limit=what,
    )
