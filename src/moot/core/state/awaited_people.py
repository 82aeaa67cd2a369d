"""Open questions to people in a conversation, by person and asker.

A turn without an address answers all askers; an addressed turn answers its addressee.
"""

from typing import Any

from moot.core.text.names import is_person

#: person -> asker -> index and time of the turn
AwaitedPeople = dict[str, dict[str, tuple[int, int]]]

#: open questions of one conversation; further questions are ignored
MOST_QUESTIONS = 256


def add_question(awaited: AwaitedPeople, person: str, by: str, turn: tuple[int, int]) -> None:
    if sum(map(len, awaited.values())) < MOST_QUESTIONS:
        awaited.setdefault(person, {}).setdefault(by, turn)


def apply_reply(awaited: AwaitedPeople, speaker: str, to: Any) -> None:
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
