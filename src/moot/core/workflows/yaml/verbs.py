"""Compile the steps that become one node each."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from moot.core.workflows.definition import is_of_type
from moot.core.workflows.peer_ids import split_peer_id
from moot.core.workflows.schema import TYPE_ID, WORKFLOW_ID
from moot.core.workflows.yaml.source import YamlItem, spelling_hint
from moot.core.workflows.yaml.templates import (
    NAME,
    Scope,
    is_sensitive,
    placeholder_paths,
    port_value,
    variable_name,
)

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h)")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
LONGEST_MS = 31_536_000_000

ON_FAILURE = {"absorb": "absorb", "fail": "fail-parent", "fail-parent": "fail-parent"}

#: node type -> the keys of its config that name variables it sets
SETTERS = {
    "core.setVariable": ("name", "variableName", "variables"),
    "core.loop": ("set",),
    "core.subWorkflow": ("outputMapping",),
    "moot.forEach": ("outputMapping",),
}


def parse_duration(item: YamlItem) -> int:
    """Return milliseconds from 250ms, 2s, 5m, 1h or a whole number. Raise FlowFileError."""
    value = item.value
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        value = round(float(match[1]) * _UNITS[match[2]])
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LONGEST_MS:
        raise item.error(f"'{item.raw}' is not a duration; write 250ms, 2s, 5m, 1h or milliseconds")
    return value


def check_name(item: YamlItem, key: str, place: str) -> str:
    """Return a key that names a variable or channel, if placeholders can use it."""
    if not NAME.fullmatch(key):
        raise item.error_at(key, f"'{key}' is not a name for {place}; use letters, digits, '_'")
    return key


def _set_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    assignments = item.value["set"]
    entries = assignments.mapping("'set'")
    if not entries:
        raise assignments.error("'set' needs at least one variable")
    ports = {name: _assigned_port(assignments, name, scope) for name in entries}
    from_hidden = any(is_sensitive(entry, scope) for entry in entries.values())
    hidden = from_hidden or scope.sensitive.intersection(entries)
    for name in entries:
        scope.variables.setdefault(name, "any")
    node: dict[str, object] = {"typeId": "core.setVariable", "inputs": ports}
    node["config"] = {"variables": list(entries)}
    if len(entries) == 1:
        [(name, only)] = ports.items()
        node.update(config={"name": name}, inputs={"value": only})
    if hidden:
        node["outputSensitivity"] = {"value": True}
    return node


def _assigned_port(assignments: YamlItem, name: str, scope: Scope) -> dict[str, object]:
    item = assignments.value[name]
    check_name(assignments, name, "a variable")
    if name in scope.channels:
        raise assignments.error_at(name, f"'{name}' is a channel — use a 'write' step")
    unknown = {path.split(".", 1)[0] for path in placeholder_paths(item)} - {*scope.variables}
    if unknown.intersection(assignments.value):
        raise item.error(f"'{{{min(unknown)}}}' is set in this same step; set it in a step before")
    assigned = port_value(item, scope)
    declared = scope.variables.get(name, "any")
    typed = assigned["type"] == "static" and declared != "any"
    if typed and not is_of_type(declared, assigned["value"]):
        raise item.error(f"variable '{name}' is declared as {declared}; '{item.raw}' is not one")
    return assigned


def _delay_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    delay = item.value["delay"]
    if placeholder_paths(delay):
        return {"typeId": "core.delay", "inputs": {"delayMs": port_value(delay, scope)}}
    return {"typeId": "core.delay", "config": {"ms": parse_duration(delay)}}


def _write_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    write = item.value["write"]
    fields = write.mapping("'write'", ("channel", "value"))
    for word in ("channel", "value"):
        if word not in fields:
            raise write.error(f"'write' needs '{word}'")
    channel = fields["channel"].text("channel")
    if channel not in scope.channels:
        hint = spelling_hint(channel, scope.channels)
        raise fields["channel"].error(f"there is no channel '{channel}' here{hint}")
    return {
        "typeId": "core.channelWrite",
        "config": {"channelName": channel, "reducer": scope.channels[channel]},
        "inputs": {"value": port_value(fields["value"], scope)},
    }


def _child_config(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Return the config that all steps with a child workflow share."""
    fields = item.value
    name = fields["run"].text("run")
    if not re.fullmatch(WORKFLOW_ID.strip("^$"), name) and split_peer_id(name) is None:
        raise fields["run"].error(f"'{name}' is not the id of a workflow; write it like 'my-flow'")
    config: dict[str, object] = {"workflowId": name}
    if "with" in fields:
        pairs = fields["with"].mapping("'with'").items()
        config["inputMapping"] = {mine: variable_name(theirs, scope) for mine, theirs in pairs}
    if "into" in fields:
        into = fields["into"]
        pairs = into.mapping("'into'")
        config["outputMapping"] = {
            check_name(into, mine, "a variable"): theirs.text(f"into.{mine}")
            for mine, theirs in pairs.items()
        }
    if "on_failure" in fields:
        word = fields["on_failure"].one_of("a way to go on after a failure", ON_FAILURE)
        config["onChildFailure"] = ON_FAILURE[word]
    return config


def _child_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    config = _child_config(item, scope)
    _declare_variables(config.get("outputMapping", {}), scope)
    return {"typeId": "core.subWorkflow", "config": config}


def _for_each_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    fields = item.value
    if "run" not in fields:
        raise item.error("a 'for_each' step needs 'run' with the workflow for each item")
    config = _child_config(item, scope)
    for word, key in (("as", "itemVariable"), ("index", "indexVariable")):
        if word in fields:
            config[key] = fields[word].text(word)
    if "max" in fields:
        config["maxIterations"] = fields["max"].whole("max", 1)
    items = _items(fields["for_each"], scope)
    _declare_variables(config.get("outputMapping", {}), scope)
    return {"typeId": "moot.forEach", "config": config, "inputs": {"items": items}}


def _items(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Read a list, the name of a variable, or anything in braces."""
    if isinstance(item.value, list) or (isinstance(item.value, str) and placeholder_paths(item)):
        return port_value(item, scope)
    return {"type": "variable", "variableName": variable_name(item, scope)}


def _fail_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    failure = item.value["fail"]
    code, message = "flow_failed", failure
    if isinstance(failure.value, dict):
        fields = failure.mapping("'fail'", ("code", "message"))
        code = fields["code"].text("code") if "code" in fields else code
        message = fields.get("message", failure)
    if message is failure and isinstance(failure.value, dict):
        config = {"code": code, "message": f"The workflow failed with {code}."}
        return {"typeId": "core.fail", "config": config}
    message.text("the message")
    inputs = {"message": port_value(message, scope)}
    return {"typeId": "core.fail", "config": {"code": code}, "inputs": inputs}


def _typed_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    fields = item.value
    type_id = fields["node"].text("node")
    if not re.fullmatch(TYPE_ID.strip("^$"), type_id):
        raise fields["node"].error(f"'{type_id}' is not a node type; write it like 'acme.shout'")
    config: Mapping[str, object] = {}
    if "config" in fields:
        fields["config"].mapping("'config'")
        config = fields["config"].plain()
    node: dict[str, object] = {"typeId": type_id, "config": config}
    if "inputs" in fields:
        ports = fields["inputs"].mapping("'inputs'")
        node["inputs"] = {name: port_value(each, scope) for name, each in ports.items()}
    for key in SETTERS.get(type_id, ()):
        named = config.get(key, ())
        _declare_variables([named] if isinstance(named, str) else named, scope)
    return node


def _declare_variables(names: Any, scope: Scope) -> None:
    for name in names if isinstance(names, (dict, list)) else ():
        scope.variables.setdefault(str(name), "any")


BUILDERS: dict[str, Callable[[YamlItem, Scope], dict[str, object]]] = {
    "set": _set_node,
    "delay": _delay_node,
    "write": _write_node,
    "run": _child_node,
    "for_each": _for_each_node,
    "fail": _fail_node,
    "node": _typed_node,
}
