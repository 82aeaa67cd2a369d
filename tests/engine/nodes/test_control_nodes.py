"""core.start, core.end, core.noop, core.identity, core.fail, core.parallel, core.merge."""

import pytest

from moot.core.workflows.node_types import Completed
from tests.support.engine.node_calls import completed, failed, problem


def test_start_gives_the_inputs_of_the_run() -> None:
    assert completed("core.start", run_inputs={"a": 1}).outputs == {"a": 1}


def test_end_gives_its_own_inputs() -> None:
    assert completed("core.end", inputs={"total": 3}).outputs == {"total": 3}


def test_noop_gives_nothing_whatever_its_config_says() -> None:
    assert completed("core.noop", {"nondeterministic": True}) == Completed()


def test_identity_echoes_every_port() -> None:
    given = {"payload": {"a": [1, None]}, "other": 2}
    assert completed("core.identity", inputs=given).outputs == given


def test_identity_writes_one_message_twice_when_asked() -> None:
    first, second = completed("core.identity", {"emitDuplicateMessageId": True}).writes
    assert first.channel == second.channel == "messages"
    assert first.reducer == "message"
    assert first.value["messageId"] == second.value["messageId"]
    assert set(first.value) == {"messageId", "role", "content", "timestamp"}


def test_identity_writes_nothing_unless_asked() -> None:
    assert completed("core.identity").writes == ()


def test_identity_uses_memory_only_on_a_host_under_trial() -> None:
    assert "for hosts under trial" in str(problem("core.identity", {"memoryAction": "x"}))
    assert problem("core.identity", {}) is None


def test_fail_has_the_code_and_message_of_the_fixtures() -> None:
    error = failed("core.fail").error
    assert (error.code, error.message) == (
        "conformance_test_failure",
        "Intentional conformance failure",
    )
    assert not error.retryable


def test_fail_says_what_it_is_told() -> None:
    error = failed("core.fail", {"code": "too_big", "message": "No.", "retryable": True}).error
    assert (error.code, error.message, error.retryable) == ("too_big", "No.", True)


def test_a_message_on_a_port_wins_over_the_config() -> None:
    error = failed("core.fail", {"message": "config"}, inputs={"message": "order 7"}).error
    assert error.message == "order 7"


@pytest.mark.parametrize("config", [{"code": 7}, {"message": ""}])
def test_fail_refuses_a_code_or_message_that_is_no_text(config: dict[str, object]) -> None:
    assert "must be a text" in str(problem("core.fail", config))


def test_parallel_passes_its_inputs_on_and_ignores_branches() -> None:
    assert completed("core.parallel", {"branches": 3}, inputs={"a": 1}).outputs == {"a": 1}


UPSTREAM = {"left": {"a": 1, "b": 1}, "right": {"b": 2}}


def test_merge_gives_results_by_source_and_one_object_in_edge_order() -> None:
    assert completed("core.merge", upstream=UPSTREAM).outputs == {
        "results": UPSTREAM,
        "merged": {"a": 1, "b": 2},
    }


def test_merge_as_a_list_keeps_the_order() -> None:
    found = completed("core.merge", {"mode": "list"}, upstream=UPSTREAM).outputs
    assert found["merged"] == [{"a": 1, "b": 1}, {"b": 2}]


def test_merge_first_takes_the_first_that_came() -> None:
    found = completed("core.merge", {"mode": "first"}, upstream=UPSTREAM).outputs
    assert found["merged"] == {"a": 1, "b": 1}
    assert completed("core.merge", {"mode": "first"}).outputs["merged"] == {}


def test_merge_refuses_an_unknown_mode() -> None:
    assert problem("core.merge", {"mode": "zip"}) == (
        "config.mode must be one of object, list, first"
    )
