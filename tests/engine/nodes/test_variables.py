"""core.setVariable and core.getVariable."""

from typing import Any

import pytest

from moot.core.runs.readiness import PortProblem
from tests.support.engine.node_calls import completed, failed, outcome, problem


@pytest.mark.parametrize("key", ["name", "variableName"])
def test_a_constant_is_set(key: str) -> None:
    found = completed("core.setVariable", {key: "a", "value": 1})
    assert found.variables == {"a": 1}
    assert found.outputs == {"value": 1}


def test_the_port_wins_over_the_config() -> None:
    found = completed("core.setVariable", {"name": "a", "value": 1}, inputs={"value": None})
    assert found.variables == {"a": None}


def test_an_expression_is_evaluated() -> None:
    config = {"name": "double", "expression": "variables.n * 2"}
    assert completed("core.setVariable", config, variables={"n": 4}).variables == {"double": 8}


def test_several_constants_are_set_and_ports_of_their_names_win() -> None:
    config = {"variables": {"a": 1, "b": 2}}
    found = completed("core.setVariable", config, inputs={"b": 3, "c": 4})
    assert found.variables == {"a": 1, "b": 3}
    assert found.outputs == {"value": {"a": 1, "b": 3}}


def test_a_list_of_names_takes_every_value_from_its_port() -> None:
    config = {"variables": ["a", "b"]}
    assert completed("core.setVariable", config, inputs={"a": 1, "b": 2}).variables == {
        "a": 1,
        "b": 2,
    }
    with pytest.raises(PortProblem, match="no value for variable 'b'"):
        outcome("core.setVariable", config, inputs={"a": 1})


def test_no_value_at_all_is_a_port_problem() -> None:
    with pytest.raises(PortProblem, match="no value for variable 'a'"):
        outcome("core.setVariable", {"name": "a"})


@pytest.mark.parametrize(
    "config", [{}, {"name": ""}, {"name": 3}, {"variables": 3}, {"variables": [""]},
               {"name": "a", "expression": "1 +"}]
)  # fmt: skip
def test_set_names_its_mistakes_at_registration(config: dict[str, Any]) -> None:
    assert str(problem("core.setVariable", config)).startswith("config.")


def test_get_gives_what_is_set_even_null() -> None:
    found = completed("core.getVariable", {"name": "a", "default": 1}, variables={"a": None})
    assert found.outputs == {"value": None}


def test_get_falls_back_to_its_default() -> None:
    assert completed("core.getVariable", {"variableName": "a", "default": 1}).outputs["value"] == 1


def test_get_fails_for_good_when_nothing_is_set() -> None:
    error = failed("core.getVariable", {"name": "a"}).error
    assert error.code == "variable_not_set"
    assert not error.retryable


def test_get_needs_a_name() -> None:
    assert problem("core.getVariable", {}) == "config.name must name a variable"
