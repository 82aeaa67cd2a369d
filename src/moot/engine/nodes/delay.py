"""core.delay: waits. The time it falls due is recorded when it starts."""

from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import Call, Kind, NodeType
from moot.engine.nodes.inputs import is_finite

CONFIG_KEYS = ("ms", "durationMs", "delayMs")
LONGEST_MS = 31_536_000_000


def duration(call: Call) -> int:
    """Milliseconds to wait; the config wins over the input port."""
    for key in CONFIG_KEYS:
        if key in call.config:
            return _milliseconds(call.config[key], f"config.{key}")
    if "delayMs" not in call.inputs:
        raise PortProblem("The delay has no length: set config.ms or the input delayMs.")
    return _milliseconds(call.inputs["delayMs"], "The input delayMs")


def check(config: dict[str, Any]) -> str | None:
    for key in CONFIG_KEYS:
        if key in config and not _fits(config[key]):
            return _complaint(f"config.{key}")
    return None


def _milliseconds(value: Any, place: str) -> int:
    if not _fits(value):
        raise PortProblem(_complaint(place) + ".")
    return int(value)


def _fits(value: Any) -> bool:
    return is_finite(value) and bool(0 <= value <= LONGEST_MS)


def _complaint(place: str) -> str:
    return f"{place} must be a number of milliseconds from 0 to {LONGEST_MS}"


TYPE = NodeType(type_id="core.delay", kind=Kind.TIMER, duration=duration, check=check)
