"""Node types that are decided at once: start, end, variables, conditions, writes.

They are pure functions of the node's call.
"""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct

from moot.core.events import iso
from moot.core.runs.readiness import PortProblem, is_condition_met
from moot.core.workflows.node_types import (
    ChannelWrite,
    Completed,
    Failed,
    NodeCall,
    NodeError,
    NodeKind,
    NodeType,
    Outcome,
)
from moot.core.workflows.schema import EdgeCondition
from moot.engine.nodes.inputs import (
    evaluate_expression,
    expression_names,
    expression_problem,
    first_problem,
    is_text,
    is_whole,
    merge_upstream,
    misfit,
    permanent_failure,
)

MERGE_MODES = ("object", "list", "first")
FAIL_DEFAULTS = {"code": "conformance_test_failure", "message": "Intentional conformance failure"}
REDUCERS = ("replace", "append", "merge", "counter", "votes", "feedback", "message")
LONGEST_TTL_MS = 31_536_000_000


def _pass_run_inputs(call: NodeCall) -> Completed:
    return Completed(dict(call.run_inputs))


def _pass_inputs(call: NodeCall) -> Completed:
    return Completed(call.inputs)


def _noop(call: NodeCall) -> Completed:
    return Completed()


# -- core.merge ----------------------------------------------------------------------------------


def _merge(call: NodeCall) -> Completed:
    """Return the outputs of the incoming paths, by source and as one value."""
    merged: object
    match call.config.get("mode", "object"):
        case "list":
            merged = list(call.upstream.values())
        case "first":
            merged = next(iter(call.upstream.values()), {})
        case _:
            merged = merge_upstream(call)
    return Completed({"results": dict(call.upstream), "merged": merged})


def _check_merge(config: Mapping[str, object]) -> str | None:
    return misfit(config, "mode", MERGE_MODES.__contains__, f"be one of {', '.join(MERGE_MODES)}")


# -- core.identity -------------------------------------------------------------------------------


def _identity(call: NodeCall) -> Completed:
    if call.config.get("emitDuplicateMessageId") is not True:
        return Completed(call.inputs)
    writes = (_duplicate_message(call, "first"), _duplicate_message(call, "second"))
    return Completed(call.inputs, writes=writes)


def _duplicate_message(call: NodeCall, content: str) -> ChannelWrite:
    """Return a write with the id of the node, so that a message channel keeps only the first."""
    entry = {
        "messageId": f"{call.run_id}:{call.node_id}",
        "role": "assistant",
        "content": content,
        "timestamp": iso(call.at * 1000),
    }
    return ChannelWrite(channel="messages", value=entry, reducer="message")


def _check_identity(config: Mapping[str, object]) -> str | None:
    if "memoryAction" in config:
        return "config.memoryAction is for hosts under trial; a @node function has ctx.memory"
    return None


# -- core.fail -----------------------------------------------------------------------------------


def _fail(call: NodeCall) -> Failed:
    """Fail on purpose. Inputs override the config, so that a message can name the cause."""
    values = {**FAIL_DEFAULTS, **call.config, **call.inputs}
    code, message = str(values["code"]), str(values["message"])
    retryable = call.config.get("retryable") is True
    return Failed(NodeError(code=code, message=message, retryable=retryable))


def _check_fail(config: Mapping[str, object]) -> str | None:
    return first_problem(*(misfit(config, key, is_text, "be a text") for key in FAIL_DEFAULTS))


# -- core.setVariable and core.getVariable -------------------------------------------------------


def _variable_name(config: Mapping[str, object]) -> str:
    name = config.get("name", config.get("variableName"))
    return name if isinstance(name, str) else ""


def _check_name(config: Mapping[str, object]) -> str | None:
    return None if _variable_name(config) else "config.name must name a variable"


def _set_variable(call: NodeCall) -> Completed:
    if "variables" in call.config:
        values = _constants_and_ports(call)
        return Completed({"value": values}, variables=values)
    value, name = _single_value(call), _variable_name(call.config)
    return Completed({"value": value}, variables={name: value})


def _single_value(call: NodeCall) -> object:
    if "value" in call.inputs:
        return call.inputs["value"]
    if "expression" in call.config:
        source = call.config["expression"]
        return evaluate_expression(source, expression_names(call), "config.expression")
    if "value" in call.config:
        return call.config["value"]
    raise PortProblem(f"There is no value for variable '{_variable_name(call.config)}'.")


def _constants_and_ports(call: NodeCall) -> dict[str, object]:
    """Return the values: a map has constants, a list only names, and a port of the name wins."""
    configured = msgspec.convert(call.config["variables"], dict[str, object] | list[str])
    constants = configured if isinstance(configured, dict) else {}
    values = {}
    for name in configured:
        if name not in call.inputs and name not in constants:
            raise PortProblem(f"There is no value for variable '{name}'.")
        values[name] = call.inputs[name] if name in call.inputs else constants[name]
    return values


def _check_set(config: Mapping[str, object]) -> str | None:
    if "variables" not in config:
        return _check_name(config) or expression_problem(config, "expression")
    configured = config["variables"]
    are_names = isinstance(configured, (dict, list)) and all(map(is_text, configured))
    return None if are_names else "config.variables must be a map of values or a list of names"


def _get_variable(call: NodeCall) -> Outcome:
    name = _variable_name(call.config)
    if name in call.variables:
        return Completed({"value": call.variables[name]})
    if "default" in call.config:
        return Completed({"value": call.config["default"]})
    message = f"Variable '{name}' is not set and has no default."
    return permanent_failure("variable_not_set", message, variable=name)


# -- core.conditional ----------------------------------------------------------------------------


def _conditional(call: NodeCall) -> Completed:
    """Fill the port "true" or "false". The edges follow the filled port."""
    result = _is_true(call)
    branch = "true" if result else "false"
    carried = call.inputs.get("value", merge_upstream(call))
    return Completed({"result": result, "branch": branch, branch: carried})


def _is_true(call: NodeCall) -> bool:
    names = expression_names(call)
    if "expression" in call.config:
        return bool(evaluate_expression(call.config["expression"], names, "config.expression"))
    if "condition" in call.config:
        incoming = {**merge_upstream(call), **call.inputs}
        names |= {"outputs": incoming, "output": call.inputs.get("value", incoming)}
        return is_condition_met(msgspec.convert(call.config["condition"], EdgeCondition), names)
    for port in ("condition", "value"):
        if port in call.inputs:
            return bool(call.inputs[port])
    raise PortProblem("There is nothing to decide on: set config.expression or the input value.")


def _check_conditional(config: Mapping[str, object]) -> str | None:
    if "condition" not in config:
        return expression_problem(config, "expression")
    try:
        condition = msgspec.convert(config["condition"], EdgeCondition)
    except msgspec.ValidationError as error:
        return f"config.condition is not a condition: {error}"
    if condition.type == "expression":
        if condition.expression is UNSET:
            return "config.condition has no expression"
        return expression_problem({"expression": condition.expression}, "expression")
    if not condition.left:
        return f"config.condition of type {condition.type} needs 'left'"
    if condition.type == "regex" and not isinstance(condition.right, str):
        return "config.condition of type regex needs a pattern in 'right'"
    return None


# -- core.channelWrite ---------------------------------------------------------------------------


class ChannelWriteConfig(Struct, frozen=True, rename="camel"):
    channel_name: str
    reducer: str
    value: object = UNSET
    ttl_ms: int | None = None
    max_size: int | None = None


def _write_channel(call: NodeCall) -> Outcome:
    if problem := _check_write(call.config):
        return permanent_failure("validation_error", f"Node '{call.node_id}': {problem}.")
    config = msgspec.convert(call.config, ChannelWriteConfig)
    if config.reducer not in REDUCERS:
        message = f"'{config.reducer}' is not a reducer of this host; use {', '.join(REDUCERS)}."
        return permanent_failure("unsupported_reducer", message, reducer=config.reducer)
    value = call.inputs.get("value", config.value)
    if value is UNSET:
        raise PortProblem(f"There is no value to write to channel '{config.channel_name}'.")
    write = ChannelWrite(
        channel=config.channel_name,
        value=value,
        reducer=config.reducer,
        ttl_ms=config.ttl_ms,
        max_size=config.max_size,
    )
    return Completed({"channel": write.channel}, writes=(write,))


def _check_write(config: Mapping[str, object]) -> str | None:
    for key in ("channelName", "reducer"):
        if not is_text(config.get(key)):
            return f"config.{key} must be given"
    if not is_whole(config.get("ttlMs", 0), 0, LONGEST_TTL_MS):
        return f"config.ttlMs must be a whole number from 0 to {LONGEST_TTL_MS}"
    if not is_whole(config.get("maxSize", 1), 1):
        return "config.maxSize must be a whole number from 1"
    return None


NOW = NodeKind.INSTANT
IDENTITY = NodeType(type_id="core.identity", kind=NOW, instant=_identity, check=_check_identity)

INSTANT_NODES = (
    NodeType(type_id="core.start", kind=NOW, instant=_pass_run_inputs),
    NodeType(type_id="core.end", kind=NOW, instant=_pass_inputs),
    NodeType(type_id="core.noop", kind=NOW, instant=_noop),
    IDENTITY,
    NodeType(type_id="core.fail", kind=NOW, instant=_fail, check=_check_fail),
    NodeType(
        type_id="core.conditional",
        kind=NOW,
        instant=_conditional,
        check=_check_conditional,
        routes=True,
    ),
    NodeType(type_id="core.setVariable", kind=NOW, instant=_set_variable, check=_check_set),
    NodeType(type_id="core.getVariable", kind=NOW, instant=_get_variable, check=_check_name),
    NodeType(type_id="core.merge", kind=NOW, instant=_merge, check=_check_merge),
    #: its edges do the fan-out
    NodeType(type_id="core.parallel", kind=NOW, instant=_pass_inputs),
    NodeType(type_id="core.channelWrite", kind=NOW, instant=_write_channel, check=_check_write),
)
