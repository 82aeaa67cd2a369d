"""Whether two events say the same, and how the ends of two runs differ.

What each run has of its own does not count: its clock, its ids, the ids made from them.
"""

import re
from typing import Any

from msgspec import UNSET

from moot.core.events import Event
from moot.core.lineage import PLACE
from moot.core.run import Run

#: when something was, or how long it took, where the host says so
CLOCKS = frozenset({"decidedAt", "dueAt", "durationMs", "resolvedAt", "writtenAt"})
TURNS = ("turn", "initialTurn", "finalTurn")

#: what the host calls things, each run in its own way
NAMES = frozenset({
    "artifactId", "childRunId", "conversationId", "forkRunId", "interruptId", "invocationId", "key",
    "mergeOrder", "messageId", "parentRunId", "runId",
})  # fmt: skip
MADE = re.compile(r"(int|art|run|th)_[a-z2-7]{20}|[\w-]{43}", re.ASCII)

#: what a fork says of itself at its beginning
OWN = frozenset({*PLACE, "forkedFrom"})


def same(a: Event, b: Event) -> bool:
    """By type, node and what is said."""
    return (a.type, a.node_id) == (b.type, b.node_id) and _same(said(a), said(b), (a, b))


def said(event: Event) -> dict[str, Any]:
    """The payload without the host's clock and the place of a fork."""
    without = CLOCKS | OWN if event.type == "run.started" else CLOCKS
    found = {key: value for key, value in event.payload.items() if key not in without}
    for key in TURNS:
        if isinstance(found.get(key), dict):
            found[key] = {name: item for name, item in found[key].items() if name != "ts"}
    if event.type == "channel.written" and isinstance(found.get("value"), dict):
        turn = event.hints is not UNSET and bool(event.hints.get("turn"))
        clocks = ("_ts", "timestamp") if turn else ("_ts",)
        found["value"] = {key: item for key, item in found["value"].items() if key not in clocks}
    return found


def _same(left: Any, right: Any, whose: tuple[Event, Event]) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _same(left[key], right[key], whose)
            or (key in NAMES and _made(left[key], whose[0]) and _made(right[key], whose[1]))
            for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _same(one, other, whose) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _made(name: Any, event: Event) -> bool:
    """Whether the host has made this name by itself."""
    if isinstance(name, list):
        return all(_made(each, event) for each in name)
    return isinstance(name, str) and (event.run_id in name or bool(MADE.fullmatch(name)))


def state_diff(a: Run, b: Run) -> dict[str, Any]:
    """Where two runs stand, as far as they stand apart."""
    found: dict[str, Any] = {}
    if a.status != b.status:
        found["status"] = {"a": a.status.value, "b": b.status.value}
    for part in ("variables", "channels"):
        ours, theirs = getattr(a, part), getattr(b, part)
        apart = {
            name: {
                **({"a": ours[name]} if name in ours else {}),
                **({"b": theirs[name]} if name in theirs else {}),
            }
            for name in sorted({*ours, *theirs})
            if name not in ours or name not in theirs or ours[name] != theirs[name]
        }
        if apart:
            found[part] = apart
    return found
