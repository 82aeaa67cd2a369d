"""Format counts and spans of time for people."""


def format_duration(span: float) -> str:
    """Return ``10 minutes``, ``1 hour`` or ``90 seconds``."""
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if span >= size and span % size == 0:
            return format_count(int(span // size), word)
    return format_count(round(span), "second")


def format_count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
