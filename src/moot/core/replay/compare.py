"""Compare two events, and the end states of two runs.

Differences that each run has of its own do not count: its clock, its ids and derived ids.
"""

import re
from collections.abc import Mapping
from typing import Any

from moot.core.events import Event, NewEvent, payload_fields
from moot.core.payloads.nodes import ChannelWritten
from moot.core.payloads.runs import RunStarted
from moot.core.replay.lineage import PLACE_FIELDS
from moot.core.state.run import Run

#: times and durations that the host sets
CLOCK_FIELDS = frozenset({"decidedAt", "dueAt", "durationMs", "resolvedAt", "writtenAt"})
TURN_FIELDS = ("turn", "initialTurn", "finalTurn")
#: the duration of a model call, in its usage
MODEL_TIME = "milliseconds"

#: fields with names that the host makes, different in each run
NAME_FIELDS = frozenset({
    "artifactId", "askId", "childRunId", "conversationId", "forkRunId", "interruptId",
    "invocationId", "key", "mergeOrder", "messageId", "parentRunId", "runId", "unsure",
})  # fmt: skip
HOST_NAME = re.compile(r"(int|art|ask|run|th)_[a-z2-7]{20}(:.+)?|[\w-]{43}", re.ASCII)

#: fields of a start that belong to one run only
OWN_FIELDS = frozenset({*PLACE_FIELDS, "forkedFrom", "memory"})


#: ids of the two compared runs, when each has names of its own
RunPair = tuple[str, str] | None


def is_same_event(a: Event, b: Event) -> bool:
    """Return whether type, node and payload are the same."""
    return (a.type, a.node_id) == (b.type, b.node_id) and is_alike(
        comparable_event(a), comparable_event(b), (a.run_id, b.run_id)
    )


def comparable_event(event: Event | NewEvent) -> dict[str, object]:
    """Return the event's payload without times of the host and without the place of a fork."""
    is_turn = bool(event.hints) and "turn" in (event.hints or ())
    return comparable_payload(event.type, payload_fields(event), is_turn)


def comparable_payload(
    type_: str, payload: Mapping[str, object], is_turn: bool
) -> dict[str, object]:
    """Compare a payload; ``is_turn`` marks a message of a channel that repeats a turn."""
    without = CLOCK_FIELDS | OWN_FIELDS if type_ == RunStarted.event_type else CLOCK_FIELDS
    compared = {key: value for key, value in payload.items() if key not in without}
    for key in TURN_FIELDS:
        if isinstance(turn := compared.get(key), dict):
            untimed = {name: item for name, item in turn.items() if name != "ts"}
            compared[key] = _without_model_time(untimed, "meta")
    compared = _without_model_time(compared, "usage")
    if isinstance(outputs := compared.get("outputs"), dict):
        compared["outputs"] = _without_model_time(outputs, "usage")
    value = compared.get("value")
    if type_ == ChannelWritten.event_type and isinstance(value, dict):
        clocks = ("_ts", "timestamp") if is_turn else ("_ts",)
        compared["value"] = {key: item for key, item in value.items() if key not in clocks}
    return compared


def _without_model_time(payload: dict[str, object], part: str) -> dict[str, object]:
    """Remove the duration of a model call from the usage in ``part``."""
    usage = payload.get(part)
    if not isinstance(usage, dict) or not {MODEL_TIME, "inputTokens"} <= usage.keys():
        return payload
    return {**payload, part: {name: item for name, item in usage.items() if name != MODEL_TIME}}


def is_alike(left: Any, right: Any, runs: RunPair) -> bool:
    """Return whether both are equal as JSON. With ``runs``, names made by the host are equal."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            is_alike(left[key], right[key], runs) or are_own_names(key, left[key], right[key], runs)
            for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            is_alike(one, other, runs) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def are_own_names(key: str, left: Any, right: Any, runs: RunPair) -> bool:
    """Return whether the host made both names under this key, each for its own run."""
    if runs is None or key not in NAME_FIELDS:
        return False
    return _is_host_name(left, runs[0]) and _is_host_name(right, runs[1])


def _is_host_name(name: Any, run_id: str) -> bool:
    if isinstance(name, list):
        return all(_is_host_name(each, run_id) for each in name)
    return isinstance(name, str) and (run_id in name or bool(HOST_NAME.fullmatch(name)))


def diff_states(a: Run, b: Run) -> dict[str, object]:
    """Return the differences in status, variables and channels of two runs."""
    differences: dict[str, object] = {}
    if a.status != b.status:
        differences["status"] = {"a": a.status.value, "b": b.status.value}
    for part in ("variables", "channels"):
        ours, theirs = getattr(a, part), getattr(b, part)
        changed = {
            name: {
                **({"a": ours[name]} if name in ours else {}),
                **({"b": theirs[name]} if name in theirs else {}),
            }
            for name in sorted({*ours, *theirs})
            if name not in ours or name not in theirs or ours[name] != theirs[name]
        }
        if changed:
            differences[part] = changed
    return differences
