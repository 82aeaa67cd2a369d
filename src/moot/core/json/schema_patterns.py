"""Measure the size of regular expressions with their repetitions expanded."""

import re

TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d{1,9})(?:,(\d{0,9}))?\}|.", re.DOTALL)

#: up to this size an engine caches its states; above, it tries everything at each byte
CACHED_SIZE = 64


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
    """Return eighths of a step for each byte that the pattern is tried on."""
    size = 1 + pattern_size(pattern)
    return size if size <= CACHED_SIZE else 8 * size
