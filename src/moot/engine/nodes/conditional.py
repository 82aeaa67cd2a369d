"""The node type ``core.conditional``, which fills the port "true" or "false".

The edges follow the filled port.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from moot.core.runs.readiness import PortProblem, is_condition_met
from moot.core.workflows.node_types import Completed, NodeCall, NodeKind, NodeType
from moot.core.workflows.schema import EdgeCondition
from moot.engine.nodes.inputs import (
    evaluate_expression,
    expression_names,
    expression_problem,
    merge_upstream,
)


def _conditional(call: NodeCall) -> Completed:
    result = _result(call)
    branch = "true" if result else "false"
    carried = call.inputs.get("value", merge_upstream(call))
    return Completed({"result": result, "branch": branch, branch: carried})


def _result(call: NodeCall) -> bool:
    if "expression" in call.config:
        return bool(
            evaluate_expression(
                call.config["expression"], expression_names(call), "config.expression"
            )
        )
    if "condition" in call.config:
        return is_condition_met(_condition(call.config["condition"]), _names(call))
    for port in ("condition", "value"):
        if port in call.inputs:
            return bool(call.inputs[port])
    raise PortProblem("There is nothing to decide on: set config.expression or the input value.")


def _names(call: NodeCall) -> dict[str, Any]:
    """Return the names for a condition. Its outputs are the values that came in."""
    incoming = {**merge_upstream(call), **call.inputs}
    return {
        **expression_names(call),
        "outputs": incoming,
        "output": call.inputs.get("value", incoming),
    }


def _condition(value: Any) -> EdgeCondition:
    return msgspec.convert(value, EdgeCondition)


def _check(config: dict[str, Any]) -> str | None:
    if "condition" not in config:
        return expression_problem(config, "expression")
    try:
        condition = _condition(config["condition"])
    except msgspec.ValidationError as error:
        return f"config.condition is not a condition: {error}"
    if condition.type == "expression":
        return expression_problem(config["condition"], "expression") or _no_expression(condition)
    if not condition.left:
        return f"config.condition of type {condition.type} needs 'left'"
    if condition.type == "regex" and not isinstance(condition.right, str):
        return "config.condition of type regex needs a pattern in 'right'"
    return None


def _no_expression(condition: EdgeCondition) -> str | None:
    return "config.condition has no expression" if condition.expression is UNSET else None


TYPE = NodeType(
    type_id="core.conditional",
    kind=NodeKind.INSTANT,
    instant=_conditional,
    check=_check,
    routes=True,
)
