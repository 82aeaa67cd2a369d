"""Find the differences between two matching events, and between two texts. Pure."""

import json
import re
from difflib import SequenceMatcher
from typing import Any

from moot.cli.replay.align import Event

#: the host's id of a turn on a channel: place, number and speaker
TURN_ID = re.compile(r".+:\d+:\w+")

#: words of a text that are compared; words shown on both sides of a change
MAX_WORDS = 1000
CONTEXT_WORDS = 4
#: paths of a payload that are named
MAX_PATHS = 3

Leaves = dict[str, Any]


def is_same(a: Event, b: Event) -> bool:
    """Whether both events say the same, regardless of time and sequence."""
    return not differing_paths(a, b)


def differing_paths(a: Event, b: Event) -> list[str]:
    """Return the payload paths that differ; ``type`` for events of different kinds."""
    from moot.core.replay.compare import is_alike

    if (a["type"], a.get("nodeId")) != (b["type"], b.get("nodeId")):
        return ["type"]
    left_payload, right_payload, runs = (
        _comparable_payload(a),
        _comparable_payload(b),
        (_run_id(a), _run_id(b)),
    )
    if is_alike(left_payload, right_payload, runs):
        return []
    left, right = _leaves(left_payload), _leaves(right_payload)
    paths = [
        path
        for path in {**left, **right}
        if path not in left or path not in right or not is_alike(left[path], right[path], None)
    ]
    return [path for path in paths if not _is_own_name(left, right, path, runs)] or paths


def _is_own_name(left: Leaves, right: Leaves, path: str, runs: tuple[str, str]) -> bool:
    """Whether both sides have a name there that their own run made up."""
    from moot.core.replay.compare import are_own_names

    key = re.sub(r"(\[\d+\])+$", "", path).rpartition(".")[2]
    return path in left and path in right and are_own_names(key, left[path], right[path], runs)


def describe_changes(a: Event, b: Event) -> str:
    """Return ``outputs.price 1 → 2`` for the first few paths."""
    left, right = _leaves(_comparable_payload(a)), _leaves(_comparable_payload(b))
    paths = differing_paths(a, b)
    texts = [
        f"{path} {_leaf_text(left, path)} → {_leaf_text(right, path)}" for path in paths[:MAX_PATHS]
    ]
    rest = f", and {len(paths) - MAX_PATHS} more" if len(paths) > MAX_PATHS else ""
    return "; ".join(texts) + rest


def _comparable_payload(event: Event) -> dict[str, Any]:
    """Return the payload without times, by the host's own rule."""
    from moot.core.replay.compare import comparable_payload

    payload = event.get("payload") or {}
    hints = event.get("hints")
    is_turn = "turn" in hints if hints else _is_turn(payload)
    return comparable_payload(event["type"], payload, is_turn)


def _is_turn(payload: dict[str, Any]) -> bool:
    """Tell by its id whether a message on a channel is a turn, which the wire does not say."""
    value = payload.get("value")
    name = value.get("messageId") if isinstance(value, dict) else None
    return isinstance(name, str) and TURN_ID.fullmatch(name) is not None


def _run_id(event: Event) -> str:
    return str(event.get("runId") or "no run")


def _leaf_text(leaves: Leaves, path: str) -> str:
    return json.dumps(leaves[path], ensure_ascii=False) if path in leaves else "nothing"


def _leaves(value: Any, path: str = "") -> Leaves:
    """Return every single value by its path."""
    leaves: Leaves = {}
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            leaves |= _leaves(inner, f"{path}.{name}" if path else str(name))
        return leaves
    if isinstance(value, list) and value:
        for number, inner in enumerate(value):
            leaves |= _leaves(inner, f"{path}[{number}]")
        return leaves
    return {path: value}


def event_text(event: Event) -> str | None:
    """Return the words of a turn or message in the event, or None."""
    payload = event.get("payload") or {}
    turn = payload.get("turn") or payload.get("initialTurn") or payload.get("finalTurn")
    if isinstance(turn, dict):
        text = turn.get("content")
    else:
        text = payload.get("chunk", payload.get("message"))
    return text if isinstance(text, str) else None


def word_diff(a: str, b: str) -> str:
    """Return both texts in one: ``Two of [-three-] {+four+} sources``.

    Long common stretches are left out. Long texts are compared from their first difference on.
    """
    left, right = a.split(), b.split()
    if max(len(left), len(right)) > MAX_WORDS:
        left, right = _comparable_tails(left, right)
    parts: list[str] = []
    opcodes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    for number, (op, i, j, k, m) in enumerate(opcodes):
        if op == "equal":
            parts += _shorten_equal(left[i:j], first=not number, last=number == len(opcodes) - 1)
            continue
        if i < j:
            parts.append(f"[-{' '.join(left[i:j])}-]")
        if k < m:
            parts.append(f"{{+{' '.join(right[k:m])}+}}")
    return " ".join(parts)


def _shorten_equal(words: list[str], first: bool, last: bool) -> list[str]:
    head = [] if first else words[:CONTEXT_WORDS]
    tail = [] if last else words[-CONTEXT_WORDS:]
    if len(words) <= len(head) + len(tail) + 1:
        return words
    return [*head, "…", *tail]


def _comparable_tails(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """Return both texts from a few words before the first difference, cut to MAX_WORDS."""
    pairs = enumerate(zip(left, right, strict=False))
    start = next((n for n, (x, y) in pairs if x != y), min(len(left), len(right)))
    start = max(0, start - CONTEXT_WORDS)
    return left[start : start + MAX_WORDS], right[start : start + MAX_WORDS]
