"""Compile the steps that wait for an answer: approve, ask, discuss."""

from collections.abc import Callable

from moot.core.workflows.yaml import agents
from moot.core.workflows.yaml.source import YamlItem
from moot.core.workflows.yaml.templates import Scope, port_value
from moot.core.workflows.yaml.verbs import parse_duration

POLICIES = ("single-veto", "majority")
ON_TIMEOUT = ("fail", "complete")


def approval_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Compile ``approve: Publish it?``. A rejection fails the step, unless it has ``on_error``."""
    fields = item.value
    config = _wait_config(fields)
    if "by" in fields:
        config["approversList"] = _names(fields["by"], "by")
    if "need" in fields:
        config["requiredApprovals"] = fields["need"].whole("need", 1)
    if "policy" in fields:
        config["rejectionPolicy"] = fields["policy"].one_of("a policy", POLICIES)
    fields["approve"].text("approve")
    inputs = {"title": port_value(fields["approve"], scope)}
    if "show" in fields:
        inputs["artifact"] = port_value(fields["show"], scope)
    return {"typeId": "core.approvalGate", "config": config, "inputs": inputs}


def question_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Compile one question, answered as ``{step.answer}``, or several by name.

    With ``prompt`` the step asks an agent instead of a person.
    """
    question = item.value["ask"]
    if "prompt" in item.value:
        return agents.agent_node(item, scope)
    for word in ("output", "tools"):
        if word in item.value:
            raise item.error_at(word, f"'{word}' goes with 'prompt', to ask an agent")
    if isinstance(question.value, dict):
        entries = question.mapping("'ask'").items()
        questions = [{"id": name, "question": each.text(f"ask.{name}")} for name, each in entries]
        if not questions:
            raise question.error("'ask' needs at least one question")
    else:
        questions = [{"id": "answer", "question": question.text("ask")}]
    config = {**_wait_config(item.value), "questions": questions}
    return {"typeId": "core.clarificationGate", "config": config}


def conversation_node(item: YamlItem, scope: Scope) -> dict[str, object]:
    """Compile a conversation, whose result is ``{step.outcome}``.

    ``with`` limits it to these agents.
    """
    fields = item.value
    config = _wait_config(fields)
    if "with" in fields:
        config["participants"] = [
            {"agentId": name if ":" in name else f"host:{name}"}
            for name in _names(fields["with"], "with")
        ]
    if "turns" in fields:
        config["lifecycle"] = "open-exchange-close"
        config["turnCount"] = fields["turns"].whole("turns", 1)
    fields["discuss"].text("discuss")
    inputs = {"question": port_value(fields["discuss"], scope)}
    return {"typeId": "core.conversationGate", "config": config, "inputs": inputs}


def _wait_config(fields: dict[str, YamlItem]) -> dict[str, object]:
    """Return the time limit and what happens when it passes."""
    config: dict[str, object] = {}
    if "timeout" in fields:
        config["timeoutMs"] = parse_duration(fields["timeout"])
    if "on_timeout" in fields:
        config["onTimeout"] = fields["on_timeout"].one_of("a way to go on", ON_TIMEOUT)
    return config


def _names(item: YamlItem, word: str) -> list[str]:
    names = [each.text(word) for each in item.sequence(word)]
    if not names:
        raise item.error(f"'{word}' needs at least one name")
    return names


BUILDERS: dict[str, Callable[[YamlItem, Scope], dict[str, object]]] = {
    "approve": approval_node,
    "ask": question_node,
    "discuss": conversation_node,
}
