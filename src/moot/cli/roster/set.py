"""``moot agent set``: change a standing agent, or make a new version of an agent."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from moot.cli.roster.member import roster_handle
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions
from moot.cli.shared.quantities import THOUSANDS, group_digits
from moot.client.operations import host, roster
from moot.wire.roster import BudgetUse, ChangedMember

BUDGET = ("tokensPerDay", "tokensPerMonth", "moneyPerDay", "moneyPerMonth")
#: fields of the server -> names that users type
TYPED_NAMES = {
    "tokensPerDay": "tokens-per-day", "tokensPerMonth": "tokens-per-month",
    "moneyPerDay": "money-per-day", "moneyPerMonth": "money-per-month",
    "label": "role", "workflows": "portfolio", "agentRef": "agent",
}  # fmt: skip
MEMBER_KEYS = (
    "persona", "portfolio", "role", "description", "enabled", "tokens-per-day", "tokens-per-month",
    "money-per-day", "money-per-month",
)  # fmt: skip
#: keys that identify an agent and cannot be changed
FIXED_KEYS = ("name", "manifest")
_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([km]?)", re.I)


def _parse_amount(text: str) -> float:
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError("write a number: 20000, 20k or 2.50")
    return float(match[1]) * THOUSANDS[match[2].lower()]


def _parse_whole(text: str) -> int:
    if (amount := _parse_amount(text)) != int(amount):
        raise ValueError("write a whole number")
    return int(amount)


def _parse_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parse_enabled(text: str) -> bool:
    if text.lower() not in ("yes", "no", "true", "false"):
        raise ValueError("write yes or no")
    return text.lower() in ("yes", "true")


#: typed name in plain letters -> field of the server, and its parser
FIELD_PARSERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "persona": ("persona", str),
    "portfolio": ("workflows", _parse_names),
    "workflows": ("workflows", _parse_names),
    "role": ("label", str),
    "label": ("label", str),
    "description": ("description", str),
    "enabled": ("enabled", _parse_enabled),
    "tokensperday": ("tokensPerDay", _parse_whole),
    "tokenspermonth": ("tokensPerMonth", _parse_whole),
    "moneyperday": ("moneyPerDay", _parse_amount),
    "moneypermonth": ("moneyPerMonth", _parse_amount),
}


def change_member(options: CommandOptions, name: str, changes: tuple[str, ...]) -> None:
    member = patch_member(api_for_writing(options), name, changes)
    output.print_answer(options, member, *change_lines(member))
    for limit in member.budget:
        if limit.unpriced is not None and not options.json:
            output.print_error(unpriced_warning(limit))


def change_lines(member: ChangedMember) -> Iterator[str]:
    """Yield each change with the old and the new value."""
    name = f"{member.persona} ({member.roster_id})"
    if not member.changes:
        yield f"{name} is as it was."
    for change in member.changes:
        old, new = format_value(change.before), format_value(change.after)
        yield f"{name} {TYPED_NAMES.get(change.name, change.name)}: {old} → {new}"


def format_value(value: Any) -> str:
    """Return ``20 000``, ``yes``, ``a, b`` or ``none``."""
    if value in (None, "", []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return group_digits(value)
    if isinstance(value, dict):
        return " ".join(str(each) for each in value.values())
    return ", ".join(value) if isinstance(value, list) else str(value)


def unpriced_warning(limit: BudgetUse) -> str:
    """Return a warning about a money limit that counts nothing."""
    tokens = TYPED_NAMES[limit.limit.replace("money", "tokens")]
    return (
        f"warning: {limit.unpriced} has no price in moot.toml, so that nothing of it counts for"
        f" {TYPED_NAMES[limit.limit]}; a limit that holds: {tokens}=N"
    )


def patch_member(api: Api, name: str, changes: tuple[str, ...]) -> ChangedMember:
    """Return the changed member. Raise CommandError for an invalid change."""
    roster_id = roster_handle(name)
    current = api.send(roster.get_member(roster_id))
    body = parse_member_changes(changes, {bound.limit: bound.most for bound in current.budget})
    return api.send(roster.change_member(roster_id, body))


def parse_member_changes(
    changes: tuple[str, ...], budget: Mapping[str, object]
) -> dict[str, object]:
    """Return the changes as the server takes them; ``budget`` is the current one."""
    body: dict[str, object] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        field, parse = FIELD_PARSERS.get(re.sub(r"[^a-z]", "", key.lower()), ("", str))
        if not equals or not field:
            raise _change_error(change, "a standing agent", MEMBER_KEYS, "persona=Sal")
        try:
            value = parse(text) if text else None
        except ValueError as problem:
            raise CommandError(f"{key}: {problem}.", ExitCode.USAGE) from None
        if field in BUDGET:
            budget = {**budget, field: value}
            body["budget"] = {each: most for each, most in budget.items() if most is not None}
        else:
            body[field] = [] if field == "workflows" and value is None else value
    if body.get("budget") == {}:
        body["budget"] = None
    return body


def _change_error(change: str, noun: str, known_keys: Sequence[str], example: str) -> CommandError:
    from moot.core.text.nearest import nearest_word

    key, equals, _ = change.partition("=")
    if not equals:
        problem = f"'{change}' is no change; write KEY=VALUE, for example {example}."
        return CommandError(problem, ExitCode.USAGE)
    suggestion = nearest_word(key, known_keys)
    hint = f"did you mean '{suggestion}'?" if suggestion else f"there are: {', '.join(known_keys)}"
    return CommandError(f"{noun} has no '{key}'; {hint}", ExitCode.USAGE)


def change_agent(options: CommandOptions, name: str, changes: tuple[str, ...]) -> None:
    """Register a new version of the agent with these changes."""
    api = api_for_writing(options)
    current = api.send(host.get_agent(name.removeprefix("host:")))
    definition = apply_agent_changes(current.definition, changes)
    changed = api.send(host.register_agent(definition))
    if options.json:
        output.print_json(changed)
        return
    same = changed.version == current.version
    result = "nothing has changed" if same else f"version {changed.version}"
    click.echo(
        f"{output.safe_line(changed.name)}  {result}, model {output.safe_line(changed.model)}"
    )
    changed_by = current.history[0].by if current.history else ""
    if changed_by.startswith("file:") and not same:
        file = output.safe_line(changed_by.removeprefix("file:"))
        click.echo(f"It comes from {file}, which counts again at the next start: change it there,"
                   " too.", err=True)  # fmt: skip


def apply_agent_changes(
    definition: Mapping[str, object], changes: tuple[str, ...]
) -> dict[str, object]:
    """Return the definition with these changes. Raise CommandError for an invalid change."""
    names = {_plain_key(key): key for key in definition}
    new_definition = dict(definition)
    for change in changes:
        key, equals, value = change.partition("=")
        field = names.get(_plain_key(key))
        if not equals or field is None or field in FIXED_KEYS:
            if equals and field in FIXED_KEYS:
                problem = f"'{field}' cannot be changed; define another agent."
                raise CommandError(problem, ExitCode.USAGE)
            raise _change_error(change, "an agent", sorted(names.values()), "model=local")
        if value:
            new_definition[field] = _parse_agent_value(field, value)
        else:
            del new_definition[field]
    return {key: value for key, value in new_definition.items() if value is not None}


def _plain_key(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def _parse_agent_value(key: str, text: str) -> object:
    """Split lists at commas and convert numbers; everything else stays text."""
    if key == "tools":
        return [each.strip() for each in text.split(",") if each.strip()]
    if key in ("temperature", "confidence", "maxOutputTokens", "toolRounds"):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            raise CommandError(f"{key} is a number, not '{text}'.", ExitCode.USAGE) from None
    return text
