"""Locate the server and its key, for the command line and the client alike."""

from pathlib import Path
from typing import NamedTuple

DEFAULT_URL = "http://127.0.0.1:7666"
DEFAULT_DATABASE = "moot.db"


class ServerLocation(NamedTuple):
    """The address of a server, its key and its database."""

    url: str
    key: str | None
    database: Path
    #: the user chose the server
    named: bool
    #: the user chose the file
    chosen: bool = False
    #: the file exists or was chosen, but no server runs on it
    alone: bool = False


def locate_server(
    server: str | None = None, token: str | None = None, database: str | None = None
) -> ServerLocation:
    """Return the location; arguments win over the environment, and that over this folder.

    Raise ValueError with file and line when moot.toml cannot be read.
    """
    from moot.config.settings import client_environment, load_project

    environ = client_environment()
    chosen = database or environ.get("MOOT_DATABASE")
    if not chosen:  # use the database of moot.toml, which the server uses, too
        project = load_project()
        chosen = str(project.settings.get("database", "")) if project else None
    file = Path(chosen or DEFAULT_DATABASE)
    named = server or environ.get("MOOT_URL")
    address = named or read_server_address(file)
    url = address or DEFAULT_URL
    url = url if "://" in url else f"http://{url}"
    key = token or environ.get("MOOT_KEY") or _read_line(key_file(file))
    alone = not address and (bool(chosen) or file.is_file())
    return ServerLocation(url.rstrip("/"), key, file, bool(named), bool(chosen), alone)


def key_file(database: Path) -> Path:
    return Path(f"{database}.key")


def url_file(database: Path) -> Path:
    """Return the file into which a running server writes its address."""
    return Path(f"{database}.url")


def read_server_address(database: Path) -> str | None:
    """Return the address that the server of this database has written."""
    return _read_line(url_file(database))


def _read_line(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
