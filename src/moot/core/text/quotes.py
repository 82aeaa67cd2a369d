"""What somebody says himself in a text: not what he quotes, shows as code, or takes back."""

import re

_CODE = re.compile(r"`[^`\n]*`")
FENCES = ("```", "~~~")


def own_words(text: str) -> str:
    """The text without fenced blocks, code within a line, quoted lines, and any ``\\@``."""
    if not any(mark in text for mark in "`~>\\"):
        return text
    kept, fence = [], ""
    for line in text.splitlines():
        bare = line.lstrip()
        if fence:
            fence = "" if bare.startswith(fence) else fence
        elif bare.startswith(FENCES):
            fence = bare[:3]
        elif not bare.startswith(">"):
            kept.append(line)
    return _CODE.sub(" ", "\n".join(kept)).replace("\\@", " ")
