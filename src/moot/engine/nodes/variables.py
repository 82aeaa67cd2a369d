"""core.setVariable and core.getVariable: the run's variables from inside the graph."""

from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import Call, Completed, Kind, NodeType, Outcome
from moot.engine.nodes.inputs import evaluated, expression_problem, names_of, refused


def _name(config: dict[str, Any]) -> Any:
    return config.get("name", config.get("variableName"))


def _name_problem(config: dict[str, Any]) -> str | None:
    name = _name(config)
    return None if isinstance(name, str) and name else "config.name must name a variable"


def _set(call: Call) -> Completed:
    if "variables" in call.config:
        values = _several(call)
        return Completed({"value": values}, variables=values)
    value = _value(call)
    return Completed({"value": value}, variables={_name(call.config): value})


def _value(call: Call) -> Any:
    if "value" in call.inputs:
        return call.inputs["value"]
    if "expression" in call.config:
        return evaluated(call.config["expression"], names_of(call), "config.expression")
    if "value" in call.config:
        return call.config["value"]
    raise PortProblem(f"There is no value for variable '{_name(call.config)}'.")


def _several(call: Call) -> dict[str, Any]:
    """A map gives constants, a list only names; a port of the same name wins."""
    wanted = call.config["variables"]
    constants = wanted if isinstance(wanted, dict) else {}
    found = {}
    for name in wanted:
        if name not in call.inputs and name not in constants:
            raise PortProblem(f"There is no value for variable '{name}'.")
        found[name] = call.inputs[name] if name in call.inputs else constants[name]
    return found


def _check_set(config: dict[str, Any]) -> str | None:
    if "variables" not in config:
        return _name_problem(config) or expression_problem(config, "expression")
    wanted = config["variables"]
    named = isinstance(wanted, (dict, list)) and all(isinstance(n, str) and n for n in wanted)
    return None if named else "config.variables must be a map of values or a list of names"


def _get(call: Call) -> Outcome:
    name = _name(call.config)
    if name in call.variables:
        return Completed({"value": call.variables[name]})
    if "default" in call.config:
        return Completed({"value": call.config["default"]})
    return refused(
        "variable_not_set", f"Variable '{name}' is not set and has no default.", variable=name
    )


TYPES = (
    NodeType(type_id="core.setVariable", kind=Kind.INSTANT, instant=_set, check=_check_set),
    NodeType(type_id="core.getVariable", kind=Kind.INSTANT, instant=_get, check=_name_problem),
)
