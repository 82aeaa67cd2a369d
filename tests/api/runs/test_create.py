"""Starting runs: bodies, options, duplicates, mock providers."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api, sleeping
from tests.support.api.questions import refused


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
