"""Measure the size of regular expressions with their repetitions expanded."""

import re

TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d{1,9})(?:,(\d{0,9}))?\}|.", re.DOTALL)

#: up to this size an engine caches its states, if the pattern is at one place at a time
CACHED_SIZE = 64
#: a larger part that may begin at every byte has more states than the cache holds
STEADY_SIZE = 10
#: eighths of a step for each byte to fail to find a state, and for each place that is tried then
MISS, PLACE = 256, 8

_ITEM = r"(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\\[(|)*+?{}])"
#: the beginning of a pattern in which an engine knows its place: an anchor, items of fixed length,
#: and one of variable length
_STEADY = re.compile(
    rf"\^(?:{_ITEM}(?:\{{\d+\}})?(?![*+?{{]))*(?:{_ITEM}(?:[*+?]|\{{\d+,\d*\}}))?", re.DOTALL
)


def pattern_size(pattern: str) -> int:
    """Return how many single characters the pattern can ask for."""
    groups = [0]
    last = 0
    for token in TOKEN.finditer(pattern):
        word = token[0]
        if word == "(":
            groups.append(0)
        elif word == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif token[1] is not None:
            times = max(int(token[1]), int(token[2] or 0), 1)
            groups[-1] += last * (times - 1)
            last *= times
        elif word not in "*+?|^$":
            last = 1
            groups[-1] += 1
    return sum(groups)


def pattern_cost(pattern: str) -> int:
    """Return eighths of a step for each byte that the pattern is tried on.

    ``a[ab]{50}c`` has a state for every set of the last fifty places at which it may have begun.
    No cache holds them, so the engine tries all places of the pattern at each byte.
    """
    size = 1 + pattern_size(pattern)
    start = _STEADY.match(pattern)
    rest = pattern_size(pattern[start.end() :]) if start else size
    cached = size <= CACHED_SIZE and rest <= STEADY_SIZE
    return size if cached else MISS + PLACE * size
