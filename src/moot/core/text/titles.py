"""Check the titles of threads."""

from typing import Any

#: characters of a title in a list
LONGEST_TITLE = 256
TITLE_RULE = f"A title is a line of 1 to {LONGEST_TITLE} characters that can be read."


def parse_title(text: Any) -> str | None:
    """Return the text as one printable line, or None when it cannot be a title."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if 1 <= len(line) <= LONGEST_TITLE and line.isprintable() else None
