"""Where a fork comes from, in words."""

from typing import Any

from moot.cli import output

#: edits that take the place of an event, instead of being made after one
REPLACED = ("turn", "decision", "answer")


def descent(fork: dict[str, Any]) -> str:
    """``branch of run_… at #17``: what lies before is common to both."""
    mode, source = str(fork.get("mode", "fork")), str(fork.get("sourceRunId"))
    return output.one_line(f"{mode} of {source} {spot(fork)}")


def spot(fork: dict[str, Any]) -> str:
    last = place(fork)
    if last is None:
        return "from the start"
    edit = fork.get("edit")
    replaced = isinstance(edit, dict) and any(name in edit for name in REPLACED)
    return f"at #{last}" + (f", with another #{last + 1}" if replaced else "")


def place(fork: dict[str, Any]) -> int | None:
    """The last event that is common to both; None when there is none."""
    first = fork.get("fromSeq")
    return first - 1 if isinstance(first, int) and first > 0 else None
