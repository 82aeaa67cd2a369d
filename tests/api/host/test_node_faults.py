"""Nodes that break or never return."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.servers import ROOT

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")


BROKEN = [
    ("wire.raise", "node_raised", "a node went wrong"),
    ("wire.raise-blocking", "node_raised", "a blocking node went wrong"),
    ("wire.exit", "node_raised", "a node wants to leave"),
    ("wire.exit-blocking", "node_raised", "a blocking node wants to leave"),
    ("wire.exit-pure", "node_raised", "a pure node wants to leave"),
    ("wire.cancel-itself", "node_raised", "CancelledError"),
    ("wire.deep", "output_not_json", "JSON"),
    ("wire.deep-pure", "output_not_json", "JSON"),
    ("wire.rather-deep", "output_not_json", "nested too deeply"),
    ("wire.unsayable", "output_not_json", "JSON"),
    ("wire.surrogate", "output_not_json", "surrogates"),
    ("wire.surrogate-pure", "output_not_json", "surrogates"),
    ("wire.surrogate-chunk", "node_raised", "surrogates"),
    ("wire.surrogate-error", "node_raised", "\\udc80"),
    ("wire.odd-log", "node_raised", "unsupported"),
    ("wire.foreign-channel", "validation_error", "reducer"),
]


@pytest.fixture(scope="module")
def with_nodes(tmp_path_factory: pytest.TempPathFactory, answers: AnswerChecks) -> Iterator[Any]:
    """One server with the broken nodes; it must outlive all of them."""
    from tests.support.servers import ServerProcess, server_environment

    process = ServerProcess(
        tmp_path_factory.mktemp("nodes"), ["--nodes", NODES], server_environment()
    )
    with Api(process.url, process.key, answers) as found:
        found.server = process
        yield found
    assert process.stop() == 0


@pytest.mark.parametrize(("type_id", "code", "said"), BROKEN)
def test_a_broken_node_fails_its_run_and_nothing_else(
    with_nodes: Any, type_id: str, code: str, said: str
) -> None:
    name = type_id.replace(".", "-")
    with_nodes.register(definition(name, [{"id": "a", "typeId": type_id}]))
    found = with_nodes.run(name)
    assert found["status"] == "failed"
    assert found["error"]["code"] == code
    assert said in found["error"]["message"]
    assert with_nodes.types(found["runId"])[-2:] == ["node.failed", "run.failed"]
    assert with_nodes.get("/readyz").status_code == 200


def test_a_node_that_never_returns_is_ended_by_its_time_limit(with_nodes: Any) -> None:
    for type_id in ("wire.hang", "wire.hang-blocking"):
        node = {"id": "a", "typeId": type_id, "settings": {"timeoutMs": 200}}
        with_nodes.register(definition("limited", [node]))
        found = with_nodes.run("limited")
        assert (found["status"], found["error"]["code"]) == ("failed", "node_timeout")


def test_a_node_that_never_returns_is_ended_by_the_runs_time_limit(with_nodes: Any) -> None:
    with_nodes.register(definition("hang", [{"id": "a", "typeId": "wire.hang"}]))
    found = with_nodes.run("hang", configurable={"runTimeoutMs": 300})
    assert found["error"]["code"] == "run_timeout"


def test_a_node_that_never_returns_can_be_cancelled_and_paused(with_nodes: Any) -> None:
    for type_id in ("wire.hang", "wire.hang-blocking"):
        with_nodes.register(definition("hang", [{"id": "a", "typeId": type_id}]))
        run_id = with_nodes.create("hang")
        paused = with_nodes.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"})
        assert paused.status_code == 202
        assert with_nodes.post(f"/v1/runs/{run_id}:resume").status_code == 202
        with_nodes.post(f"/v1/runs/{run_id}/cancel")
        assert with_nodes.until(run_id, "cancelled")


def test_many_that_never_return_leave_room_for_others(with_nodes: Any) -> None:
    with_nodes.register(definition("stuck", [{"id": "a", "typeId": "wire.hang-blocking"}]))
    with_nodes.register(definition("fine", [{"id": "a", "typeId": "wire.flaky"}]))
    stuck = [with_nodes.create("stuck") for _ in range(100)]
    assert with_nodes.run("fine")["status"] == "completed"
    with_nodes.post("/v1/runs:bulk-cancel", {"runIds": stuck})


def test_a_flaky_node_is_tried_again(with_nodes: Any) -> None:
    with_nodes.register(definition("fine", [{"id": "a", "typeId": "wire.flaky"}]))
    found = with_nodes.run("fine")
    assert found["outputs"] == {"attempt": 3}
    assert with_nodes.types(found["runId"]).count("node.retried") == 2
