"""``moot agent set`` for standing agents: what they are called, do and may use up."""

import re
from collections.abc import Callable
from typing import Any

import click

from moot.cli import output
from moot.cli.client import Api, to_write
from moot.cli.member import place_of
from moot.cli.options import Options
from moot.cli.quantities import THOUSANDS
from moot.cli.trouble import Exit, Trouble

BUDGET = ("tokensPerDay", "tokensPerMonth", "moneyPerDay", "moneyPerMonth")
_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([km]?)", re.I)


def _amount(text: str) -> float:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError("write a number: 20000, 20k or 2.50")
    return float(found[1]) * THOUSANDS[found[2].lower()]


def _whole(text: str) -> int:
    if (amount := _amount(text)) != int(amount):
        raise ValueError("write a whole number")
    return int(amount)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _enabled(text: str) -> bool:
    if text.lower() not in ("yes", "no", "true", "false"):
        raise ValueError("write yes or no")
    return text.lower() in ("yes", "true")


#: as it is typed, in plain letters -> as the server calls it, and how it is read
KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "persona": ("persona", str),
    "portfolio": ("workflows", _names),
    "workflows": ("workflows", _names),
    "role": ("label", str),
    "label": ("label", str),
    "description": ("description", str),
    "enabled": ("enabled", _enabled),
    "tokensperday": ("tokensPerDay", _whole),
    "tokenspermonth": ("tokensPerMonth", _whole),
    "moneyperday": ("moneyPerDay", _amount),
    "moneypermonth": ("moneyPerMonth", _amount),
}


def change_member(options: Options, name: str, changes: tuple[str, ...]) -> None:
    found = changed(to_write(options), name, changes)
    if options.json:
        output.show_json(found)
    else:
        click.echo(output.line(f"{found['persona']} ({found['rosterId']}) is {found['status']}."))


def changed(api: Api, name: str, changes: tuple[str, ...]) -> dict[str, Any]:
    """The member as it is then. Raises Trouble naming the change that is none."""
    import json

    known = api.get(place_of(name))
    body = read(changes, {bound["limit"]: bound["most"] for bound in known.get("budget", [])})
    found: dict[str, Any] = api.ask("PATCH", place_of(name), json.dumps(body).encode())
    return found


def read(changes: tuple[str, ...], budget: dict[str, Any]) -> dict[str, Any]:
    """The changes as the server takes them; ``budget`` is what there is of one."""
    body: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        wire, reader = KEYS.get(re.sub(r"[^a-z]", "", key.lower()), ("", str))
        if not equals or not wire:
            raise Trouble(_wrong(change, key), Exit.USAGE)
        try:
            value = reader(text) if text else None
        except ValueError as problem:
            raise Trouble(f"{key}: {problem}.", Exit.USAGE) from None
        if wire in BUDGET:
            budget = {**budget, wire: value}
            body["budget"] = {each: most for each, most in budget.items() if most is not None}
        else:
            body[wire] = [] if wire == "workflows" and value is None else value
    if body.get("budget") == {}:
        body["budget"] = None
    return body


def _wrong(change: str, key: str) -> str:
    from moot.core.definition import nearest

    if "=" not in change:
        return f"'{change}' is no change; write KEY=VALUE, for example persona=Sal."
    known = ["persona", "portfolio", "role", "description", "enabled", "tokens-per-day",
             "tokens-per-month", "money-per-day", "money-per-month"]  # fmt: skip
    meant = nearest(key, known)
    hint = f"; did you mean '{meant}'?" if meant else f"; there are: {', '.join(known)}"
    return f"a standing agent has no '{key}'{hint}"
