"""``moot agent set`` for standing agents: what they are called, do and may use up."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import click

from moot.cli.roster.member import place_of
from moot.cli.shared import output
from moot.cli.shared.client import Api, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options
from moot.cli.shared.quantities import THOUSANDS, grouped

BUDGET = ("tokensPerDay", "tokensPerMonth", "moneyPerDay", "moneyPerMonth")
#: fields of the server -> as they are typed
NAMES = {
    "tokensPerDay": "tokens-per-day", "tokensPerMonth": "tokens-per-month",
    "moneyPerDay": "money-per-day", "moneyPerMonth": "money-per-month",
    "label": "role", "workflows": "portfolio", "agentRef": "agent",
}  # fmt: skip
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
        for text in told(found):
            click.echo(output.line(text))
        for bound in found.get("budget", []):
            if "unpriced" in bound:
                output.complain(unpriced(bound))


def told(found: dict[str, Any]) -> Iterator[str]:
    """What was changed, as it was and as it is."""
    name = f"{found['persona']} ({found['rosterId']})"
    if not found["changes"]:
        yield f"{name} is as it was."
    for change in found["changes"]:
        was, now = value_words(change["from"]), value_words(change["to"])
        yield f"{name} {NAMES.get(change['field'], change['field'])}: {was} → {now}"


def value_words(value: Any) -> str:
    """``20 000``, ``yes``, ``a, b``, ``none``"""
    if value in (None, "", []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return grouped(value)
    if isinstance(value, dict):
        return " ".join(str(each) for each in value.values())
    return ", ".join(value) if isinstance(value, list) else str(value)


def unpriced(bound: dict[str, Any]) -> str:
    """A limit that nothing is counted against."""
    tokens = NAMES[bound["limit"].replace("money", "tokens")]
    return (
        f"warning: {bound['unpriced']} has no price in moot.toml, so that nothing of it counts for"
        f" {NAMES[bound['limit']]}; a limit that holds: {tokens}=N"
    )


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
    from moot.core.text.nearest import nearest

    if "=" not in change:
        return f"'{change}' is no change; write KEY=VALUE, for example persona=Sal."
    known = ["persona", "portfolio", "role", "description", "enabled", "tokens-per-day",
             "tokens-per-month", "money-per-day", "money-per-month"]  # fmt: skip
    meant = nearest(key, known)
    hint = f"; did you mean '{meant}'?" if meant else f"; there are: {', '.join(known)}"
    return f"a standing agent has no '{key}'{hint}"
