"""core.loop: what it goes through, what it collects, and where it stops."""

from typing import Any

import pytest

from moot.core.payloads.nodes import LoopbackLimit
from moot.core.runs.readiness import PortProblem
from tests.support.engine.node_calls import completed, failed, outcome, problem


def test_items_of_the_config_are_collected_through_an_expression() -> None:
    found = completed("core.loop", {"items": [1, 2, 3], "collect": "item * 10 + index"})
    assert found.outputs == {"iterations": 3, "results": [10, 21, 32]}


def test_items_may_come_in_on_a_port() -> None:
    assert completed("core.loop", inputs={"items": ["a"]}).outputs["iterations"] == 1


@pytest.mark.parametrize("key", ["times", "count", "iterations"])
def test_a_count_repeats_without_items(key: str) -> None:
    found = completed("core.loop", {key: 3, "collect": "index"})
    assert found.outputs == {"iterations": 3, "results": [0, 1, 2]}


def test_no_items_is_no_iteration() -> None:
    assert completed("core.loop", {"items": []}).outputs == {"iterations": 0, "results": []}


def test_variables_change_from_pass_to_pass_and_only_they_are_returned() -> None:
    config = {"items": [1, 2, 3], "set": {"sum": "variables.sum + item"}}
    variables = {"sum": 10, "other": 1}
    found = completed("core.loop", config, variables=variables)
    assert found.variables == {"sum": 16}
    assert variables == {"sum": 10, "other": 1}


def test_while_is_asked_before_each_pass() -> None:
    config = {"while": "variables.n < 3", "set": {"n": "variables.n + 1"}}
    found = completed("core.loop", config, variables={"n": 0})
    assert found.outputs["iterations"] == 3
    assert found.variables == {"n": 3}


def test_while_can_end_a_loop_over_items_early() -> None:
    config = {"items": [1, 2, 3, 4], "while": "size(results) < 2", "collect": "item"}
    assert completed("core.loop", config).outputs["results"] == [1, 2]


def test_a_loop_that_does_not_end_fails_and_says_why() -> None:
    found = failed("core.loop", {"while": "true", "maxIterations": 5})
    assert found.error.code == "loop_limit_exceeded"
    assert not found.error.retryable
    [because] = found.because
    assert because == LoopbackLimit(node_id="here", iterations=5, limit=5)


def test_exactly_as_many_passes_as_the_limit_are_fine() -> None:
    assert completed("core.loop", {"times": 5, "maxIterations": 5}).outputs["iterations"] == 5


def test_the_limit_is_a_thousand_unless_set() -> None:
    assert failed("core.loop", {"times": 1001}).error.details == {"limit": 1000}


def test_an_expression_without_a_value_names_the_iteration() -> None:
    with pytest.raises(PortProblem, match=r"config\.collect, iteration 1"):
        outcome("core.loop", {"items": [{"a": 1}, {}], "collect": "item.a"})


def test_a_loop_over_nothing_is_a_port_problem() -> None:
    with pytest.raises(PortProblem, match="has no bound"):
        outcome("core.loop")


def test_items_that_are_no_list_are_a_port_problem() -> None:
    with pytest.raises(PortProblem, match="must be a list"):
        outcome("core.loop", inputs={"items": "abc"})


@pytest.mark.parametrize(
    "config",
    [
        {"items": "abc"},
        {"times": -1},
        {"count": 1.5},
        {"iterations": True},
        {"while": "a b"},
        {"collect": 3},
        {"set": {"a": "1 +"}},
        {"set": []},
        {"maxIterations": 0},
        {"maxIterations": 10_001},
    ],
)
def test_a_mistake_in_the_config_is_found_at_registration(config: dict[str, Any]) -> None:
    assert str(problem("core.loop", config)).startswith("config.")


def test_the_form_with_child_runs_is_named() -> None:
    assert "moot.forEach" in str(problem("core.loop", {"workflowId": "child"}))
