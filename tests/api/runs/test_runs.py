"""Runs (protocol 3.4 to 3.10, 11): creating, reading, cancelling, pausing, listing, exporting."""

import itertools
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from moot.api.routes import unsupported_route
from tests.support.api.caller import Api, definition, in_time, unless_over
from tests.support.servers import ROOT

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")


def refused(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The details of the refusal that was expected."""
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    return dict(answer.json().get("details", {}))


def sleeping(name: str, ms: int = 60_000, **more: Any) -> dict[str, Any]:
    return definition(name, [{"id": "wait", "typeId": "core.delay", "config": {"ms": ms}}], **more)


# -- creating ----------------------------------------------------------------------------------


def test_a_created_run_says_where_it_is(api: Api) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-noop"})
    body = answer.json()
    assert answer.status_code == 201
    assert body["status"] in ("pending", "running")
    assert body["eventsUrl"] == f"/v1/runs/{body['runId']}/events"
    assert body["statusUrl"] == answer.headers["location"] == f"/v1/runs/{body['runId']}"
    assert api.get(body["statusUrl"]).json()["runId"] == body["runId"]
    assert ":" not in body["runId"]


WRONG_BODIES: list[tuple[str, Any]] = [
    ("nothing", b""),
    ("no JSON", b"{"),
    ("cut", b'{"workflowId":"conformance-noop"'),
    ("a list", []),
    ("a text", "conformance-noop"),
    ("null", b"null"),
    ("a number", b"1"),
    ("two values", b"{} {}"),
    ("bad UTF-8", b'{"workflowId":"\xff"}'),
    ("half a surrogate", b'{"workflowId":"\\ud800"}'),
    ("no workflow", {}),
    ("empty workflow", {"workflowId": ""}),
    ("workflow as a number", {"workflowId": 1}),
    ("workflow as null", {"workflowId": None}),
    ("unknown field", {"workflowId": "conformance-noop", "x": 1}),
    ("other case", {"workflowid": "conformance-noop"}),
    ("inputs as a list", {"workflowId": "conformance-noop", "inputs": []}),
    ("inputs as null", {"workflowId": "conformance-noop", "inputs": None}),
    ("tags as a text", {"workflowId": "conformance-noop", "tags": "a"}),
    ("a tag as a number", {"workflowId": "conformance-noop", "tags": [1]}),
    ("metadata as a list", {"workflowId": "conformance-noop", "metadata": []}),
    ("configurable as a list", {"workflowId": "conformance-noop", "configurable": []}),
    ("tenant as a number", {"workflowId": "conformance-noop", "tenantId": 1}),
    ("scope as a number", {"workflowId": "conformance-noop", "scopeId": 1}),
    ("empty scope", {"workflowId": "conformance-noop", "scopeId": ""}),
    ("callback that is no address", {"workflowId": "conformance-noop", "callbackUrl": "x"}),
    ("callback of another kind", {"workflowId": "conformance-noop", "callbackUrl": "file:///x"}),
    ("callback with a broken host", {"workflowId": "conformance-noop", "callbackUrl": "http://["}),
    ("input of another type", {"workflowId": "conformance-delay", "inputs": {"delayMs": "1"}}),
    ("input that is missing", {"workflowId": "conformance-idempotent"}),
    ("a channel", {"workflowId": "conformance-message-reducer", "inputs": {"messages": []}}),
    ("too deep", b'{"workflowId":"conformance-noop","inputs":' + b'{"a":' * 70 + b"1" + b"}" * 71),
]  # fmt: skip


@pytest.mark.parametrize(
    "body", [body for _, body in WRONG_BODIES], ids=[n for n, _ in WRONG_BODIES]
)
def test_a_body_that_does_not_fit_is_refused(api: Api, body: Any) -> None:
    refused(api.post("/v1/runs", body), 400, "validation_error")


def test_a_refused_create_leaves_no_run(host: Callable[..., Api]) -> None:
    plain = host()
    plain.register(sleeping("sleep"))
    for body in ({"workflowId": "sleep", "x": 1}, {"workflowId": "slep"}, {"workflowId": ""}):
        assert plain.post("/v1/runs", body).status_code >= 400
    assert plain.get("/v1/host/moot/runs").json()["runs"] == []


def test_a_refusal_names_the_fields(api: Api) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-delay", "inputs": {"delayMs": "x"}})
    assert "delayMs" in refused(answer, 400, "validation_error")["fields"][0]


def test_an_unknown_workflow_is_not_found_and_the_nearest_is_named(api: Api) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-nop"})
    assert refused(answer, 404, "workflow_not_found") == {"workflowId": "conformance-nop"}
    assert "conformance-noop" in answer.json()["message"]


def test_any_content_type_is_fine_with_a_key(api: Api) -> None:
    body = json.dumps({"workflowId": "conformance-noop"}).encode()
    for media in ("application/json", "text/plain", "application/x-www-form-urlencoded", "x"):
        answer = api.post("/v1/runs", body, headers={"Content-Type": media})
        assert answer.status_code == 201


@pytest.mark.parametrize(
    "asked",
    [
        {"mode": "eval"},
        {"mode": "live"},
        {"evalSuiteRef": "x"},
        {"mode": "eval", "agentId": "host:a"},
    ],
)
def test_evaluation_is_not_provided(api: Api, asked: Any) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-noop", **asked})
    refused(answer, 501, "capability_not_provided")


def test_residency_is_not_pretended(api: Api) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-noop", "residency": {"region": "eu"}})
    assert answer.status_code in (400, 404, 422)


def test_a_tenant_in_the_body_is_no_authority(api: Api) -> None:
    run_id = api.create("conformance-noop", tenantId="elsewhere")
    assert api.read(run_id)["owner"]["tenant"] == "default"


def test_options_are_kept_and_shown(api: Api) -> None:
    given = {
        "tags": ["a", "ü" * 256],
        "metadata": {"acme.x": {"y": {"z": {}}}},
        "configurable": {"temperature": 1.5, "acme.key": [1]},
        "scopeId": "scope-of-this-test",
        "callbackUrl": "https://example.com/hook",
    }
    found = api.run("conformance-noop", **given)
    for name in ("tags", "metadata", "configurable", "scopeId"):
        assert found[name] == given[name]
    started = api.events(found["runId"])[0]["payload"]
    assert (started["tags"], started["metadata"]) == (given["tags"], given["metadata"])
    assert started["owner"] == found["owner"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tags", ["x"] * 101),
        ("tags", [""]),
        ("tags", ["x" * 257]),
        ("metadata", {"x": "y" * 8192}),
        ("metadata", {"a": {"b": {"c": {"d": {}}}}}),
        ("metadata", {"a": [[[[]]]]}),
    ],
)
def test_tags_and_metadata_have_limits(api: Api, field: str, value: Any) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-noop", field: value})
    assert refused(answer, 400, "validation_error")["field"] == field


def test_the_most_that_fits_is_taken(api: Api) -> None:
    metadata = {"x": "y" * (8192 - len('{"x":""}'))}
    assert api.run("conformance-noop", tags=["x"] * 100, metadata=metadata)["status"] == "completed"


@pytest.mark.parametrize(
    "wrong",
    [
        {"recursionLimit": 0},
        {"recursionLimit": -1},
        {"recursionLimit": 1.5},
        {"recursionLimit": "3"},
        {"recursionLimit": True},
        {"recursionLimit": None},
        {"runTimeoutMs": 0},
        {"runTimeoutMs": 86_400_001},
        {"runTimeoutMs": "1"},
        {"runTimeoutMs": False},
        {"maxLoopIterations": 0},
        {"temperature": 2.1},
        {"temperature": -0.1},
        {"maxTokens": 0},
        {"model": 1},
        {"promptOverrides": []},
        {"escalationThreshold": 1.01},
        {"reasoningVerbosity": "loud"},
        {"unprefixed": 1},
        {"ai.provider": "nobody"},
        {"ai.credentialRef": "x"},
        {"": 1},
    ],
)
def test_configurable_out_of_bounds_is_refused_by_name(api: Api, wrong: dict[str, Any]) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-noop", "configurable": wrong})
    assert refused(answer, 400, "validation_error")["key"] == next(iter(wrong))


def test_a_bound_is_told_with_the_refusal(api: Api) -> None:
    body = {"workflowId": "conformance-noop", "configurable": {"temperature": 3}}
    details = refused(api.post("/v1/runs", body), 400, "validation_error")
    assert details == {"key": "temperature", "value": 3, "min": 0, "max": 2}


def test_the_words_there_are_are_told_with_the_refusal(api: Api) -> None:
    body = {"workflowId": "conformance-noop", "configurable": {"reasoningVerbosity": "loud"}}
    said = api.post("/v1/runs", body).json()["message"]
    assert said.startswith("reasoningVerbosity must be one of ") and "summary" in said


def test_a_limit_above_the_hosts_is_clamped(api: Api) -> None:
    run_id = api.create("conformance-noop", configurable={"recursionLimit": 10**30})
    most = api.get("/.well-known/openwop").json()["limits"]["maxNodeExecutions"]
    assert api.events(run_id)[0]["payload"]["limits"]["nodeExecutions"] == most


# -- X-Dedup, X-Force-Engine-Version, mock providers -------------------------------------------


def test_dedup_refuses_a_second_run_of_a_scope(api: Api) -> None:
    enforce = {"X-Dedup": "enforce"}
    first = api.create("conformance-cancellable", enforce, scopeId="dedup-1")
    body = {"workflowId": "conformance-cancellable", "scopeId": "dedup-1"}
    answer = api.post("/v1/runs", body, headers=enforce)
    details = refused(answer, 409, "run_already_active")
    assert details["activeRunId"] == first
    assert details["activeHost"] in ("browser", "cloud")
    assert answer.headers["retry-after"] == str(details["retryAfter"])
    assert api.post("/v1/runs", {**body, "scopeId": "dedup-2"}, headers=enforce).status_code == 201
    other = api.post("/v1/runs", body)  # without the header nobody looks
    assert other.status_code == 201
    for run_id in (first, other.json()["runId"]):
        api.post(f"/v1/runs/{run_id}/cancel")
    again = api.post("/v1/runs", body, headers=enforce)
    assert again.status_code == 201
    api.post(f"/v1/runs/{again.json()['runId']}/cancel")


def test_dedup_holds_in_a_race(api: Api) -> None:
    answers: list[int] = []

    def create() -> None:
        body = {"workflowId": "conformance-cancellable", "scopeId": "dedup-race"}
        answers.append(api.post("/v1/runs", body, headers={"X-Dedup": "enforce"}).status_code)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + [409] * 7


def test_dedup_is_of_one_tenant_and_survives_a_restart(host: Callable[..., Any]) -> None:
    plain = host()
    plain.register(sleeping("sleep"))
    enforce = {"X-Dedup": "enforce"}
    run_id = plain.create("sleep", enforce, scopeId="s")
    other = plain.with_key(plain.new_key("b", tenant="b"))
    other.register(sleeping("sleep"))
    other.create("sleep", enforce, scopeId="s")
    plain.server.restart()
    answer = plain.post("/v1/runs", {"workflowId": "sleep", "scopeId": "s"}, headers=enforce)
    assert refused(answer, 409, "run_already_active")["activeRunId"] == run_id


@pytest.mark.parametrize("wrong", ["3", "-1", "x", "1.0", "", "²", "9" * 5000, "٣"])
def test_an_engine_version_out_of_range_is_refused(api: Api, wrong: str) -> None:
    headers = {"X-Force-Engine-Version": wrong.encode()}
    answer = api.post("/v1/runs", {"workflowId": "conformance-noop"}, headers=headers)
    details = refused(answer, 400, "unsupported_force_engine_version")
    advertised = api.get("/.well-known/openwop").json()["testing"]["forceEngineVersionRange"]
    assert details == advertised


def test_only_test_keys_force_a_version_or_name_a_mock(live: Api) -> None:
    headers = {"X-Force-Engine-Version": "1"}
    answer = live.post("/v1/runs", {"workflowId": "conformance-noop"}, headers=headers)
    refused(answer, 403, "force_engine_version_forbidden")
    body = {
        "workflowId": "conformance-stream-text",
        "configurable": {"mockProvider": {"id": "stream-text"}},
    }
    details = refused(live.post("/v1/runs", body), 403, "mock_provider_forbidden")
    assert details["requestedProvider"] == "stream-text"
    assert "stream-text" in details["supportedProviders"]


def test_a_test_key_made_by_the_api_may_name_a_mock(api: Api) -> None:
    secret = api.new_key("tester", test=True)
    assert secret.startswith("hk_test_")
    tester = api.with_key(secret)
    mock = {"mockProvider": {"id": "stream-text"}}
    assert tester.run("conformance-stream-text", configurable=mock)["status"] == "completed"


def test_without_conformance_no_key_may_name_a_mock(host: Callable[..., Any]) -> None:
    plain = host(MOOT_BOOTSTRAP_KEY="hk_test_of_this_test")
    plain.register(sleeping("sleep"))
    body = {"workflowId": "sleep", "configurable": {"mockProvider": {"id": "stream-text"}}}
    refused(plain.post("/v1/runs", body), 403, "mock_provider_forbidden")
    headers = {"X-Force-Engine-Version": "1"}
    answer = plain.post("/v1/runs", {"workflowId": "sleep"}, headers=headers)
    refused(answer, 403, "force_engine_version_forbidden")
    assert "testing" not in plain.get("/.well-known/openwop").json()


@pytest.mark.parametrize(
    ("mock", "code"),
    [
        ({"id": "nobody"}, "unsupported_mock_provider"),
        ({"id": 1}, "validation_error"),
        ({}, "validation_error"),
        ("stream-text", "validation_error"),
        ({"id": "stream-text", "x": 1}, "validation_error"),
    ],
)
def test_a_wrong_mock_is_refused(api: Api, mock: Any, code: str) -> None:
    body = {"workflowId": "conformance-stream-text", "configurable": {"mockProvider": mock}}
    refused(api.post("/v1/runs", body), 400, code)


def test_every_advertised_mock_answers(api: Api) -> None:
    configs: dict[str, Any] = {
        "stream-text": {"tokens": ["x"]},
        "tool-calls": {"toolCalls": [{"id": "1", "name": "f", "arguments": {"a": 1}}]},
        "error": {"code": "boom", "message": "as told"},
        "usage-only": {"usage": {"promptTokens": 3, "completionTokens": 4}},
    }
    advertised = api.get("/.well-known/openwop").json()["testing"]["mockProviders"]
    assert set(advertised) == set(configs)
    for name, config in configs.items():
        mock = {"mockProvider": {"id": name, "config": config}}
        found = api.run("conformance-stream-text", configurable=mock)
        if name == "error":
            assert found["error"] == {"code": "boom", "message": "as told"}
        else:
            assert found["status"] == "completed"


# -- registering -------------------------------------------------------------------------------


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


# -- reading -----------------------------------------------------------------------------------


def test_a_read_is_conditional(api: Api) -> None:
    run_id = api.run("conformance-noop")["runId"]
    first = api.get(f"/v1/runs/{run_id}")
    tag = first.headers["etag"]
    assert tag.startswith('"')
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": known})
        assert again.status_code == 304
        assert again.headers["etag"] == tag
        assert "content-length" not in again.headers
        assert "content-type" not in again.headers
    for unknown in ('"other"', "", tag.strip('"')):
        again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": unknown})
        assert again.status_code == 200


@pytest.mark.parametrize("said", ["no-cache", "max-age=0", "no-store"])
def test_a_callers_cache_control_does_not_defeat_if_none_match(api: Api, said: str) -> None:
    run_id = api.run("conformance-noop")["runId"]
    tag = api.get(f"/v1/runs/{run_id}").headers["etag"]
    headers = {"If-None-Match": tag, "Cache-Control": said, "Pragma": "no-cache"}
    assert api.get(f"/v1/runs/{run_id}", headers=headers).status_code == 304


def test_the_tag_moves_with_the_run(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    tag = api.get(f"/v1/runs/{run_id}").headers["etag"]
    api.post(f"/v1/runs/{run_id}/cancel")
    changed = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["status"]) == (200, "cancelled")


def test_the_tag_of_a_parent_moves_with_its_children(api: Api) -> None:
    api.register(sleeping("sleepy-child"))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "sleepy-child"}}
    api.register(definition("sleepy-parent", [call]))
    run_id = api.create("sleepy-parent")
    first = api.get(f"/v1/runs/{run_id}")
    child = first.json()["childRuns"][0]
    assert child["status"] == "running"
    headers = {"If-None-Match": first.headers["etag"]}
    assert api.get(f"/v1/runs/{run_id}", headers=headers).status_code == 304
    api.post(f"/v1/runs/{child['runId']}:pause", {"drainPolicy": "immediate"})
    changed = api.get(f"/v1/runs/{run_id}", headers=headers)
    assert changed.status_code == 200
    assert changed.json()["childRuns"][0]["status"] == "paused"
    api.post(f"/v1/runs/{run_id}/cancel")


def test_head_says_what_get_would(api: Api) -> None:
    run_id = api.run("conformance-noop")["runId"]
    whole = api.get(f"/v1/runs/{run_id}")
    head = api.call("HEAD", f"/v1/runs/{run_id}")
    assert head.status_code == 200
    for name in ("etag", "content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]


# -- cancelling --------------------------------------------------------------------------------


def test_a_cancel_is_idempotent(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    first = api.post(f"/v1/runs/{run_id}/cancel", {"reason": "x"})
    assert first.json() == {"runId": run_id, "status": "cancelled"}
    events = api.events(run_id)
    for body in (None, {}, {"reason": "y"}):
        again = api.post(f"/v1/runs/{run_id}/cancel", body)
        assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    assert api.events(run_id) == events


@pytest.mark.parametrize("name", ["conformance-noop", "conformance-failure"])
def test_a_cancel_of_an_ended_run_says_how_it_ended(api: Api, name: str) -> None:
    found = api.run(name)
    answer = api.post(f"/v1/runs/{found['runId']}/cancel")
    assert answer.status_code == 200
    assert answer.json()["status"] == found["status"]
    assert answer.json()["alreadyTerminal"] is True


@pytest.mark.parametrize(
    "body", [b"x", [], {"x": 1}, {"reason": 1}, {"reason": "x" * 513}, b'{"reason":"\xff"}']
)
def test_a_cancel_with_a_wrong_body_changes_nothing(api: Api, body: Any) -> None:
    run_id = api.create("conformance-cancellable")
    refused(api.post(f"/v1/runs/{run_id}/cancel", body), 400, "validation_error")
    assert api.read(run_id)["status"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")


def test_a_cancel_reaches_the_children(api: Api) -> None:
    api.register(sleeping("cancelled-child"))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "cancelled-child"}}
    api.register(definition("cancelled-parent", [call]))
    run_id = api.create("cancelled-parent")
    child = api.read(run_id)["childRuns"][0]["runId"]
    api.post(f"/v1/runs/{run_id}/cancel", {"reason": "mine"})
    assert api.until(child, "cancelled")["parentRunId"] == run_id
    said = api.events(child)[-1]["payload"]
    assert (said["reason"], said["parentRunId"]) == ("parent-cancelled", run_id)
    assert "parentRunId" not in api.events(run_id)[-1]["payload"]


def test_a_bulk_cancel_answers_each_in_order(api: Api, foreign: Api) -> None:
    foreign.register(sleeping("foreign-sleep"))
    theirs = foreign.create("foreign-sleep")
    running, cancelled = (
        api.create("conformance-cancellable"),
        api.create("conformance-cancellable"),
    )
    api.post(f"/v1/runs/{cancelled}/cancel")
    ended, failed = api.run("conformance-noop")["runId"], api.run("conformance-failure")["runId"]
    asked = [running, "nobody", cancelled, ended, failed, theirs, running]
    answer = api.post("/v1/runs:bulk-cancel", {"runIds": asked, "reason": "all of them"})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result["runId"] for result in results] == asked
    shown = [result.get("status") or result["error"]["code"] for result in results]
    assert shown == [
        "cancelled", "not_found", "cancelled", "run_terminal", "run_terminal", "not_found",
        "cancelled",
    ]  # fmt: skip
    for result in results:
        assert set(result) == {"runId", "ok", "status" if result["ok"] else "error"}
        assert result["ok"] or set(result["error"]) == {"code", "message"}
    assert foreign.read(theirs)["status"] == "running"
    assert api.events(running)[-1]["payload"]["reason"] == "all of them"
    foreign.post(f"/v1/runs/{theirs}/cancel")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"runIds": []},
        {"runIds": "x"},
        {"runIds": [1]},
        {"runIds": [""]},
        {"runIds": ["x" * 129]},
        {"runIds": None},
        {"runIds": ["x"], "reason": "y" * 513},
        {"runIds": ["x"], "more": 1},
        [],
        b"",
    ],
)
def test_a_bulk_cancel_that_does_not_fit_is_refused(api: Api, body: Any) -> None:
    refused(api.post("/v1/runs:bulk-cancel", body), 400, "validation_error")


def test_a_bulk_cancel_has_a_cap(api: Api) -> None:
    details = refused(
        api.post("/v1/runs:bulk-cancel", {"runIds": [f"r{n}" for n in range(101)]}),
        400,
        "validation_error",
    )
    assert details["maxRunIds"] == 100
    most = api.post("/v1/runs:bulk-cancel", {"runIds": [f"r{n}" for n in range(100)]})
    assert len(most.json()["results"]) == 100


# -- pausing -----------------------------------------------------------------------------------


def test_pause_at_once_and_resume(api: Api) -> None:
    def attempt(ms: int) -> httpx.Response | None:
        run_id = api.create("conformance-delay", inputs={"delayMs": ms})
        body = {"drainPolicy": "immediate", "reason": "wait"}
        return unless_over(api.post(f"/v1/runs/{run_id}:pause", body))

    paused = in_time(attempt, 800)
    assert paused.status_code == 202
    run_id = paused.json()["runId"]
    assert paused.json()["status"] == "paused"
    assert api.read(run_id)["status"] == "paused"
    said = next(e for e in api.events(run_id) if e["type"] == "run.paused")["payload"]
    assert (said["drainPolicy"], said["reason"]) == ("immediate", "wait")
    resumed = api.post(f"/v1/runs/{run_id}:resume", {"reason": "go"})
    assert resumed.status_code == 202
    assert (resumed.json()["runId"], resumed.json()["status"]) == (run_id, "running")
    api.until(run_id, "completed")
    types = api.types(run_id)
    after = types[types.index("run.paused") + 1 :]
    assert after[0] == "run.resumed"
    assert "node.started" in after  # a fresh attempt


def test_pause_lets_the_node_finish_first_by_default(api: Api) -> None:
    def attempt(ms: int) -> str | None:
        nap = {"id": "a", "typeId": "core.delay", "config": {"ms": ms}}
        api.register(definition("two-steps", [nap, {"id": "b", "typeId": "core.noop"}]))
        run_id = api.create("two-steps")
        if (first := unless_over(api.post(f"/v1/runs/{run_id}:pause"))) is None:
            return None
        assert first.status_code == 202
        second = api.post(f"/v1/runs/{run_id}:pause")
        standing = refused(second, 409, "conflict")["runStatus"]
        return run_id if standing == "running" else None

    run_id = in_time(attempt, 1000)
    api.until(run_id, "paused")
    types = api.types(run_id)
    assert types.index("node.completed") < types.index("run.paused")
    assert types[-1] == "run.paused"
    said = api.events(run_id)[-1]["payload"]
    assert said["drainPolicy"] == "drain-current-node"
    api.post(f"/v1/runs/{run_id}:resume")
    assert api.until(run_id)["status"] == "completed"


def test_a_second_pause_conflicts_and_says_since_when(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    first = api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"}).json()
    details = refused(api.post(f"/v1/runs/{run_id}:pause"), 409, "conflict")
    assert details["runStatus"] == "paused"
    assert details["pausedAt"] == first["pausedAt"] == api.read(run_id)["pausedAt"]
    api.post(f"/v1/runs/{run_id}/cancel")
    assert api.read(run_id)["status"] == "cancelled"


def test_a_resume_of_what_is_not_paused_conflicts(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    details = refused(api.post(f"/v1/runs/{run_id}:resume"), 409, "conflict")
    assert details["runStatus"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize("name", ["conformance-noop", "conformance-failure"])
def test_an_ended_run_is_neither_paused_nor_resumed(api: Api, verb: str, name: str) -> None:
    found = api.run(name)
    answer = api.post(f"/v1/runs/{found['runId']}:{verb}")
    assert refused(answer, 409, "run_terminal")["runStatus"] == found["status"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_an_unknown_run_is_neither_paused_nor_resumed(api: Api, verb: str) -> None:
    refused(api.post(f"/v1/runs/nobody:{verb}"), 404, "run_not_found")


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("pause", {"drainPolicy": "later"}),
        ("pause", {"drainPolicy": None}),
        ("pause", {"x": 1}),
        ("pause", {"reason": 1}),
        ("resume", {"drainPolicy": "immediate"}),
        ("resume", {"x": 1}),
        ("resume", []),
    ],
)
def test_a_pause_that_does_not_fit_is_refused(api: Api, verb: str, body: Any) -> None:
    run_id = api.create("conformance-cancellable")
    answer = api.post(f"/v1/runs/{run_id}:{verb}", body)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"] == "validation_error"
    assert api.read(run_id)["status"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")


def test_a_pause_survives_a_restart(host: Callable[..., Any]) -> None:
    plain = host()

    def attempt(ms: int) -> httpx.Response | None:
        plain.register(sleeping("nap", ms))
        path = f"/v1/runs/{plain.create('nap')}:pause"
        return unless_over(plain.post(path, {"drainPolicy": "immediate"}))

    run_id = in_time(attempt, 1000).json()["runId"]
    plain.server.restart()
    assert plain.read(run_id)["status"] == "paused"
    plain.post(f"/v1/runs/{run_id}:resume")
    assert plain.until(run_id)["status"] == "completed"


# -- listing -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(api: Api) -> tuple[Api, list[str]]:
    """A tenant of its own with runs of every kind, oldest first."""
    mine = api.with_key(api.new_key("crowd", tenant="crowd"))
    mine.register(sleeping("nap"))
    mine.register(definition("quick", [{"id": "a", "typeId": "core.noop"}]))
    mine.register(definition("bad", [{"id": "a", "typeId": "core.fail"}]))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "quick"}}
    mine.register(definition("parent", [call]))
    made = []
    for name in ("quick", "bad", "nap", "parent") * 5:
        run_id = mine.create(name)
        if name != "nap":
            mine.until(run_id)
        made.append(run_id)
    return mine, made


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("/v1/host/moot/runs", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["runs"])


def test_runs_are_listed_newest_first_in_pages(crowd: tuple[Api, list[str]]) -> None:
    mine, made = crowd
    for limit in (1, 3, 7, 500):
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            query = {"limit": limit, **cursor}
            page = mine.get("/v1/host/moot/runs", params=query).json()
            assert len(page["runs"]) <= limit
            found += [row["runId"] for row in page["runs"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert len(found) == len(set(found)) == 25
        assert [run_id for run_id in found if run_id in made] == made[::-1]


def test_runs_are_filtered(crowd: tuple[Api, list[str]]) -> None:
    mine, made = crowd
    statuses = {
        "completed": 15, "failed": 5, "running": 5, "waiting": 0, "cancelled": 0,
        "completed,failed": 20, "running,completed,failed": 25,
    }  # fmt: skip
    for status, number in statuses.items():
        rows = listed(mine, status=status)
        assert len(rows) == number, status
        assert {row["status"] for row in rows} <= set(status.split(","))
    assert {row["workflowId"] for row in listed(mine, workflow="bad")} == {"bad"}
    assert {row["errorCode"] for row in listed(mine, workflow="bad")} == {
        "conformance_test_failure"
    }
    assert listed(mine, workflow="none") == []
    parent = made[3]
    children = listed(mine, parent=parent)
    assert [row["parentRunId"] for row in children] == [parent]
    assert [row["runId"] for row in listed(mine, prefix=parent)] == [parent]
    assert [row["runId"] for row in listed(mine, prefix=parent[:12])] == [parent]
    assert len(listed(mine, prefix="run_")) == 25
    assert listed(mine, prefix="%") == listed(mine, prefix="_") == listed(mine, agent="x") == []
    both = listed(mine, status="completed", workflow="parent", limit=2)
    assert {(row["status"], row["workflowId"]) for row in both} == {("completed", "parent")}


def test_a_row_agrees_with_the_run(crowd: tuple[Api, list[str]]) -> None:
    mine, _ = crowd
    for row in listed(mine):
        found = mine.read(row["runId"])
        assert (row["status"], row["workflowId"]) == (found["status"], found["workflowId"])
        assert row["eventCount"] == found["metrics"]["eventCount"]
        assert row["startedAt"] == found["startedAt"]
        assert row.get("completedAt") == found.get("completedAt")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "0"),
        ("limit", "501"),
        ("limit", "x"),
        ("limit", "-1"),
        ("limit", "9" * 5000),
        ("status", "asleep"),
        ("cursor", "x"),
        ("cursor", ""),
        ("cursor", "AAAA"),
        ("cursor", "ü"),
    ],
)
def test_a_wrong_list_query_is_refused(api: Api, name: str, value: str) -> None:
    refused(api.get("/v1/host/moot/runs", params={name: value}), 400, "validation_error")


# -- artifacts and bundles ---------------------------------------------------------------------


def test_an_artifact_is_kept_and_read(api: Api, foreign: Api) -> None:
    emit = {
        "id": "emit",
        "typeId": "conformance.artifact.emit",
        "config": {"artifactType": "report", "data": {"x": [1, "ü"]}},
    }
    api.register(definition("artifact", [emit]))
    run_id = api.run("artifact")["runId"]
    made = next(e for e in api.events(run_id) if e["type"] == "artifact.created")["payload"]
    assert (made["artifactType"], made["nodeId"]) == ("report", "emit")
    path = f"/v1/runs/{run_id}/artifacts/{made['artifactId']}"
    body = api.get(path).json()
    assert body["data"] == {"x": [1, "ü"]}
    assert (body["artifactType"], body["runId"]) == ("report", run_id)
    refused(api.get(f"/v1/runs/{run_id}/artifacts/none"), 404, "artifact_not_found")
    refused(foreign.get(path), 404, "artifact_not_found")
    assert api.with_key(None).get(path).status_code == 401


def test_a_bundle_holds_the_run_and_its_log(api: Api) -> None:
    run_id = api.run("conformance-multi-node")["runId"]
    answer = api.get(f"/v1/runs/{run_id}/debug-bundle")
    assert answer.headers["cache-control"] == "no-store"
    bundle = answer.json()
    assert bundle["events"] == api.events(run_id)
    assert bundle["run"]["runId"] == run_id
    assert bundle["metrics"] == {"eventCount": len(bundle["events"]), "nodeCount": 3}
    assert len(bundle["spans"]) == 3
    assert all(span["endedAt"] for span in bundle["spans"])
    assert "truncated" not in bundle
    assert (bundle["redactionApplied"], bundle["redactionMode"]) == (False, "mask")


@pytest.mark.parametrize("most", [0, 1, 5])
def test_a_bundle_is_cut_openly(api: Api, most: int) -> None:
    run_id = api.run("conformance-multi-node")["runId"]
    bundle = api.get(f"/v1/runs/{run_id}/debug-bundle", params={"maxEvents": most}).json()
    assert bundle["events"] == api.events(run_id)[:most]
    assert bundle["truncated"] is True
    assert bundle["truncatedReason"]


def test_a_bundle_is_cut_at_eight_megabytes(host: Callable[..., Api]) -> None:
    busy = host("--nodes", NODES)
    flood = {"id": "a", "typeId": "wire.flood", "config": {"count": 1000, "size": 10_000}}
    busy.register(definition("flood", [flood]))
    run_id = busy.run("flood")["runId"]
    answer = busy.get(f"/v1/runs/{run_id}/debug-bundle")
    assert answer.json()["truncatedReason"] == "events_truncated_to_size_cap"
    assert 7_000_000 < len(answer.content) < 9_000_000


def test_a_bundle_of_a_living_run_narrows_its_status(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"})
    run = api.get(f"/v1/runs/{run_id}/debug-bundle").json()["run"]
    assert (run["status"], run["exactStatus"], run["endedAt"]) == ("running", "paused", None)
    api.post(f"/v1/runs/{run_id}/cancel")


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "9" * 5000])
def test_a_bundle_of_an_impossible_size_is_refused(api: Api, wrong: str) -> None:
    run_id = api.run("conformance-noop")["runId"]
    answer = api.get(f"/v1/runs/{run_id}/debug-bundle", params={"maxEvents": wrong})
    refused(answer, 400, "validation_error")


SECRET = "my-secret-0xC0FFEE"


@pytest.mark.parametrize(
    ("mode", "kind"),
    list(itertools.product(["mask", "omit", "hash"], ["variable", "output", "channel"])),
)
def test_what_is_sensitive_leaves_the_host_nowhere(api: Api, mode: str, kind: str) -> None:
    """Snapshot, log, streams, bundle, list: none says it; the nodes themselves see it."""
    check = {
        "id": "check",
        "typeId": "core.conditional",
        "config": {},
        "inputs": {"value": {"type": "expression", "expression": "variables.seen == true"}},
    }
    echo: dict[str, Any] = {"id": "echo", "typeId": "core.identity"}
    more: dict[str, Any] = {
        "metadata": {"complianceConfig": {"maskingMode": mode}},
        "variables": [
            {"name": "secret", "type": "string", "sensitive": kind == "variable"},
            {"name": "seen", "type": "boolean"},
        ],
    }
    inputs: dict[str, Any] = {"seen": True}
    if kind == "variable":
        inputs["secret"] = SECRET
    elif kind == "output":
        echo["inputs"] = {
            "secret": {"type": "expression", "expression": "'my-secret-' + '0xC0FFEE'"}
        }
        echo["outputSensitivity"] = {"secret": True}
    else:
        echo["typeId"] = "core.channelWrite"
        echo["config"] = {"channelName": "c", "reducer": "replace"}
        echo["inputs"] = {
            "value": {"type": "expression", "expression": "'my-secret-' + '0xC0FFEE'"}
        }
        more["channels"] = {"c": {"reducer": "replace", "sensitive": True}}
    api.register(definition(f"sensitive-{mode}-{kind}", [echo, check], **more))
    found = api.run(f"sensitive-{mode}-{kind}", inputs=inputs)
    run_id = found["runId"]
    assert found["status"] == "completed", found
    bundle = api.get(f"/v1/runs/{run_id}/debug-bundle")
    assert bundle.json()["redactionApplied"] is True
    assert bundle.json()["redactionMode"] == mode
    texts = [json.dumps(found), bundle.text, json.dumps(api.events(run_id))]
    texts += [json.dumps(api.stream(run_id, streamMode=mode_)) for mode_ in ("debug", "values")]
    texts.append(api.get("/v1/host/moot/runs", params={"prefix": run_id}).text)
    assert not [text for text in texts if SECRET in text]


def test_passthrough_never_claims_to_redact(api: Api) -> None:
    more = {"metadata": {"complianceConfig": {"maskingMode": "passthrough"}}}
    more["variables"] = [{"name": "x", "type": "string", "sensitive": True}]  # type: ignore[assignment]
    api.register(sleeping("passing", 0, **more))
    run_id = api.run("passing", inputs={"x": "[REDACTED]"})["runId"]
    bundle = api.get(f"/v1/runs/{run_id}/debug-bundle").json()
    assert (bundle["redactionApplied"], bundle["redactionMode"]) == (False, "passthrough")


# -- families that are not offered -------------------------------------------------------------

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


# -- the seams of conformance mode -------------------------------------------------------------


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
