"""Parse and format amounts and spans as people type them: ``20k-tokens``, ``10m``."""

import re

BUDGETS = {
    "turn": "turns", "turns": "turns",
    "token": "tokens", "tokens": "tokens", "tok": "tokens",
    "minute": "minutes", "minutes": "minutes", "min": "minutes",
    "hour": "hours", "hours": "hours",
    "usd": "money", "eur": "money", "money": "money",
}  # fmt: skip
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
THOUSANDS = {"": 1, "k": 1000, "m": 1_000_000}

BUDGET_HINT = "write a number and what it counts: 20k-tokens, 30-turns, 5-minutes or 2-usd"

_BUDGET = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([km]?)[- ]?([a-z]+)", re.I)
_SPAN = re.compile(r"(\d{1,9})\s*([a-z]*)", re.I)


def parse_budget(text: str) -> dict[str, int | float]:
    """Return ``20k-tokens,5-minutes`` as the API takes it. Raise ValueError with a hint."""
    return dict(_parse_bound(word.strip()) for word in text.split(","))


def _parse_bound(word: str) -> tuple[str, int | float]:
    parts = _BUDGET.fullmatch(word)
    kind = BUDGETS.get(parts[3].lower()) if parts else None
    if parts is None or kind is None:
        raise ValueError(f"'{word}' is no budget; {BUDGET_HINT}")
    amount = float(parts[1]) * THOUSANDS[parts[2].lower()]
    if kind == "hours":
        kind, amount = "minutes", amount * 60
    if amount <= 0:
        raise ValueError(f"'{word}' would end it before it begins; {BUDGET_HINT}")
    if kind == "money":
        return kind, amount
    if amount != int(amount):
        raise ValueError(f"'{word}' is not a whole number of {kind}")
    return kind, int(amount)


def parse_seconds(text: str) -> int:
    """Return the seconds of ``10m``, ``90s`` or ``2h``; a bare number is minutes.

    Raise ValueError with a hint.
    """
    parts = _SPAN.fullmatch(text.strip())
    unit = SECONDS.get(parts[2].lower() or "m") if parts else None
    if parts is None or unit is None or int(parts[1]) == 0:
        raise ValueError(f"'{text}' is no time; write 10m, 90s or 2h")
    return int(parts[1]) * unit


def group_digits(number: float) -> str:
    """Return ``20 000`` for 20000."""
    value = int(number) if number == int(number) else number
    return f"{value:,}".replace(",", " ")
