"""Fold the tasks of a conversation; a task is open until its result arrives."""

from msgspec import Struct

from moot.core.payloads.conversations import Turn
from moot.core.text.names import full_name

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


def reply_sequence(turn: Turn) -> int | None:
    """Return the sequence of the turn that this turn answers, if its metadata names one."""
    reply = turn.meta.get("replyTo") if isinstance(turn.meta, dict) else None
    return reply if type(reply) is int else None


def apply_task_turn(
    tasks: dict[int, ThreadTask], turn: Turn, index: int, sequence: int, at: int
) -> None:
    """Open a task, or remove a finished one."""
    kind = turn_kind(turn)
    if kind == "task" and turn.to is not None and len(tasks) < MOST_TASKS:
        tasks[sequence] = ThreadTask(full_name(turn.to), turn.from_, index, at)
    elif kind == "result" and (task := reply_sequence(turn)) is not None:
        tasks.pop(task, None)
