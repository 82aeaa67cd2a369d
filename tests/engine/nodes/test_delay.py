"""core.delay and core.conformance.hold: how long they wait."""

from typing import Any

import pytest

from moot.core.runs.readiness import PortProblem
from tests.support.engine.node_calls import TYPES, call, problem


def wait(config: dict[str, Any], type_id: str = "core.delay", **inputs: Any) -> int:
    duration = TYPES[type_id].duration
    assert duration is not None
    return duration(call(config, inputs=inputs))


@pytest.mark.parametrize("key", ["ms", "durationMs", "delayMs"])
def test_each_config_name_of_the_fixtures_is_understood(key: str) -> None:
    assert wait({key: 300}) == 300


def test_the_input_is_used_when_the_config_says_nothing() -> None:
    assert wait({}, delayMs=1000) == 1000


def test_the_config_wins_over_the_input() -> None:
    assert wait({"ms": 5}, delayMs=1000) == 5


def test_a_fraction_of_a_millisecond_is_dropped() -> None:
    assert wait({"ms": 2.9}) == 2


def test_hold_waits_like_delay() -> None:
    assert wait({}, "core.conformance.hold", delayMs=30_000) == 30_000


BAD = [-1, 31_536_000_001, float("nan"), float("inf"), "5", None, True, [1]]


@pytest.mark.parametrize("value", BAD)
def test_an_impossible_length_is_found_at_registration(value: Any) -> None:
    assert str(problem("core.delay", {"durationMs": value})).startswith("config.durationMs must be")


@pytest.mark.parametrize("value", BAD)
def test_an_impossible_length_on_the_port_is_a_port_problem(value: Any) -> None:
    with pytest.raises(PortProblem, match="delayMs must be a number of milliseconds"):
        wait({}, delayMs=value)


def test_a_missing_length_is_a_port_problem() -> None:
    with pytest.raises(PortProblem, match="has no length") as caught:
        wait({})
    assert not caught.value.error.retryable


def test_no_length_in_the_config_is_no_mistake() -> None:
    assert problem("core.delay", {}) is None
    assert problem("core.delay", {"ms": 0}) is None
