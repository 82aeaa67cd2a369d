"""``moot watch``: a run, a council or any thread, as it happens."""

from typing import TYPE_CHECKING, Any

import click

from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import Api, Client, path_of, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, place, talks
from moot.cli.shared.quantities import counted

#: turns that are shown to who comes back; of more there is a catch-up
MOST_MISSED = 50

if TYPE_CHECKING:
    from moot.cli.councils.convene import Attending


@click.command()
@click.argument("name", metavar="ID")
@click.option("--from-start", is_flag=True, help="Show what has happened before, too.")
@click.option("--no-prompt", is_flag=True, help="Only follow; type nothing.")
@click.option("--wait", is_flag=True, help="Stay while it waits for a person.")
@talks
def watch(options: Options, name: str, from_start: bool, no_prompt: bool, wait: bool) -> Exit:
    """Follow a run, a council or a thread, over restarts of the server, too.

    A conversation has the prompt of `moot convene`, on a terminal.
    """
    api, client = to_write(options), Client(place(options))
    thread = _thread(api, name)
    if thread is not None:
        from moot.cli.councils.convene import Attending

        how = Attending(prompt=not no_prompt, as_json=options.json, stay=wait)
        return _council(api, client, thread, how, from_start)
    from moot.cli.runs.follow import Follower, show_end

    run_id = resolve(api, name)
    run = api.get(path_of("v1", "runs", run_id))
    after = -1 if from_start or run.get("completedAt") else run["metrics"]["eventCount"] - 1
    end = Follower(api, client, run_id, options.json).follow(after, stay=wait)
    if not options.json:
        show_end(api.get(path_of("v1", "runs", run_id)))
    return end


def _thread(api: Api, name: str) -> dict[str, Any] | None:
    """None for a run without a conversation, or with several."""
    from moot.cli.councils.session import threads

    run, mark, rest = name.partition("~")
    thread_id = resolve(api, run) + mark + rest
    try:
        return dict(api.get(threads(thread_id)))
    except Trouble as trouble:
        if mark or trouble.details.get("threadIds"):
            raise
        if trouble.exit_code is Exit.NOT_FOUND:
            return None
        raise


def _council(
    api: Api, client: Client, thread: dict[str, Any], how: "Attending", from_start: bool
) -> Exit:
    from moot.cli.councils.convene import attend

    name = str(thread["threadId"])
    if from_start:
        return attend(api, client, name, how)
    if not thread["open"]:
        short = output.short(name)
        click.echo(f"{short} is closed. Read it: {way(f'watch {short} --from-start')}", err=True)
        return Exit.OK
    if not how.as_json:
        turns = counted(thread["turnCount"], "turn")
        click.echo(f"{turns} so far; --from-start shows them.", err=True)
    return attend(api, client, name, how._replace(after=_left_at(api, thread)))


def _left_at(api: Api, thread: dict[str, Any]) -> int:
    """The end; for a person who has been here before, where he has stopped reading."""
    newest = int(thread["lastSequence"])
    if not output.on_terminal():
        return newest
    from moot.cli.councils.read_marks import Mark

    mark = Mark(api, str(thread["threadId"]))
    return mark.up_to if mark.up_to >= 0 and 0 < mark.unread <= MOST_MISSED else newest
