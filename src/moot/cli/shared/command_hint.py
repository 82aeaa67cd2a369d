"""A command as whoever reads it must type it here: the program by a name that is found, and the
same server and file as in the command that says it."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from moot.cli.shared.options import Options

NAME = "moot"


def way(words: str) -> str:
    """``run list`` becomes ``.venv/bin/moot run list --database other.db`` where that is needed."""
    ctx = click.get_current_context(silent=True)
    given = ctx.find_object(Options) if ctx is not None else None
    more = ""
    for flag in ("server", "database"):
        if value := getattr(given, flag, None):
            more += f" --{flag} {shlex.quote(value)}"
    return f"{program()} {words}{more}"


def program(elsewhere: bool = False) -> str:
    """How this program is started: by its name where the shell finds it, else by its path, which
    must be whole where it is typed in another folder."""
    started = Path(sys.argv[0])
    if started.name != NAME or _is(shutil.which(NAME), started):
        return NAME  # as a module it has no path of its own
    whole = started if started.is_absolute() else Path.cwd() / started
    beneath = whole.is_relative_to(Path.cwd()) and not elsewhere
    return shlex.quote(str(whole.relative_to(Path.cwd()) if beneath else whole))


def _is(found: str | None, started: Path) -> bool:
    return found is not None and Path(found).resolve() == started.resolve()
