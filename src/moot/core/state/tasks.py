"""Fold the open tasks of a conversation, and the open questions to people.

A task is open until its result arrives. A turn without an address answers all askers; an addressed
turn answers its addressee.
"""

from msgspec import Struct

from moot.core.payloads.conversations import Turn
from moot.core.text.names import full_name, is_person

MOST_TASKS = 1024

#: person -> asker -> index and time of the turn
AwaitedPeople = dict[str, dict[str, tuple[int, int]]]

#: open questions of one conversation; further questions are ignored
MOST_QUESTIONS = 256


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


# -- questions to people --------------------------------------------------------------------------


def add_question(awaited: AwaitedPeople, person: str, by: str, turn: tuple[int, int]) -> None:
    if sum(map(len, awaited.values())) < MOST_QUESTIONS:
        awaited.setdefault(person, {}).setdefault(by, turn)


def apply_reply(awaited: AwaitedPeople, speaker: str, to: str | None) -> None:
    """Remove the questions that a turn answers. Any person answers a question to ``user``."""
    for name in (speaker, "user") if is_person(speaker) else (speaker,):
        if to is None or to == "all":
            awaited.pop(name, None)
        elif name in awaited:
            awaited[name].pop(to, None)
            if not awaited[name]:
                del awaited[name]


def longest_awaited(awaited: AwaitedPeople) -> tuple[int, int]:
    """Return index and time of the oldest question. There must be one."""
    return min(turn for by in awaited.values() for turn in by.values())
