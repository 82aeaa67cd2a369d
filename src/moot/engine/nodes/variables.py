"""The node types ``core.setVariable`` and ``core.getVariable``."""

from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import Completed, NodeCall, NodeKind, NodeType, Outcome
from moot.engine.nodes.inputs import (
    evaluate_expression,
    expression_names,
    expression_problem,
    permanent_failure,
)


def _name(config: dict[str, Any]) -> Any:
    return config.get("name", config.get("variableName"))


def _name_problem(config: dict[str, Any]) -> str | None:
    name = _name(config)
    return None if isinstance(name, str) and name else "config.name must name a variable"


def _set(call: NodeCall) -> Completed:
    if "variables" in call.config:
        values = _values(call)
        return Completed({"value": values}, variables=values)
    value = _value(call)
    return Completed({"value": value}, variables={_name(call.config): value})


def _value(call: NodeCall) -> Any:
    if "value" in call.inputs:
        return call.inputs["value"]
    if "expression" in call.config:
        return evaluate_expression(
            call.config["expression"], expression_names(call), "config.expression"
        )
    if "value" in call.config:
        return call.config["value"]
    raise PortProblem(f"There is no value for variable '{_name(call.config)}'.")


def _values(call: NodeCall) -> dict[str, Any]:
    """Return the values: a map has constants, a list only names, and a port of the name wins."""
    configured = call.config["variables"]
    constants = configured if isinstance(configured, dict) else {}
    values = {}
    for name in configured:
        if name not in call.inputs and name not in constants:
            raise PortProblem(f"There is no value for variable '{name}'.")
        values[name] = call.inputs[name] if name in call.inputs else constants[name]
    return values


def _check_set(config: dict[str, Any]) -> str | None:
    if "variables" not in config:
        return _name_problem(config) or expression_problem(config, "expression")
    configured = config["variables"]
    are_names = isinstance(configured, (dict, list)) and all(
        isinstance(n, str) and n for n in configured
    )
    return None if are_names else "config.variables must be a map of values or a list of names"


def _get(call: NodeCall) -> Outcome:
    name = _name(call.config)
    if name in call.variables:
        return Completed({"value": call.variables[name]})
    if "default" in call.config:
        return Completed({"value": call.config["default"]})
    return permanent_failure(
        "variable_not_set", f"Variable '{name}' is not set and has no default.", variable=name
    )


TYPES = (
    NodeType(type_id="core.setVariable", kind=NodeKind.INSTANT, instant=_set, check=_check_set),
    NodeType(type_id="core.getVariable", kind=NodeKind.INSTANT, instant=_get, check=_name_problem),
)
