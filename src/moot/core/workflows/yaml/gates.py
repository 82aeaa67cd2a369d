"""Steps that wait for somebody: an approval, questions, a conversation."""

from collections.abc import Callable
from typing import Any

from moot.core.workflows.yaml import agents
from moot.core.workflows.yaml.source import Item
from moot.core.workflows.yaml.templates import Scope, port
from moot.core.workflows.yaml.verbs import Node, duration

POLICIES = ("single-veto", "majority")
ON_TIMEOUT = ("fail", "complete")


def approve(item: Item, scope: Scope) -> Node:
    """``approve: Publish it?``; who says no ends the step badly, unless ``on_error`` takes it."""
    fields = item.value
    config = _waits(fields)
    if "by" in fields:
        config["approversList"] = _names(fields["by"], "by")
    if "need" in fields:
        config["requiredApprovals"] = fields["need"].whole("need", 1)
    if "policy" in fields:
        config["rejectionPolicy"] = fields["policy"].one_of("a policy", POLICIES)
    fields["approve"].text("approve")
    inputs = {"title": port(fields["approve"], scope)}
    if "show" in fields:
        inputs["artifact"] = port(fields["show"], scope)
    return {"typeId": "core.approvalGate", "config": config, "inputs": inputs}


def ask(item: Item, scope: Scope) -> Node:
    """One question to a person, answered as ``{step.answer}``, or several by name. With
    ``prompt`` it is an agent that is asked."""
    given = item.value["ask"]
    if "prompt" in item.value:
        return agents.work(item, scope)
    for word in ("output", "tools"):
        if word in item.value:
            raise item.error_at(word, f"'{word}' goes with 'prompt', to ask an agent")
    if isinstance(given.value, dict):
        entries = given.mapping("'ask'")
        if not entries:
            raise given.error("'ask' needs at least one question")
        questions = [
            {"id": name, "question": each.text(f"ask.{name}")} for name, each in entries.items()
        ]
    else:
        questions = [{"id": "answer", "question": given.text("ask")}]
    config = {**_waits(item.value), "questions": questions}
    return {"typeId": "core.clarificationGate", "config": config}


def discuss(item: Item, scope: Scope) -> Node:
    """A conversation; with ``with`` among these agents only. ``{step.outcome}`` is what came of
    it."""
    fields = item.value
    config = _waits(fields)
    if "with" in fields:
        config["participants"] = [
            {"agentId": name if ":" in name else f"host:{name}"}
            for name in _names(fields["with"], "with")
        ]
    if "turns" in fields:
        config |= {
            "lifecycle": "open-exchange-close",
            "turnCount": fields["turns"].whole("turns", 1),
        }
    fields["discuss"].text("discuss")
    inputs = {"question": port(fields["discuss"], scope)}
    return {"typeId": "core.conversationGate", "config": config, "inputs": inputs}


def _waits(fields: dict[str, Item]) -> dict[str, Any]:
    """For how long, and what then."""
    config: dict[str, Any] = {}
    if "timeout" in fields:
        config["timeoutMs"] = duration(fields["timeout"])
    if "on_timeout" in fields:
        config["onTimeout"] = fields["on_timeout"].one_of("a way to go on", ON_TIMEOUT)
    return config


def _names(item: Item, word: str) -> list[str]:
    names = [each.text(word) for each in item.sequence(word)]
    if not names:
        raise item.error(f"'{word}' needs at least one name")
    return names


BUILDERS: dict[str, Callable[[Item, Scope], Node]] = {
    "approve": approve,
    "ask": ask,
    "discuss": discuss,
}
