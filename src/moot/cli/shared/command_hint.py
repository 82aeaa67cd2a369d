"""Hints that name a command in the form that the user can type.

A hint uses a program name that the shell finds, and the server and file of the current command.
"""

import shlex
import shutil
import sys
from pathlib import Path

import click

from moot.cli.shared.options import CommandOptions

PROGRAM_NAME = "moot"


def command_hint(words: str) -> str:
    """Return ``.venv/bin/moot run list --database other.db`` for ``run list`` where needed."""
    ctx = click.get_current_context(silent=True)
    options = ctx.find_object(CommandOptions) if ctx is not None else None
    flags = ""
    for flag in ("server", "database"):
        if value := getattr(options, flag, None):
            flags += f" --{flag} {shlex.quote(value)}"
    return f"{program_name()} {words}{flags}"


def program_name(elsewhere: bool = False) -> str:
    """Return the name of this program, or its path where the shell does not find the name.

    ``elsewhere``: the command is typed in another folder, so a path must be absolute.
    """
    started = Path(sys.argv[0])
    if started.name != PROGRAM_NAME or _is_same_file(shutil.which(PROGRAM_NAME), started):
        return PROGRAM_NAME  # a module that is run has no path of its own
    absolute = started if started.is_absolute() else Path.cwd() / started
    inside = absolute.is_relative_to(Path.cwd()) and not elsewhere
    return shlex.quote(str(absolute.relative_to(Path.cwd()) if inside else absolute))


def _is_same_file(path: str | None, started: Path) -> bool:
    return path is not None and Path(path).resolve() == started.resolve()
