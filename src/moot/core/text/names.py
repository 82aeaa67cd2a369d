"""Check and classify the names of participants."""

from functools import lru_cache
from typing import Any

from moot.core.text.confusables import has_invisible, skeleton

LONGEST_NAME = 256
#: names of the host, words that mean everybody, and words for people
RESERVED_NAMES = frozenset({"moot", "system", "all", "everyone", "here", "user", "you"})
#: shapes of these names; ``a11`` looks like ``all`` and is allowed
_SHAPES = frozenset(skeleton(word) for word in RESERVED_NAMES if word != "all")
#: the host's handle
COORDINATOR = "moot"


def is_name(name: str) -> bool:
    """Return whether a name is visible, has no spaces and does not look like a path."""
    blank = has_invisible(name) or any(mark.isspace() for mark in name)
    path = "/" in name or "\\" in name or not name.rpartition(":")[2].strip(".")
    return name.isprintable() and not blank and not path


def is_person(name: str) -> bool:
    return name == "user" or name.startswith("user:")


def full_name(name: str) -> str:
    """Return the full name; a short one means an agent of this host."""
    return name if ":" in name or name in ("user", "system") else f"host:{name}"


def is_reserved(word: str) -> bool:
    """Return whether the word is a reserved name or looks like one."""
    return word.casefold() in RESERVED_NAMES or skeleton(word) in _SHAPES


def is_agent_name(name: str) -> bool:
    """Return whether an agent may use this full name.

    It must be visible and read like no person's name: ``host:user:eve`` would appear as
    ``user:eve``.
    """
    kind, _, rest = name.rpartition(":")
    if not 1 <= len(name) <= LONGEST_NAME or not is_name(name) or not rest:
        return False
    prefix = name.partition(":")[0]
    is_person_like = ":" in name and skeleton(prefix) == skeleton("user")
    return not is_person_like and not is_reserved(rest) and not kind.startswith("host:")


def is_participant_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and _is_valid_name(name)


@lru_cache(maxsize=4096)
def _is_valid_name(name: str) -> bool:
    if is_person(name):
        return is_name(name) and name != "user:"
    return is_agent_name(full_name(name))


def handle_from_name(name: Any) -> str:
    """Return the short handle of a participant.

    An agent whose short name is reserved or looks like a person's keeps its full name. Logs from
    other hosts may hold such agents.
    """
    text = str(name)
    short = text.removeprefix("host:")
    if text == "system":
        return COORDINATOR
    return text if not short or is_person(short) or is_reserved(short) else short


def name_from_handle(handle: str) -> str:
    return "system" if handle == COORDINATOR else full_name(handle)
