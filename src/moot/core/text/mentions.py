"""Who a text addresses: ``@name`` for the id of a member or a person, then nickname, then role,
client or model."""

import re
from typing import Any

from msgspec import Struct

from moot.core.text.names import is_person
from moot.core.text.quotes import own_words

#: words after an @ that mean nobody in particular
EVERYBODY = frozenset({"all", "everyone", "here"})
MOST_MENTIONS = 32
#: what is known of somebody that may be many's
KINDS = ("role", "roles", "client", "model")

_MENTION = re.compile(r"(?<![\w@/.])@([\w][\w.:-]{0,127})")


class Mentions(Struct, frozen=True):
    """Members that are meant, in the order of the text; words that could mean several, with whom;
    and words that mean everybody."""

    names: list[str]
    ambiguous: dict[str, list[str]] = {}
    everybody: list[str] = []

    @property
    def unclear(self) -> dict[str, list[str]]:
        """Words after which it is asked who is meant."""
        return {**self.ambiguous, **{word: [] for word in self.everybody}}


def mentioned(content: Any, profiles: dict[str, dict[str, Any]]) -> Mentions:
    """``profiles``: member -> what is known of it. A word that fits nobody is just a word."""
    if not isinstance(content, str) or "@" not in content:
        return Mentions([])
    names: dict[str, None] = {}
    ambiguous: dict[str, list[str]] = {}
    everybody: dict[str, None] = {}
    for found in _MENTION.findall(own_words(content))[:MOST_MENTIONS]:
        word = found.rstrip(".:-")
        if word.casefold() in EVERYBODY:
            everybody[word.casefold()] = None
            continue
        could, clear = meant(word, profiles)
        if clear:
            names.update(dict.fromkeys(could))
        else:
            ambiguous[word.casefold()] = could
    return Mentions(list(names), ambiguous, list(everybody))


def unknown(content: Any, profiles: dict[str, dict[str, Any]]) -> list[str]:
    """Words after an @ that mean no member."""
    if not isinstance(content, str) or "@" not in content:
        return []
    words = [found.rstrip(".:-") for found in _MENTION.findall(own_words(content))[:MOST_MENTIONS]]
    strange = [word for word in words if word.casefold() not in EVERYBODY]
    return [word for word in dict.fromkeys(strange) if not meant(word, profiles)[0]]


def meant(word: str, profiles: dict[str, dict[str, Any]]) -> tuple[list[str], bool]:
    """By id or short id, as it is written or else in any case; by nickname, which must be one
    member's; by role, client or model, which may be many's."""
    ids = [name for name in profiles if word in (name, name.rpartition(":")[2])]
    word = word.casefold()
    ids = ids or [
        name for name in profiles if word in (name.casefold(), name.rpartition(":")[2].casefold())
    ]
    if ids:
        agents = [
            name for name in ids if not is_person(name)
        ]  # a short name is first of all theirs
        return agents or ids, len(agents or ids) == 1
    called = [name for name, said in profiles.items() if _is(said, word, "name", "nickname")]
    if called:
        return called, len(called) == 1
    return [name for name, said in profiles.items() if _is(said, word, *KINDS)], True


def words_of(profile: dict[str, Any], *keys: str) -> list[str]:
    """What is known of somebody under these keys: a word each, or several."""
    found: list[str] = []
    for key in keys:
        said = profile.get(key)
        found += map(str, said if isinstance(said, list) else [said] if said else [])
    return found


def _is(profile: dict[str, Any], word: str, *keys: str) -> bool:
    return any(each.casefold() == word for each in words_of(profile, *keys))
