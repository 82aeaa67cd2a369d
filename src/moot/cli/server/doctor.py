"""``moot doctor``: check the machine, the database file and the server."""

from collections.abc import Callable
from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, resolve_place, server_options
from moot.config.server_location import ServerLocation

MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


@click.command()
@server_options
def doctor(options: CommandOptions) -> ExitCode:
    """Check the machine, the file and the server; print the settings. Exit 1 on a problem."""
    from moot.cli.server import doctor_checks
    from moot.config.settings import load_settings

    place = resolve_place(options)
    try:
        settings = load_settings({"database": str(place.database)})
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    results = [_run_check(check, place, settings) for check in doctor_checks.CHECKS]
    settings_values = {name: getattr(settings, name) for name in settings.__struct_fields__}
    if options.json:
        output.print_json({"checks": results, "settings": settings_values})
    else:
        for row in results:
            mark, colour = MARKS[row["result"]]
            sentence = output.safe_line(row["says"])
            click.echo(f"{click.style(mark, fg=colour)} {row['check']:<10} {sentence}")
        click.echo("settings")
        for name, value in settings_values.items():
            click.echo(f"  {name:<20} {'-' if value is None else value}")
    return ExitCode.FAILED if any(row["result"] == "problem" for row in results) else ExitCode.OK


def _run_check(check: Callable[..., Any], place: ServerLocation, settings: Any) -> dict[str, str]:
    """Run a check; a check that breaks is a problem, not the end."""
    try:
        result, sentence = check(place, settings)
    except Exception as error:
        result, sentence = "problem", f"the check itself failed: {type(error).__name__}: {error}"
    return {"check": check.__name__.rstrip("_"), "result": result, "says": sentence}
