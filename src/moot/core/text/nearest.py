"""Find the known word that a person most likely meant."""

import difflib
from collections.abc import Iterable

#: no name of ours is longer
LONGEST_WORD = 256


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word a person most likely meant. Comparing what nobody typed takes too long."""
    if len(word) > LONGEST_WORD:
        return None
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None
