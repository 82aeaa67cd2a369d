"""Whom an address means, by id, nickname or role; and what is said to who is not there."""

from typing import Any

from moot.core.conversations import turns
from moot.core.conversations.participants import RESERVED
from moot.core.state.conversation import Conversation
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

#: names that a warning tells
MOST_NAMES = 12

Turn = dict[str, Any]
Profiles = dict[str, dict[str, Any]]


def meant(to: str, people: Profiles) -> list[str]:
    """Those who go by such an address; an id before all else."""
    name = full_name(to)
    if name in people:
        return [name]
    return mentions.meant(to.removeprefix("host:"), people)[0]


def addressed(turn: Turn, people: Profiles) -> Turn:
    """The turn, to the one member its address means; else as it was said."""
    to = turn.get("to")
    if not isinstance(to, str) or is_person(to):
        return turn
    found = meant(to, people)
    return {**turn, "to": found[0]} if len(found) == 1 else turn


def warning(talk: Conversation, to: str | None, content: Any) -> str | None:
    """What was said to nobody, for who said it: it stands in the log, and wakes no one."""
    people, everybody = turns.people(talk), turns.everybody(talk)
    if not people and not (talk.floor is not None and talk.floor.threaded):
        return None  # whoever likes takes part here: nobody knows who is there
    if to is not None and to != "all":
        return None if is_person(to) else _address(to, people, everybody)
    strange = [word for word in mentions.unknown(content, everybody) if not _is_nobodys(word)]
    return _nobody([f"@{word}" for word in strange], people) if strange else None


def _address(to: str, people: Profiles, everybody: Profiles) -> str | None:
    found = meant(to, everybody)
    if len(found) > 1:
        return f"Several could be meant by {to[:64]}: {_listed(found)}. Name one."
    return None if found else _nobody([to.removeprefix("host:")], people)


def _is_nobodys(word: str) -> bool:
    return word.casefold() in RESERVED or is_person(word)


def _nobody(words: list[str], people: Profiles) -> str:
    called = " or ".join(word[:64] for word in words[:MOST_NAMES])
    return f"Nobody here is called {called}; {there(people)}."


def there(people: Profiles | list[str]) -> str:
    """``there are ada, bo``"""
    return f"there are {_listed(list(people))}" if people else "nobody takes part yet"


def _listed(names: list[str]) -> str:
    more = ", …" if len(names) > MOST_NAMES else ""
    return ", ".join(name.removeprefix("host:") for name in names[:MOST_NAMES]) + more
