"""core.subWorkflow and moot.forEach: which children, with what."""

from typing import Any

import pytest

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import ChildSpec
from tests.support.engine.node_calls import child, problem


def test_a_sub_workflow_has_one_child() -> None:
    assert child("core.subWorkflow", 0, {"workflowId": "kid"}) == ChildSpec("kid", {})
    assert child("core.subWorkflow", 1, {"workflowId": "kid"}) is None


def test_set_variables_flow_in_and_unset_ones_stay_unset() -> None:
    config = {"workflowId": "kid", "inputMapping": {"a": "mine", "b": "missing", "c": "null"}}
    found = child("core.subWorkflow", 0, config, variables={"mine": 1, "null": None})
    assert found is not None
    assert found.seed == {"a": 1, "c": None}
    assert found.unset == ("b",)


def test_the_rest_of_the_config_is_handed_on() -> None:
    config = {
        "workflowId": "kid",
        "outputMapping": {"mine": "theirs"},
        "onChildFailure": "absorb",
        "propagateCancellation": False,
    }
    found = child("core.subWorkflow", 0, config)
    assert found == ChildSpec("kid", {}, (), {"mine": "theirs"}, True, True)


@pytest.mark.parametrize("type_id", ["core.subWorkflow", "moot.forEach"])
@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({}, "workflowId"),
        ({"workflowId": 3}, "workflowId"),
        ({"workflowId": "kid", "waitForCompletion": False}, "waitForCompletion"),
        ({"workflowId": "kid", "onChildFailure": "ignore"}, "onChildFailure"),
        ({"workflowId": "kid", "inputMapping": {"a": 1}}, "inputMapping"),
        ({"workflowId": "kid", "outputMapping": []}, "outputMapping"),
        ({"workflowId": "kid", "propagateCancellation": "no"}, "propagateCancellation"),
    ],
)
def test_a_mistake_names_the_word(type_id: str, config: dict[str, Any], word: str) -> None:
    assert f"config.{word}" in str(problem(type_id, config))


def test_for_each_item_there_is_a_child_then_none() -> None:
    config = {"workflowId": "kid", "items": ["x", "y"]}
    specs = [child("moot.forEach", number, config) for number in range(3)]
    assert [spec and spec.seed for spec in specs] == [
        {"item": "x", "index": 0},
        {"item": "y", "index": 1},
        None,
    ]


def test_item_and_index_can_have_other_names_and_mapped_variables_come_along() -> None:
    config = {
        "workflowId": "kid",
        "itemVariable": "order",
        "indexVariable": "n",
        "inputMapping": {"who": "customer", "none": "missing", "order": "missing"},
        "outputMapping": {"total": "sum"},
    }
    given = {"inputs": {"items": [{"id": 7}]}, "variables": {"customer": "Ada"}}
    found = child("moot.forEach", 0, config, **given)
    assert found is not None
    assert found.seed == {"who": "Ada", "order": {"id": 7}, "n": 0}
    assert found.unset == ("none",)
    assert found.collect == {"total": "sum"}


def test_no_items_is_no_child() -> None:
    assert child("moot.forEach", 0, {"workflowId": "kid", "items": []}) is None


def test_too_many_items_are_refused_before_the_first_child() -> None:
    config = {"workflowId": "kid", "items": [1, 2, 3], "maxIterations": 2}
    with pytest.raises(PortProblem) as caught:
        child("moot.forEach", 0, config)
    assert caught.value.error.code == "loop_limit_exceeded"
    assert not caught.value.error.retryable


@pytest.mark.parametrize("items", [None, "abc", {"a": 1}])
def test_items_that_are_missing_or_no_list_are_a_port_problem(items: Any) -> None:
    with pytest.raises(PortProblem):
        child("moot.forEach", 0, {"workflowId": "kid"}, inputs={"items": items})


@pytest.mark.parametrize(
    "wrong", [{"items": {}}, {"itemVariable": ""}, {"indexVariable": 1}, {"maxIterations": 0}]
)
def test_a_mistake_of_the_loop_is_found_at_registration(wrong: dict[str, Any]) -> None:
    assert str(problem("moot.forEach", {"workflowId": "kid", **wrong})).startswith("config.")
