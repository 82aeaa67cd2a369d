"""How much and how long, as people type it: ``20k-tokens``, ``10m``. Pure."""

import re
from typing import Any

BUDGETS = {
    "turn": "turns", "turns": "turns",
    "token": "tokens", "tokens": "tokens", "tok": "tokens",
    "minute": "minutes", "minutes": "minutes", "min": "minutes",
    "hour": "hours", "hours": "hours",
    "usd": "money", "eur": "money", "money": "money",
}  # fmt: skip
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
THOUSANDS = {"": 1, "k": 1000, "m": 1_000_000}

WAY_OUT = "write a number and what it counts: 20k-tokens, 30-turns, 5-minutes or 2-usd"

_BUDGET = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([km]?)[- ]?([a-z]+)", re.I)
_SPAN = re.compile(r"(\d{1,9})\s*([a-z]*)", re.I)


def budget(given: str) -> dict[str, Any]:
    """``20k-tokens,5-minutes`` as the API takes it. Raises ValueError with the way out."""
    found: dict[str, Any] = {}
    for word in given.split(","):
        name, amount = _bound(word.strip())
        found[name] = amount
    return found


def _bound(word: str) -> tuple[str, int | float]:
    parts = _BUDGET.fullmatch(word)
    kind = BUDGETS.get(parts[3].lower()) if parts else None
    if parts is None or kind is None:
        raise ValueError(f"'{word}' is no budget; {WAY_OUT}")
    amount = float(parts[1]) * THOUSANDS[parts[2].lower()]
    if kind == "hours":
        kind, amount = "minutes", amount * 60
    if amount <= 0:
        raise ValueError(f"'{word}' would end it before it begins; {WAY_OUT}")
    if kind == "money":
        return kind, amount
    if amount != int(amount):
        raise ValueError(f"'{word}' is not a whole number of {kind}")
    return kind, int(amount)


def seconds(given: str) -> int:
    """``10m``, ``90s``, ``2h``; a bare number is minutes. Raises ValueError with the way out."""
    parts = _SPAN.fullmatch(given.strip())
    unit = SECONDS.get(parts[2].lower() or "m") if parts else None
    if parts is None or unit is None or int(parts[1]) == 0:
        raise ValueError(f"'{given}' is no time; write 10m, 90s or 2h")
    return int(parts[1]) * unit


def in_words(span: float) -> str:
    """``10 minutes``, ``1 hour``, ``90 seconds``."""
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if span >= size and span % size == 0:
            return counted(int(span // size), word)
    return counted(round(span), "second")


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def grouped(number: float) -> str:
    """``20 000``"""
    whole = int(number) if number == int(number) else number
    return f"{whole:,}".replace(",", " ")
