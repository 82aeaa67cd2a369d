"""What a tenant may use up in a day. Counted by the log alone, so that no restart forgets it."""

import logging

from moot.clock import Clock
from moot.core.errors import MootError
from moot.core.errors.models import DailyBudgetUsedUp
from moot.core.tenants import around
from moot.engine.effects.agent_budgets import DAY_MS, PARTS, Allowances
from moot.store.protocol import LogStore

log = logging.getLogger("moot.engine")

#: tokens that are not used up in a moment: where so many are left, one look a second will do
PLENTY, GLANCE_MS = 2_000_000, 1000
MOST_TENANTS = 10_000


class Purse:
    """Looked into before each call of a model; what is under way by then is still paid. 0: there is
    no bound."""

    def __init__(self, store: LogStore, clock: Clock, tokens: int = 0, money: float = 0.0) -> None:
        self._store, self._clock = store, clock
        self._tokens, self._money = tokens, money
        #: tenant -> until when it is known to have plenty
        self._plenty: dict[str, int] = {}
        #: those of standing agents
        self.allowances: Allowances | None = None

    async def payer(self, tenant: str, names: tuple[str, ...]) -> str | None:
        """The first of them that is a standing agent."""
        return None if self.allowances is None else await self.allowances.first(tenant, names)

    async def look_into(self, tenant: str, member: str | None) -> str | None:
        """Raises BudgetUsedUp; a sentence, when little is left to a standing agent."""
        await self.refuse_when_empty(tenant)
        if member is None or self.allowances is None:
            return None
        return await self.allowances.check(tenant, member)

    async def note(self, tenant: str, member: str | None) -> None:
        """After a call that a standing agent pays for. The answer is there: what is not said about
        its price now is said at the next call."""
        if member is None or self.allowances is None:
            return
        try:
            await self.allowances.note(tenant, member)
        except MootError:
            return
        except Exception:
            log.exception("What %s has used up could not be looked at", member)

    async def refuse_when_empty(self, tenant: str) -> None:
        now = self._clock.millis()
        if not (self._tokens or self._money) or now < self._plenty.get(tenant, 0):
            return
        tokens, money = await self._store.spent(around(tenant), now // DAY_MS)
        if self._tokens and tokens >= self._tokens:
            raise _empty("tokens", self._tokens, "MOOT_TENANT_TOKENS_PER_DAY")
        if self._money and money >= self._money * PARTS:
            raise _empty("money", self._money, "MOOT_TENANT_MONEY_PER_DAY")
        if not self._money and self._tokens - tokens >= PLENTY and len(self._plenty) < MOST_TENANTS:
            self._plenty[tenant] = now + GLANCE_MS
        else:
            self._plenty.pop(tenant, None)


def _empty(what: str, limit: float, setting: str) -> DailyBudgetUsedUp:
    return DailyBudgetUsedUp(
        f"The day's limit of {limit:.15g} ({what}) is reached; counting begins anew at midnight,"
        f" UTC. Whoever runs this host can raise {setting}, or set it to 0 for no bound.",
        limit=what,
    )
