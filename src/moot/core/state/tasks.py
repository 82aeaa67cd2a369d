"""Tasks in a conversation: asked of one participant, open until its result is told."""

from typing import Any

from msgspec import Struct

from moot.core.errors import BadRequest, Forbidden, ParticipantNotInvited
from moot.core.errors.threads import TaskNotOpen, TooManyTasks
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

MOST_TASKS = 1024

Turn = dict[str, Any]


class Task(Struct, omit_defaults=True):
    """What somebody was asked to do, by its turn."""

    to: str
    by: str
    turn: int
    at: int


def kind_of(turn: Turn) -> str:
    """``task``, ``result`` or anything else."""
    meta = turn.get("meta")
    return str(meta.get("kind", "")) if isinstance(meta, dict) else ""


def heard(tasks: dict[int, Task], turn: Turn, sequence: int, at: int) -> None:
    """Part of the fold: a task is open, or is done."""
    kind, to = kind_of(turn), turn.get("to")
    if kind == "task" and isinstance(to, str) and len(tasks) < MOST_TASKS:
        index = turn.get("turnIndex", 0)
        tasks[sequence] = Task(full_name(to), str(turn.get("from", "")), index, at)
    elif kind == "result":
        done = turn["meta"].get("replyTo")
        tasks.pop(done if type(done) is int else -1, None)


def check(tasks: dict[int, Task], people: dict[str, dict[str, Any]], turn: Turn) -> Turn:
    """The turn as it is said. ``people``: who takes part -> what is known of him."""
    match kind_of(turn):
        case "task":
            return _task(tasks, people, turn)
        case "result":
            return _result(tasks, turn)
        case _:
            return turn


def _task(tasks: dict[int, Task], people: dict[str, dict[str, Any]], turn: Turn) -> Turn:
    if len(tasks) >= MOST_TASKS:
        raise TooManyTasks(f"At most {MOST_TASKS} tasks are open at a time; finish some.")
    to = turn.get("to")
    if not isinstance(to, str):
        raise BadRequest("A task is for one participant: to.", field="to")
    if is_person(to) or to in people:
        return turn
    could, _ = mentions.meant(to.removeprefix("host:"), people)
    if len(could) > 1:
        raise BadRequest("Several could be meant; name one by its id.", field="to", could=could)
    if not could:
        raise ParticipantNotInvited(
            "Nobody of this name takes part; invite him first.", speakerId=to, roster=list(people)
        )
    return {**turn, "to": could[0]}


def _result(tasks: dict[int, Task], turn: Turn) -> Turn:
    place = turn["meta"].get("replyTo")
    task = tasks.get(place) if type(place) is int else None
    if task is None:
        raise TaskNotOpen("A result names the task it is of, which must be open: meta.reply_to.")
    speaker = full_name(str(turn["from"]))
    if speaker != task.to and not is_person(speaker):
        raise Forbidden("The result of a task comes from who was asked, or from a person.")
    return turn
