"""``moot thread read`` and ``moot thread catch-up``: keeping up with a conversation."""

from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import path_of, to_read, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks
from moot.cli.threads.thread import find_thread


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("--up-to", type=click.IntRange(0), metavar="TURN", help="Only to this turn.")
@click.option("--show", is_flag=True, help="Only say how much is unread.")
@talks
def read(options: Options, name: str, up_to: int | None, show: bool) -> None:
    """Mark a thread as read, all of it or up to a turn."""
    api = to_read(options) if show else to_write(options)
    thread_id = find_thread(api, name)
    path = path_of("v1", "host", "moot", "threads", thread_id, "read")
    if show:
        answer = api.get(path)
    else:
        answer = api.post(path, {} if up_to is None else {"turn": up_to})
    if options.json:
        output.show_json(answer)
    else:
        click.echo(f"{thread_id}: {answer['unread']} unread")


@click.command("catch-up")
@click.argument("name", metavar="THREAD")
@click.option("--from", "first", type=click.IntRange(0), metavar="TURN",
              help="From this turn on [the first one that is unread].")  # fmt: skip
@click.option("--to", "last", type=click.IntRange(0), metavar="TURN", help="To this turn.")
@click.option("--author", metavar="AGENT", help="Who writes it [the moderator].")
@talks
def catch_up(
    options: Options, name: str, first: int | None, last: int | None, author: str | None
) -> None:
    """Have what you have missed summed up, for yourself alone.

    Nobody else who reads the thread sees it, and its agents are not told of it.
    """
    api = to_write(options)
    thread_id = find_thread(api, name)
    asked: dict[str, Any] = {"from": first, "to": last, "author": author}
    body = {key: value for key, value in asked.items() if value is not None}
    path = f"{path_of('v1', 'host', 'moot', 'threads', thread_id)}:catch-up"
    made = api.post(f"{path}?wait=50", body)
    if options.json:
        output.show_json(made)
    elif "turn" in made:
        _show(made)
    elif "error" in made:
        raise Trouble(f"{made['author']} wrote nothing: {made['error']['message']}")
    else:
        said = f"{made['author']} is still writing: moot api GET {made['url']}"
        raise Trouble(said, Exit.TIMED_OUT)


def _show(made: dict[str, Any]) -> None:
    turn, meta = made["turn"], made["turn"].get("meta", {})
    left_out = f", {made['hidden']} of them left out" if made["hidden"] else ""
    author = turn["from"].removeprefix("host:")
    said = f"{author} ({meta.get('model', '?')}) on turns {made['from']} to {made['to']}{left_out}:"
    click.echo(output.line(said, err=True), err=True)
    click.echo(output.lines(str(turn["content"])))
