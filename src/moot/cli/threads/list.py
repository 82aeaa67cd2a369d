"""``moot thread list``: list the conversations and their state."""

from typing import Any

import click

from moot.cli.councils.members import CouncilRoster, id_from_handle
from moot.cli.councils.transcript_lines import label_decision
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.thread import THREADS

COLUMNS = ("ID", "STATE", "TURNS", "WHO", "LAST", "AGE", "TITLE")
LAST_TEXT_LENGTH = 40
#: state -> its mark, for people
MARKS = {"live": "●", "paused": "⏸", "closed": "✓"}


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
@click.option("--archived", is_flag=True, help="Those that were put away.")
@server_options
def list_(options: CommandOptions, limit: int, archived: bool) -> None:
    """List the threads, those first in which something happened last.

    \b
    In a pipe: id, state, turns, how many are new, who, what was said last, when, title.
    """
    query = {"limit": limit, "about": "true"} | (
        {"archived": "true"} if archived else {"order": "active"}
    )
    page = api_for_reading(options).get(THREADS, **query)
    if options.json:
        output.print_json(page["threads"])
        return
    rows = (_thread_row(each, CouncilRoster(page["you"])) for each in page["threads"])
    hint = f"No thread yet. Begin one: {command_hint('thread new TITLE --with A,B')}"
    output.print_table(COLUMNS, rows, empty="No thread was put away." if archived else hint)


def _thread_row(row: dict[str, Any], roster: CouncilRoster) -> list[Any]:
    people = roster.people(row.get("createdBy", roster.me))
    names = " ".join([*people, *row.get("participants", [])])
    turns, last, age = row.get("turnCount", 0), _last_text(row, roster), row["updatedAt"]
    if not output.on_terminal():
        state = thread_state(row)
        return [row["threadId"], state, turns, row["unread"], names, last, age, _thread_title(row)]
    new = f" ({row['unread']} new)" if row["unread"] else ""
    last = None if last is None else output.shorten(last, LAST_TEXT_LENGTH)
    when = output.format_age(age)
    when = "now" if when.endswith("ms") else when
    name = output.short_id(row["threadId"])
    return [name, thread_state_mark(row), f"{turns}{new}", names, last, when, _thread_title(row)]


def _last_text(row: dict[str, Any], roster: CouncilRoster) -> str | None:
    if "decision" in row:
        return " ".join(
            label_decision({"text": row["decision"], "adopted": row.get("adopted", True)})
        )
    if "last" not in row:
        return None
    last = row["last"]
    return f"{roster.called(id_from_handle(last['from']))}: {last['content']}"


def _thread_title(row: dict[str, Any]) -> str:
    title = f"{row['title']} (imported)" if row.get("imported") else str(row["title"])
    if "forkedFrom" not in row:
        return title
    note = f": {row['forkNote']}" if row["forkNote"] else ""
    return f"{title} (from {output.short_id(row['forkedFrom'])}{note})"


def thread_state(row: dict[str, Any]) -> str:
    if not row["open"]:
        return "closed"
    return "paused" if row.get("paused") else "live"


def thread_state_mark(row: dict[str, Any]) -> str:
    """Return ``● live``."""
    return f"{MARKS[thread_state(row)]} {thread_state(row)}"
