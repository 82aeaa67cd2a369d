"""Steps that are one node each: what the words of the file mean in the node's config."""

import re
from collections.abc import Callable
from typing import Any

from moot.core.workflows.definition import TYPE_ID, WORKFLOW_ID, fits
from moot.core.workflows.peer_ids import parted
from moot.core.workflows.yaml.source import Item, hint
from moot.core.workflows.yaml.templates import NAME, Scope, mentions, name_in, port, reveals

Node = dict[str, Any]

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h)")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
LONGEST_MS = 31_536_000_000

ON_FAILURE = {"absorb": "absorb", "fail": "fail-parent", "fail-parent": "fail-parent"}

#: node types that set variables -> where their config names them
SETTERS = {
    "core.setVariable": ("name", "variableName", "variables"),
    "core.loop": ("set",),
    "core.subWorkflow": ("outputMapping",),
    "moot.forEach": ("outputMapping",),
}


def duration(item: Item) -> int:
    """Milliseconds: 250ms, 2s, 5m, 1h, or a whole number of them."""
    value = item.value
    if isinstance(value, str) and (found := _DURATION.fullmatch(value)):
        value = round(float(found[1]) * _UNITS[found[2]])
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LONGEST_MS:
        raise item.error(f"'{item.raw}' is not a duration; write 250ms, 2s, 5m, 1h or milliseconds")
    return value


def name_of(item: Item, key: str, place: str) -> str:
    """A key that names a variable or channel, in a form placeholders can use."""
    if not NAME.fullmatch(key):
        raise item.error_at(key, f"'{key}' is not a name for {place}; use letters, digits, '_'")
    return key


def _set(item: Item, scope: Scope) -> Node:
    given = item.value["set"]
    entries = given.mapping("'set'")
    if not entries:
        raise given.error("'set' needs at least one variable")
    ports = {name: _assigned(given, name, scope) for name in entries}
    hidden = scope.sensitive.intersection(entries) or any(
        reveals(entry, scope) for entry in entries.values()
    )
    for name in entries:
        scope.variables.setdefault(name, "any")
    node: Node = {"typeId": "core.setVariable", "inputs": ports}
    node["config"] = {"variables": list(entries)}
    if len(entries) == 1:
        [(name, only)] = ports.items()
        node.update(config={"name": name}, inputs={"value": only})
    if hidden:
        node["outputSensitivity"] = {"value": True}
    return node


def _assigned(given: Item, name: str, scope: Scope) -> dict[str, Any]:
    item = given.value[name]
    name_of(given, name, "a variable")
    if name in scope.channels:
        raise given.error_at(name, f"'{name}' is a channel — use a 'write' step")
    beside = {path.split(".", 1)[0] for path in mentions(item)} - {*scope.variables}
    if beside.intersection(given.value):
        raise item.error(f"'{{{min(beside)}}}' is set in this same step; set it in a step before")
    found = port(item, scope)
    declared = scope.variables.get(name, "any")
    if found["type"] == "static" and declared != "any" and not fits(declared, found["value"]):
        raise item.error(f"variable '{name}' is declared as {declared}; '{item.raw}' is not one")
    return found


def _delay(item: Item, scope: Scope) -> Node:
    given = item.value["delay"]
    if mentions(given):
        return {"typeId": "core.delay", "inputs": {"delayMs": port(given, scope)}}
    return {"typeId": "core.delay", "config": {"ms": duration(given)}}


def _write(item: Item, scope: Scope) -> Node:
    given = item.value["write"]
    fields = given.mapping("'write'", ("channel", "value"))
    for word in ("channel", "value"):
        if word not in fields:
            raise given.error(f"'write' needs '{word}'")
    channel = fields["channel"].text("channel")
    if channel not in scope.channels:
        raise fields["channel"].error(
            f"there is no channel '{channel}' here{hint(channel, scope.channels)}"
        )
    return {
        "typeId": "core.channelWrite",
        "config": {"channelName": channel, "reducer": scope.channels[channel]},
        "inputs": {"value": port(fields["value"], scope)},
    }


def _child(item: Item, scope: Scope) -> dict[str, Any]:
    """The config that all steps with a child workflow share."""
    fields = item.value
    name = fields["run"].text("run")
    if not re.fullmatch(WORKFLOW_ID.strip("^$"), name) and parted(name) is None:
        raise fields["run"].error(f"'{name}' is not the id of a workflow; write it like 'my-flow'")
    config: dict[str, Any] = {"workflowId": name}
    if "with" in fields:
        pairs = fields["with"].mapping("'with'")
        config["inputMapping"] = {mine: name_in(theirs, scope) for mine, theirs in pairs.items()}
    if "into" in fields:
        into = fields["into"]
        pairs = into.mapping("'into'")
        config["outputMapping"] = {
            name_of(into, mine, "a variable"): theirs.text(f"into.{mine}")
            for mine, theirs in pairs.items()
        }
    if "on_failure" in fields:
        word = fields["on_failure"].one_of("a way to go on after a failure", ON_FAILURE)
        config["onChildFailure"] = ON_FAILURE[word]
    return config


def _run(item: Item, scope: Scope) -> Node:
    config = _child(item, scope)
    _learn(config.get("outputMapping", {}), scope)
    return {"typeId": "core.subWorkflow", "config": config}


def _for_each(item: Item, scope: Scope) -> Node:
    fields = item.value
    if "run" not in fields:
        raise item.error("a 'for_each' step needs 'run' with the workflow for each item")
    config = _child(item, scope)
    for word, key in (("as", "itemVariable"), ("index", "indexVariable")):
        if word in fields:
            config[key] = fields[word].text(word)
    if "max" in fields:
        config["maxIterations"] = fields["max"].whole("max", 1)
    items = _items(fields["for_each"], scope)
    _learn(config.get("outputMapping", {}), scope)
    return {"typeId": "moot.forEach", "config": config, "inputs": {"items": items}}


def _items(item: Item, scope: Scope) -> dict[str, Any]:
    """A list, the name of a variable, or anything in braces."""
    if isinstance(item.value, list) or (isinstance(item.value, str) and mentions(item)):
        return port(item, scope)
    return {"type": "variable", "variableName": name_in(item, scope)}


def _fail(item: Item, scope: Scope) -> Node:
    given = item.value["fail"]
    code, message = "flow_failed", given
    if isinstance(given.value, dict):
        fields = given.mapping("'fail'", ("code", "message"))
        code = fields["code"].text("code") if "code" in fields else code
        message = fields.get("message", given)
    node: Node = {"typeId": "core.fail", "config": {"code": code}}
    if message is given and isinstance(given.value, dict):
        node["config"]["message"] = f"The workflow failed with {code}."
        return node
    message.text("the message")
    return {**node, "inputs": {"message": port(message, scope)}}


def _node(item: Item, scope: Scope) -> Node:
    fields = item.value
    type_id = fields["node"].text("node")
    if not re.fullmatch(TYPE_ID.strip("^$"), type_id):
        raise fields["node"].error(f"'{type_id}' is not a node type; write it like 'acme.shout'")
    node: Node = {"typeId": type_id, "config": {}}
    if "config" in fields:
        fields["config"].mapping("'config'")
        node["config"] = fields["config"].plain()
    if "inputs" in fields:
        ports = fields["inputs"].mapping("'inputs'")
        node["inputs"] = {name: port(each, scope) for name, each in ports.items()}
    for key in SETTERS.get(type_id, ()):
        named = node["config"].get(key, ())
        _learn([named] if isinstance(named, str) else named, scope)
    return node


def _learn(names: Any, scope: Scope) -> None:
    for name in names if isinstance(names, (dict, list)) else ():
        scope.variables.setdefault(str(name), "any")


BUILDERS: dict[str, Callable[[Item, Scope], Node]] = {
    "set": _set,
    "delay": _delay,
    "write": _write,
    "run": _run,
    "for_each": _for_each,
    "fail": _fail,
    "node": _node,
}
