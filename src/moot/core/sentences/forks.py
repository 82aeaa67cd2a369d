"""Describe where a fork comes from."""

from collections.abc import Mapping
from typing import Any

#: edits that replace an event instead of following it
REPLACING = ("turn", "decision", "answer")


def describe_origin(fork: Mapping[str, Any]) -> str:
    """Return ``branch of run_… at #17``: up to there both runs are the same."""
    return f"{fork.get('mode', 'fork')} of {fork.get('sourceRunId')} {describe_place(fork)}"


def describe_place(fork: Mapping[str, Any]) -> str:
    last = last_common_event(fork)
    if last is None:
        return "from the start"
    edited = replaced_kind(fork)
    return f"at #{last}" + (f", with another {edited} at #{last + 1}" if edited else "")


def last_common_event(fork: Mapping[str, Any]) -> int | None:
    """Return the last event that both runs have, or None."""
    first = fork.get("fromSeq")
    return first - 1 if isinstance(first, int) and first > 0 else None


def replaced_kind(fork: Mapping[str, Any]) -> str:
    """Return the kind of event that the fork replaces: turn, decision, answer or nothing."""
    edit = fork.get("edit")
    kinds = edit.get("kinds", []) if isinstance(edit, dict) else []
    return next((kind for kind in REPLACING if kind in kinds), "")
