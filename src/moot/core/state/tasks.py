"""Fold and check tasks of a conversation; a task is open until its result arrives."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.errors import BadRequest, Forbidden, ParticipantNotInvited
from moot.core.errors.threads import TaskNotOpen, TooManyTasks
from moot.core.payloads.conversations import Turn
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

MOST_TASKS = 1024


class ThreadTask(Struct, omit_defaults=True):
    """An open task: its addressee, its author, and the turn that set it."""

    to: str
    by: str
    turn: int
    at: int


def turn_kind(turn: Turn) -> str:
    """Return ``task``, ``result`` or another kind from the turn's metadata."""
    return str(turn.meta.get("kind", "")) if isinstance(turn.meta, dict) else ""


def apply_task_turn(tasks: dict[int, ThreadTask], turn: Turn, sequence: int, at: int) -> None:
    """Open a task, or remove a finished one."""
    kind, to = turn_kind(turn), turn.to
    if kind == "task" and to is not None and len(tasks) < MOST_TASKS:
        tasks[sequence] = ThreadTask(full_name(to), turn.from_, turn.turn_index or 0, at)
    elif kind == "result":
        task_seq = turn.meta.get("replyTo")
        tasks.pop(task_seq if type(task_seq) is int else -1, None)


def check_task_turn(
    tasks: dict[int, ThreadTask], people: dict[str, dict[str, Any]], turn: Turn
) -> Turn:
    """Return the turn with its addressee resolved; raise when it is not a valid task or result.

    ``people`` maps participants to their profiles.
    """
    match turn_kind(turn):
        case "task":
            return _check_task(tasks, people, turn)
        case "result":
            return _check_result(tasks, turn)
        case _:
            return turn


def _check_task(
    tasks: dict[int, ThreadTask], people: dict[str, dict[str, Any]], turn: Turn
) -> Turn:
    if len(tasks) >= MOST_TASKS:
        raise TooManyTasks(f"At most {MOST_TASKS} tasks are open at a time; finish some.")
    to = turn.to
    if to is None:
        raise BadRequest("A task is for one participant: to.", field="to")
    if is_person(to) or to in people:
        return turn
    candidates, _ = mentions.match_mention(to.removeprefix("host:"), people)
    if len(candidates) > 1:
        raise BadRequest(
            "Several could be meant; name one by its id.", field="to", could=candidates
        )
    if not candidates:
        raise ParticipantNotInvited(
            "Nobody of this name takes part; invite him first.", speakerId=to, roster=list(people)
        )
    return replace(turn, to=candidates[0])


def _check_result(tasks: dict[int, ThreadTask], turn: Turn) -> Turn:
    task_seq = turn.meta.get("replyTo")
    task = tasks.get(task_seq) if type(task_seq) is int else None
    if task is None:
        raise TaskNotOpen("A result names the task it is of, which must be open: meta.reply_to.")
    speaker = full_name(turn.from_)
    if speaker != task.to and not is_person(speaker):
        raise Forbidden("The result of a task comes from who was asked, or from a person.")
    return turn
