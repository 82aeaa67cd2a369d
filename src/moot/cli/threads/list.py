"""``moot thread list``: list the conversations and their state."""

from typing import Any, Literal

import click

from moot.cli.councils.members import CouncilRoster
from moot.cli.councils.transcript_lines import label_decision
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import threads
from moot.core.text.names import name_from_handle
from moot.wire.threads import ThreadSummary

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
    order: Literal["active"] | None = None if archived else "active"
    call = threads.list_threads(limit=limit, about=True, archived=archived or None, order=order)
    page = api_for_reading(options).send(call)
    hint = f"No thread yet. Begin one: {command_hint('thread new TITLE --with A,B')}"
    empty = "No thread was put away." if archived else hint
    roster = CouncilRoster(page.you)
    output.print_list(options, page.threads, COLUMNS, lambda row: _thread_row(row, roster), empty)


def _thread_row(row: ThreadSummary, roster: CouncilRoster) -> list[Any]:
    people = roster.people(row.created_by or roster.me)
    names = " ".join([*people, *row.participants])
    turns, last, age = row.turn_count or 0, _last_text(row, roster), row.updated_at
    if not output.on_terminal():
        state = thread_state(row.open, bool(row.paused))
        return [row.thread_id, state, turns, row.unread, names, last, age, _thread_title(row)]
    new = f" ({row.unread} new)" if row.unread else ""
    last = None if last is None else output.shorten(last, LAST_TEXT_LENGTH)
    when = output.format_age(age)
    when = "now" if when.endswith("ms") else when
    name, mark = output.short_id(row.thread_id), thread_state_mark(row.open, bool(row.paused))
    return [name, mark, f"{turns}{new}", names, last, when, _thread_title(row)]


def _last_text(row: ThreadSummary, roster: CouncilRoster) -> str | None:
    if row.decision is not None:
        return " ".join(label_decision(row.decision, row.adopted is not False))
    if row.last is None:
        return None
    return f"{roster.called(name_from_handle(row.last.speaker))}: {row.last.content}"


def _thread_title(row: ThreadSummary) -> str:
    title = f"{row.title} (imported)" if row.imported else row.title
    if row.forked_from is None:
        return title
    note = f": {row.fork_note}" if row.fork_note else ""
    return f"{title} (from {output.short_id(row.forked_from)}{note})"


def thread_state(is_open: bool, is_paused: bool) -> str:
    if not is_open:
        return "closed"
    return "paused" if is_paused else "live"


def thread_state_mark(is_open: bool, is_paused: bool) -> str:
    """Return ``● live``."""
    state = thread_state(is_open, is_paused)
    return f"{MARKS[state]} {state}"
