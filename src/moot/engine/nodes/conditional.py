"""core.conditional: fills the port "true" or the port "false"; edges follow the filled one."""

from typing import Any

import msgspec
from msgspec import UNSET

from moot.core.runs.readiness import PortProblem, holds
from moot.core.workflows.definition import EdgeCondition
from moot.core.workflows.node_types import Call, Completed, Kind, NodeType
from moot.engine.nodes.inputs import evaluated, expression_problem, names_of, upstream_merged


def _conditional(call: Call) -> Completed:
    result = _result(call)
    branch = "true" if result else "false"
    carried = call.inputs.get("value", upstream_merged(call))
    return Completed({"result": result, "branch": branch, branch: carried})


def _result(call: Call) -> bool:
    if "expression" in call.config:
        return bool(evaluated(call.config["expression"], names_of(call), "config.expression"))
    if "condition" in call.config:
        return holds(_condition(call.config["condition"]), _names(call))
    for port in ("condition", "value"):
        if port in call.inputs:
            return bool(call.inputs[port])
    raise PortProblem("There is nothing to decide on: set config.expression or the input value.")


def _names(call: Call) -> dict[str, Any]:
    """An edge's condition speaks of outputs; here these are the ones that came in."""
    incoming = {**upstream_merged(call), **call.inputs}
    return {**names_of(call), "outputs": incoming, "output": call.inputs.get("value", incoming)}


def _condition(given: Any) -> EdgeCondition:
    return msgspec.convert(given, EdgeCondition)


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
    kind=Kind.INSTANT,
    instant=_conditional,
    check=_check,
    routes=True,
)
