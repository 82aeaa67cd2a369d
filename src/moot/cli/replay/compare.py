"""What differs between two events that correspond, and between two texts. Pure."""

import json
import re
from difflib import SequenceMatcher
from typing import Any

from moot.cli.replay.align import Event

#: how the host names a turn on a channel: its place, its number, who speaks
TURN_ID = re.compile(r".+:\d+:\w+")

#: words of a text that are compared; words shown on both sides of a change
MOST_WORDS = 1000
AROUND = 4
#: places in a payload that are named
NAMED = 3

Leaves = dict[str, Any]


def same(a: Event, b: Event) -> bool:
    """Whether both say the same thing happened, whenever it did and whatever it is numbered."""
    return not differing(a, b)


def differing(a: Event, b: Event) -> list[str]:
    """Paths within the payload at which they differ; an event of another kind differs in all."""
    from moot.core.replay.compare import alike

    if (a["type"], a.get("nodeId")) != (b["type"], b.get("nodeId")):
        return ["type"]
    one, other, runs = _said(a), _said(b), (_run(a), _run(b))
    if alike(one, other, runs):
        return []
    left, right = _leaves(one), _leaves(other)
    apart = [
        path
        for path in {**left, **right}
        if path not in left or path not in right or not alike(left[path], right[path], None)
    ]
    return [path for path in apart if not _named_apart(left, right, path, runs)] or apart


def _named_apart(left: Leaves, right: Leaves, path: str, runs: tuple[str, str]) -> bool:
    """Whether both have a name of their own making there."""
    from moot.core.replay.compare import own_names

    key = re.sub(r"(\[\d+\])+$", "", path).rpartition(".")[2]
    return path in left and path in right and own_names(key, left[path], right[path], runs)


def changes(a: Event, b: Event) -> str:
    """``outputs.price 1 → 2``: the first few places and both values."""
    left, right = _leaves(_said(a)), _leaves(_said(b))
    paths = differing(a, b)
    told = [f"{path} {_shown(left, path)} → {_shown(right, path)}" for path in paths[:NAMED]]
    more = f", and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return "; ".join(told) + more


def _said(event: Event) -> dict[str, Any]:
    """The payload without what the host's clock says, by the host's own rule."""
    from moot.core.replay.compare import said

    payload = event.get("payload") or {}
    return said(event["type"], payload, event.get("hints") or _hints(payload))


def _hints(payload: dict[str, Any]) -> dict[str, Any]:
    """On the wire the host does not say that a message on a channel is a turn; its id does."""
    value = payload.get("value")
    name = value.get("messageId") if isinstance(value, dict) else None
    return {"turn": isinstance(name, str) and TURN_ID.fullmatch(name) is not None}


def _run(event: Event) -> str:
    return str(event.get("runId") or "no run")


def _shown(leaves: Leaves, path: str) -> str:
    return json.dumps(leaves[path], ensure_ascii=False) if path in leaves else "nothing"


def _leaves(value: Any, path: str = "") -> Leaves:
    """Every single value by its path."""
    found: Leaves = {}
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            found |= _leaves(inner, f"{path}.{name}" if path else str(name))
        return found
    if isinstance(value, list) and value:
        for number, inner in enumerate(value):
            found |= _leaves(inner, f"{path}[{number}]")
        return found
    return {path: value}


def text_of(event: Event) -> str | None:
    """The words somebody said with the event, if it is of that kind."""
    said = event.get("payload") or {}
    turn = said.get("turn") or said.get("initialTurn") or said.get("finalTurn")
    if isinstance(turn, dict):
        text = turn.get("content")
    else:
        text = said.get("chunk", said.get("message"))
    return text if isinstance(text, str) else None


def word_diff(a: str, b: str) -> str:
    """Both texts in one: ``Two of [-three-] {+four+} sources``. Long common stretches are left
    out, and texts too long to be compared are told apart by where they begin to differ."""
    left, right = a.split(), b.split()
    if max(len(left), len(right)) > MOST_WORDS:
        left, right = _tails(left, right)
    said: list[str] = []
    found = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    for number, (op, i, j, k, m) in enumerate(found):
        if op == "equal":
            said += _shortened(left[i:j], first=not number, last=number == len(found) - 1)
            continue
        if i < j:
            said.append(f"[-{' '.join(left[i:j])}-]")
        if k < m:
            said.append(f"{{+{' '.join(right[k:m])}+}}")
    return " ".join(said)


def _shortened(words: list[str], first: bool, last: bool) -> list[str]:
    head = [] if first else words[:AROUND]
    tail = [] if last else words[-AROUND:]
    if len(words) <= len(head) + len(tail) + 1:
        return words
    return [*head, "…", *tail]


def _tails(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """From a few words before the first difference on, as many as can be compared."""
    pairs = enumerate(zip(left, right, strict=False))
    start = next((n for n, (x, y) in pairs if x != y), min(len(left), len(right)))
    start = max(0, start - AROUND)
    return left[start : start + MOST_WORDS], right[start : start + MOST_WORDS]
