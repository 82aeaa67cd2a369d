"""Words as a search sees them: without case and accents, each with its place in the text.

Scripts that put no blanks between words are taken character by character, so that a word is found
as a phrase of them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

#: characters of a word that count
LONGEST_WORD = 64

_ASCII = re.compile(r"[0-9A-Za-z]+")
_LOWER = re.compile(r"[0-9a-z]+")
_TOO_LONG = re.compile(rf"[0-9A-Za-z]{{{LONGEST_WORD + 1}}}")
#: between the marks of ASCII
_PIECE = re.compile("[0-9A-Za-z\x80-\U0010ffff]+")

#: first and last character of what is written without blanks
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
#: they stand in a word and are no part of it: a soft hyphen, joiners
_SILENT = "\xad\u200c\u200d"
#: combining classes from here on are accents, and are left out; those below make other words
_ACCENTS = 200


class Word(NamedTuple):
    token: str
    start: int
    end: int


def words(text: str) -> Iterator[Word]:
    """Every word in the order of the text."""
    if text.isascii():
        for found in _ASCII.finditer(text):
            yield Word(found[0].lower()[:LONGEST_WORD], *found.span())
        return
    for piece in _PIECE.finditer(text):
        if piece[0].isascii():
            yield Word(piece[0].lower()[:LONGEST_WORD], *piece.span())
        else:
            yield from _parted(piece[0], piece.start())


def tokens(text: str) -> list[str]:
    """The words alone."""
    if text.isascii() and _TOO_LONG.search(text) is None:
        return _LOWER.findall(text.lower())
    return [word.token for word in words(text)]


def plain(text: str) -> str:
    """The same words for an index that parts a text at every ASCII character which is neither a
    letter nor a digit, and knows no other case than that of ASCII."""
    if text.isascii() and _TOO_LONG.search(text) is None:
        return text
    return " ".join(tokens(text))


def _parted(piece: str, place: int) -> Iterator[Word]:
    token, start, end = "", place, place
    for at, char in enumerate(piece, place):
        folded = _folded(char)
        if folded is None:
            if token:
                yield Word(token[:LONGEST_WORD], start, end)
            token = ""
            continue
        for part in folded:
            if not _stands_alone(part):
                start = start if token else at
                token += part
                continue
            if token:
                yield Word(token[:LONGEST_WORD], start, max(end, start + 1))
            yield Word(part, at, at + 1)
            token = ""
        end = at + 1
    if token:
        yield Word(token[:LONGEST_WORD], start, end)


@lru_cache(maxsize=8192)
def _folded(char: str) -> str | None:
    """What the character adds to a word: perhaps nothing; None where it ends one."""
    if char in _SILENT:
        return ""
    if not _is_of_words(char):
        return None
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(
        part for part in spread if _is_of_words(part) and unicodedata.combining(part) < _ACCENTS
    )


def _is_of_words(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] in "LNM" or kind == "Co"


@lru_cache(maxsize=8192)
def _stands_alone(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSPACED)
