"""Find the participants that a text addresses with ``@name``.

A word matches an id first, then a nickname, then a role, client or model.
"""

import re
from typing import Any

from msgspec import Struct

from moot.core.text.names import is_person

#: words after an @ that mean all participants
EVERYONE_WORDS = frozenset({"all", "everyone", "here"})
MOST_MENTIONS = 32
#: keys of a profile that several participants may share
SHARED_KEYS = ("role", "roles", "client", "model")

_MENTION = re.compile(r"(?<![\w@/.])@([\w][\w.:-]{0,127})")


class Mentions(Struct, frozen=True):
    """The members that a text mentions, in order.

    Words that match several members, and words that mean everyone, are listed apart.
    """

    names: list[str]
    ambiguous: dict[str, list[str]] = {}
    everybody: list[str] = []

    @property
    def unclear(self) -> dict[str, list[str]]:
        """The words that the host asks back about."""
        return {**self.ambiguous, **{word: [] for word in self.everybody}}


def has_mention(content: Any) -> bool:
    """Return whether the content of a turn may mention a member."""
    return isinstance(content, str) and "@" in content


def find_mentions(content: Any, profiles: dict[str, dict[str, Any]]) -> Mentions:
    """``profiles``: member -> its profile. A word that matches no member is ignored."""
    if not isinstance(content, str) or "@" not in content:
        return Mentions([])
    names: dict[str, None] = {}
    ambiguous: dict[str, list[str]] = {}
    everybody: dict[str, None] = {}
    for match in _MENTION.findall(strip_quotes(content))[:MOST_MENTIONS]:
        word = match.rstrip(".:-")
        if word.casefold() in EVERYONE_WORDS:
            everybody[word.casefold()] = None
            continue
        matches, certain = match_mention(word, profiles)
        if certain:
            names.update(dict.fromkeys(matches))
        else:
            ambiguous[word.casefold()] = matches
    return Mentions(list(names), ambiguous, list(everybody))


def unknown_mentions(content: Any, profiles: dict[str, dict[str, Any]]) -> list[str]:
    """Return the words after an @ that match no member."""
    if not isinstance(content, str) or "@" not in content:
        return []
    words = [
        match.rstrip(".:-") for match in _MENTION.findall(strip_quotes(content))[:MOST_MENTIONS]
    ]
    candidates = [word for word in words if word.casefold() not in EVERYONE_WORDS]
    return [word for word in dict.fromkeys(candidates) if not match_mention(word, profiles)[0]]


def match_mention(word: str, profiles: dict[str, dict[str, Any]]) -> tuple[list[str], bool]:
    """Return the members that a word matches, and whether that is certain.

    An id or short id matches exactly, or else in any case. A nickname must belong to one member; a
    role, client or model may belong to many.
    """
    ids = [name for name in profiles if word in (name, name.rpartition(":")[2])]
    word = word.casefold()
    ids = ids or [
        name for name in profiles if word in (name.casefold(), name.rpartition(":")[2].casefold())
    ]
    if ids:
        agents = [name for name in ids if not is_person(name)]  # a short name means an agent first
        return agents or ids, len(agents or ids) == 1
    nicknamed = [
        name for name, profile in profiles.items() if _has_word(profile, word, "name", "nickname")
    ]
    if nicknamed:
        return nicknamed, len(nicknamed) == 1
    return [
        name for name, profile in profiles.items() if _has_word(profile, word, *SHARED_KEYS)
    ], True


def profile_words(profile: dict[str, Any], *keys: str) -> list[str]:
    """Return the words of a profile under these keys; a value may be one word or a list."""
    words: list[str] = []
    for key in keys:
        value = profile.get(key)
        words += map(str, value if isinstance(value, list) else [value] if value else [])
    return words


def _has_word(profile: dict[str, Any], word: str, *keys: str) -> bool:
    return any(each.casefold() == word for each in profile_words(profile, *keys))


_CODE = re.compile(r"`[^`\n]*`")
FENCES = ("```", "~~~")


def strip_quotes(text: str) -> str:
    """Return the text without fenced blocks, inline code, quoted lines and any ``\\@``."""
    if not any(mark in text for mark in "`~>\\"):
        return text
    lines, fence = [], ""
    for line in text.splitlines():
        bare = line.lstrip()
        if fence:
            fence = "" if bare.startswith(fence) else fence
        elif bare.startswith(FENCES):
            fence = bare[:3]
        elif not bare.startswith(">"):
            lines.append(line)
    return _CODE.sub(" ", "\n".join(lines)).replace("\\@", " ")
