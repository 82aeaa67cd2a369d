"""Steps of a workflow file that agents carry out."""

from typing import Any

import pytest

from moot.core.workflows.definition import parse_definition
from moot.core.workflows.flow import compile_flow
from moot.core.workflows.yaml.compile import compile_yaml
from moot.core.workflows.yaml.source import FlowFileError
from moot.engine.nodes.registry import built_in_types

HEAD = "workflow: w\ninputs: {topic: str, found: {type: list, default: []}}\nsteps:\n"


def compiled(steps: str) -> dict[str, Any]:
    body = compile_yaml(HEAD + steps, "w.yaml")
    compile_flow(parse_definition(body), built_in_types(), "x")
    return body


def refusal(steps: str) -> str:
    with pytest.raises(FlowFileError) as caught:
        compile_yaml(HEAD + steps, "w.yaml")
    return str(caught.value)


def test_ask_with_a_prompt_asks_an_agent() -> None:
    [first, _] = compiled('  - {ask: ada, prompt: "Sum up {found} on {topic}", tools: [look]}')[
        "nodes"
    ]
    assert first["typeId"] == "moot.agent" and first["agent"] == {"agentId": "host:ada"}
    assert set(first["inputs"]) == {"found", "topic"}
    assert first["config"] == {"prompt": "Sum up {found} on {topic}", "tools": ["look"]}


def test_ask_without_a_prompt_asks_a_person() -> None:
    [first, _] = compiled("  - ask: ada")["nodes"]
    assert first["typeId"] == "core.clarificationGate"


def test_a_form_is_named_by_its_fields() -> None:
    [first, _] = compiled("  - {ask: ada, prompt: Well?, output: {title: str, lines: list}}")[
        "nodes"
    ]
    form = first["config"]["output"]
    assert form["properties"] == {"title": {"type": "string"}, "lines": {"type": "array"}}
    assert form["required"] == ["title", "lines"] and form["additionalProperties"] is False


def test_a_supervisor_and_its_dispatch_lead_to_each_other() -> None:
    body = compiled(
        "  - id: lead\n"
        "    supervisor: mo\n"
        "    workers: [finder, checker]\n"
        "    output: {finder.text: sources}\n"
        "    on_failure: escalate\n"
        "    together: true\n"
        "    max: 4\n"
        '  - set: {all: "{sources}"}\n'
    )
    lead, hands = body["nodes"][:2]
    assert lead["config"]["agent"] == "host:mo" and lead["config"]["iterationCap"] == 4
    assert lead["config"]["workers"] == ["finder", "checker"] and lead["config"]["rules"]
    assert hands["config"]["perWorkerOutputMappings"] == {"finder": {"sources": "text"}}
    assert hands["config"]["inputMapping"]["topic"] == "topic"
    ways = {(each["sourceNodeId"], each["targetNodeId"]) for each in body["edges"]}
    assert {("lead", hands["id"]), (hands["id"], "lead"), (hands["id"], "set-1")} <= ways


@pytest.mark.parametrize(("steps", "says"), [
    ("  - {ask: Ada Lovelace, prompt: Well?}", "w.yaml:4: 'Ada Lovelace' is not the name"),
    ("  - {ask: ada, prompt: 'On {topc}'}", "did you mean 'topic'?"),
    ("  - {ask: ada, output: {a: str}}", "'output' goes with 'prompt'"),
    ("  - {ask: ada, prompt: x, on_timeout: fail}", "a question to a person"),
    ("  - {ask: ada, prompt: x, output: {a: strr}}", "did you mean 'str'?"),
    ("  - {supervisor: mo}", "needs 'workers'"),
    ("  - {supervisor: mo, workers: []}", "at least one name"),
    ("  - {supervisor: mo, workers: [a], output: {b.text: x}}", "WORKER.VARIABLE of one of a"),
    ("  - {supervisor: mo, workers: [a], on_failure: shrug}", "not a way to go on"),
])  # fmt: skip
def test_mistakes_name_their_line_and_the_nearest_word(steps: str, says: str) -> None:
    assert says in refusal(steps)
