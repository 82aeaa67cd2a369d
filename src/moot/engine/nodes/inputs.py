"""Read the inputs and config of built-in nodes: expressions, numbers, upstream."""

import math
from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows import expressions
from moot.core.workflows.node_types import Failed, NodeCall, NodeError


def evaluate_expression(source: str, names: dict[str, Any], place: str) -> Any:
    """Return the expression's value. Raise PortProblem when it has none."""
    try:
        return expressions.evaluate_expression(source, names)
    except expressions.ExpressionError as error:
        raise PortProblem(f"{place}: {error}") from None


def expression_problem(config: dict[str, Any], key: str) -> str | None:
    """Return the problem with the expression ``config[key]``, or None. An absent key is fine."""
    if key not in config:
        return None
    source = config[key]
    if not isinstance(source, str) or not source:
        return f"config.{key} must be an expression"
    try:
        expressions.check_expression(source)
    except expressions.ExpressionError as error:
        return f"config.{key} cannot be read: {error}"
    return None


def mapping_problem(config: dict[str, Any], key: str) -> str | None:
    """Return the problem when ``config[key]`` does not map names to names, or None."""
    value = config.get(key, {})
    if isinstance(value, dict) and all(isinstance(name, str) for name in value.values()):
        return None
    return f"config.{key} must map names to names"


def first_problem(*problems: str | None) -> str | None:
    return next((problem for problem in problems if problem), None)


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def expression_names(call: NodeCall) -> dict[str, Any]:
    """Return the names for an expression in a node's config. A port hides a run input."""
    return {
        "variables": call.variables,
        "inputs": {**call.run_inputs, **call.inputs},
        "config": call.config,
        "upstream": call.upstream,
    }


def merge_upstream(call: NodeCall) -> dict[str, Any]:
    """Return the outputs of all completed predecessors. Later edges override earlier ones."""
    merged: dict[str, Any] = {}
    for outputs in call.upstream.values():
        merged.update(outputs)
    return merged


def permanent_failure(code: str, message: str, **details: Any) -> Failed:
    """Return a failure that no retry can help."""
    return Failed(NodeError(code=code, message=message, details=details, retryable=False))
