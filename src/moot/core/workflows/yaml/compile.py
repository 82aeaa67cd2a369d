"""Compile a whole YAML file: read its head, walk its steps, check the result."""

import re
from collections.abc import Mapping, Sequence

from moot.core.errors import BadRequest
from moot.core.workflows.channels import TIMED
from moot.core.workflows.definition import is_of_type, parse_definition
from moot.core.workflows.schema import WORKFLOW_ID
from moot.core.workflows.yaml import verbs
from moot.core.workflows.yaml.graph import GraphBuilder, StepEntry
from moot.core.workflows.yaml.source import FlowFileError, YamlItem, read_yaml
from moot.core.workflows.yaml.steps import StepCompiler
from moot.core.workflows.yaml.templates import TYPES, Scope, is_sensitive, port_value

WORDS = (
    "workflow", "name", "description", "version", "tags", "inputs", "variables", "channels",
    "settings", "outputs", "steps",
)  # fmt: skip

REDUCERS = ("replace", "append", "merge", "counter", "votes", "feedback", "message")


def compile_yaml(text: str, filename: str) -> dict[str, object]:
    """Return the definition that the file describes. Raise FlowFileError with file and line."""
    item = read_yaml(text, filename)
    fields = item.mapping("the file", WORDS)
    for word in ("workflow", "steps"):
        if word not in fields:
            raise item.error(f"the file has no '{word}'")
    variables = [*_variables(item, "inputs"), *_variables(item, "variables")]
    channels = _channels(item)
    graph = _graph(item, _scope(item, variables, channels))
    body = {
        **_head(fields),
        "nodes": graph.nodes,
        "edges": graph.edges,
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [_protocol_variable(variable) for variable in variables],
        "settings": _settings(fields.get("settings")),
    }
    if channels:
        body["channels"] = channels
    try:
        parse_definition(body)
    except BadRequest as refusal:
        raise FlowFileError(filename, item.line, refusal.message) from None
    return body


def _head(fields: dict[str, YamlItem]) -> dict[str, object]:
    name = fields["workflow"].text("workflow")
    if not re.fullmatch(WORKFLOW_ID.strip("^$"), name) or len(name) > 128:
        raise fields["workflow"].error(
            f"'{name}' is not an id; use small letters, digits, '-' and '_', a letter first"
        )
    head: dict[str, object] = {"id": name, "name": name, "version": "1.0.0", "metadata": {}}
    for word in ("name", "description"):
        if word in fields:
            head[word] = fields[word].text(word)
    if "version" in fields:
        head["version"] = fields["version"].raw
    if "tags" in fields:
        tags = fields["tags"].sequence("tags")
        head["metadata"] = {"tags": [tag.text("a tag") for tag in tags]}
    return head


def _variables(item: YamlItem, section: str) -> list[dict[str, object]]:
    variables = _declarations(item, section, "a variable")
    return [{"name": name, **_variable(entry, name, section)} for name, entry in variables]


def _declarations(item: YamlItem, section: str, place: str) -> list[tuple[str, YamlItem]]:
    """Return the names and entries of a section that may be missing."""
    declarations = item.value.get(section)
    if declarations is None:
        return []
    entries = declarations.mapping(section).items()
    return [(verbs.check_name(declarations, name, place), entry) for name, entry in entries]


def _variable(item: YamlItem, name: str, section: str) -> dict[str, object]:
    """Read a type word or a mapping. An input without default is required."""
    if not isinstance(item.value, dict):
        return {"type": TYPES[item.one_of("a type", TYPES)], "required": section == "inputs"}
    words = ("type", "default", "required", "sensitive", "description")
    fields = item.mapping(f"'{name}'", words)
    type_ = TYPES[fields["type"].one_of("a type", TYPES)] if "type" in fields else "any"
    required = section == "inputs" and "default" not in fields
    variable: dict[str, object] = {"type": type_, "required": required}
    if "default" in fields:
        variable["defaultValue"] = default = fields["default"].plain()
        if type_ != "any" and not is_of_type(type_, default):
            raise fields["default"].error(f"the default of '{name}' is not a {type_}")
    for word in ("required", "sensitive"):
        if word in fields:
            variable[word] = fields[word].flag(word)
    if "description" in fields:
        variable["description"] = fields["description"].text("description")
    return variable


def _protocol_variable(variable: Mapping[str, object]) -> Mapping[str, object]:
    """Write "any" as the protocol's "object", which takes every JSON value."""
    return {**variable, "type": "object"} if variable["type"] == "any" else variable


def _channels(item: YamlItem) -> dict[str, dict[str, object]]:
    channels = _declarations(item, "channels", "a channel")
    return {name: _channel(entry, name) for name, entry in channels}


def _channel(item: YamlItem, name: str) -> dict[str, object]:
    if not isinstance(item.value, dict):
        return {"reducer": item.one_of("a reducer", REDUCERS)}
    fields = item.mapping(f"channel '{name}'", ("reducer", "ttl", "max"))
    if "reducer" not in fields:
        raise item.error(f"channel '{name}' needs a 'reducer': {', '.join(REDUCERS)}")
    reducer = fields["reducer"].one_of("a reducer", REDUCERS)
    channel: dict[str, object] = {"reducer": reducer}
    if "ttl" in fields:
        if reducer not in TIMED:
            raise fields["ttl"].error(f"'ttl' goes with {', '.join(sorted(TIMED))}")
        channel["ttlMs"] = verbs.parse_duration(fields["ttl"])
    if "max" in fields:
        channel["maxSize"] = fields["max"].whole("max", 1)
    return channel


def _scope(
    item: YamlItem,
    variables: Sequence[Mapping[str, object]],
    channels: Mapping[str, Mapping[str, object]],
) -> Scope:
    """Raise FlowFileError when a name is declared twice."""
    types: dict[str, str] = {}
    for variable in variables:
        name = str(variable["name"])
        if name in types or name in channels:
            section = item.value["variables" if "variables" in item.value else "inputs"]
            raise section.error_at(name, f"'{name}' is declared twice")
        types[name] = str(variable["type"])
    return Scope(
        variables=types,
        channels={name: str(channel["reducer"]) for name, channel in channels.items()},
        steps={},
        sensitive=frozenset(str(v["name"]) for v in variables if v.get("sensitive")),
    )


def _graph(item: YamlItem, scope: Scope) -> GraphBuilder:
    steps = item.value["steps"]
    if not steps.sequence("steps"):
        raise steps.error("a workflow needs at least one step")
    graph = GraphBuilder(_explicit_ids(steps))
    part = StepCompiler(graph).sequence(steps, StepEntry(), scope, "steps")
    graph.add(_end_node(graph, item.value.get("outputs"), scope), part.entry())
    return graph


def _end_node(graph: GraphBuilder, outputs: YamlItem | None, scope: Scope) -> dict[str, object]:
    """Return the last node, which collects the outputs. It runs only when the steps succeeded."""
    node: dict[str, object] = {"id": graph.reserve_id("end"), "typeId": "core.end", "name": "End"}
    if outputs is None:
        return node
    entries = outputs.mapping("outputs")
    node["inputs"] = {name: port_value(each, scope) for name, each in entries.items()}
    hidden = {name: True for name, each in entries.items() if is_sensitive(each, scope)}
    return {**node, "outputSensitivity": hidden} if hidden else node


def _explicit_ids(item: YamlItem) -> set[str]:
    """Return every id in the file, so that generated ids avoid them."""
    if isinstance(item.value, list):
        return {name for each in item.value for name in _explicit_ids(each)}
    if not isinstance(item.value, dict):
        return set()
    own = {item.value["id"].raw} if "id" in item.value else set()
    return own.union(*(_explicit_ids(each) for each in item.value.values()))


def _settings(item: YamlItem | None) -> dict[str, int]:
    if item is None:
        return {}
    fields = item.mapping("settings", ("timeout", "retries"))
    settings = {}
    if "timeout" in fields:
        settings["timeout"] = verbs.parse_duration(fields["timeout"])
    if "retries" in fields:
        settings["maxRetries"] = fields["retries"].whole("retries")
    return settings
