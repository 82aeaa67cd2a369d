"""Split texts into words for search: folded case, no accents, with places.

Scripts without spaces are split character by character, so that a word is found as a phrase.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

#: characters of a word that are compared
LONGEST_WORD = 64

_ASCII = re.compile(r"[0-9A-Za-z]+")
_LOWER = re.compile(r"[0-9a-z]+")
_TOO_LONG = re.compile(rf"[0-9A-Za-z]{{{LONGEST_WORD + 1}}}")
#: a piece between ASCII punctuation; a class of ASCII alone compiles a hundred times as fast
_PIECE = re.compile(r"[^\x00-/:-@\[-`{-\x7f]+")

#: first and last characters of scripts that are written without spaces
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
#: characters inside a word that are ignored: a soft hyphen, joiners
_SILENT = "\xad\u200c\u200d"
#: combining classes from here on are accents and are dropped; lower ones distinguish words
_ACCENTS = 200


class SearchWord(NamedTuple):
    """A folded word and its place in the text."""

    token: str
    start: int
    end: int


def split_words(text: str) -> Iterator[SearchWord]:
    """Yield every word in the order of the text."""
    if text.isascii():
        for match in _ASCII.finditer(text):
            yield SearchWord(match[0].lower()[:LONGEST_WORD], *match.span())
        return
    for piece in _PIECE.finditer(text):
        if piece[0].isascii():
            yield SearchWord(piece[0].lower()[:LONGEST_WORD], *piece.span())
        else:
            yield from _split_piece(piece[0], piece.start())


def search_tokens(text: str) -> list[str]:
    """Return the words without their places."""
    if text.isascii() and _TOO_LONG.search(text) is None:
        return _LOWER.findall(text.lower())
    return [word.token for word in split_words(text)]


def index_text(text: str) -> str:
    """Return the same words for an index that splits at ASCII punctuation and folds only ASCII."""
    if text.isascii() and _TOO_LONG.search(text) is None:
        return text
    return " ".join(search_tokens(text))


def _split_piece(piece: str, offset: int) -> Iterator[SearchWord]:
    token, start, end = "", offset, offset
    for at, char in enumerate(piece, offset):
        parts = _fold_char(char)
        if parts is None:
            if token:
                yield SearchWord(token[:LONGEST_WORD], start, end)
            token = ""
            continue
        for part in parts:
            if not _is_unspaced(part):
                start = start if token else at
                token += part
                continue
            if token:
                yield SearchWord(token[:LONGEST_WORD], start, max(end, start + 1))
            yield SearchWord(part, at, at + 1)
            token = ""
        end = at + 1
    if token:
        yield SearchWord(token[:LONGEST_WORD], start, end)


@lru_cache(maxsize=8192)
def _fold_char(char: str) -> str | None:
    """Return what the character adds to a word, possibly nothing; None when it ends a word."""
    if char in _SILENT:
        return ""
    if not _is_word_char(char):
        return None
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(
        part for part in spread if _is_word_char(part) and unicodedata.combining(part) < _ACCENTS
    )


def _is_word_char(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind[0] in "LNM" or kind == "Co"


@lru_cache(maxsize=8192)
def _is_unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSPACED)
