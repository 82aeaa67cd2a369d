"""``moot agent set`` for agents: a change makes a new version."""

from collections.abc import Mapping

import click

from moot.cli.shared import output
from moot.cli.shared.client import api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions
from moot.client.operations import host

#: keys that identify an agent and cannot be changed
FIXED_KEYS = ("name", "manifest")


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
            known_keys = sorted(names.values())
            raise CommandError(_change_error(change, key, field, known_keys), ExitCode.USAGE)
        if value:
            new_definition[field] = _parse_agent_value(field, value)
        else:
            del new_definition[field]
    return {key: value for key, value in new_definition.items() if value is not None}


def _change_error(change: str, key: str, field: str | None, known_keys: list[str]) -> str:
    from moot.core.text.nearest import nearest_word

    if "=" not in change:
        return f"'{change}' is no change; write KEY=VALUE, for example model=local."
    if field in FIXED_KEYS:
        return f"'{field}' cannot be changed; define another agent."
    suggestion = nearest_word(key, known_keys)
    hint = (
        f"; did you mean '{suggestion}'?" if suggestion else f"; there are: {', '.join(known_keys)}"
    )
    return f"an agent has no '{key}'{hint}"


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
