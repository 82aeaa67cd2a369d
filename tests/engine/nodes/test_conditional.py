"""core.conditional: which port it fills, and with what."""

from typing import Any

import pytest

from moot.core.runs.readiness import PortProblem
from tests.support.engine.node_calls import TYPES, completed, outcome, problem


def test_edges_follow_the_filled_port() -> None:
    assert TYPES["core.conditional"].routes


@pytest.mark.parametrize(("amount", "branch"), [(101, "true"), (100, "false")])
def test_an_expression_over_variables_decides(amount: int, branch: str) -> None:
    config = {"expression": "variables.amount > 100"}
    found = completed("core.conditional", config, variables={"amount": amount}).outputs
    assert found == {"result": branch == "true", "branch": branch, branch: {}}


def test_an_expression_sees_inputs_config_and_upstream() -> None:
    config = {"expression": "inputs.a + config.b + upstream.before.c == 6", "b": 2}
    given = {"inputs": {"a": 1}, "upstream": {"before": {"c": 3}}}
    assert completed("core.conditional", config, **given).outputs["result"] is True


def test_a_port_hides_a_run_input_of_its_name() -> None:
    config = {"expression": "inputs.a == 1 && inputs.b == 2"}
    given = {"inputs": {"a": 1}, "run_inputs": {"a": 9, "b": 2}}
    assert completed("core.conditional", config, **given).outputs["result"] is True


@pytest.mark.parametrize(
    ("condition", "branch"),
    [
        ({"type": "equals", "left": "output.approved", "right": True}, "true"),
        ({"type": "equals", "left": "approved", "right": False}, "false"),
        ({"type": "contains", "left": "variables.tags", "right": "new"}, "true"),
        ({"type": "regex", "left": "name", "right": "^A"}, "true"),
        ({"expression": "outputs.approved"}, "true"),
    ],
)
def test_a_condition_like_that_of_an_edge_decides(condition: dict[str, Any], branch: str) -> None:
    given = {
        "upstream": {"gate": {"approved": True, "name": "Ada"}},
        "variables": {"tags": ["new"]},
    }
    found = completed("core.conditional", {"condition": condition}, **given).outputs
    assert found["branch"] == branch


@pytest.mark.parametrize(("value", "branch"), [(1, "true"), ("", "false"), ([], "false")])
def test_without_config_the_port_value_decides_and_is_carried(value: Any, branch: str) -> None:
    found = completed("core.conditional", inputs={"value": value}).outputs
    assert found["branch"] == branch
    assert found[branch] == value


def test_the_port_condition_comes_before_the_port_value() -> None:
    found = completed("core.conditional", inputs={"condition": False, "value": 7}).outputs
    assert found == {"result": False, "branch": "false", "false": 7}


def test_what_came_in_is_carried_on() -> None:
    given = {"upstream": {"a": {"x": 1}, "b": {"y": 2}}}
    found = completed("core.conditional", {"expression": "true"}, **given).outputs
    assert found["true"] == {"x": 1, "y": 2}


def test_an_expression_without_a_value_is_not_silently_false() -> None:
    with pytest.raises(PortProblem, match=r"config\.expression"):
        outcome("core.conditional", {"expression": "variables.missing > 1"})


def test_nothing_to_decide_on_is_a_port_problem() -> None:
    with pytest.raises(PortProblem, match="nothing to decide on"):
        outcome("core.conditional")


@pytest.mark.parametrize(
    "config",
    [
        {"expression": "variables.a >"},
        {"expression": 7},
        {"condition": {"type": "equals", "right": 1}},
        {"condition": {"type": "regex", "left": "a"}},
        {"condition": {"type": "like"}},
        {"condition": {}},
        {"condition": "x"},
        {"condition": {"expression": "a b"}},
    ],
)
def test_a_mistake_in_the_config_is_found_at_registration(config: dict[str, Any]) -> None:
    assert str(problem("core.conditional", config)).startswith("config.")
