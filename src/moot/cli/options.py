"""Options that most commands take, and where the server and its key are found by them."""

from pathlib import Path
from typing import Any, NamedTuple

import click

from moot.cli.trouble import Exit, Trouble

USUAL_URL = "http://127.0.0.1:7666"
USUAL_DATABASE = "moot.db"


class Options:
    """Where to look and how to show it."""

    server: str | None = None
    token: str | None = None
    database: str | None = None
    json: bool = False


class Place(NamedTuple):
    """A server, the key to it, and the file it keeps."""

    url: str
    key: str | None
    database: Path
    #: the user chose the server
    named: bool
    #: the user chose the file
    chosen: bool = False
    #: no server runs on the file, chosen or lying here; one at the usual address keeps another
    alone: bool = False


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
    return _JSON(_SERVER(_TOKEN(_DATABASE(_pass(command)))))


def shows(command: Any) -> Any:
    """For commands that only print something: --json."""
    return _JSON(_pass(command))


def place(options: Options) -> Place:
    """Flags over environment over what lies in this folder."""
    from moot.config import client_environment

    environ = client_environment()
    chosen = options.database or environ.get("MOOT_DATABASE") or _of_the_project()
    database = Path(chosen or USUAL_DATABASE)
    named = options.server or environ.get("MOOT_URL")
    found = named or _line_of(url_file(database))
    url = found or USUAL_URL
    url = url if "://" in url else f"http://{url}"
    key = options.token or environ.get("MOOT_KEY") or _line_of(key_file(database))
    alone = not found and (bool(chosen) or database.is_file())
    return Place(url.rstrip("/"), key, database, bool(named), bool(chosen), alone)


def _of_the_project() -> str | None:
    """The database moot.toml names, so that every command means the server's file."""
    from moot.config import project

    try:
        found = project()
        return found.settings.get("database") if found else None
    except ValueError as error:
        raise Trouble(str(error), Exit.USAGE) from None


def key_file(database: Path) -> Path:
    return Path(f"{database}.key")


def url_file(database: Path) -> Path:
    """Where a running server says at which address it listens."""
    return Path(f"{database}.url")


def _line_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
