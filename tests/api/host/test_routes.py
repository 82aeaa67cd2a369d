"""Routes that are not offered, and the seams of conformance mode."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from moot.api.routes import unsupported_route
from tests.support.api.caller import Api
from tests.support.api.questions import refused

ABSENT = [
    ("GET", "/v1/runs/nobody/annotations"),
    ("POST", "/v1/runs/nobody/annotations"),
    ("GET", "/v1/prompts"),
    ("GET", "/v1/prompts/x"),
    ("POST", "/v1/prompts:render"),
    ("GET", "/v1/content/pages"),
    ("PUT", "/v1/content/settings"),
    ("GET", "/v1/host/workspace/files"),
    ("PUT", "/v1/host/workspace/files/a"),
]


MISSING = [
    "/v1/runs/nobody/ancestry", "/v1/runs/nobody:diff?against=x", "/v1/tools", "/v1/packs",
    "/v1/runs/nobody/eval-summary", "/v1/audit/verify",
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), ABSENT)
def test_a_family_that_is_not_offered_is_refused_by_name(api: Api, method: str, path: str) -> None:
    details = refused(api.call(method, path), 501, "capability_not_provided")
    assert details["capability"]
    assert api.with_key(None).call(method, path).status_code == 401


@pytest.mark.parametrize("path", MISSING)
def test_other_families_are_simply_not_there(api: Api, path: str) -> None:
    assert api.get(path).status_code == 404


def test_no_route_that_is_served_is_called_missing() -> None:
    from moot.api import routes
    from moot.conformance.routes import SEAMS

    served = (*routes.ENDPOINTS, *SEAMS)
    assert not [row.path for row in served if unsupported_route(row.path) is not None]


def test_the_event_seam_filters(api: Api) -> None:
    run_id = api.run("conformance-multi-node")["runId"]
    path = f"/v1/host/sample/test/runs/{run_id}/events"
    assert api.get(path).json()["events"] == api.events(run_id)
    for query in ({"type": "node.completed"}, {"nodeId": "b"}, {"causationId": f"{run_id}.0"}):
        (name, value), *_ = query.items()
        wanted = [event for event in api.events(run_id) if event.get(name) == value]
        assert wanted
        assert api.get(path, params=query).json()["events"] == wanted
    assert api.get("/v1/host/sample/test/runs/__probe__/events").json() == {"events": []}


def test_the_variables_seam_writes_the_runs_variables(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    path = f"/v1/host/sample/test/runs/{run_id}/variables"
    assert api.post(path, {"variables": {"x": [1]}}).status_code == 200
    assert api.read(run_id)["variables"]["x"] == [1]
    api.post(f"/v1/runs/{run_id}/cancel")


def test_the_toggle_seam_switches_claims_and_forgets(api: Api) -> None:
    path = "/v1/host/sample/test/capability-toggle"
    assert api.post(path, {"name": "__probe__", "value": None}).json() == {"overlay": {}}
    switched = api.post(path, {"name": "subWorkflow.inputMapping", "value": False})
    assert switched.json() == {"overlay": {"subWorkflow.inputMapping": False}}
    assert api.get("/.well-known/openwop").json()["subWorkflow"]["inputMapping"] is False
    config = {"workflowId": "conformance-noop", "inputMapping": {"a": "b"}}
    nodes = [{"nodeId": "n", "typeId": "core.subWorkflow", "config": config}]
    answer = api.post("/v1/host/sample/workflows", {"workflowId": "seamed", "nodes": nodes})
    details = refused(answer, 400, "validation_error")
    assert details["requiredCapability"] == "subWorkflow.inputMapping"
    assert api.post("/v1/host/sample/test/reset", {}).status_code == 200
    assert api.get("/.well-known/openwop").json()["subWorkflow"]["inputMapping"] is True
    answer = api.post("/v1/host/sample/workflows", {"workflowId": "seamed", "nodes": nodes})
    assert answer.status_code == 201
    assert api.run("seamed")["status"] == "completed"
    assert api.post(path, {"reset": True}).json() == {"overlay": {}}


def test_the_claim_seam_delivers_once(api: Api) -> None:
    body = {"executors": 20}
    found = api.post("/v1/host/sample/test/idempotency/concurrent-claim", body).json()
    assert (found["attempted"], found["delivered"]) == (20, 1)
    assert len(found["mintedIds"]) == 20
    assert len(set(found["mintedIds"])) == 1


def test_there_are_no_seams_without_conformance(host: Callable[..., Api]) -> None:
    plain = host()
    for method, path in (
        ("GET", "test/runs/__probe__/events"),
        ("POST", "test/reset"),
        ("POST", "test/capability-toggle"),
        ("POST", "workflows"),
    ):
        assert plain.call(method, f"/v1/host/sample/{path}").status_code == 404


def test_the_server_listens_only_where_it_was_told(host: Callable[..., Any]) -> None:
    plain = host()
    with socket.socket() as probe:
        probe.settimeout(2)
        name = socket.gethostbyname(socket.gethostname())
        if not name.startswith("127."):
            assert probe.connect_ex((name, plain.server.port)) != 0
