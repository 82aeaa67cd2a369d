"""What a call costs, by the prices in the configuration. A price nobody set is not guessed."""

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase

from moot.agents.models.config import Cost, Price
from moot.agents.models.protocol import Usage

MILLION = Decimal(1_000_000)


class Prices:
    """Prices by pattern. ``*`` and ``?`` stand for anything; the longest pattern that fits wins."""

    def __init__(self, table: Mapping[str, Price]) -> None:
        self._table = sorted(table.items(), key=lambda row: (-len(row[0]), row[0]))

    def of(self, reference: str, model: str) -> tuple[str, Price] | None:
        """The price of a model, found by its reference (NAME/MODEL) or by its own name."""
        for pattern, price in self._table:
            if fnmatchcase(reference, pattern) or fnmatchcase(model, pattern):
                return pattern, price
        return None

    def cost(self, reference: str, model: str, usage: Usage | None) -> Cost | None:
        """None when the price or the tokens are not known."""
        found = self.of(reference, model)
        if found is None or usage is None:
            return None
        pattern, price = found
        cached = _exact(price.input if price.cached_input is None else price.cached_input)
        fresh = usage.input_tokens - usage.cached_input_tokens
        amount = (
            fresh * _exact(price.input)
            + usage.cached_input_tokens * cached
            + usage.output_tokens * _exact(price.output)
        ) / MILLION
        return Cost(
            amount=amount.normalize(), currency=price.currency, pattern=pattern, price=price
        )


def _exact(price: float) -> Decimal:
    """The number as it was written: 0.1 is 0.1."""
    return Decimal(repr(price))
