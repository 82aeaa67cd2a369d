"""Where a fork comes from, in words."""

from typing import Any

from moot.cli.shared import output

#: edits that take the place of an event, instead of being made after one
REPLACING = ("turn", "decision", "answer")


def descent(fork: dict[str, Any]) -> str:
    """``branch of run_… at #17``: up to there both are the same."""
    mode, source = str(fork.get("mode", "fork")), str(fork.get("sourceRunId"))
    return output.one_line(f"{mode} of {source} {spot(fork)}")


def spot(fork: dict[str, Any]) -> str:
    last = place(fork)
    if last is None:
        return "from the start"
    edited = replaced(fork)
    return f"at #{last}" + (f", with another {edited} at #{last + 1}" if edited else "")


def place(fork: dict[str, Any]) -> int | None:
    """The last event that both have; None when there is none."""
    first = fork.get("fromSeq")
    return first - 1 if isinstance(first, int) and first > 0 else None


def replaced(fork: dict[str, Any]) -> str:
    """What the fork says otherwise in the place of an event: a turn, a decision, an answer."""
    edit = fork.get("edit")
    kinds = edit.get("kinds", []) if isinstance(edit, dict) else []
    return next((kind for kind in REPLACING if kind in kinds), "")
