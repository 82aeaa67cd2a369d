"""``moot thread`` actions: rename, archive, link, reopen and fork."""

from typing import Any

import click
from msgspec import to_builtins

from moot.cli.joining.briefing import read_newest_turns
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.controls import THREAD, run_thread_action
from moot.cli.threads.thread import find_thread
from moot.client.operations import runs, threads
from moot.wire.threads import ThreadView


@click.command()
@THREAD
@click.argument("title")
@server_options
def rename(options: CommandOptions, thread: str, title: str) -> ExitCode:
    """Give a thread another title."""
    if not title.strip():
        raise click.UsageError("say how it is called: moot thread rename THREAD TITLE.")
    return run_thread_action(options, thread, f"renamed to “{title}”",
         lambda name: threads.rename_thread(name, title))  # fmt: skip


@click.command()
@THREAD
@server_options
def archive(options: CommandOptions, thread: str) -> ExitCode:
    """Put a thread away: lists leave it out."""
    return run_thread_action(options, thread, "archived", threads.archive_thread)


@click.command()
@THREAD
@server_options
def unarchive(options: CommandOptions, thread: str) -> ExitCode:
    """Take a thread out again."""
    return run_thread_action(
        options,
        thread,
        "taken out of the archive",
        threads.unarchive_thread,
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
    if other is not None:
        other_id = find_thread(api, other)
        linked = api.send(threads.link_thread(find_thread(api, thread), other_id))
    else:
        linked = api.send(threads.begin_side_thread(find_thread(api, thread), title or ""))
    _print_thread_id(options, linked, linked.thread_id)


@click.command()
@THREAD
@click.option("--note", metavar="TEXT", help="Why.")
@server_options
def reopen(options: CommandOptions, thread: str, note: str | None) -> None:
    """Go on with a closed thread in a new one that has its history. Prints its id."""
    api = api_for_writing(options)
    reopened = api.send(threads.reopen_thread(find_thread(api, thread), note=note or None))
    _print_thread_id(options, reopened, reopened.thread_id)


@click.command()
@THREAD
@click.option("--at", type=click.IntRange(1), metavar="TURN", help="From this turn on [its end].")
@click.option("--note", metavar="TEXT", help="Why.")
@server_options
def fork(options: CommandOptions, thread: str, at: int | None, note: str | None) -> None:
    """Begin another thread with the history of this one. Prints its id."""
    api = api_for_writing(options)
    source = api.send(threads.get_thread(find_thread(api, thread)))
    if at is None:
        first = api.send(runs.get_run(source.run_id)).metrics.event_count
    else:
        first = _turn_sequence(api, source, at)
    forked = api.send(runs.fork_run(source.run_id, first, note=note or None))
    thread_id = forked.run_id + source.thread_id.removeprefix(source.run_id)
    _print_thread_id(options, {**to_builtins(forked), "threadId": thread_id}, thread_id)


def _turn_sequence(api: Api, thread: ThreadView, turn: int) -> int:
    """Return the event of a turn. Raise UsageError if there is none."""
    behind = thread.turns - turn
    turns = read_newest_turns(api, thread.thread_id, behind + 1) if behind >= 0 else []
    if not turns or turns[0].turn != turn:
        raise click.UsageError(f"there is no turn {turn}: the newest is {thread.turns}.")
    return turns[0].seq


def _print_thread_id(options: CommandOptions, answer: Any, thread_id: str) -> None:
    if options.json:
        output.print_json(answer)
    else:
        click.echo(output.safe_line(thread_id))
