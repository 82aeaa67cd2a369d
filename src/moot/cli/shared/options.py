"""Options that most commands take, and the server and key that they select."""

from typing import Any

import click

from moot.cli.shared import quantities
from moot.cli.shared.errors import CommandError, ExitCode
from moot.config.server_location import ServerLocation, locate_server


class CommandOptions:
    """The server, key and file that a command uses, and whether it prints JSON."""

    server: str | None = None
    token: str | None = None
    database: str | None = None
    json: bool = False


def _store_option(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    options = ctx.ensure_object(CommandOptions)
    if value is not None:
        setattr(options, str(param.name), value)


_JSON = click.option(
    "--json", is_flag=True, default=None, expose_value=False, callback=_store_option,
    help="Print whole objects as JSON.",
)  # fmt: skip
_DATABASE = click.option(
    "--database", metavar="DB", expose_value=False, callback=_store_option,
    help="The server's file; its key lies beside it (MOOT_DATABASE) [moot.db].",
)  # fmt: skip
_TOKEN = click.option(
    "--token", metavar="KEY", expose_value=False, callback=_store_option,
    help="The key to call with (MOOT_KEY).",
)  # fmt: skip
_SERVER = click.option(
    "--server", metavar="URL", expose_value=False, callback=_store_option,
    help="The server to call (MOOT_URL) [the local one].",
)  # fmt: skip

_pass_options = click.make_pass_decorator(CommandOptions, ensure=True)


def server_options(command: Any) -> Any:
    """Add --json, --server, --token and --database to a command that calls a server."""
    return _JSON(connection_options(command))


def connection_options(command: Any) -> Any:
    """Add --server, --token and --database to a command that prints no answer of the server."""
    return _SERVER(_TOKEN(_DATABASE(_pass_options(command))))


def json_option(command: Any) -> Any:
    """Add --json to a command that only prints something."""
    return _JSON(_pass_options(command))


def resolve_place(options: CommandOptions) -> ServerLocation:
    """Return the place of the server and its key: flags, then environment, then this folder."""
    try:
        return locate_server(options.server, options.token, options.database)
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None


def parse_span_option(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return the seconds of a span such as 90s, 10m or 2h."""
    try:
        return None if text is None else quantities.parse_seconds(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None
