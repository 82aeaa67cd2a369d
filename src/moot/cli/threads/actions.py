"""``moot thread`` acts: how it is called, where it is kept, where it goes on."""

from typing import Any

import click

from moot.cli.councils.session import threads
from moot.cli.joining.briefing import newest
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_write
from moot.cli.shared.errors import Exit
from moot.cli.shared.options import Options, talks
from moot.cli.threads.controls import THREAD, act
from moot.cli.threads.thread import find_thread


@click.command()
@THREAD
@click.argument("title")
@talks
def rename(options: Options, thread: str, title: str) -> Exit:
    """Give a thread another title."""
    if not title.strip():
        raise click.UsageError("say how it is called: moot thread rename THREAD TITLE.")
    return act(options, thread, f"renamed to “{title}”",
         lambda api, name: api.post(f"{threads(name)}:rename", {"title": title}))  # fmt: skip


@click.command()
@THREAD
@talks
def archive(options: Options, thread: str) -> Exit:
    """Put a thread away: lists leave it out."""
    return act(options, thread, "archived", lambda api, name: api.post(f"{threads(name)}:archive"))


@click.command()
@THREAD
@talks
def unarchive(options: Options, thread: str) -> Exit:
    """Take a thread out again."""
    return act(
        options,
        thread,
        "taken out of the archive",
        lambda api, name: api.post(f"{threads(name)}:unarchive"),
    )


@click.command()
@THREAD
@click.option("--to", "other", metavar="THREAD", help="One that is there.")
@click.option("--title", metavar="TEXT", help="The title of a new side thread.")
@talks
def link(options: Options, thread: str, other: str | None, title: str | None) -> None:
    """Link a thread that is there, or begin a side thread. Prints its id."""
    if (other is None) == (title is None):
        raise click.UsageError("Say which: --to THREAD, or --title TEXT for a new one.")
    api = to_write(options)
    body = {"title": title} if other is None else {"thread": find_thread(api, other)}
    _show(options, api.post(threads(find_thread(api, thread), "links"), body))


@click.command()
@THREAD
@click.option("--note", metavar="TEXT", help="Why.")
@talks
def reopen(options: Options, thread: str, note: str | None) -> None:
    """Go on with a closed thread in a new one that has its history. Prints its id."""
    api = to_write(options)
    body = {"note": note} if note else {}
    _show(options, api.post(f"{threads(find_thread(api, thread))}:reopen", body))


@click.command()
@THREAD
@click.option("--at", type=click.IntRange(1), metavar="TURN", help="From this turn on [its end].")
@click.option("--note", metavar="TEXT", help="Why.")
@talks
def fork(options: Options, thread: str, at: int | None, note: str | None) -> None:
    """Begin another thread with the history of this one. Prints its id."""
    api = to_write(options)
    found = api.get(threads(find_thread(api, thread)))
    run_id = str(found["runId"])
    if at is None:
        first = api.get(path_of("v1", "runs", run_id))["metrics"]["eventCount"]
    else:
        first = _place(api, found, at)
    body = {"fromSeq": first, **({"note": note} if note else {})}
    made = api.post(f"{path_of('v1', 'host', 'moot', 'runs', run_id)}:fork", body)
    _show(options, {**made, "threadId": _same(found, str(made["runId"]))})


def _same(found: dict[str, Any], run_id: str) -> str:
    """The conversation of the fork that this one became."""
    return run_id + str(found["threadId"]).removeprefix(str(found["runId"]))


def _place(api: Api, thread: dict[str, Any], turn: int) -> int:
    """The event of a turn."""
    behind = thread["turns"] - turn
    said = newest(api, thread["threadId"], behind + 1) if behind >= 0 else []
    if not said or said[0]["turn"] != turn:
        raise click.UsageError(f"there is no turn {turn}: the newest is {thread['turns']}.")
    return int(said[0]["seq"])


def _show(options: Options, made: dict[str, Any]) -> None:
    if options.json:
        output.show_json(made)
    else:
        click.echo(output.line(made["threadId"]))
