"""Who of the people is waited for in a conversation, and by whom.

Part of the fold. What is said to nobody in particular answers everybody who asks; what is said to
one answers that one.
"""

from typing import Any

from moot.core.text.names import is_person

#: person -> who asks -> index and time of the turn
Asked = dict[str, dict[str, tuple[int, int]]]

#: questions that are waited for at a time; what is asked besides is asked in vain
MOST_ASKED = 256


def asked(waiting: Asked, person: str, by: str, turn: tuple[int, int]) -> None:
    if sum(map(len, waiting.values())) < MOST_ASKED:
        waiting.setdefault(person, {}).setdefault(by, turn)


def answered(waiting: Asked, speaker: str, to: Any) -> None:
    """``user`` is whoever speaks first."""
    for name in (speaker, "user") if is_person(speaker) else (speaker,):
        if to is None or to == "all":
            waiting.pop(name, None)
        elif name in waiting:
            waiting[name].pop(to, None)
            if not waiting[name]:
                del waiting[name]


def first(waiting: Asked) -> tuple[int, int]:
    """Of what is waited for longest. There must be something."""
    return min(turn for by in waiting.values() for turn in by.values())
