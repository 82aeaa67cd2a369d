"""``moot thread`` actions: rename, archive, link, reopen and fork."""

from typing import Any

import click

from moot.cli.joining.briefing import read_newest_turns
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing, api_path, thread_path
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.controls import THREAD, run_thread_action
from moot.cli.threads.thread import find_thread


@click.command()
@THREAD
@click.argument("title")
@server_options
def rename(options: CommandOptions, thread: str, title: str) -> ExitCode:
    """Give a thread another title."""
    if not title.strip():
        raise click.UsageError("say how it is called: moot thread rename THREAD TITLE.")
    return run_thread_action(options, thread, f"renamed to “{title}”",
         lambda api, name: api.post(f"{thread_path(name)}:rename", {"title": title}))  # fmt: skip


@click.command()
@THREAD
@server_options
def archive(options: CommandOptions, thread: str) -> ExitCode:
    """Put a thread away: lists leave it out."""
    return run_thread_action(
        options, thread, "archived", lambda api, name: api.post(f"{thread_path(name)}:archive")
    )


@click.command()
@THREAD
@server_options
def unarchive(options: CommandOptions, thread: str) -> ExitCode:
    """Take a thread out again."""
    return run_thread_action(
        options,
        thread,
        "taken out of the archive",
        lambda api, name: api.post(f"{thread_path(name)}:unarchive"),
    )


@click.command()
@THREAD
@click.option("--to", "other", metavar="THREAD", help="One that is there.")
@click.option("--title", metavar="TEXT", help="The title of a new side thread.")
@server_options
def link(options: CommandOptions, thread: str, other: str | None, title: str | None) -> None:
    """Link a thread that is there, or begin a side thread. Prints its id."""
    if (other is None) == (title is None):
        raise click.UsageError("Say which: --to THREAD, or --title TEXT for a new one.")
    api = api_for_writing(options)
    body = {"title": title} if other is None else {"thread": find_thread(api, other)}
    _print_thread_id(options, api.post(thread_path(find_thread(api, thread), "links"), body))


@click.command()
@THREAD
@click.option("--note", metavar="TEXT", help="Why.")
@server_options
def reopen(options: CommandOptions, thread: str, note: str | None) -> None:
    """Go on with a closed thread in a new one that has its history. Prints its id."""
    api = api_for_writing(options)
    body = {"note": note} if note else {}
    _print_thread_id(options, api.post(f"{thread_path(find_thread(api, thread))}:reopen", body))


@click.command()
@THREAD
@click.option("--at", type=click.IntRange(1), metavar="TURN", help="From this turn on [its end].")
@click.option("--note", metavar="TEXT", help="Why.")
@server_options
def fork(options: CommandOptions, thread: str, at: int | None, note: str | None) -> None:
    """Begin another thread with the history of this one. Prints its id."""
    api = api_for_writing(options)
    source = api.get(thread_path(find_thread(api, thread)))
    run_id = str(source["runId"])
    if at is None:
        first = api.get(api_path("v1", "runs", run_id))["metrics"]["eventCount"]
    else:
        first = _turn_sequence(api, source, at)
    body = {"fromSeq": first, **({"note": note} if note else {})}
    forked = api.post(f"{api_path('v1', 'host', 'moot', 'runs', run_id)}:fork", body)
    _print_thread_id(options, {**forked, "threadId": _fork_thread_id(source, str(forked["runId"]))})


def _fork_thread_id(thread: dict[str, Any], run_id: str) -> str:
    """Return the id of this conversation in the fork."""
    return run_id + str(thread["threadId"]).removeprefix(str(thread["runId"]))


def _turn_sequence(api: Api, thread: dict[str, Any], turn: int) -> int:
    """Return the event of a turn. Raise UsageError if there is none."""
    behind = thread["turns"] - turn
    turns = read_newest_turns(api, thread["threadId"], behind + 1) if behind >= 0 else []
    if not turns or turns[0]["turn"] != turn:
        raise click.UsageError(f"there is no turn {turn}: the newest is {thread['turns']}.")
    return int(turns[0]["seq"])


def _print_thread_id(options: CommandOptions, thread: dict[str, Any]) -> None:
    if options.json:
        output.print_json(thread)
    else:
        click.echo(output.safe_line(thread["threadId"]))
