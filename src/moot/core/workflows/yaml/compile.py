"""The whole file: its head is read, its steps are walked, and the result is checked."""

import re
from typing import Any

from moot.core.errors import BadRequest
from moot.core.workflows.channels import TIMED
from moot.core.workflows.definition import WORKFLOW_ID, fits, parse
from moot.core.workflows.yaml import verbs
from moot.core.workflows.yaml.graph import Entry, Graph
from moot.core.workflows.yaml.source import FlowFileError, Item, read
from moot.core.workflows.yaml.steps import Compiler
from moot.core.workflows.yaml.templates import TYPES, Scope, port, reveals

WORDS = (
    "workflow", "name", "description", "version", "tags", "inputs", "variables", "channels",
    "settings", "outputs", "steps",
)  # fmt: skip

REDUCERS = ("replace", "append", "merge", "counter", "votes", "feedback", "message")


def compile_yaml(text: str, filename: str) -> dict[str, Any]:
    """The protocol definition the file describes. Raises FlowFileError with file and line."""
    item = read(text, filename)
    fields = item.mapping("the file", WORDS)
    for word in ("workflow", "steps"):
        if word not in fields:
            raise item.error(f"the file has no '{word}'")
    variables = [*_variables(item, "inputs"), *_variables(item, "variables")]
    channels = _channels(item)
    _check_names(item, variables, channels)
    graph = _graph(item, _scope(variables, channels))
    body = {
        **_head(fields),
        "nodes": graph.nodes,
        "edges": graph.edges,
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [_declared(variable) for variable in variables],
        "settings": _settings(fields.get("settings")),
    }
    if channels:
        body["channels"] = channels
    try:
        parse(body)
    except BadRequest as refusal:
        raise FlowFileError(filename, item.line, refusal.message) from None
    return body


def _head(fields: dict[str, Item]) -> dict[str, Any]:
    name = fields["workflow"].text("workflow")
    if not re.fullmatch(WORKFLOW_ID.strip("^$"), name) or len(name) > 128:
        raise fields["workflow"].error(
            f"'{name}' is not an id; use small letters, digits, '-' and '_', a letter first"
        )
    head: dict[str, Any] = {"id": name, "name": name, "version": "1.0.0", "metadata": {}}
    for word in ("name", "description"):
        if word in fields:
            head[word] = fields[word].text(word)
    if "version" in fields:
        head["version"] = fields["version"].raw
    if "tags" in fields:
        tags = fields["tags"].sequence("tags")
        head["metadata"] = {"tags": [tag.text("a tag") for tag in tags]}
    return head


def _variables(item: Item, section: str) -> list[dict[str, Any]]:
    given = item.value.get(section)
    if given is None:
        return []
    return [
        {"name": verbs.name_of(given, name, "a variable"), **_variable(entry, name, section)}
        for name, entry in given.mapping(section).items()
    ]


def _variable(item: Item, name: str, section: str) -> dict[str, Any]:
    """A type word, or a mapping with more to say. An input without default is required."""
    if not isinstance(item.value, dict):
        return {"type": TYPES[item.one_of("a type", TYPES)], "required": section == "inputs"}
    words = ("type", "default", "required", "sensitive", "description")
    fields = item.mapping(f"'{name}'", words)
    type_ = TYPES[fields["type"].one_of("a type", TYPES)] if "type" in fields else "any"
    found: dict[str, Any] = {
        "type": type_,
        "required": section == "inputs" and "default" not in fields,
    }
    if "default" in fields:
        found["defaultValue"] = fields["default"].plain()
        if type_ != "any" and not fits(type_, found["defaultValue"]):
            raise fields["default"].error(f"the default of '{name}' is not a {type_}")
    for word in ("required", "sensitive"):
        if word in fields:
            found[word] = fields[word].flag(word)
    if "description" in fields:
        found["description"] = fields["description"].text("description")
    return found


def _declared(variable: dict[str, Any]) -> dict[str, Any]:
    """The protocol's "object" takes any JSON value."""
    return {**variable, "type": "object"} if variable["type"] == "any" else variable


def _channels(item: Item) -> dict[str, dict[str, Any]]:
    given = item.value.get("channels")
    if given is None:
        return {}
    return {
        verbs.name_of(given, name, "a channel"): _channel(entry, name)
        for name, entry in given.mapping("channels").items()
    }


def _channel(item: Item, name: str) -> dict[str, Any]:
    if not isinstance(item.value, dict):
        return {"reducer": item.one_of("a reducer", REDUCERS)}
    fields = item.mapping(f"channel '{name}'", ("reducer", "ttl", "max"))
    if "reducer" not in fields:
        raise item.error(f"channel '{name}' needs a 'reducer': {', '.join(REDUCERS)}")
    reducer = fields["reducer"].one_of("a reducer", REDUCERS)
    channel: dict[str, Any] = {"reducer": reducer}
    if "ttl" in fields:
        if reducer not in TIMED:
            raise fields["ttl"].error(f"'ttl' goes with {', '.join(sorted(TIMED))}")
        channel["ttlMs"] = verbs.duration(fields["ttl"])
    if "max" in fields:
        channel["maxSize"] = fields["max"].whole("max", 1)
    return channel


def _check_names(
    item: Item, variables: list[dict[str, Any]], channels: dict[str, dict[str, Any]]
) -> None:
    seen: set[str] = set(channels)
    for variable in variables:
        name = variable["name"]
        if name in seen:
            section = item.value["variables" if "variables" in item.value else "inputs"]
            raise section.error_at(name, f"'{name}' is declared twice")
        seen.add(name)


def _scope(variables: list[dict[str, Any]], channels: dict[str, dict[str, Any]]) -> Scope:
    return Scope(
        variables={variable["name"]: variable["type"] for variable in variables},
        channels={name: channel["reducer"] for name, channel in channels.items()},
        steps={},
        sensitive=frozenset(v["name"] for v in variables if v.get("sensitive")),
    )


def _graph(item: Item, scope: Scope) -> Graph:
    steps = item.value["steps"]
    if not steps.sequence("steps"):
        raise steps.error("a workflow needs at least one step")
    graph = Graph(_ids(steps))
    part = Compiler(graph).sequence(steps, Entry(), scope, "steps")
    graph.add(_end(graph, item.value.get("outputs"), scope), part.entry())
    return graph


def _end(graph: Graph, outputs: Item | None, scope: Scope) -> dict[str, Any]:
    """One last node gives the run its outputs; it is reached only when the steps went well."""
    node: dict[str, Any] = {"id": graph.only("end"), "typeId": "core.end", "name": "End"}
    if outputs is None:
        return node
    entries = outputs.mapping("outputs")
    node["inputs"] = {name: port(each, scope) for name, each in entries.items()}
    hidden = {name: True for name, each in entries.items() if reveals(each, scope)}
    return {**node, "outputSensitivity": hidden} if hidden else node


def _ids(item: Item) -> set[str]:
    """Every id the writer gives, so that derived ones keep out of the way."""
    if isinstance(item.value, list):
        return {name for each in item.value for name in _ids(each)}
    if not isinstance(item.value, dict):
        return set()
    own = {item.value["id"].raw} if "id" in item.value else set()
    return own.union(*(_ids(each) for each in item.value.values()))


def _settings(item: Item | None) -> dict[str, int]:
    if item is None:
        return {}
    fields = item.mapping("settings", ("timeout", "retries"))
    found = {}
    if "timeout" in fields:
        found["timeout"] = verbs.duration(fields["timeout"])
    if "retries" in fields:
        found["maxRetries"] = fields["retries"].whole("retries")
    return found
