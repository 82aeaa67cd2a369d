"""``moot db``: inspect, back up, verify and rebuild the database file.

Reading is safe while a server runs.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moot.cli.shared import output
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, json_option, resolve_place

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
@json_option
def stats(options: CommandOptions, database: str | None) -> None:
    """Show how much is in the file."""
    figures = _with_store(database, lambda store: store.stats())
    if options.json:
        output.print_json(figures)
        return
    statuses = figures.pop("statuses", {})
    for name, value in figures.items():
        click.echo(f"{name.replace('_', ' '):<16}{value}")
    for name, count in statuses.items() if isinstance(statuses, dict) else ():
        click.echo(f"  {name:<14}{count}")


@db.command()
@click.argument("target")
@_database
@json_option
def backup(options: CommandOptions, target: str, database: str | None) -> None:
    """Copy the file to TARGET: a whole, consistent copy, also while a server writes."""
    from moot.core.errors import MootError

    try:
        _with_store(database, lambda store: store.backup(target))
    except MootError as refusal:
        raise CommandError(refusal.message) from refusal
    path = _database_path(database)
    answer = {"database": path, "target": target}
    output.print_answer(options, answer, f"{path} is copied to {target}")


@db.command()
@_database
@json_option
def verify(options: CommandOptions, database: str | None) -> ExitCode:
    """Check every byte of the log against its hash chain. Exit 1 when something is wrong."""
    from msgspec import to_builtins

    problems = _with_store(database, lambda store: store.verify())
    if options.json:
        output.print_json([to_builtins(problem) for problem in problems])
    elif not problems:
        click.echo(f"{_database_path(database)} is whole")
    for problem in [] if options.json else problems:
        where = f"{problem.run_id} " if problem.run_id else ""
        at = f"#{problem.sequence} " if problem.sequence >= 0 else ""
        click.echo(output.safe_line(f"{where}{at}{problem.what}"))
    if problems:
        count = len(problems)
        click.echo(
            f"error: {count} problem{'s' * (count > 1)} in {_database_path(database)}.", err=True
        )
    return ExitCode.FAILED if problems else ExitCode.OK


@db.command()
@_database
@json_option
def rebuild(options: CommandOptions, database: str | None) -> None:
    """Make all derived rows anew from the log. No server may run meanwhile."""
    count = _with_store(database, _rebuild_rows, readonly=False)
    answer = {"database": _database_path(database), "runs": count}
    sentence = f"The rows of {count} runs were rebuilt from their logs."
    output.print_answer(options, answer, sentence)


async def _rebuild_rows(store: "SqliteStore") -> int:
    from moot.clock import SystemClock
    from moot.engine.nodes.registry import AnyNodeType
    from moot.engine.rebuild import rebuild_rows
    from moot.engine.workflows.registry import WorkflowRegistry

    return await rebuild_rows(store, WorkflowRegistry(store, AnyNodeType(), SystemClock()))


def _database_path(database: str | None) -> str:
    """Return the file that every other command uses."""
    options = CommandOptions()
    options.database = database
    return str(resolve_place(options).database)


def _with_store(
    database: str | None, act: "Callable[[SqliteStore], Awaitable[T]]", readonly: bool = True
) -> T:
    """Open the file, do one thing, and close it."""
    import asyncio
    from pathlib import Path

    from moot.store.sqlite import SqliteStore
    from moot.store.sqlite.errors import StoreRefused

    path = _database_path(database)
    if not Path(path).is_file():
        raise CommandError(f"there is no file {path}; name it: moot db … DB", ExitCode.NOT_FOUND)

    async def work() -> Any:
        store = await SqliteStore.open(path, readonly=readonly)
        try:
            return await act(store)
        finally:
            await store.aclose()

    try:
        result: T = asyncio.run(work())
    except StoreRefused as refusal:
        raise CommandError(str(refusal)) from refusal
    return result
