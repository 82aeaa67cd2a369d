"""``moot thread read`` and ``catch-up``: mark turns as read, or sum them up."""

import click

from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.thread import find_thread
from moot.client.operations import search
from moot.wire.search import CatchUpTurn, CatchUpView

#: seconds that the server may take for the summary
WAIT_SECONDS = 50


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("--up-to", type=click.IntRange(0), metavar="TURN", help="Only to this turn.")
@click.option("--show", is_flag=True, help="Only say how much is unread.")
@server_options
def read(options: CommandOptions, name: str, up_to: int | None, show: bool) -> None:
    """Mark a thread as read, all of it or up to a turn."""
    api = api_for_reading(options) if show else api_for_writing(options)
    thread_id = find_thread(api, name)
    mark = search.mark_thread_read(thread_id, turn=up_to)
    status = api.send(search.get_read_status(thread_id) if show else mark)
    output.print_answer(options, status, f"{thread_id}: {status.unread} unread")


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
    call = search.create_catch_up(thread_id, first, last, author=author, wait=WAIT_SECONDS)
    summary = api.send(call)
    if options.json:
        output.print_json(summary)
    elif summary.turn is not None:
        _print_catch_up(summary, summary.turn)
    elif summary.error is not None:
        raise CommandError(f"{summary.author} wrote nothing: {summary.error['message']}")
    else:
        message = f"{summary.author} is still writing: moot api GET {summary.url}"
        raise CommandError(message, ExitCode.TIMED_OUT)


def _print_catch_up(summary: CatchUpView, turn: CatchUpTurn) -> None:
    left_out = f", {summary.hidden} of them left out" if summary.hidden else ""
    author = turn.sender.removeprefix("host:")
    turns = f"turns {summary.first} to {summary.to}{left_out}"
    heading = f"{author} ({turn.meta.get('model', '?')}) on {turns}:"
    click.echo(output.safe_line(heading, err=True), err=True)
    click.echo(output.safe_lines(turn.content))
