"""Options that most commands take, and where the server and its key are found by them."""

from typing import Any

import click

from moot.cli.shared import quantities
from moot.cli.shared.errors import Exit, Trouble
from moot.config.place import Place, find


class Options:
    """Where to look and how to show it."""

    server: str | None = None
    token: str | None = None
    database: str | None = None
    json: bool = False


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    options = ctx.ensure_object(Options)
    if value is not None:
        setattr(options, str(param.name), value)


_JSON = click.option(
    "--json", is_flag=True, default=None, expose_value=False, callback=_keep,
    help="Print whole objects as JSON.",
)  # fmt: skip
_DATABASE = click.option(
    "--database", metavar="DB", expose_value=False, callback=_keep,
    help="The server's file; its key lies beside it (MOOT_DATABASE) [moot.db].",
)  # fmt: skip
_TOKEN = click.option(
    "--token", metavar="KEY", expose_value=False, callback=_keep,
    help="The key to call with (MOOT_KEY).",
)  # fmt: skip
_SERVER = click.option(
    "--server", metavar="URL", expose_value=False, callback=_keep,
    help="The server to call (MOOT_URL) [the local one].",
)  # fmt: skip

_pass = click.make_pass_decorator(Options, ensure=True)


def talks(command: Any) -> Any:
    """For commands that call a server: --json, --server, --token, --database."""
    return _JSON(reaches(command))


def reaches(command: Any) -> Any:
    """For commands that call a server and print nothing of it: --server, --token, --database."""
    return _SERVER(_TOKEN(_DATABASE(_pass(command))))


def shows(command: Any) -> Any:
    """For commands that only print something: --json."""
    return _JSON(_pass(command))


def place(options: Options) -> Place:
    """Flags over environment over what lies in this folder."""
    try:
        return find(options.server, options.token, options.database)
    except ValueError as error:
        raise Trouble(str(error), Exit.USAGE) from None


def span(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    """Seconds of what is typed: 90s, 10m, 2h."""
    try:
        return None if given is None else quantities.seconds(given)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None
