"""Compare words by their looks: similar letters, accents, invisible marks."""

import re
import unicodedata
from functools import lru_cache

#: letters of other scripts and of phonetics, each followed by the plain letter it resembles
_LETTERS = (
    "\u0430a \u0435e \u043eo \u0440p \u0441c \u0443y \u0445x \u0456i \u0458j \u0455s "
    "\u04bbh \u0501d \u051bq \u051dw \u043ak \u043cm \u043dh \u0442t \u0432b \u0433r "
    "\u0475v \u04cfi \u0493f \u03b1a \u03bfo \u03c1p \u03bdv \u03c4t \u03b9i \u03bak \u03c5u "
    "\u03b5e \u03b3y \u03c7x \u03b7n \u03c3o \u03c9w \u03f2c \u03f3j \u0131i \u0142i \u00f8o "
    "\u0111d \u0127h \u0167t \u0180b \u0250a \u0251a \u0252a \u0253b \u0256d \u0257d \u0259e "
    "\u025be \u0261g \u0266h \u0269i \u026ai \u026bi \u0271m \u0273n \u0275o \u027er \u0282s "
    "\u0288t \u028bv \u0290z \u0280r \u0262g \u029ch \u029fl \u0274n \u028fy \u0299b \u1d00a "
    "\u1d04c \u1d05d \u1d07e \ua730f \u1d0aj \u1d0bk \u1d0dm \u1d0fo \u1d18p \ua731s \u1d1bt "
    "\u1d1cu \u1d20v \u1d21w \u1d22z \u01dde \u057du \u0585o \u0570h \u0578n \u0581g \u0566q "
    "\u0575j"
)
_ALIKE = str.maketrans({each[0]: each[1] for each in f"{_LETTERS} 0o 1i li |i".split(" ")})
#: categories of characters that only modify their neighbours or are invisible
_MARKS = frozenset({"Mn", "Me", "Cf"})


#: letters, signs and selectors that are invisible, but count as characters
_BLANK = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def has_invisible(text: str) -> bool:
    """Return whether the text has a character that is not visible."""
    return _BLANK.search(text) is not None


@lru_cache(maxsize=4096)
def is_mark(letter: str) -> bool:
    """Return whether a character shows little or nothing by itself, like an accent or a joiner."""
    return unicodedata.category(letter) in _MARKS


def find_marks(text: str) -> set[str]:
    if text.isascii():
        return set()
    return {letter for letter in set(text) if letter > "\x7f" and is_mark(letter)}


def strip_marks(text: str) -> str:
    marks = find_marks(text)
    return text.translate(dict.fromkeys(map(ord, marks))) if marks else text


@lru_cache(maxsize=4096)
def skeleton(word: str) -> str:
    """Return the same word for all words that a reader could confuse."""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", word).casefold())
    return strip_marks(plain).translate(_ALIKE)
