"""Read the inputs and config of built-in nodes: expressions, numbers, upstream."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows import expressions
from moot.core.workflows.node_types import Failed, NodeCall, NodeError


def evaluate_expression(source: object, names: dict[str, object], place: str) -> Any:
    """Return the expression's value. Raise PortProblem when it has none."""
    try:
        return expressions.evaluate_expression(str(source), names)
    except expressions.ExpressionError as error:
        raise PortProblem(f"{place}: {error}") from None


def expression_problem(config: Mapping[str, object], key: str) -> str | None:
    """Return the problem with the expression ``config[key]``, or None. An absent key is fine."""
    source = config.get(key)
    if key not in config or not isinstance(source, str) or not source:
        return misfit(config, key, is_text, "be an expression")
    try:
        expressions.check_expression(source)
    except expressions.ExpressionError as error:
        return f"config.{key} cannot be read: {error}"
    return None


def misfit(
    config: Mapping[str, object], key: str, fits: Callable[[object], bool], rule: str
) -> str | None:
    """Return what ``config[key]`` must do, or None. An absent key is fine."""
    return None if key not in config or fits(config[key]) else f"config.{key} must {rule}"


def first_problem(*problems: str | None) -> str | None:
    return next((problem for problem in problems if problem), None)


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def is_whole(value: object, low: int, high: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def expression_names(call: NodeCall) -> dict[str, object]:
    """Return the names for an expression in a node's config. A port hides a run input."""
    return {
        "variables": call.variables,
        "inputs": {**call.run_inputs, **call.inputs},
        "config": call.config,
        "upstream": call.upstream,
    }


def merge_upstream(call: NodeCall) -> dict[str, object]:
    """Return the outputs of all completed predecessors. Later edges override earlier ones."""
    merged: dict[str, object] = {}
    for outputs in call.upstream.values():
        merged.update(outputs)
    return merged


def permanent_failure(code: str, message: str, **details: Any) -> Failed:
    """Return a failure that no retry can help."""
    return Failed(NodeError(code=code, message=message, details=details, retryable=False))
