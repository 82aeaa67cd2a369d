"""``moot thread show`` and ``tail``: print one conversation, or follow it."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.councils.members import CouncilRoster, id_from_handle
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
from moot.cli.shared.client import (
    Api,
    api_for_reading,
    api_for_writing,
    api_path,
    thread_path,
)
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.quantities import format_count
from moot.cli.threads.list import thread_state_mark
from moot.cli.threads.thread import find_thread

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
    thread, turn_events = api.get(thread_path(thread_id)), read_newest_turns(api, thread_id, turns)
    if options.json:
        output.print_json({**thread, "events": turn_events})
        return
    roster = CouncilRoster()
    roster.read(thread)
    for task in thread.get("tasks", [])[:MAX_TASKS]:
        task["words"] = _task_text(api, thread_id, task["id"])
    for line in (*_state_lines(roster, thread), *_decision_lines(roster, thread.get("decision"))):
        click.echo(line.replace("\n", "\n" + " " * INDENT))  # no participant's words begin a line
    mark, screen = (
        ThreadReadMark(api, thread_id) if turn_events and output.on_terminal() else None,
        open_screen(False),
    )
    for event in turn_events:
        if mark is not None and (news := mark.news(event["turn"])):
            screen.tell([note_line(news)])
        screen.tell([_turn_line(roster, event)])
    if mark is not None:
        mark.reach(thread["lastSequence"])


def _state_lines(roster: CouncilRoster, thread: dict[str, Any]) -> Iterator[str]:
    state, title = thread["state"], output.safe_line(thread["title"] or "")
    yield f"{click.style(thread['threadId'], bold=True)} {title}"
    row = {"open": thread["open"], "paused": state["paused"]}
    agents = [roster.styled(seat.agent_id) for seat in roster.members]
    names = [*roster.people(thread["createdBy"]), *agents]
    turns = format_count(thread["turnCount"], "turn")
    yield f"{thread_state_mark(row)} · {turns} · {', '.join(names)}"
    if "imported" in thread:
        imported = thread["imported"]
        origin = (
            f"imported on {imported['at'][:10]} with the key {output.safe_line(imported['by'])}"
        )
        yield f"{origin}; who spoke before is as its file says"
    if "forkedFrom" in thread:
        source = output.safe_line(thread["forkedFrom"])
        yield f"goes on from {source}{_note_suffix(thread['forkNote'])}"
    yield from _continuation_lines(thread)
    if state["muted"]:
        yield f"muted: {', '.join(map(roster.called, state['muted']))}"
    for task in thread.get("tasks", []):
        task_text = f"task {output.safe_line(task['id'])} for {roster.called(task['to'])}"
        yield f"{task_text} (turn {task['turn']}){task.get('words', '')}"
    for link in thread.get("links", []):
        ended = "" if link["open"] else " (closed)"
        name, title = output.safe_line(link["threadId"]), output.safe_line(link["title"])
        yield f"linked: {name} {title}{ended}"
        yield from _continuation_lines(link)


def _task_text(api: Api, thread_id: str, name: str) -> str:
    """Return the text of a task on one line."""
    sequence = int(name.rpartition(".")[2])
    events = api.get(api_path("threads", thread_id, "events"), after=sequence - 1, limit=1)[
        "events"
    ]
    return f": {output.shorten(events[0]['content'])}" if events else ""


def _continuation_lines(thread: dict[str, Any]) -> Iterator[str]:
    for branch in thread.get("goesOnIn", []):
        yield f"goes on in {output.safe_line(branch['threadId'])}{_note_suffix(branch['note'])}"


def _note_suffix(text: str | None) -> str:
    return f" ({output.one_line(text)})" if text else ""


def _decision_lines(roster: CouncilRoster, decision: dict[str, Any] | None) -> Iterator[str]:
    if decision is None:
        return
    head, text = label_decision(decision)
    yield f"{click.style(head, bold=True)} {output.safe_lines(text)}"
    for vote in decision.get("votes", []):
        word = output.safe_line(vote["vote"])
        yield f"  {roster.called(vote['by'])} {word}{_note_suffix(vote.get('reason'))}"
    for each in decision.get("dissent", []):
        yield f"  dissent: {roster.called(each['by'])}: {output.safe_line(each['text'])}"
    for action in decision.get("actionItems", []):
        owner = f"{roster.called(action['owner'])}: " if action.get("owner") else ""
        due = f", due {output.safe_line(action['due'])}" if action.get("due") else ""
        yield f"  to do: {owner}{output.safe_line(action['text'])}{due}"


def _turn_line(roster: CouncilRoster, event: dict[str, Any]) -> TranscriptLine:
    to = "" if event["to"] == "all" else f" → {roster.called(id_from_handle(event['to']))}"
    speaker = roster.styled(id_from_handle(event["from"]))
    kind = "" if event["type"] == "message" else f" · {event['type']}"
    for word, verb in (("spoken_by", "said by"), ("edited_by", "edited by")):
        if word in event["meta"]:
            kind += f" · {verb} {roster.called(id_from_handle(str(event['meta'][word])))}"
    return TranscriptLine(
        content_text(_turn_content(roster, event)), f"{event['turn']:>4} {speaker}{to}{kind}"
    )


def _turn_content(roster: CouncilRoster, event: dict[str, Any]) -> Any:
    """Return the content. In the host's turn about closing, name the person as the reader does."""
    content, tags = event["content"], event["meta"].get("tags", [])
    is_closing = id_from_handle(event["from"]) == "system" and "closed" in tags
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
    thread, turn_events = api.get(thread_path(thread_id)), read_newest_turns(api, thread_id, turns)
    last = int(thread["lastSequence"])
    after = turn_events[0]["seq"] - 1 if turn_events else last
    attend_options = AttendOptions(prompt=False, as_json=options.json, after=after, stay=True)
    if not thread["open"]:
        attend_options = attend_options._replace(
            after=min(after, last - 1)
        )  # show its end, and then stop
    return attend_thread(api, thread_id, attend_options)
