"""``moot thread list``: which conversations there are, and how each stands."""

from typing import Any

import click

from moot.cli import output
from moot.cli.client import to_read
from moot.cli.options import Options, talks
from moot.cli.room import Room
from moot.cli.thread import THREADS
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
    turns = f"{row.get('turnCount', 0)}" + (f" ({row['unread']} new)" if row["unread"] else "")
    people = room.people(row.get("createdBy", room.me))
    who = " ".join([*people, *row.get("participants", [])])
    return (
        output.short(row["threadId"]), state_of(row), turns, who, _last(row, room),
        output.age(row["updatedAt"]), _title(row),
    )  # fmt: skip


def _last(row: dict[str, Any], room: Room) -> str | None:
    if "decision" in row:
        return output.brief(f"Decision: {row['decision']}", LAST)
    if "last" not in row:
        return None
    last = row["last"]
    return output.brief(f"{room.called(identified(last['from']))}: {last['content']}", LAST)


def _title(row: dict[str, Any]) -> str:
    if "forkedFrom" not in row:
        return str(row["title"])
    note = f": {row['forkNote']}" if row["forkNote"] else ""
    return f"{row['title']} (from {output.short(row['forkedFrom'])}{note})"


def state_of(row: dict[str, Any]) -> str:
    if not row["open"]:
        return "✓ closed"
    return "⏸ paused" if row.get("paused") else "● live"
