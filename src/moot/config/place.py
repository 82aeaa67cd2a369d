"""Where the server is and with which key: the same for the command line and for the client."""

from pathlib import Path
from typing import NamedTuple

USUAL_URL = "http://127.0.0.1:7666"
USUAL_DATABASE = "moot.db"


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


def find(server: str | None = None, token: str | None = None, database: str | None = None) -> Place:
    """What is given over the environment over what lies in this folder.

    Raises ValueError with file and line when moot.toml cannot be read.
    """
    from moot.config.settings import client_environment, project

    environ = client_environment()
    chosen = database or environ.get("MOOT_DATABASE")
    if not chosen:  # the database moot.toml names, so that everybody means the server's file
        found = project()
        chosen = found.settings.get("database") if found else None
    file = Path(chosen or USUAL_DATABASE)
    named = server or environ.get("MOOT_URL")
    known = named or address_of(file)
    url = known or USUAL_URL
    url = url if "://" in url else f"http://{url}"
    key = token or environ.get("MOOT_KEY") or _line_of(key_file(file))
    alone = not known and (bool(chosen) or file.is_file())
    return Place(url.rstrip("/"), key, file, bool(named), bool(chosen), alone)


def key_file(database: Path) -> Path:
    return Path(f"{database}.key")


def url_file(database: Path) -> Path:
    """Where a running server says at which address it listens."""
    return Path(f"{database}.url")


def address_of(database: Path) -> str | None:
    """Where the server of a file listens, as it said itself."""
    return _line_of(url_file(database))


def _line_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
