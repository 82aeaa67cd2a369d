"""``moot thread show`` and ``tail``: one conversation, as it stands and as it goes on."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.councils.members import Room, identified
from moot.cli.councils.read_marks import Mark
from moot.cli.councils.screen import INDENT
from moot.cli.councils.session import screen, threads
from moot.cli.councils.transcript_lines import Told, note, outcome_of, words_of
from moot.cli.joining.briefing import newest
from moot.cli.shared import output
from moot.cli.shared.client import Api, Client, path_of, to_read, to_write
from moot.cli.shared.errors import Exit
from moot.cli.shared.options import Options, place, talks
from moot.cli.shared.quantities import counted
from moot.cli.threads.list import state_of
from moot.cli.threads.thread import find_thread

#: open tasks that are told in their words
MOST_TASKS = 20
#: how the host says that somebody has ended it
CLOSED = " closed the conversation."


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("-n", "--turns", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many of the newest turns.")  # fmt: skip
@talks
def show(options: Options, name: str, turns: int) -> None:
    """Show a thread: who takes part, how it is steered, what was decided, and its newest turns."""
    api = to_read(options)
    thread_id = find_thread(api, name)
    thread, said = api.get(threads(thread_id)), newest(api, thread_id, turns)
    if options.json:
        output.show_json({**thread, "events": said})
        return
    room = Room()
    room.read(thread)
    for task in thread.get("tasks", [])[:MOST_TASKS]:
        task["words"] = _words(api, thread_id, task["id"])
    for line in (*_standing(room, thread), *_decision(room, thread.get("decision"))):
        click.echo(line.replace("\n", "\n" + " " * INDENT))  # nobody's words begin a line
    mark, seen = Mark(api, thread_id) if said and output.on_terminal() else None, screen(False)
    for event in said:
        if mark is not None and (news := mark.news(event["turn"])):
            seen.tell([note(news)])
        seen.tell([_turn(room, event)])
    if mark is not None:
        mark.reach(thread["lastSequence"])


def _standing(room: Room, thread: dict[str, Any]) -> Iterator[str]:
    state, title = thread["state"], output.line(thread["title"] or "")
    yield f"{click.style(thread['threadId'], bold=True)} {title}"
    row = {"open": thread["open"], "paused": state["paused"]}
    agents = [room.styled(seat.agent_id) for seat in room.seats]
    who = [*room.people(thread["createdBy"]), *agents]
    yield f"{state_of(row)} · {counted(thread['turnCount'], 'turn')} · {', '.join(who)}"
    if "imported" in thread:
        came = thread["imported"]
        said = f"imported on {came['at'][:10]} with the key {output.line(came['by'])}"
        yield f"{said}; who spoke before is as its file says"
    if "forkedFrom" in thread:
        yield f"goes on from {output.line(thread['forkedFrom'])}{_note(thread['forkNote'])}"
    yield from _goes_on(thread)
    if state["muted"]:
        yield f"muted: {', '.join(map(room.called, state['muted']))}"
    for task in thread.get("tasks", []):
        asked = f"task {output.line(task['id'])} for {room.called(task['to'])}"
        yield f"{asked} (turn {task['turn']}){task.get('words', '')}"
    for link in thread.get("links", []):
        ended = "" if link["open"] else " (closed)"
        yield f"linked: {output.line(link['threadId'])} {output.line(link['title'])}{ended}"
        yield from _goes_on(link)


def _words(api: Api, thread_id: str, name: str) -> str:
    """What the task is, in a line."""
    place = int(name.rpartition(".")[2])
    found = api.get(path_of("threads", thread_id, "events"), after=place - 1, limit=1)["events"]
    return f": {output.brief(found[0]['content'])}" if found else ""


def _goes_on(thread: dict[str, Any]) -> Iterator[str]:
    for branch in thread.get("goesOnIn", []):
        yield f"goes on in {output.line(branch['threadId'])}{_note(branch['note'])}"


def _note(text: str | None) -> str:
    return f" ({output.one_line(text)})" if text else ""


def _decision(room: Room, decision: dict[str, Any] | None) -> Iterator[str]:
    if decision is None:
        return
    head, text = outcome_of(decision)
    yield f"{click.style(head, bold=True)} {output.lines(text)}"
    for vote in decision.get("votes", []):
        yield f"  {room.called(vote['by'])} {output.line(vote['vote'])}{_note(vote.get('reason'))}"
    for each in decision.get("dissent", []):
        yield f"  dissent: {room.called(each['by'])}: {output.line(each['text'])}"
    for action in decision.get("actionItems", []):
        owner = f"{room.called(action['owner'])}: " if action.get("owner") else ""
        due = f", due {output.line(action['due'])}" if action.get("due") else ""
        yield f"  to do: {owner}{output.line(action['text'])}{due}"


def _turn(room: Room, event: dict[str, Any]) -> Told:
    to = "" if event["to"] == "all" else f" → {room.called(identified(event['to']))}"
    who = room.styled(identified(event["from"]))
    kind = "" if event["type"] == "message" else f" · {event['type']}"
    for word, said in (("spoken_by", "said by"), ("edited_by", "edited by")):
        if word in event["meta"]:
            kind += f" · {said} {room.called(identified(str(event['meta'][word])))}"
    return Told(words_of(_said(room, event)), f"{event['turn']:>4} {who}{to}{kind}")


def _said(room: Room, event: dict[str, Any]) -> Any:
    """What the host says of who has closed it, as who looks calls him."""
    words, tags = event["content"], event["meta"].get("tags", [])
    of_host = identified(event["from"]) == "system" and "closed" in tags
    if not of_host or not isinstance(words, str) or not words.endswith(CLOSED):
        return words
    return f"{room.called(words.removesuffix(CLOSED))}{CLOSED}"


@click.command()
@click.argument("name", metavar="THREAD")
@click.option("-n", "--turns", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many of the newest turns first.")  # fmt: skip
@talks
def tail(options: Options, name: str, turns: int) -> Exit:
    """Follow a thread as it happens: who speaks, who thinks, who types. Ctrl-C ends it."""
    from moot.cli.councils.convene import Attending, attend

    api = to_write(options)
    thread_id = find_thread(api, name)
    thread, said = api.get(threads(thread_id)), newest(api, thread_id, turns)
    last = int(thread["lastSequence"])
    after = said[0]["seq"] - 1 if said else last
    how = Attending(prompt=False, as_json=options.json, after=after, stay=True)
    if not thread["open"]:
        how = how._replace(after=min(after, last - 1))  # its end is shown, and then it ends
    return attend(api, Client(place(options)), thread_id, how)
