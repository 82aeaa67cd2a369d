"""``moot db``: care of the file itself. Looking is safe while a server runs."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moot.cli.shared import output
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, place, shows

if TYPE_CHECKING:
    from moot.store.sqlite import SqliteStore

T = TypeVar("T")

_database = click.argument("database", required=False, metavar="[DB]")


@click.group()
def db() -> None:
    """The database file: stats, backup, verify, rebuild.

    DB is MOOT_DATABASE, what moot.toml names, or moot.db unless given.
    """


@db.command()
@_database
@shows
def stats(options: Options, database: str | None) -> None:
    """Show how much is in the file."""
    found = _with_store(database, lambda store: store.stats())
    if options.json:
        output.show_json(found)
        return
    statuses = found.pop("statuses", {})
    for name, value in found.items():
        click.echo(f"{name.replace('_', ' '):<16}{value}")
    for name, count in statuses.items():
        click.echo(f"  {name:<14}{count}")


@db.command()
@click.argument("target")
@_database
@shows
def backup(options: Options, target: str, database: str | None) -> None:
    """Copy the file to TARGET: a whole, consistent copy, also while a server writes."""
    from moot.core.errors import MootError

    try:
        _with_store(database, lambda store: store.backup(target))
    except MootError as refusal:
        raise Trouble(refusal.message) from refusal
    if options.json:
        output.show_json({"database": _path(database), "target": target})
    else:
        click.echo(f"{_path(database)} is copied to {target}")


@db.command()
@_database
@shows
def verify(options: Options, database: str | None) -> Exit:
    """Check every byte of the log against its hash chain. Exit 1 when something is wrong."""
    from msgspec import to_builtins

    problems = _with_store(database, lambda store: store.verify())
    if options.json:
        output.show_json([to_builtins(problem) for problem in problems])
    elif not problems:
        click.echo(f"{_path(database)} is whole")
    for problem in [] if options.json else problems:
        where = f"{problem.run_id} " if problem.run_id else ""
        at = f"#{problem.sequence} " if problem.sequence >= 0 else ""
        click.echo(output.line(f"{where}{at}{problem.what}"))
    if problems:
        count = len(problems)
        click.echo(f"error: {count} problem{'s' * (count > 1)} in {_path(database)}.", err=True)
    return Exit.FAILED if problems else Exit.OK


@db.command()
@_database
@shows
def rebuild(options: Options, database: str | None) -> None:
    """Make all derived rows anew from the log. No server may run meanwhile."""
    count = _with_store(database, _rebuild, readonly=False)
    if options.json:
        output.show_json({"database": _path(database), "runs": count})
    else:
        click.echo(f"The rows of {count} runs were made anew from their logs.")


async def _rebuild(store: "SqliteStore") -> int:
    from moot.clock import SystemClock
    from moot.engine.nodes.unknown import AnyType
    from moot.engine.rebuild import rebuild as rebuild_rows
    from moot.engine.workflows.registry import Flows

    return await rebuild_rows(store, Flows(store, AnyType(), SystemClock()))


def _path(database: str | None) -> str:
    """The file every other command means."""
    options = Options()
    options.database = database
    return str(place(options).database)


def _with_store(
    database: str | None, act: "Callable[[SqliteStore], Awaitable[T]]", readonly: bool = True
) -> T:
    """Open the file, do one thing, close it."""
    import asyncio
    from pathlib import Path

    from moot.store.sqlite import SqliteStore
    from moot.store.sqlite.errors import StoreRefused

    path = _path(database)
    if not Path(path).is_file():
        raise Trouble(f"there is no file {path}; name it: moot db … DB", Exit.NOT_FOUND)

    async def work() -> Any:
        store = await SqliteStore.open(path, readonly=readonly)
        try:
            return await act(store)
        finally:
            await store.aclose()

    try:
        found: T = asyncio.run(work())
    except StoreRefused as refusal:
        raise Trouble(str(refusal)) from refusal
    return found
