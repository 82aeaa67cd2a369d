"""Keys of providers and of tools struck out of what comes back: whoever is told a key may say it.

A key is found also where JSON has written some of its letters as ``\\u0073``, and where a stream
has cut it into pieces.
"""

import re
from collections.abc import Iterable
from typing import Any

from moot.core.secrets import MASK

#: shorter ones are ordinary words, which texts must be able to say
SHORTEST_KEY = 8
_LONGEST_LETTER = 6  # \u0073


class Keys:
    """Some keys that nothing may show."""

    def __init__(self, keys: Iterable[str | None], shortest: int = SHORTEST_KEY) -> None:
        found = {key for key in keys if key and len(key) >= shortest}
        self._keys = sorted(found, key=len, reverse=True)
        shapes = "|".join("".join(map(_letter, key)) for key in self._keys)
        self._shape = re.compile(shapes) if shapes else None

    def struck(self, text: str) -> str:
        return text if self._shape is None else self._shape.sub(MASK, text)

    def struck_value(self, value: Any) -> Any:
        """Every text in it, names of fields as well."""
        if self._shape is None:
            return value
        if isinstance(value, str):
            return self.struck(value)
        if isinstance(value, list):
            return [self.struck_value(each) for each in value]
        if isinstance(value, dict):
            return {self.struck(str(key)): self.struck_value(each) for key, each in value.items()}
        return value

    def unsure(self, text: str) -> int:
        """How many characters at the end could be the beginning of a key."""
        if not self._keys:
            return 0
        longest = _LONGEST_LETTER * len(self._keys[0])
        starts = {"\\", *(key[0] for key in self._keys)}
        for place in range(max(0, len(text) - longest), len(text)):
            if text[place] in starts and any(_begins(key, text[place:]) for key in self._keys):
                return len(text) - place
        return 0


def _letter(letter: str) -> str:
    code = "".join(f"[{each}{each.upper()}]" for each in f"{ord(letter):04x}")
    return rf"(?:{re.escape(letter)}|\\u{code})"


def _begins(key: str, text: str) -> bool:
    """Whether the text could go on so that the key stands there."""
    place = 0
    for letter in key:
        if place >= len(text):
            return True
        written = f"\\u{ord(letter):04x}"
        rest = text[place : place + len(written)].lower()
        if text[place] == letter:
            place += 1
        elif rest == written:
            place += len(written)
        else:
            return place + len(rest) == len(text) and written.startswith(rest)
    return False


class Spoken:
    """The words of one stream, given on as soon as they can hold no part of a key."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._held = ""

    def add(self, text: str) -> str:
        text = self._keys.struck(self._held + text)
        unsure = self._keys.unsure(text)
        self._held = text[len(text) - unsure :]
        return text[: len(text) - unsure]

    def rest(self) -> str:
        held, self._held = self._held, ""
        return held
