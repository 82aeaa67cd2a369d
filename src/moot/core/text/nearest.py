"""Find the known word that a person most likely meant."""

import difflib
from collections.abc import Iterable

#: longer words are never compared; no name is longer
LONGEST_WORD = 256


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a person most likely meant, or None."""
    if len(word) > LONGEST_WORD:
        return None
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def describe_nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question after the nearest word, for the end of a refusal, or ``otherwise``."""
    suggestion = nearest_word(word, known)
    return otherwise if suggestion is None else f" Did you mean '{suggestion}'?"
