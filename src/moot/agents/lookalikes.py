"""Words that look alike are one word: letters of other scripts, styled letters, accents."""

import unicodedata
from functools import lru_cache

#: Cyrillic, Greek and other letters beside the plain ones they look like
_LETTERS = (
    "\u0430a \u0435e \u043eo \u0440p \u0441c \u0443y \u0445x \u0456i \u0458j \u0455s "
    "\u04bbh \u0501d \u051bq \u051dw \u043ak \u043cm \u043dh \u0442t \u0432b \u0433r "
    "\u0475v \u03b1a \u03bfo \u03c1p \u03bdv \u03c4t \u03b9i \u03bak \u03c5u \u03b5e "
    "\u03b3y \u03c7x \u03b7n \u0131i \u0142i \u00f8o \u0111d"
)
_ALIKE = str.maketrans({each[0]: each[1] for each in f"{_LETTERS} 0o 1i li |i".split(" ")})


@lru_cache(maxsize=4096)
def skeleton(word: str) -> str:
    """The same for words that a reader could take for one another."""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", word).casefold())
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    return letters.translate(_ALIKE)
