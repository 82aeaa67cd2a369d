"""Who a text addresses: ``@name`` for a member's id, then nickname, then role."""

import re
from typing import Any

from msgspec import Struct

#: words after an @ that mean nobody in particular
EVERYBODY = frozenset({"all", "everyone", "here"})
MOST_MENTIONS = 32

_MENTION = re.compile(r"(?<![\w@/.])@([\w][\w.:-]{0,127})")


class Mentions(Struct, frozen=True):
    """Members that are meant, in the order of the text, and words that could mean several."""

    names: list[str]
    ambiguous: list[str] = []


def mentioned(content: Any, profiles: dict[str, dict[str, Any]]) -> Mentions:
    """``profiles``: member -> what is known of it. A word that fits nobody is just a word."""
    if not isinstance(content, str) or "@" not in content:
        return Mentions([])
    names: dict[str, None] = {}
    ambiguous: dict[str, None] = {}
    for found in _MENTION.findall(content)[:MOST_MENTIONS]:
        word = found.rstrip(".:-").casefold()
        if word in EVERYBODY:
            continue
        meant, clear = _meant(word, profiles)
        if clear:
            names.update(dict.fromkeys(meant))
        else:
            ambiguous[found] = None
    return Mentions(list(names), list(ambiguous))


def _meant(word: str, profiles: dict[str, dict[str, Any]]) -> tuple[list[str], bool]:
    """By id or short id; by nickname, which must be one member's; by role, which may be many's."""
    for name in profiles:
        if word in (name.casefold(), name.rpartition(":")[2].casefold()):
            return [name], True
    called = [name for name, said in profiles.items() if _is(said, word, "name", "nickname")]
    if called:
        return called, len(called) == 1
    return [name for name, said in profiles.items() if _is(said, word, "role")], True


def _is(profile: dict[str, Any], word: str, *keys: str) -> bool:
    return any(str(profile[key]).casefold() == word for key in keys if profile.get(key))
