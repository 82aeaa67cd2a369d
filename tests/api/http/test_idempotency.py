"""Idempotency, layer 1 (protocol 7.1): the same key and body get the first answer again."""

import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from moot.api.app import App
from moot.api.services import Services
from moot.core.errors import MootError, StorageFailed, Unavailable
from moot.store.protocol import Receipt
from tests.support.api.application import ask
from tests.support.api.caller import Api, definition

REPLAYED = "openwop-idempotent-replay"
counter = itertools.count()


def fresh() -> str:
    """A key nobody has used before in this process."""
    return f"idem-{next(counter)}"


def with_key(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


def same(first: httpx.Response, again: httpx.Response) -> None:
    assert again.headers.get(REPLAYED) == "true"
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert first.headers.get(REPLAYED, "false") == "false"


def body(**more: Any) -> dict[str, Any]:
    return {"workflowId": "conformance-idempotent", "inputs": {"nonce": "a"}, **more}


def runs_of(api: Api, **query: Any) -> int:
    return len(api.get("/v1/host/moot/runs", params={"limit": 500, **query}).json()["runs"])


def test_the_same_create_is_made_once(api: Api) -> None:
    headers = with_key(fresh())
    first = api.post("/v1/runs", body(), headers=headers)
    assert first.status_code == 201
    for _ in range(5):
        same(first, api.post("/v1/runs", body(), headers=headers))


def test_a_replay_brings_the_headers_too(api: Api) -> None:
    headers = with_key(fresh())
    first = api.post("/v1/runs", body(), headers=headers)
    again = api.post("/v1/runs", body(), headers=headers)
    assert again.headers["location"] == first.headers["location"]


def test_the_form_of_the_json_does_not_matter(api: Api) -> None:
    headers = with_key(fresh())
    first = api.post("/v1/runs", body(), headers=headers)
    turned = dict(reversed(list(body().items())))
    spaced = json.dumps(turned, indent=3).encode()
    same(first, api.post("/v1/runs", spaced, headers=headers))


@pytest.mark.parametrize(
    "other",
    [
        body(inputs={"nonce": "b"}),
        body(tags=[]),
        body(inputs={"nonce": "a", "more": 1}),
        {"workflowId": "conformance-noop"},
    ],
)
def test_another_body_conflicts(api: Api, other: Any) -> None:
    headers = with_key(fresh())
    first = api.post("/v1/runs", body(), headers=headers)
    answer = api.post("/v1/runs", other, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (409, "idempotency_key_mismatch")
    assert first.json()["runId"] not in answer.text
    assert REPLAYED not in answer.headers
    same(first, api.post("/v1/runs", body(), headers=headers))


def test_a_body_that_is_no_longer_json_conflicts_too(api: Api) -> None:
    headers = with_key(fresh())
    api.post("/v1/runs", body(), headers=headers)
    answer = api.post("/v1/runs", b"{", headers=headers)
    assert answer.status_code == 409


def test_ten_at_once_make_one_run(api: Api) -> None:
    mine = api.with_key(api.new_key("parallel", tenant="parallel"))
    mine.register(
        definition("sleep", [{"id": "a", "typeId": "core.delay", "config": {"ms": 60000}}])
    )
    for _ in range(5):
        headers = with_key(fresh())
        before = runs_of(mine)
        answers: list[httpx.Response] = []

        def create(headers: dict[str, str] = headers, answers: Any = answers) -> None:
            answers.append(mine.post("/v1/runs", {"workflowId": "sleep"}, headers=headers))

        threads = [threading.Thread(target=create) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["runId"] for answer in answers}) == 1
        assert sorted(answer.headers.get(REPLAYED, "") for answer in answers) == [""] + ["true"] * 9
        assert runs_of(mine) == before + 1


def test_keys_are_of_one_tenant(api: Api, foreign: Api) -> None:
    headers = with_key(fresh())
    foreign.register(definition("own-noop", [{"id": "a", "typeId": "core.noop"}]))
    api.register(definition("own-noop", [{"id": "a", "typeId": "core.noop"}]))
    mine = api.post("/v1/runs", {"workflowId": "own-noop"}, headers=headers)
    theirs = foreign.post("/v1/runs", {"workflowId": "own-noop"}, headers=headers)
    assert (mine.status_code, theirs.status_code) == (201, 201)
    assert REPLAYED not in theirs.headers
    assert mine.json()["runId"] != theirs.json()["runId"]


def test_another_key_of_the_same_tenant_sees_the_same_answer(api: Api, live: Api) -> None:
    headers = with_key(fresh())
    first = api.post("/v1/runs", body(), headers=headers)
    same(first, live.post("/v1/runs", body(), headers=headers))


def test_keys_are_of_one_operation(api: Api) -> None:
    headers = with_key(fresh())
    run_id = api.post(
        "/v1/runs", {"workflowId": "conformance-cancellable"}, headers=headers
    ).json()["runId"]
    cancelled = api.post(f"/v1/runs/{run_id}/cancel", headers=headers)
    assert cancelled.status_code == 200
    assert REPLAYED not in cancelled.headers
    assert cancelled.json()["status"] == "cancelled"


def test_the_run_in_the_path_belongs_to_the_request(api: Api) -> None:
    """One key for two runs must not give the first run's answer for the second."""
    headers = with_key(fresh())
    one, two = api.create("conformance-cancellable"), api.create("conformance-cancellable")
    first = api.post(f"/v1/runs/{one}/cancel", headers=headers)
    answer = api.post(f"/v1/runs/{two}/cancel", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (409, "idempotency_key_mismatch")
    assert api.read(two)["status"] == "running"
    same(first, api.post(f"/v1/runs/{one}/cancel", headers=headers))
    api.post(f"/v1/runs/{two}/cancel")


def test_every_mutating_route_of_the_protocol_remembers(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    calls: list[tuple[str, Any]] = [
        (f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"}),
        (f"/v1/runs/{run_id}:resume", {}),
        (f"/v1/runs/{run_id}/cancel", {"reason": "x"}),
        ("/v1/runs:bulk-cancel", {"runIds": [run_id]}),
    ]
    for path, given in calls:
        headers = with_key(fresh())
        first = api.post(path, given, headers=headers)
        assert first.status_code in (200, 202)
        events = api.events(run_id)
        same(first, api.post(path, given, headers=headers))
        assert api.events(run_id) == events


def test_a_pause_is_repeated_where_a_second_one_conflicts(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    headers = with_key(fresh())
    first = api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"}, headers=headers)
    assert first.status_code == 202
    assert api.post(f"/v1/runs/{run_id}:pause").status_code == 409
    same(first, api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"}, headers=headers))
    api.post(f"/v1/runs/{run_id}/cancel")


def test_a_final_refusal_is_remembered(api: Api) -> None:
    headers = with_key(fresh())
    missing = api.post("/v1/runs", {"workflowId": "comes-later"}, headers=headers)
    assert missing.status_code == 404
    api.register(definition("comes-later", [{"id": "a", "typeId": "core.noop"}]))
    same(missing, api.post("/v1/runs", {"workflowId": "comes-later"}, headers=headers))
    ended = api.run("conformance-noop")["runId"]
    headers = with_key(fresh())
    conflict = api.post(f"/v1/runs/{ended}:pause", headers=headers)
    assert conflict.status_code == 409
    same(conflict, api.post(f"/v1/runs/{ended}:pause", headers=headers))


def test_a_refusal_that_asks_to_try_again_is_not_remembered(api: Api) -> None:
    """run_already_active comes with Retry-After: the retry must be able to succeed."""
    enforce = {"X-Dedup": "enforce"}
    active = api.create("conformance-cancellable", enforce, scopeId="idem-scope")
    headers = {**with_key(fresh()), **enforce}
    given = {"workflowId": "conformance-cancellable", "scopeId": "idem-scope"}
    assert api.post("/v1/runs", given, headers=headers).status_code == 409
    api.post(f"/v1/runs/{active}/cancel")
    again = api.post("/v1/runs", given, headers=headers)
    assert again.status_code == 201
    assert REPLAYED not in again.headers
    same(again, api.post("/v1/runs", given, headers=headers))
    api.post(f"/v1/runs/{again.json()['runId']}/cancel")


def test_400_401_and_403_are_never_remembered(api: Api, live: Api) -> None:
    headers = with_key(fresh())
    assert api.post("/v1/runs", {"workflowId": ""}, headers=headers).status_code == 400
    assert api.post("/v1/runs", b"{", headers=headers).status_code == 400
    assert api.with_key(None).post("/v1/runs", body(), headers=headers).status_code == 401
    assert api.with_key("hk_no").post("/v1/runs", body(), headers=headers).status_code == 401
    weak = api.with_key(api.new_key("weak", scopes=["runs:read"]))
    assert weak.post("/v1/runs", body(), headers=headers).status_code == 403
    mock = {
        "workflowId": "conformance-stream-text",
        "configurable": {"mockProvider": {"id": "stream-text"}},
    }
    assert live.post("/v1/runs", mock, headers=headers).status_code == 403
    first = api.post("/v1/runs", body(), headers=headers)
    assert first.status_code == 201
    assert REPLAYED not in first.headers


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "x" * 8000])
def test_an_impossible_key_is_refused(api: Api, key: str) -> None:
    answer = api.post("/v1/runs", body(), headers=with_key(key))
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


@pytest.mark.parametrize("key", ["x" * 255, "a", "A-z_0.9~", "a b", "ü" * 10])
def test_a_possible_key_is_taken(api: Api, key: str) -> None:
    encoded = {b"Idempotency-Key": (key + fresh() if len(key) < 200 else key).encode("latin-1")}
    first = api.post("/v1/runs", body(), headers=encoded)
    assert first.status_code == 201
    same(first, api.post("/v1/runs", body(), headers=encoded))


def test_a_read_takes_no_notice_of_a_key(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    headers = with_key(fresh())
    assert api.get(f"/v1/runs/{run_id}", headers=headers).json()["status"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")
    again = api.get(f"/v1/runs/{run_id}", headers=headers)
    assert again.json()["status"] == "cancelled"
    assert REPLAYED not in again.headers


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_an_answer_survives_the_server(host: Callable[..., Any], how: str) -> None:
    plain = host()
    plain.register(
        definition("sleep", [{"id": "a", "typeId": "core.delay", "config": {"ms": 60000}}])
    )
    headers = with_key(fresh())
    first = plain.post("/v1/runs", {"workflowId": "sleep"}, headers=headers)
    if how == "kill":
        plain.server.kill()
        plain.server.start()
    else:
        plain.server.restart()
    same(first, plain.post("/v1/runs", {"workflowId": "sleep"}, headers=headers))
    other = plain.post("/v1/runs", {"workflowId": "sleep", "tags": ["x"]}, headers=headers)
    assert other.status_code == 409
    assert runs_of(plain) == 1


def test_the_retention_that_is_advertised_is_a_day_at_least(api: Api) -> None:
    claim = api.get("/.well-known/openwop").json()["idempotency"]
    assert claim["layer1RetentionSeconds"] >= 24 * 3600


def test_a_new_keys_secret_is_shown_once_even_to_a_retry(host: Callable[..., Any]) -> None:
    plain = host()
    headers = with_key(fresh())
    first = plain.post("/v1/host/moot/keys", {"name": "once"}, headers=headers)
    secret = first.json()["key"]
    again = plain.post("/v1/host/moot/keys", {"name": "once"}, headers=headers)
    assert again.headers[REPLAYED] == "true"
    assert again.json() == {name: v for name, v in first.json().items() if name != "key"}
    plain.server.stop()
    for file in plain.server.folder.iterdir():
        assert secret.encode() not in file.read_bytes(), file.name


# -- answers that cannot be stored -----------------------------------------------------------------


@pytest.mark.parametrize("failure", [StorageFailed("The disk is full."), Unavailable("Busy.")])
async def test_a_key_is_handed_out_even_if_the_answer_cannot_be_kept(
    services: Services,
    bearer: str,
    failure: MootError,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def remember(receipt: Receipt) -> None:
        raise failure

    monkeypatch.setattr(services.host, "remember", remember)
    said = await ask(
        App(services),
        "POST",
        "/v1/host/moot/keys",
        {"name": "made"},
        authorization=bearer,
        idempotency_key="once",
    )
    assert said.status == 201
    assert said.body["key"].startswith("hk_")
    assert [key.name for key in await services.store.keys(None)] == ["local", "made"]
    assert "could not be kept" in caplog.text
