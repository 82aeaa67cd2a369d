"""The node type ``core.delay``. Its due time is recorded when it starts."""

from collections.abc import Mapping

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import NodeCall, NodeKind, NodeType
from moot.engine.nodes.inputs import first_problem, misfit

CONFIG_KEYS = ("ms", "durationMs", "delayMs")
LONGEST_MS = 31_536_000_000
RULE = f"be a number of milliseconds from 0 to {LONGEST_MS}"


def delay_ms(call: NodeCall) -> int:
    """Return the milliseconds to wait. The config wins over the input port."""
    for key in CONFIG_KEYS:
        if key in call.config:
            return _milliseconds(call.config[key], f"config.{key}")
    if "delayMs" not in call.inputs:
        raise PortProblem("The delay has no length: set config.ms or the input delayMs.")
    return _milliseconds(call.inputs["delayMs"], "The input delayMs")


def check_config(config: Mapping[str, object]) -> str | None:
    return first_problem(*(misfit(config, key, _is_delay, RULE) for key in CONFIG_KEYS))


def _milliseconds(value: object, place: str) -> int:
    if isinstance(value, (int, float)) and _is_delay(value):
        return int(value)
    raise PortProblem(f"{place} must {RULE}.")


def _is_delay(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= LONGEST_MS


TYPE = NodeType(type_id="core.delay", kind=NodeKind.TIMER, duration=delay_ms, check=check_config)
