"""Registering, checking and reading workflows."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.api.caller import Api, definition, sleeping
from tests.support.api.questions import refused
from tests.support.servers import ROOT

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")


def test_a_dispatch_node_needs_a_supervisor(api: Api) -> None:
    flow = definition("gated", [{"id": "n", "typeId": "core.dispatch"}])
    details = refused(api.post("/v1/host/moot/workflows", flow), 400, "validation_error")
    assert details == {"nodeId": "n"}
    node = {"nodeId": "n", "typeId": "core.dispatch", "config": {}}
    answer = api.post("/v1/host/sample/workflows", {"workflowId": "gated", "nodes": [node]})
    assert answer.status_code == 400


def test_a_workflow_is_read_as_it_was_registered(api: Api) -> None:
    flow = sleeping("as-it-was", settings={"timeout": 5, "acme": {"x": 1}}, description="d")
    api.register(flow)
    assert api.get("/v1/workflows/as-it-was").json() == flow


def test_a_workflow_can_be_read_before_the_one_it_calls_is_there(api: Api) -> None:
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "not-there-yet"}}
    flow = definition("early-parent", [call])
    api.register(flow)
    assert api.get("/v1/workflows/early-parent").json() == flow
    answer = api.post("/v1/runs", {"workflowId": "early-parent"})
    refused(answer, 422, "unknown_child_workflow")
    api.register(sleeping("not-there-yet", 0))
    assert api.run("early-parent")["status"] == "completed"


def test_workflows_and_runs_stay_readable_when_their_nodes_are_gone(
    host: Callable[..., Any], tmp_path: Path
) -> None:
    before = host("--nodes", NODES, folder=tmp_path)
    flow = definition(
        "flaky", [{"id": "a", "typeId": "wire.flood", "config": {"count": 1, "size": 1}}]
    )
    before.register(flow)
    run_id = before.run("flaky")["runId"]
    events = before.events(run_id)
    snapshot = before.read(run_id)
    before.server.stop()
    after = host(folder=tmp_path)
    assert after.get("/v1/workflows/flaky").json() == flow
    listed = after.get("/v1/host/moot/workflows").json()["workflows"]
    assert [row["workflowId"] for row in listed] == ["flaky"]
    assert after.events(run_id) == events
    assert after.read(run_id) == snapshot
    assert after.get(f"/v1/runs/{run_id}/debug-bundle").status_code == 200
    refused(after.post("/v1/runs", {"workflowId": "flaky"}), 400, "unsupported_node_type")


def test_a_schema_never_makes_the_host_fetch_anything(api: Api, tmp_path: Path) -> None:
    """A reference is looked up in the schema itself, nowhere else."""
    asked: list[str] = []

    class Trap(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    secret = tmp_path / "secret.json"
    secret.write_text('{"type": "integer"}')
    with HTTPServer(("127.0.0.1", 0), Trap) as trap:
        thread = threading.Thread(target=trap.serve_forever, args=[0.01])
        thread.start()
        for reference in (f"http://127.0.0.1:{trap.server_port}/x", secret.as_uri()):
            schema = {"$ref": reference}
            for more in (
                {"configurableSchema": schema},
                {"channels": {"c": {"reducer": "replace", "schema": schema}}},
            ):
                answer = api.post("/v1/host/moot/workflows", sleeping("fetching", **more))
                refused(answer, 400, "validation_error")
        trap.shutdown()
        thread.join()
    assert asked == []


OUTSIDE: list[dict[str, Any]] = [
    {"slug": "Not A Slug"},
    {"slug": "slug\n"},
    {"createdAt": "yesterday"},
    {"createdAt": "2026-01-01T00:00:00"},
    {"metadata": {"clonedAt": 1}},
    {"metadata": {"complianceClass": "secret"}},
    {"settings": {"maxLoopbackIterations": 0}},
    {"groups": [{"id": "g", "name": "g"}]},
    {"triggers": [{"id": "", "type": "manual"}]},
    {"variables": [{"name": "", "type": "string"}]},
    {"defaults": {"temperature": 1}},
    {"defaults": {"promptRefs": {"system": "a"}}},
    {"channels": {"c": {"reducer": "append", "access": {"writers": ["Not an id"]}}}},
    {"channels": {"c": {"reducer": "append", "access": {"writers": ["a", "a"]}}}},
    {"channels": {"c": {"reducer": "append", "schemaVersion": 0}}},
    {"channels": {"c": {"reducer": "append", "compatibleWith": [1, 1]}}},
    {"nodes": {"agent": {}}},
    {"nodes": {"agent": {"agentId": "ab"}}},
    {"nodes": {"agent": {"agentId": "host:a", "mood": "good"}}},
    {"nodes": {"agent": {"agentId": "host:a", "version": "1", "channel": "x"}}},
    {"nodes": {"inputs": {"delayMs": {"type": "variable", "variableName": ""}}}},
    {"nodes": {"inputs": {"delayMs": {"type": "expression", "expression": ""}}}},
    {"nodes": {"inputs": {"delayMs": {"type": "static"}}}},
]


def outside(more: dict[str, Any]) -> dict[str, Any]:
    """A definition with one mistake; ``nodes`` changes its first node."""
    flow = sleeping("outside", **{key: value for key, value in more.items() if key != "nodes"})
    flow["nodes"][0].update(more.get("nodes", {}))
    return flow


@pytest.mark.parametrize("more", OUTSIDE, ids=lambda it: json.dumps(it)[:60])
def test_a_definition_outside_the_published_schema_is_refused(
    api: Api, more: dict[str, Any]
) -> None:
    """What is taken in is shown again, so it must fit what readers were promised."""
    refused(api.post("/v1/host/moot/workflows", outside(more)), 400, "validation_error")


@pytest.mark.parametrize("ms", [-1, 10**12, 10**400, 1e308, True, "1", None, [1]])
def test_a_delay_that_is_no_time_is_refused(api: Api, ms: Any) -> None:
    answer = api.post("/v1/host/moot/workflows", sleeping("no-time", ms))
    assert refused(answer, 400, "validation_error")["nodeId"] == "wait"


def test_checking_a_workflow_registers_nothing(api: Api) -> None:
    answer = api.post("/v1/host/moot/workflows:check", sleeping("only-checked"))
    assert answer.json() == {"workflowId": "only-checked", "ok": True, "nodes": 1}
    assert api.get("/v1/workflows/only-checked").status_code == 404
    wrong = api.post("/v1/host/moot/workflows:check", {**sleeping("x"), "nodes": []})
    refused(wrong, 400, "validation_error")


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("/v1/host/moot/runs", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["runs"])
