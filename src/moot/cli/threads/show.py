"""``moot thread list``, ``show`` and ``tail``: print conversations, or follow one."""

from collections.abc import Iterator
from typing import Any, Literal

import click
from msgspec import to_builtins

from moot.cli.councils.members import CouncilRoster
from moot.cli.councils.read_marks import ThreadReadMark
from moot.cli.councils.screen import INDENT, open_screen
from moot.cli.councils.transcript_lines import (
    TranscriptLine,
    content_text,
    label_decision,
    note_line,
)
from moot.cli.joining.briefing import read_newest_turns
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.thread import find_thread
from moot.client.operations import agent_bridge, threads
from moot.core.text.names import name_from_handle
from moot.core.text.quantities import format_count
from moot.wire.agent_bridge import BridgeEvent
from moot.wire.councils import CouncilDecisionView
from moot.wire.threads import ThreadFork, ThreadSummary, ThreadView

COLUMNS = ("ID", "STATE", "TURNS", "WHO", "LAST", "AGE", "TITLE")
LAST_TEXT_LENGTH = 40
#: state -> its mark, for people
MARKS = {"live": "●", "paused": "⏸", "closed": "✓"}
#: open tasks that are printed with their text
MAX_TASKS = 20
#: end of the host's turn about a closed conversation
CLOSED_SUFFIX = " closed the conversation."


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("-n", "--turns", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many of the newest turns.")  # fmt: skip
@server_options
def show(options: CommandOptions, name: str, turns: int) -> None:
    """Show a thread: who takes part, how it is steered, what was decided, and its newest turns."""
    api = api_for_reading(options)
    thread_id = find_thread(api, name)
    thread = api.send(threads.get_thread(thread_id))
    turn_events = read_newest_turns(api, thread_id, turns)
    if options.json:
        output.print_json({**to_builtins(thread), "events": turn_events})
        return
    roster = CouncilRoster()
    roster.read(thread)
    listed = thread.tasks[:MAX_TASKS]
    task_texts = {task.id: _task_text(api, thread_id, task.id) for task in listed}
    state_lines = _state_lines(roster, thread, task_texts)
    for line in (*state_lines, *_decision_lines(roster, thread.decision)):
        click.echo(line.replace("\n", "\n" + " " * INDENT))  # no participant's words begin a line
    mark = ThreadReadMark(api, thread_id) if turn_events and output.on_terminal() else None
    screen = open_screen(False)
    for event in turn_events:
        if mark is not None and (news := mark.news(event.turn)):
            screen.tell([note_line(news)])
        screen.tell([_turn_line(roster, event)])
    if mark is not None:
        mark.reach(thread.last_sequence)


def _state_lines(
    roster: CouncilRoster, thread: ThreadView, task_texts: dict[str, str]
) -> Iterator[str]:
    state, title = thread.state, output.safe_line(thread.title)
    yield f"{click.style(thread.thread_id, bold=True)} {title}"
    agents = [roster.styled(seat.agent_id) for seat in roster.members]
    names = [*roster.people(thread.created_by), *agents]
    turns = format_count(thread.turn_count, "turn")
    yield f"{thread_state_mark(thread.open, state.paused)} · {turns} · {', '.join(names)}"
    if thread.imported is not None:
        key_name = output.safe_line(thread.imported.by)
        origin = f"imported on {thread.imported.at[:10]} with the key {key_name}"
        yield f"{origin}; who spoke before is as its file says"
    if thread.forked_from is not None:
        source = output.safe_line(thread.forked_from)
        yield f"goes on from {source}{_note_suffix(thread.fork_note or None)}"
    yield from _continuation_lines(thread.goes_on_in)
    if state.muted:
        yield f"muted: {', '.join(map(roster.called, state.muted))}"
    for task in thread.tasks:
        task_text = f"task {output.safe_line(task.id)} for {roster.called(task.to)}"
        yield f"{task_text} (turn {task.turn}){task_texts.get(task.id, '')}"
    for link in thread.links:
        ended = "" if link.open else " (closed)"
        yield f"linked: {output.safe_line(link.thread_id)} {output.safe_line(link.title)}{ended}"
        yield from _continuation_lines(link.goes_on_in)


def _task_text(api: Api, thread_id: str, name: str) -> str:
    """Return the text of a task on one line."""
    sequence = int(name.rpartition(".")[2])
    call = agent_bridge.list_bridge_events(thread_id, after=sequence - 1, limit=1)
    events = api.send(call).events
    return f": {output.shorten(events[0].content)}" if events else ""


def _continuation_lines(forks: list[ThreadFork]) -> Iterator[str]:
    for fork in forks:
        yield f"goes on in {output.safe_line(fork.thread_id)}{_note_suffix(fork.note)}"


def _note_suffix(text: str | None) -> str:
    return f" ({output.one_line(text)})" if text else ""


def _decision_lines(roster: CouncilRoster, decision: CouncilDecisionView | None) -> Iterator[str]:
    if decision is None:
        return
    head, text = label_decision(decision.text, decision.adopted)
    yield f"{click.style(head, bold=True)} {output.safe_lines(text)}"
    for vote in decision.votes:
        word = output.safe_line(vote.vote)
        yield f"  {roster.called(vote.by)} {word}{_note_suffix(vote.reason)}"
    for each in decision.dissent:
        yield f"  dissent: {roster.called(each.by)}: {output.safe_line(each.text)}"
    for action in decision.action_items:
        owner = f"{roster.called(action.owner)}: " if action.owner else ""
        due = f", due {output.safe_line(action.due)}" if action.due else ""
        yield f"  to do: {owner}{output.safe_line(action.text)}{due}"


def _turn_line(roster: CouncilRoster, event: BridgeEvent) -> TranscriptLine:
    to = "" if event.to == "all" else f" → {roster.called(name_from_handle(event.to))}"
    speaker = roster.styled(name_from_handle(event.sender))
    kind = "" if event.type == "message" else f" · {event.type}"
    for word, verb in (("spoken_by", "said by"), ("edited_by", "edited by")):
        if word in event.meta:
            kind += f" · {verb} {roster.called(name_from_handle(str(event.meta[word])))}"
    head = f"{event.turn:>4} {speaker}{to}{kind}"
    return TranscriptLine(content_text(_turn_content(roster, event)), head)


def _turn_content(roster: CouncilRoster, event: BridgeEvent) -> Any:
    """Return the content. In the host's turn about closing, name the person as the reader does."""
    content, tags = event.content, event.meta.get("tags", [])
    is_closing = name_from_handle(event.sender) == "system" and "closed" in tags
    if not is_closing or not isinstance(content, str) or not content.endswith(CLOSED_SUFFIX):
        return content
    return f"{roster.called(content.removesuffix(CLOSED_SUFFIX))}{CLOSED_SUFFIX}"


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("-n", "--turns", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many of the newest turns first.")  # fmt: skip
@server_options
def tail(options: CommandOptions, name: str, turns: int) -> ExitCode:
    """Follow a thread as it happens: who speaks, who thinks, who types. Ctrl-C ends it."""
    from moot.cli.councils.convene import AttendOptions, attend_thread

    api = api_for_writing(options)
    thread_id = find_thread(api, name)
    thread = api.send(threads.get_thread(thread_id))
    turn_events = read_newest_turns(api, thread_id, turns)
    last = thread.last_sequence
    after = turn_events[0].seq - 1 if turn_events else last
    if not thread.open:
        after = min(after, last - 1)  # show its end, and then stop
    attend_options = AttendOptions(prompt=False, as_json=options.json, after=after, stay=True)
    return attend_thread(api, thread_id, attend_options)


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
