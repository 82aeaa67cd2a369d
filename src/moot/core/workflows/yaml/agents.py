"""Steps that agents carry out: a piece of work, and the lead of others."""

import re
from typing import Any

from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.yaml.source import Item
from moot.core.workflows.yaml.templates import TYPES, Scope, mentions, port

Node = dict[str, Any]

_AGENT = re.compile(r"(host:)?[a-z0-9][a-z0-9._-]{0,63}")
ON_FAILURE = ("escalate", "decide")
#: the protocol's words for types -> JSON Schema's
SCHEMAS: dict[str, dict[str, Any]] = {
    **{word: {"type": word} for word in ("string", "number", "boolean", "object", "array")},
    "any": {},
}


def work(item: Item, scope: Scope) -> Node:
    """``ask: ada`` with a ``prompt``; what it names is shown to the agent as data. The answer is
    ``{step.text}``; with ``output`` it is a form, ``{step.value.field}``."""
    fields = item.value
    prompt = fields["prompt"]
    prompt.text("prompt")
    if "on_timeout" in fields:
        raise item.error_at("on_timeout", "'on_timeout' goes with a question to a person")
    pin = {"agentId": agent_of(fields["ask"])}
    config: dict[str, Any] = {"prompt": prompt.value}
    if "output" in fields:
        config["output"] = form(fields["output"])
    if "tools" in fields:
        config["tools"] = [each.text("a tool") for each in fields["tools"].sequence("tools")]
    names = dict.fromkeys(mentions(prompt))
    inputs = {name: port(_placeholder(prompt, name), scope) for name in names}
    return {"typeId": "moot.agent", "config": config, "inputs": inputs, "agent": pin}


def _placeholder(item: Item, path: str) -> Item:
    return Item(value=f"{{{path}}}", file=item.file, line=item.line, raw=f"{{{path}}}")


def agent_of(item: Item) -> str:
    name = item.text("the name of an agent")
    if not _AGENT.fullmatch(name):
        raise item.error(f"'{name}' is not the name of an agent; write it like 'ada'")
    return name if name.startswith("host:") else f"host:{name}"


def form(item: Item) -> dict[str, Any]:
    """Names and types of what is asked for; or a JSON Schema, which has ``type`` and more."""
    fields = item.mapping("'output'")
    if not fields:
        raise item.error("'output' needs at least one field")
    if "properties" in fields or "$ref" in fields:
        return dict(item.plain())
    properties = {
        name: SCHEMAS[TYPES[each.one_of("a type", TYPES)]] for name, each in fields.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def supervisor(item: Item, scope: Scope) -> tuple[Node, Node]:
    """Who decides, and what carries it out. Workers see every variable; ``output`` says what
    comes back of whom: ``{finder.text: sources}``."""
    fields = item.value
    workers = _workers(item)
    back = _returned(fields.get("output"), workers)
    leader = agent_of(fields["supervisor"])
    config: dict[str, Any] = {"agent": leader, "workers": workers}
    if "prompt" in fields:
        config["prompt"] = fields["prompt"].text("prompt")
    if "max" in fields:
        config["iterationCap"] = fields["max"].whole("max", 1)
    if "on_failure" in fields:
        word = fields["on_failure"].one_of("a way to go on after a failure", ON_FAILURE)
        config["rules"] = [_escalates()] if word == "escalate" else []
    for mapping in back.values():
        scope.variables.update(dict.fromkeys(mapping, "any"))
    shown = {name: name for name in scope.variables if name not in scope.sensitive}
    carries: dict[str, Any] = {"inputMapping": shown, "perWorkerOutputMappings": back}
    if "together" in fields and fields["together"].flag("together"):
        carries["fanOutPolicy"] = "parallel"
    decides = {"typeId": SUPERVISOR, "config": config, "agent": {"agentId": leader}}
    return decides, {"typeId": DISPATCH, "config": carries}


def _workers(item: Item) -> list[str]:
    if "workers" not in item.value:
        raise item.error("a 'supervisor' step needs 'workers'")
    given = item.value["workers"]
    names = [each.text("a worker") for each in given.sequence("workers")]
    if not names:
        raise given.error("'workers' needs at least one name")
    return list(dict.fromkeys(names))


def _returned(item: Item | None, workers: list[str]) -> dict[str, dict[str, str]]:
    """worker -> {our variable: its variable}."""
    found: dict[str, dict[str, str]] = {}
    for path, mine in (item.mapping("'output'") if item is not None else {}).items():
        assert item is not None
        worker, dot, theirs = path.rpartition(".")
        if not dot or worker not in workers:
            say = f"'{path}' must be WORKER.VARIABLE of one of {', '.join(workers)}"
            raise item.error_at(path, say)
        found.setdefault(worker, {})[mine.text("the name of a variable")] = theirs
    return found


def _escalates() -> dict[str, Any]:
    return {
        "when": "workers.exists(w, w.status == 'failed')",
        "decision": {"kind": "escalate", "prompt": "A worker failed. Go on without its result?"},
    }
