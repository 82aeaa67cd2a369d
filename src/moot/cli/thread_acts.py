"""``moot thread`` acts: who may speak, who comes in, how it is called, where it goes on."""

from collections.abc import Callable
from typing import Any

import click

from moot.cli import output, quantities
from moot.cli.briefing import newest
from moot.cli.client import Api, path_of, to_write
from moot.cli.council import threads
from moot.cli.options import Options, talks
from moot.cli.thread import find_thread

NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True)
THREAD = click.argument("thread", metavar="THREAD")


def _act(options: Options, thread: str, said: str, call: Callable[[Api, str], Any]) -> None:
    """Does it, and says what has been done."""
    api = to_write(options)
    thread_id = find_thread(api, thread)
    answer = call(api, thread_id)
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.line(f"{thread_id}: {said}"))


def _steer(options: Options, thread: str, said: str, **content: Any) -> None:
    _act(options, thread, said, lambda api, name: api.post(
        threads(name, "controls"), {"content": content}))  # fmt: skip


@click.command()
@THREAD
@NAMES
@click.option("--role", metavar="TEXT", help="What they are there for.")
@talks
def invite(options: Options, thread: str, names: tuple[str, ...], role: str | None) -> None:
    """Let agents or programs take part from the next turn on."""
    for name in names:
        profile = {"profile": {"role": role}} if role else {}
        _steer(options, thread, f"invited {name}", invite={"participant_id": name, **profile})


@click.command()
@THREAD
@NAMES
@talks
def uninvite(options: Options, thread: str, names: tuple[str, ...]) -> None:
    """Let them take part no longer; what they said stays."""
    for name in names:
        _steer(options, thread, f"sent {name} away", uninvite={"participant_id": name})


def _span(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    try:
        return None if given is None else quantities.seconds(given)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


@click.command()
@THREAD
@NAMES
@click.option("--for", "seconds", callback=_span, metavar="SPAN", help="90s, 10m, 2h [for good].")
@talks
def mute(options: Options, thread: str, names: tuple[str, ...], seconds: int | None) -> None:
    """Refuse what they say, for a while or until unmuted."""
    content: Any = {"targets": list(names)} | ({"seconds": seconds} if seconds else {})
    span = f" for {quantities.in_words(seconds)}" if seconds else ""
    _steer(options, thread, f"muted {', '.join(names)}{span}", mute=content)


@click.command()
@THREAD
@NAMES
@talks
def unmute(options: Options, thread: str, names: tuple[str, ...]) -> None:
    """Let them speak again."""
    _steer(options, thread, f"unmuted {', '.join(names)}", unmute=list(names))


@click.command()
@THREAD
@talks
def pause(options: Options, thread: str) -> None:
    """Only people speak."""
    _steer(options, thread, "paused", pause={"on": True})


@click.command()
@THREAD
@talks
def resume(options: Options, thread: str) -> None:
    """Agents speak again."""
    _steer(options, thread, "resumed", pause={"on": False})


@click.command()
@THREAD
@NAMES
@talks
def prod(options: Options, thread: str, names: tuple[str, ...]) -> None:
    """Ask them to speak once."""
    _steer(options, thread, f"asked to speak once: {', '.join(names)}", prod=list(names))


@click.command()
@THREAD
@click.argument("title")
@talks
def rename(options: Options, thread: str, title: str) -> None:
    """Give a thread another title."""
    _act(options, thread, f"renamed to “{title}”",
         lambda api, name: api.post(f"{threads(name)}:rename", {"title": title}))  # fmt: skip


@click.command()
@THREAD
@talks
def archive(options: Options, thread: str) -> None:
    """Put a thread away: lists leave it out."""
    _act(options, thread, "archived", lambda api, name: api.post(f"{threads(name)}:archive"))


@click.command()
@THREAD
@talks
def unarchive(options: Options, thread: str) -> None:
    """Take a thread out again."""
    _act(
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
    _show(options, {**made, "threadId": made["runId"]})


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
