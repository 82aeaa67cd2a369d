"""What a tenant may use up in a day. Counted by the log alone, so that no restart forgets it."""

from moot.clock import Clock
from moot.core.model_errors import DailyBudgetUsedUp
from moot.engine.allowances import DAY_MS, PARTS, Allowances
from moot.store.protocol import LogStore


class Purse:
    """Looked into before each call of a model; what is under way by then is still paid."""

    def __init__(
        self, store: LogStore, clock: Clock, tokens: int | None = None, money: float | None = None
    ) -> None:
        self._store, self._clock = store, clock
        self._tokens, self._money = tokens, money
        #: those of standing agents
        self.allowances: Allowances | None = None

    async def look_into(self, tenant: str, member: str | None) -> str | None:
        """Raises BudgetUsedUp; a sentence, when little is left to a standing agent."""
        await self.refuse_when_empty(tenant)
        if member is None or self.allowances is None:
            return None
        return await self.allowances.check(tenant, member)

    async def refuse_when_empty(self, tenant: str) -> None:
        if self._tokens is None and self._money is None:
            return
        day = self._clock.millis() // DAY_MS
        tokens, money = await self._store.spent(tenant, day)
        if self._tokens is not None and tokens >= self._tokens:
            raise _empty("tokens", self._tokens)
        if self._money is not None and money >= self._money * PARTS:
            raise _empty("money", self._money)


def _empty(what: str, limit: float) -> DailyBudgetUsedUp:
    return DailyBudgetUsedUp(
        f"The day's limit of {limit:g} ({what}) is reached; counting begins anew at midnight, UTC.",
        limit=what,
    )
