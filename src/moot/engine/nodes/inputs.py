"""How built-in nodes read what they were given: expressions, upstream outputs, whole numbers."""

import math
from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows import expressions
from moot.core.workflows.node_types import Call, Failed, NodeError


def evaluated(source: str, names: dict[str, Any], place: str) -> Any:
    """The expression's value. Raises PortProblem when it has none."""
    try:
        return expressions.evaluate(source, names)
    except expressions.ExpressionError as error:
        raise PortProblem(f"{place}: {error}") from None


def expression_problem(config: dict[str, Any], key: str) -> str | None:
    """Why ``config[key]`` is not an expression, or nothing; an absent one is fine."""
    if key not in config:
        return None
    source = config[key]
    if not isinstance(source, str) or not source:
        return f"config.{key} must be an expression"
    try:
        expressions.check(source)
    except expressions.ExpressionError as error:
        return f"config.{key} cannot be read: {error}"
    return None


def mapping_problem(config: dict[str, Any], key: str) -> str | None:
    """Why ``config[key]`` does not map names to names, or nothing."""
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


def names_of(call: Call) -> dict[str, Any]:
    """What an expression in a node's config may name. A port hides a run input of its name."""
    return {
        "variables": call.variables,
        "inputs": {**call.run_inputs, **call.inputs},
        "config": call.config,
        "upstream": call.upstream,
    }


def upstream_merged(call: Call) -> dict[str, Any]:
    """The outputs of all completed predecessors, later edges over earlier ones."""
    merged: dict[str, Any] = {}
    for outputs in call.upstream.values():
        merged.update(outputs)
    return merged


def refused(code: str, message: str, **details: Any) -> Failed:
    """A failure that trying again cannot help."""
    return Failed(NodeError(code=code, message=message, details=details, retryable=False))
