"""``moot thread read`` and ``catch-up``: mark turns as read, or sum them up."""

from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading, api_for_writing, api_path
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.thread import find_thread


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("--up-to", type=click.IntRange(0), metavar="TURN", help="Only to this turn.")
@click.option("--show", is_flag=True, help="Only say how much is unread.")
@server_options
def read(options: CommandOptions, name: str, up_to: int | None, show: bool) -> None:
    """Mark a thread as read, all of it or up to a turn."""
    api = api_for_reading(options) if show else api_for_writing(options)
    thread_id = find_thread(api, name)
    path = api_path("v1", "host", "moot", "threads", thread_id, "read")
    if show:
        answer = api.get(path)
    else:
        answer = api.post(path, {} if up_to is None else {"turn": up_to})
    if options.json:
        output.print_json(answer)
    else:
        click.echo(f"{thread_id}: {answer['unread']} unread")


@click.command("catch-up")
@click.argument("name", metavar="THREAD")
@click.option("--from", "first", type=click.IntRange(0), metavar="TURN",
              help="From this turn on [the first one that is unread].")  # fmt: skip
@click.option("--to", "last", type=click.IntRange(0), metavar="TURN", help="To this turn.")
@click.option("--author", metavar="AGENT", help="Who writes it [the moderator].")
@server_options
def catch_up(
    options: CommandOptions, name: str, first: int | None, last: int | None, author: str | None
) -> None:
    """Have what you have missed summed up, for yourself alone.

    Nobody else who reads the thread sees it, and its agents are not told of it.
    """
    api = api_for_writing(options)
    thread_id = find_thread(api, name)
    options_given: dict[str, Any] = {"from": first, "to": last, "author": author}
    body = {key: value for key, value in options_given.items() if value is not None}
    path = f"{api_path('v1', 'host', 'moot', 'threads', thread_id)}:catch-up"
    summary = api.post(f"{path}?wait=50", body)
    if options.json:
        output.print_json(summary)
    elif "turn" in summary:
        _print_catch_up(summary)
    elif "error" in summary:
        raise CommandError(f"{summary['author']} wrote nothing: {summary['error']['message']}")
    else:
        message = f"{summary['author']} is still writing: moot api GET {summary['url']}"
        raise CommandError(message, ExitCode.TIMED_OUT)


def _print_catch_up(summary: dict[str, Any]) -> None:
    turn, meta = summary["turn"], summary["turn"].get("meta", {})
    left_out = f", {summary['hidden']} of them left out" if summary["hidden"] else ""
    author = turn["from"].removeprefix("host:")
    turns = f"turns {summary['from']} to {summary['to']}{left_out}"
    heading = f"{author} ({meta.get('model', '?')}) on {turns}:"
    click.echo(output.safe_line(heading, err=True), err=True)
    click.echo(output.safe_lines(str(turn["content"])))
