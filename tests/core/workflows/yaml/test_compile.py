"""The friendly YAML form: what compiles to what, and how it behaves when it runs."""

from pathlib import Path

import pytest

from moot.core.state.status import Status
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.yaml import compile_yaml
from tests.support.core.flow_player import compiled, did, flow, nodes, played, value
from tests.support.servers import ROOT

EXAMPLES = sorted((ROOT / "examples" / "flows").glob("*.yaml"))


def test_the_smallest_file_compiles() -> None:
    body = compile_yaml(flow("  - delay: 1s\n"), "flow.yaml")
    assert (body["id"], body["name"], body["version"]) == ("sample", "sample", "1.0.0")
    assert [node["id"] for node in body["nodes"]] == ["delay-1", "end"]
    assert body["triggers"] == [{"id": "manual", "type": "manual"}]


def test_the_head_is_carried_over() -> None:
    head = "name: Sample flow\ndescription: For a test.\nversion: 2.10\ntags: [a, b]\n"
    head += "settings: {timeout: 60s, retries: 2}"
    body = compile_yaml(flow("  - delay: 1\n", head), "flow.yaml")
    assert body["name"] == "Sample flow"
    assert body["version"] == "2.10"
    assert body["metadata"] == {"tags": ["a", "b"]}
    assert body["settings"] == {"timeout": 60_000, "maxRetries": 2}


@pytest.mark.parametrize(
    ("word", "type_"),
    [
        ("str", "string"),
        ("string", "string"),
        ("int", "number"),
        ("float", "number"),
        ("number", "number"),
        ("bool", "boolean"),
        ("boolean", "boolean"),
        ("dict", "object"),
        ("object", "object"),
        ("list", "array"),
        ("array", "array"),
        ("any", "object"),
    ],
)
def test_each_word_for_a_type_is_understood(word: str, type_: str) -> None:
    body = compile_yaml(flow("  - delay: 1\n", f"inputs: {{a: {word}}}"), "flow.yaml")
    assert body["variables"] == [{"name": "a", "type": type_, "required": True}]


def test_an_input_is_required_unless_it_has_a_default_and_a_variable_never_is() -> None:
    head = """
inputs:
  a: str
  b: {type: number, default: 10, sensitive: true, description: The b.}
  c: {type: any, required: false}
variables: {d: list, e: {type: bool, default: false}}
"""
    body = compile_yaml(flow("  - delay: 1\n", head), "flow.yaml")
    required = {variable["name"]: variable["required"] for variable in body["variables"]}
    assert required == {"a": True, "b": False, "c": False, "d": False, "e": False}
    assert body["variables"][1] == {
        "name": "b",
        "type": "number",
        "required": False,
        "defaultValue": 10,
        "sensitive": True,
        "description": "The b.",
    }


def test_channels_have_a_reducer_and_bounds() -> None:
    head = "channels:\n  log: append\n  votes: {reducer: votes, ttl: 10s, max: 100}"
    body = compile_yaml(flow("  - delay: 1\n", head), "flow.yaml")
    assert body["channels"] == {
        "log": {"reducer": "append"},
        "votes": {"reducer": "votes", "ttlMs": 10_000, "maxSize": 100},
    }


def test_a_plain_no_is_a_word_not_a_boolean() -> None:
    assert value(flow("  - set: {x: no}\n")) == "no"
    assert value(flow("  - set: {x: false}\n")) is False


# Steps


def test_ids_are_derived_and_keep_out_of_the_way_of_given_ones() -> None:
    steps = "  - set: {a: 1}\n  - {id: set-2, delay: 1}\n  - set: {b: 1}\n  - {id: end, delay: 1}\n"
    assert list(nodes(flow(steps))) == ["set-1", "set-2", "set-3", "end", "end-1"]


def test_steps_run_in_order() -> None:
    run = played(flow("  - set: {a: 1}\n  - delay: 5m\n  - set: {b: 2}\n"))
    assert did(run) == ["set-1", "delay-1", "set-2", "end"]


def test_several_variables_are_set_in_one_step() -> None:
    run = played(flow('  - set: {b: 1, c: "{a}", d: "<{a}>"}\n', "inputs: {a: any}"), a=5)
    assert run.variables == {"a": 5, "b": 1, "c": 5, "d": "<5>"}


@pytest.mark.parametrize(
    ("written", "ms"),
    [("250ms", 250), ("2s", 2000), ("1.5s", 1500), ("5m", 300_000), ("1h", 3_600_000), ("7", 7)],
)
def test_a_duration_is_read(written: str, ms: int) -> None:
    assert nodes(flow(f"  - delay: {written}\n"))["delay-1"]["config"] == {"ms": ms}


def test_a_delay_can_be_a_variable() -> None:
    run = played(flow('  - delay: "{wait}"\n', "inputs: {wait: number}"), wait=700)
    assert run.status is Status.COMPLETED
    assert run.ended_at == 700


def test_a_step_may_have_a_name_retries_and_a_timeout() -> None:
    found = nodes(flow("  - {id: a, name: The work, node: acme.work, retries: 2, timeout: 3s}\n"))
    assert found["a"]["name"] == "The work"
    assert found["a"]["settings"] == {"maxRetries": 2, "timeoutMs": 3000}


def test_a_node_has_config_and_inputs() -> None:
    steps = """
  - node: acme.work
    config: {literal: "{not a placeholder}"}
    inputs: {text: "{a}", times: 2}
"""
    found = nodes(flow(steps, "inputs: {a: str}"))["node-1"]
    assert found["config"] == {"literal": "{not a placeholder}"}
    assert found["inputs"] == {
        "text": {"type": "variable", "variableName": "a"},
        "times": {"type": "static", "value": 2},
    }


def test_a_variable_set_by_a_protocol_node_is_known_afterwards() -> None:
    steps = """
  - node: core.setVariable
    config: {name: n, expression: "1 + 1"}
  - node: core.loop
    config: {times: 3, set: {m: "index"}}
  - set: {x: "{n}{m}"}
"""
    assert value(flow(steps)) == "22"


def test_a_child_gets_variables_and_gives_some_back() -> None:
    steps = """
  - run: other-flow
    with: {childVar: a, other: "{a}"}
    into: {b: theirs}
    on_failure: absorb
  - set: {x: "{b}"}
"""
    assert nodes(flow(steps, "inputs: {a: str}"))["run-1"]["config"] == {
        "workflowId": "other-flow",
        "inputMapping": {"childVar": "a", "other": "a"},
        "outputMapping": {"b": "theirs"},
        "onChildFailure": "absorb",
    }


@pytest.mark.parametrize("items", ["things", '"{things}"'])
def test_for_each_goes_through_a_variable(items: str) -> None:
    steps = f"  - {{for_each: {items}, run: other-flow, as: thing, index: n, max: 7}}\n"
    found = nodes(flow(steps, "inputs: {things: list}"))["for-each-1"]
    assert found["typeId"] == "moot.forEach"
    assert found["inputs"] == {"items": {"type": "variable", "variableName": "things"}}
    assert found["config"] == {
        "workflowId": "other-flow",
        "itemVariable": "thing",
        "indexVariable": "n",
        "maxIterations": 7,
    }


def test_for_each_goes_through_a_list_that_stands_there() -> None:
    steps = '  - {for_each: [1, "{a}"], run: other-flow}\n'
    found = nodes(flow(steps, "inputs: {a: str}"))["for-each-1"]["inputs"]["items"]
    assert found == {"type": "expression", "expression": "[1, variables.a]"}


@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        ("{code: too_big, message: No.}", "too_big", "No."),
        ('"{a} is too big"', "flow_failed", "9 is too big"),
        ("{code: too_big}", "too_big", "The workflow failed with too_big."),
    ],
)
def test_fail_ends_the_run_with_its_words(written: str, code: str, message: str) -> None:
    run = played(flow(f"  - fail: {written}\n  - delay: 1\n", "inputs: {a: int}"), a=9)
    assert run.status is Status.FAILED
    assert run.error is not None
    assert (run.error.code, run.error.message) == (code, message)


def test_outputs_are_the_outputs_of_the_run() -> None:
    head = 'inputs: {amount: number}\noutputs: {total: "{amount}", text: "{amount} in all"}'
    assert played(flow("  - delay: 1\n", head), amount=4).outputs == {
        "total": 4,
        "text": "4 in all",
    }


# The rest


def test_what_is_sensitive_is_masked_where_it_comes_out() -> None:
    head = 'inputs: {key: {type: str, sensitive: true}}\noutputs: {a: "{key}", b: 1}'
    found = nodes(flow('  - set: {copy: "{key}"}\n  - set: {plain: 1}\n', head))
    assert found["set-1"]["outputSensitivity"] == {"value": True}
    assert "outputSensitivity" not in found["set-2"]
    assert found["end"]["outputSensitivity"] == {"a": True}


def test_aliases_stand_for_what_they_name() -> None:
    steps = "  - &wait {delay: 5}\n  - *wait\n"
    assert list(nodes(flow(steps))) == ["delay-1", "delay-2", "end"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_compile_and_say_what_they_are(path: Path) -> None:
    body = compile_yaml(path.read_text(), path.name)
    assert body["description"]
    assert parse_definition(body).id == path.stem
    compiled(path.read_text(), path.name)


def test_there_are_five_examples() -> None:
    names = ["hello", "order-intake", "release", "research-brief", "welcome"]
    assert [path.stem for path in EXAMPLES] == names
