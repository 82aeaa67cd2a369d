"""``moot thread list``: which conversations there are, and how each stands."""

from typing import Any

import click

from moot.cli.councils.members import Room, identified
from moot.cli.councils.transcript_lines import outcome_of
from moot.cli.shared import output
from moot.cli.shared.client import to_read
from moot.cli.shared.command_hint import way
from moot.cli.shared.options import Options, talks
from moot.cli.threads.thread import THREADS

COLUMNS = ("ID", "STATE", "TURNS", "WHO", "LAST", "AGE", "TITLE")
LAST = 40
#: state -> its mark, for people
MARKS = {"live": "●", "paused": "⏸", "closed": "✓"}


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
@click.option("--archived", is_flag=True, help="Those that were put away.")
@talks
def list_(options: Options, limit: int, archived: bool) -> None:
    """List the threads, those first in which something happened last.

    \b
    In a pipe: id, state, turns, how many are new, who, what was said last, when, title.
    """
    asked = {"limit": limit, "about": "true"} | (
        {"archived": "true"} if archived else {"order": "active"}
    )
    page = to_read(options).get(THREADS, **asked)
    if options.json:
        output.show_json(page["threads"])
        return
    rows = (_row(each, Room(page["you"])) for each in page["threads"])
    begin = f"No thread yet. Begin one: {way('thread new TITLE --with A,B')}"
    output.table(COLUMNS, rows, empty="No thread was put away." if archived else begin)


def _row(row: dict[str, Any], room: Room) -> list[Any]:
    people = room.people(row.get("createdBy", room.me))
    who = " ".join([*people, *row.get("participants", [])])
    turns, last, age = row.get("turnCount", 0), _last(row, room), row["updatedAt"]
    if not output.on_terminal():
        state = word_of(row)
        return [row["threadId"], state, turns, row["unread"], who, last, age, _title(row)]
    new = f" ({row['unread']} new)" if row["unread"] else ""
    last = None if last is None else output.brief(last, LAST)
    when = output.age(age)
    when = "now" if when.endswith("ms") else when
    name = output.short(row["threadId"])
    return [name, state_of(row), f"{turns}{new}", who, last, when, _title(row)]


def _last(row: dict[str, Any], room: Room) -> str | None:
    if "decision" in row:
        return " ".join(outcome_of({"text": row["decision"], "adopted": row.get("adopted", True)}))
    if "last" not in row:
        return None
    last = row["last"]
    return f"{room.called(identified(last['from']))}: {last['content']}"


def _title(row: dict[str, Any]) -> str:
    title = f"{row['title']} (imported)" if row.get("imported") else str(row["title"])
    if "forkedFrom" not in row:
        return title
    note = f": {row['forkNote']}" if row["forkNote"] else ""
    return f"{title} (from {output.short(row['forkedFrom'])}{note})"


def word_of(row: dict[str, Any]) -> str:
    if not row["open"]:
        return "closed"
    return "paused" if row.get("paused") else "live"


def state_of(row: dict[str, Any]) -> str:
    """``● live``"""
    return f"{MARKS[word_of(row)]} {word_of(row)}"
