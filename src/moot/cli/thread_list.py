"""``moot thread list``, ``show`` and ``tail``: which conversations there are, and what is said."""

from typing import Any

import click

from moot.cli import output
from moot.cli.briefing import newest
from moot.cli.client import Client, to_read, to_write
from moot.cli.council import threads
from moot.cli.options import Options, place, talks
from moot.cli.quantities import counted
from moot.cli.room import Room
from moot.cli.thread import THREADS, find_thread
from moot.cli.told import words_of
from moot.cli.trouble import Exit
from moot.core.bridge import identified

COLUMNS = ("ID", "STATE", "TURNS", "WHO", "LAST", "AGE", "TITLE")
LAST = 40


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
@click.option("--archived", is_flag=True, help="Those that were put away.")
@talks
def list_(options: Options, limit: int, archived: bool) -> None:
    """List the threads, newest first."""
    asked = {"limit": limit, "about": "true", **({"archived": "true"} if archived else {})}
    page = to_read(options).get(THREADS, **asked)
    if options.json:
        output.show_json(page["threads"])
        return
    rows = (_row(each, Room(page["you"])) for each in page["threads"])
    output.table(COLUMNS, rows, empty="No thread yet. Begin one: moot convene QUESTION --with A,B")


def _row(row: dict[str, Any], room: Room) -> tuple[Any, ...]:
    last = row.get("last")
    said = None
    if last is not None:
        said = output.brief(f"{room.called(identified(last['from']))}: {last['content']}", LAST)
    turns = f"{row['turnCount']}" + (f" ({row['unread']} new)" if row["unread"] else "")
    people = room.people(row.get("createdBy", room.me))
    who = " ".join([*people, *row.get("participants", [])])
    return (
        output.short(row["threadId"]), state_of(row), turns, who, said,
        output.age(row["updatedAt"]), row["title"],
    )  # fmt: skip


def state_of(row: dict[str, Any]) -> str:
    if not row["open"]:
        return "✓ closed"
    return "⏸ paused" if row.get("paused") else "● live"


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("-n", "--turns", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many of the newest turns.")  # fmt: skip
@talks
def show(options: Options, name: str, turns: int) -> None:
    """Show a thread: who takes part, how it is steered, and its newest turns."""
    api = to_read(options)
    thread_id = find_thread(api, name)
    thread = api.get(threads(thread_id))
    said = newest(api, thread_id, turns)
    if options.json:
        output.show_json({**thread, "events": said})
        return
    room, state = Room(), thread["state"]
    room.read(thread)
    click.echo(f"{click.style(thread_id, bold=True)} {output.line(thread['title'] or '')}")
    row = {"open": thread["open"], "paused": state["paused"]}
    agents = [room.styled(seat.agent_id) for seat in room.seats]
    who = [*room.people(thread["createdBy"]), *agents]
    turns = counted(thread["turnCount"], "turn")
    click.echo(f"{state_of(row)} · {turns} · {', '.join(who)}")
    if state["muted"]:
        click.echo(f"muted: {', '.join(map(room.called, state['muted']))}")
    for task in thread.get("tasks", []):
        click.echo(f"task {output.line(task['id'])} for {room.called(task['to'])}")
    for link in thread.get("links", []):
        click.echo(f"linked: {output.line(link['threadId'])} {output.line(link['title'])}")
    for event in said:
        _tell(room, event)


def _tell(room: Room, event: dict[str, Any]) -> None:
    to = "" if event["to"] == "all" else f" → {room.called(identified(event['to']))}"
    who = room.styled(identified(event["from"]))
    click.echo(f"{event['turn']:>4} {who}{to}  {words_of(event['content'])}")


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("-n", "--turns", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many of the newest turns first.")  # fmt: skip
@talks
def tail(options: Options, name: str, turns: int) -> Exit:
    """Follow a thread as it happens: who speaks, who thinks, who types. Ctrl-C ends it."""
    from moot.cli.convene import Attending, attend

    api = to_write(options)
    thread_id = find_thread(api, name)
    thread, said = api.get(threads(thread_id)), newest(api, thread_id, turns)
    last = int(thread["lastSequence"])
    after = said[0]["seq"] - 1 if said else last
    how = Attending(prompt=False, as_json=options.json, after=after, stay=True)
    if not thread["open"]:
        how = how._replace(after=min(after, last - 1))  # its end is shown, and then it ends
    return attend(api, Client(place(options)), thread_id, how)
