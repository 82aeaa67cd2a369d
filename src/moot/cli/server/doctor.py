"""``moot doctor``: is this machine fit, is the file whole, does the server keep its word."""

from collections.abc import Callable
from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, place, talks
from moot.config.place import Place

MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


@click.command()
@talks
def doctor(options: Options) -> Exit:
    """Check the machine, the file and the server; print the settings. Exit 1 on a problem."""
    from moot.cli.server import doctor_checks
    from moot.config.settings import load

    where = place(options)
    try:
        settings = load({"database": str(where.database)})
    except ValueError as error:
        raise Trouble(str(error), Exit.USAGE) from None
    found = [_checked(check, where, settings) for check in doctor_checks.CHECKS]
    shown = {name: getattr(settings, name) for name in settings.__struct_fields__}
    if options.json:
        output.show_json({"checks": found, "settings": shown})
    else:
        for row in found:
            mark, colour = MARKS[row["result"]]
            says = output.line(row["says"])
            click.echo(f"{click.style(mark, fg=colour)} {row['check']:<10} {says}")
        click.echo("settings")
        for name, value in shown.items():
            click.echo(f"  {name:<20} {'-' if value is None else value}")
    return Exit.FAILED if any(row["result"] == "problem" for row in found) else Exit.OK


def _checked(check: Callable[..., Any], where: Place, settings: Any) -> dict[str, str]:
    """A check that breaks is a finding, not the end."""
    try:
        result, says = check(where, settings)
    except Exception as error:
        result, says = "problem", f"the check itself failed: {type(error).__name__}: {error}"
    return {"check": check.__name__.rstrip("_"), "result": result, "says": says}
