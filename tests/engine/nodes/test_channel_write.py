"""core.channelWrite: one write, or the reason why not."""

from typing import Any

import pytest

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import ChannelWrite
from tests.support.engine.node_calls import completed, failed, outcome, problem

CONFIG = {"channelName": "events", "reducer": "append"}


def test_the_value_of_the_config_is_written() -> None:
    found = completed("core.channelWrite", {**CONFIG, "ttlMs": 200, "maxSize": 9, "value": "a"})
    assert found.writes == (
        ChannelWrite(channel="events", value="a", reducer="append", ttl_ms=200, max_size=9),
    )


def test_the_port_wins_over_the_config() -> None:
    found = completed("core.channelWrite", {**CONFIG, "value": "a"}, inputs={"value": None})
    assert found.writes[0].value is None


def test_nothing_to_write_is_a_port_problem() -> None:
    with pytest.raises(PortProblem, match="no value to write"):
        outcome("core.channelWrite", CONFIG)


@pytest.mark.parametrize("missing", ["channelName", "reducer"])
def test_a_missing_word_is_found_at_registration_and_at_run_time(missing: str) -> None:
    config = {key: value for key, value in CONFIG.items() if key != missing}
    assert problem("core.channelWrite", config) == f"config.{missing} must be given"
    error = failed("core.channelWrite", {**config, "value": 1}).error
    assert (error.code, error.retryable) == ("validation_error", False)


@pytest.mark.parametrize("reducer", ["sum", "vendor.acme.max"])
def test_a_reducer_this_host_does_not_have_fails_the_node(reducer: str) -> None:
    config = {"channelName": "events", "reducer": reducer, "value": 1}
    assert problem("core.channelWrite", config) is None
    assert failed("core.channelWrite", config).error.code == "unsupported_reducer"


@pytest.mark.parametrize(
    "wrong", [{"ttlMs": -1}, {"ttlMs": 31_536_000_001}, {"ttlMs": "1s"}, {"maxSize": 0}]
)
def test_an_impossible_bound_is_found_at_registration(wrong: dict[str, Any]) -> None:
    assert "whole number" in str(problem("core.channelWrite", {**CONFIG, **wrong}))
