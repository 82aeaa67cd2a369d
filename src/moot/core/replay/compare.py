"""Whether two events say the same, and how the ends of two runs differ.

What each run has of its own does not count: its clock, its ids, the ids made from them.
"""

import re
from typing import Any

from msgspec import UnsetType

from moot.core.events import Event, Payload
from moot.core.state.lineage import PLACE
from moot.core.state.run import Run

#: when something was, or how long it took, where the host says so
CLOCKS = frozenset({"decidedAt", "dueAt", "durationMs", "resolvedAt", "writtenAt"})
TURNS = ("turn", "initialTurn", "finalTurn")
#: how long a model took, beside what it has used up
TOOK = "milliseconds"

#: what the host calls things, each run in its own way
NAMES = frozenset({
    "artifactId", "askId", "childRunId", "conversationId", "forkRunId", "interruptId",
    "invocationId", "key", "mergeOrder", "messageId", "parentRunId", "runId", "unsure",
})  # fmt: skip
MADE = re.compile(r"(int|art|ask|run|th)_[a-z2-7]{20}(:.+)?|[\w-]{43}", re.ASCII)

#: what each run says of itself at its beginning
OWN = frozenset({*PLACE, "forkedFrom", "memory"})


#: two events, where each run has names of its own
Runs = tuple[str, str] | None


def same(a: Event, b: Event) -> bool:
    """By type, node and what is said."""
    return (a.type, a.node_id) == (b.type, b.node_id) and alike(
        said(a.type, a.payload, a.hints), said(b.type, b.payload, b.hints), (a.run_id, b.run_id)
    )


def said(type_: str, payload: Payload, hints: Payload | UnsetType | None) -> Payload:
    """The payload without the host's clock and the place of a fork."""
    without = CLOCKS | OWN if type_ == "run.started" else CLOCKS
    found = {key: value for key, value in payload.items() if key not in without}
    for key in TURNS:
        if isinstance(found.get(key), dict):
            said_then = {name: item for name, item in found[key].items() if name != "ts"}
            found[key] = _untimed(said_then, "meta")
    found = _untimed(found, "usage")
    if isinstance(found.get("outputs"), dict):
        found["outputs"] = _untimed(found["outputs"], "usage")
    if type_ == "channel.written" and isinstance(found.get("value"), dict):
        turn = isinstance(hints, dict) and bool(hints.get("turn"))
        clocks = ("_ts", "timestamp") if turn else ("_ts",)
        found["value"] = {key: item for key, item in found["value"].items() if key not in clocks}
    return found


def _untimed(said: Payload, part: str) -> Payload:
    """Without the time that a model took, where what it has used up is told."""
    used = said.get(part)
    if not isinstance(used, dict) or not {TOOK, "inputTokens"} <= used.keys():
        return said
    return {**said, part: {name: item for name, item in used.items() if name != TOOK}}


def alike(left: Any, right: Any, runs: Runs) -> bool:
    """Equal as JSON. With ``runs``, names that each of the two has made for itself are equal."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            alike(left[key], right[key], runs) or own_names(key, left[key], right[key], runs)
            for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            alike(one, other, runs) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def own_names(key: str, left: Any, right: Any, runs: Runs) -> bool:
    """Whether under this key each run has a name that it has made for itself."""
    return (
        runs is not None and key in NAMES and _made(left, runs[0]) and _made(right, runs[1])
    )  # fmt: skip


def _made(name: Any, run_id: str) -> bool:
    """Whether the host has made this name by itself."""
    if isinstance(name, list):
        return all(_made(each, run_id) for each in name)
    return isinstance(name, str) and (run_id in name or bool(MADE.fullmatch(name)))


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
