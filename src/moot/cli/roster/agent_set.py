"""``moot agent set``: an agent changes a little, and is a new version of itself."""

from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import path_of, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options

#: what an agent is, and not how it is
FIXED = ("name", "manifest")


def change_agent(options: Options, name: str, changes: tuple[str, ...]) -> None:
    """The server has another version of it then."""
    api = to_write(options)
    known = api.get(path_of("v1", "host", "moot", "agents", name.removeprefix("host:")))
    definition = changed(known["definition"], changes)
    made = api.post("/v1/host/moot/agents", definition)
    if options.json:
        output.show_json(made)
        return
    same = made["version"] == known["version"]
    said = "nothing has changed" if same else f"version {made['version']}"
    click.echo(f"{output.line(made['name'])}  {said}, model {output.line(made['model'])}")
    by = str((known["history"] or [{}])[0].get("by", ""))
    if by.startswith("file:") and not same:
        file = output.line(by.removeprefix("file:"))
        click.echo(f"It comes from {file}, which counts again at the next start: change it there,"
                   " too.", err=True)  # fmt: skip


def changed(definition: dict[str, Any], changes: tuple[str, ...]) -> dict[str, Any]:
    """The definition with these changes. Raises Trouble naming the one that is none."""
    names = {_plain(key): key for key in definition}
    found = dict(definition)
    for change in changes:
        key, equals, value = change.partition("=")
        wire = names.get(_plain(key))
        if not equals or wire is None or wire in FIXED:
            raise Trouble(_wrong(change, key, wire, sorted(names.values())), Exit.USAGE)
        if value:
            found[wire] = _value(wire, value)
        else:
            del found[wire]
    return {key: value for key, value in found.items() if value is not None}


def _wrong(change: str, key: str, wire: str | None, known: list[str]) -> str:
    from moot.core.text.nearest import nearest

    if "=" not in change:
        return f"'{change}' is no change; write KEY=VALUE, for example model=local."
    if wire in FIXED:
        return f"'{wire}' cannot be changed; define another agent."
    meant = nearest(key, known)
    hint = f"; did you mean '{meant}'?" if meant else f"; there are: {', '.join(known)}"
    return f"an agent has no '{key}'{hint}"


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def _value(key: str, text: str) -> Any:
    """Lists by commas, numbers as numbers, everything else as it is written."""
    if key == "tools":
        return [each.strip() for each in text.split(",") if each.strip()]
    if key in ("temperature", "confidence", "maxOutputTokens", "toolRounds"):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            raise Trouble(f"{key} is a number, not '{text}'.", Exit.USAGE) from None
    return text
