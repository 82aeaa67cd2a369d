"""Compile the steps of agents: one piece of work, and a supervisor."""

import re

from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.yaml.source import YamlItem
from moot.core.workflows.yaml.templates import TYPES, Scope, placeholder_paths, port_value

_AGENT = re.compile(r"(host:)?[a-z0-9][a-z0-9._-]{0,63}")
ON_FAILURE = ("escalate", "decide")
#: the supervisor's rule for ``on_failure: escalate``
ESCALATION = {
    "when": "workers.exists(w, w.status == 'failed')",
    "decision": {"kind": "escalate", "prompt": "A worker failed. Go on without its result?"},
}
#: the protocol's type -> its JSON Schema
SCHEMAS: dict[str, dict[str, object]] = {
    **{word: {"type": word} for word in ("string", "number", "boolean", "object", "array")},
    "any": {},
}


def agent_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Compile ``ask: ada`` with a ``prompt``.

    Placeholders reach the agent as data. The answer is ``{step.text}``; with ``output`` it has
    fields, ``{step.value.field}``.
    """
    fields = item.value
    prompt = fields["prompt"]
    prompt.text("prompt")
    if "on_timeout" in fields:
        raise item.error_at("on_timeout", "'on_timeout' goes with a question to a person")
    pin = {"agentId": agent_handle(fields["ask"])}
    config: dict[str, object] = {"prompt": prompt.value}
    if "output" in fields:
        config["output"] = output_schema(fields["output"])
    if "tools" in fields:
        config["tools"] = [each.text("a tool") for each in fields["tools"].sequence("tools")]
    inputs = {}
    for path in placeholder_paths(prompt):
        text = f"{{{path}}}"
        placeholder = YamlItem(value=text, file=prompt.file, line=prompt.line, raw=text)
        inputs[path] = port_value(placeholder, scope)
    return {"typeId": "moot.agent", "config": config, "inputs": inputs, "agent": pin}


def agent_handle(item: YamlItem) -> str:
    name = item.text("the name of an agent")
    if not _AGENT.fullmatch(name):
        raise item.error(f"'{name}' is not the name of an agent; write it like 'ada'")
    return name if name.startswith("host:") else f"host:{name}"


def output_schema(item: YamlItem) -> dict[str, object]:
    """Read names and types of fields, or a JSON Schema with ``properties`` or ``$ref``."""
    fields = item.mapping("'output'")
    if not fields:
        raise item.error("'output' needs at least one field")
    if "properties" in fields or "$ref" in fields:
        return dict(item.plain())
    properties = {
        name: SCHEMAS[TYPES[each.one_of("a type", TYPES)]] for name, each in fields.items()
    }
    required = list(properties)
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False}


def supervisor_nodes(item: YamlItem, scope: Scope) -> tuple[dict[str, object], dict[str, object]]:
    """Return the supervisor's node and its dispatch node.

    Workers see every variable. ``output`` maps their results: ``{finder.text: sources}``.
    """
    fields = item.value
    workers = _workers(item)
    mappings = _output_mappings(fields.get("output"), workers)
    leader = agent_handle(fields["supervisor"])
    config: dict[str, object] = {"agent": leader, "workers": workers}
    if "prompt" in fields:
        config["prompt"] = fields["prompt"].text("prompt")
    if "max" in fields:
        config["iterationCap"] = fields["max"].whole("max", 1)
    if "on_failure" in fields:
        word = fields["on_failure"].one_of("a way to go on after a failure", ON_FAILURE)
        config["rules"] = [ESCALATION] if word == "escalate" else []
    for mapping in mappings.values():
        scope.variables.update(dict.fromkeys(mapping, "any"))
    visible = {name: name for name in scope.variables if name not in scope.sensitive}
    dispatch_config: dict[str, object] = {
        "inputMapping": visible,
        "perWorkerOutputMappings": mappings,
    }
    if "together" in fields and fields["together"].flag("together"):
        dispatch_config["fanOutPolicy"] = "parallel"
    supervisor: dict[str, object] = {"typeId": SUPERVISOR, "config": config}
    supervisor["agent"] = {"agentId": leader}
    return supervisor, {"typeId": DISPATCH, "config": dispatch_config}


def _workers(item: YamlItem) -> list[str]:
    if "workers" not in item.value:
        raise item.error("a 'supervisor' step needs 'workers'")
    entries = item.value["workers"]
    names = [each.text("a worker") for each in entries.sequence("workers")]
    if not names:
        raise entries.error("'workers' needs at least one name")
    return list(dict.fromkeys(names))


def _output_mappings(item: YamlItem | None, workers: list[str]) -> dict[str, dict[str, str]]:
    """Return worker -> {our variable: its variable}."""
    mappings: dict[str, dict[str, str]] = {}
    for path, mine in (item.mapping("'output'") if item is not None else {}).items():
        assert item is not None
        worker, dot, theirs = path.rpartition(".")
        if not dot or worker not in workers:
            message = f"'{path}' must be WORKER.VARIABLE of one of {', '.join(workers)}"
            raise item.error_at(path, message)
        mappings.setdefault(worker, {})[mine.text("the name of a variable")] = theirs
    return mappings
