"""Remove keys of providers and tools from their answers.

A key is found even when JSON escapes some of its letters as ``\\\\u0073``, or when a stream splits
it into pieces."""

import re
from collections.abc import Iterable
from typing import Any

from moot.core.secrets import MASK

#: shorter keys could be ordinary words
SHORTEST_KEY = 8
_LONGEST_LETTER = 6  # \u0073


class SecretKeys:
    """Keys that no text may show."""

    def __init__(self, keys: Iterable[str | None], shortest: int = SHORTEST_KEY) -> None:
        long_keys = {key for key in keys if key and len(key) >= shortest}
        self._keys = sorted(long_keys, key=len, reverse=True)
        pattern = "|".join("".join(map(_letter_pattern, key)) for key in self._keys)
        self._pattern = re.compile(pattern) if pattern else None

    def redact(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def redact_value(self, value: Any) -> Any:
        """Redact every text in the value, including names of fields."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self.redact_value(item) for item in value]
        if isinstance(value, dict):
            return {self.redact(str(key)): self.redact_value(item) for key, item in value.items()}
        return value

    def count_unsure(self, text: str) -> int:
        """Return how many characters at the end could be the start of a key."""
        if not self._keys:
            return 0
        longest = _LONGEST_LETTER * len(self._keys[0])
        starts = {"\\", *(key[0] for key in self._keys)}
        for place in range(max(0, len(text) - longest), len(text)):
            if text[place] in starts and any(_may_become(key, text[place:]) for key in self._keys):
                return len(text) - place
        return 0


def _letter_pattern(letter: str) -> str:
    code = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(letter):04x}")
    return rf"(?:{re.escape(letter)}|\\u{code})"


def _may_become(key: str, text: str) -> bool:
    """Return whether the text could continue to the key."""
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


class RedactedStream:
    """The text of one stream, released when it cannot hold part of a key."""

    def __init__(self, keys: SecretKeys) -> None:
        self._keys = keys
        self._pending = ""

    def add(self, text: str) -> str:
        text = self._keys.redact(self._pending + text)
        pending = self._keys.count_unsure(text)
        self._pending = text[len(text) - pending :]
        return text[: len(text) - pending]

    def rest(self) -> str:
        pending, self._pending = self._pending, ""
        return pending
