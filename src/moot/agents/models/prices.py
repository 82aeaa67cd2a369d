"""Compute the cost of calls from configured prices, without guessing."""

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase

from msgspec import Struct

from moot.agents.models.protocol import TokenUsage
from moot.config.models import Price

MILLION = Decimal(1_000_000)


class Cost(Struct, frozen=True, kw_only=True, rename="camel"):
    """The cost of a call, and the price used, so that it can be checked later."""

    amount: Decimal
    currency: str
    pattern: str
    price: Price


class Prices:
    """Prices by pattern with ``*`` and ``?``. The longest matching pattern wins."""

    def __init__(self, table: Mapping[str, Price]) -> None:
        self._table = sorted(table.items(), key=lambda row: (-len(row[0]), row[0]))

    def find(self, reference: str, model: str) -> tuple[str, Price] | None:
        """Return the price of a model, by its reference NAME/MODEL or its own name."""
        for pattern, price in self._table:
            if fnmatchcase(reference, pattern) or fnmatchcase(model, pattern):
                return pattern, price
        return None

    def cost(self, reference: str, model: str, usage: TokenUsage | None) -> Cost | None:
        """Return the cost, or None when the price or the tokens are unknown."""
        match = self.find(reference, model)
        if match is None or usage is None:
            return None
        pattern, price = match
        cached = _exact(price.input if price.cached_input is None else price.cached_input)
        uncached = usage.input_tokens - usage.cached_input_tokens
        amount = (
            uncached * _exact(price.input)
            + usage.cached_input_tokens * cached
            + usage.output_tokens * _exact(price.output)
        ) / MILLION
        return Cost(
            amount=amount.normalize(), currency=price.currency, pattern=pattern, price=price
        )


def _exact(price: float) -> Decimal:
    """Return the number as it was written: 0.1 is exactly 0.1."""
    return Decimal(repr(price))
