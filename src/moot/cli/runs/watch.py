"""``moot watch``: follow a run, a council or a thread as it happens."""

import click

from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import runs, threads
from moot.core.text.quantities import format_count
from moot.wire.threads import ThreadView

#: missed turns that a returning reader sees; for more there is a catch-up
MAX_MISSED_TURNS = 50


@click.command()
@click.argument("name", metavar="ID")
@click.option("--from-start", is_flag=True, help="Show what has happened before, too.")
@click.option("--no-prompt", is_flag=True, help="Only follow; type nothing.")
@click.option("--wait", is_flag=True, help="Stay while it waits for a person.")
@server_options
def watch(
    options: CommandOptions, name: str, from_start: bool, no_prompt: bool, wait: bool
) -> ExitCode:
    """Follow a run, a council or a thread, over restarts of the server, too.

    A conversation has the prompt of `moot convene`, on a terminal.
    """
    api = api_for_writing(options)
    thread = _find_thread(api, name)
    if thread is not None:
        return _watch_thread(options, api, thread, from_start, prompt=not no_prompt, stay=wait)
    from moot.cli.runs.follow import Follower, print_end

    run_id = resolve_run_id(api, name)
    run = api.send(runs.get_run(run_id))
    after = -1 if from_start or run.completed_at else run.metrics.event_count - 1
    end = Follower(api, run_id, options.json).follow(after, stay=wait)
    if not options.json:
        print_end(api.send(runs.get_run(run_id)))
    return end


def _find_thread(api: Api, name: str) -> ThreadView | None:
    """Return None for a run without a conversation."""
    run, mark, rest = name.partition("~")
    thread_id = resolve_run_id(api, run) + mark + rest
    try:
        return api.send(threads.get_thread(thread_id))
    except CommandError as error:
        if mark or error.details.get("threadIds"):
            raise
        if error.exit_code is ExitCode.NOT_FOUND:
            return None
        raise


def _watch_thread(
    options: CommandOptions, api: Api, thread: ThreadView, from_start: bool, **how: bool
) -> ExitCode:
    from moot.cli.councils.convene import AttendOptions, attend_thread

    name, after = output.short_id(thread.thread_id), -1
    if not thread.open and not from_start:
        hint = command_hint(f"watch {name} --from-start")
        click.echo(f"{name} is closed. Read it: {hint}", err=True)
        return ExitCode.OK
    if not from_start:
        after = _read_up_to(api, thread)
        if not options.json:
            turns = format_count(thread.turn_count, "turn")
            click.echo(f"{turns} so far; --from-start shows them.", err=True)
    attend_options = AttendOptions(as_json=options.json, after=after, **how)
    return attend_thread(api, thread.thread_id, attend_options)


def _read_up_to(api: Api, thread: ThreadView) -> int:
    """Return the newest sequence, or on a terminal the last one that the person has read."""
    newest = thread.last_sequence
    if not output.on_terminal():
        return newest
    from moot.cli.councils.read_marks import ThreadReadMark

    mark = ThreadReadMark(api, thread.thread_id)
    return mark.up_to if mark.up_to >= 0 and 0 < mark.unread <= MAX_MISSED_TURNS else newest
