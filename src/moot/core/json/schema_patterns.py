"""How large a regular expression is when what it repeats is written out."""

import re

TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{(\d{1,9})(?:,(\d{0,9}))?\}|.", re.DOTALL)

#: up to here an engine keeps what it learned about a text; beyond, it tries everything at each byte
KEPT = 64


def size(pattern: str) -> int:
    """The number of single characters it can ask for."""
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


def effort(pattern: str) -> int:
    """Eighths of a step for each byte it is held against."""
    found = 1 + size(pattern)
    return found if found <= KEPT else 8 * found
