"""The node type ``core.delay``. Its due time is recorded when it starts."""

from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import NodeCall, NodeKind, NodeType
from moot.engine.nodes.inputs import is_finite

CONFIG_KEYS = ("ms", "durationMs", "delayMs")
LONGEST_MS = 31_536_000_000


def delay_ms(call: NodeCall) -> int:
    """Return the milliseconds to wait. The config wins over the input port."""
    for key in CONFIG_KEYS:
        if key in call.config:
            return _milliseconds(call.config[key], f"config.{key}")
    if "delayMs" not in call.inputs:
        raise PortProblem("The delay has no length: set config.ms or the input delayMs.")
    return _milliseconds(call.inputs["delayMs"], "The input delayMs")


def check_config(config: dict[str, Any]) -> str | None:
    for key in CONFIG_KEYS:
        if key in config and not _is_delay(config[key]):
            return _delay_problem(f"config.{key}")
    return None


def _milliseconds(value: Any, place: str) -> int:
    if not _is_delay(value):
        raise PortProblem(_delay_problem(place) + ".")
    return int(value)


def _is_delay(value: Any) -> bool:
    return is_finite(value) and bool(0 <= value <= LONGEST_MS)


def _delay_problem(place: str) -> str:
    return f"{place} must be a number of milliseconds from 0 to {LONGEST_MS}"


TYPE = NodeType(type_id="core.delay", kind=NodeKind.TIMER, duration=delay_ms, check=check_config)
