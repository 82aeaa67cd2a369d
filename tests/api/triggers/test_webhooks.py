"""Webhooks over the wire: registered, signed, told once, never of what was told before."""

import hashlib
import hmac
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.addresses import NAMES, PUBLIC, TRICKY
from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused
from tests.support.servers import ServerProcess, server_environment
from tests.support.webhook_receiver import Receiver, Told

INSIDE = {"MOOT_ALLOW_PRIVATE_TARGETS": "1"}
FLOW = definition("noop", [{"id": "a", "typeId": "core.noop"}])
HOOKS = "/v1/host/moot/webhooks"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture(scope="module")
def telling(answers: AnswerChecks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A host that may call receivers on this machine."""
    folder = tmp_path_factory.mktemp("telling")
    process = ServerProcess(folder, [], server_environment() | INSIDE)
    with Api(process.url, process.key, answers) as found:
        found.post("/v1/host/moot/workflows", FLOW)
        yield found
    process.stop()


def registered(api: Api, receiver: Receiver, **more: object) -> dict[str, str]:
    body = {"url": f"{receiver.url}/hook", "events": ["run.completed"], **more}
    answer = api.post("/v1/webhooks", body)
    assert answer.status_code == 201, answer.text
    found: dict[str, str] = answer.json()
    return found


def of(run_id: str) -> Callable[[list[Told]], list[Told]]:
    return lambda told: [each for each in told if each.body["runId"] == run_id]


def test_an_event_is_told_once_and_signed_over_the_very_bytes(
    telling: Api, receiver: Receiver
) -> None:
    hook = registered(telling, receiver)
    assert len(hook["secret"]) == 64 and int(hook["secret"], 16)
    assert hook["secretFingerprint"] == hashlib.sha256(hook["secret"].encode()).hexdigest()[:8]
    run = telling.run("noop")
    [told] = of(run["runId"])(receiver.until(of(run["runId"])))
    stamp = told.headers["x-openwop-timestamp"]
    signed = hmac.new(hook["secret"].encode(), f"{stamp}.".encode() + told.raw, hashlib.sha256)
    assert told.headers["x-openwop-signature"] == f"sha256={signed.hexdigest()}"
    assert told.headers["x-openwop-signature-algorithm"] == "v1"
    assert told.headers["x-openwop-webhook-id"] == hook["webhookId"]
    assert told.headers["x-openwop-event-type"] == "run.completed"
    assert told.headers["user-agent"].startswith("openwop-webhook-dispatcher/")
    assert set(told.body) == {"runId", "workspaceId", "event"}
    assert told.event == telling.events(run["runId"])[-1]
    telling.delete(f"/v1/webhooks/{hook['webhookId']}")


def test_a_replay_tells_nothing_of_what_it_says_again(telling: Api, receiver: Receiver) -> None:
    hook = registered(telling, receiver, events=["*"])
    run = telling.run("noop")
    receiver.until(lambda told: len(of(run["runId"])(told)) == len(telling.events(run["runId"])))
    fork = telling.post(f"/v1/runs/{run['runId']}:fork", {"fromSeq": 0, "mode": "replay"}).json()
    last = telling.run("noop")
    told = receiver.until(lambda seen: len(of(last["runId"])(seen)) >= 4)
    assert of(fork["runId"])(told) == []
    telling.delete(f"/v1/webhooks/{hook['webhookId']}")


def test_one_that_fails_is_tried_again_and_then_lies_among_the_dead_letters(
    telling: Api, receiver: Receiver
) -> None:
    hook = registered(telling, receiver)
    receiver.answer = lambda told: 500 if len(receiver.told) < 1 else 200
    run = telling.run("noop")
    told = receiver.until(lambda seen: len(of(run["runId"])(seen)) == 2)
    assert told[0].raw == told[1].raw
    shown = telling.get(f"{HOOKS}/{hook['webhookId']}").json()
    assert shown["state"] == "active"
    assert telling.get(f"{HOOKS}/{hook['webhookId']}/dead-letters").json() == {"deadLetters": []}
    telling.delete(f"/v1/webhooks/{hook['webhookId']}")


def test_a_redirect_is_a_failure_and_is_not_followed(telling: Api, receiver: Receiver) -> None:
    hook = registered(telling, receiver)
    receiver.location = f"{receiver.url}/elsewhere"
    receiver.answer = lambda told: 302
    telling.run("noop")
    told = receiver.until(lambda seen: len(seen) >= 2)
    assert {each.path for each in told} == {"/hook"}
    telling.delete(f"/v1/webhooks/{hook['webhookId']}")


def test_another_secret_signs_at_once_and_the_one_before_for_a_while(
    telling: Api, receiver: Receiver
) -> None:
    hook = registered(telling, receiver)
    path = f"/v1/webhooks/{hook['webhookId']}/rotate-secret"
    fresh = telling.post(path, {}).json()
    assert fresh["secret"] != hook["secret"]
    run = telling.run("noop")
    [told] = of(run["runId"])(receiver.until(of(run["runId"])))
    signed = told.headers["x-openwop-timestamp"].encode() + b"." + told.raw
    for secret, header in (
        (fresh["secret"], "x-openwop-signature"),
        (hook["secret"], "x-openwop-signature-previous"),
    ):
        digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        assert told.headers[header] == f"sha256={digest}"
    telling.delete(f"/v1/webhooks/{hook['webhookId']}")


def test_only_events_of_its_own_tenant_and_of_its_tags_are_told(
    telling: Api, receiver: Receiver
) -> None:
    other = telling.with_key(telling.new_key("other", tenant="others", admin=True))
    other.post("/v1/host/moot/workflows", FLOW)
    registered(other, receiver, tags=["wanted"])
    telling.run("noop")
    other.run("noop")
    wanted = other.run("noop", tags=["wanted"])
    told = receiver.until(of(wanted["runId"]))
    assert [each.body["runId"] for each in told] == [wanted["runId"]]
    assert told[0].body["workspaceId"] == "others"


def test_what_was_written_is_told_after_a_sudden_end(
    host: Callable[..., Api], receiver: Receiver
) -> None:
    api = host(**INSIDE)
    api.post("/v1/host/moot/workflows", FLOW)
    registered(api, receiver)
    receiver.answer = lambda told: 503
    run = api.run("noop")
    receiver.until(of(run["runId"]))
    api.server.kill()  # type: ignore[attr-defined]
    receiver.answer = lambda told: 200
    before = len(receiver.told)
    api.server.start()  # type: ignore[attr-defined]
    receiver.until(lambda seen: len(seen) > before)


def test_what_a_secret_is_for_nobody_reads_again(telling: Api, receiver: Receiver) -> None:
    key = {"Idempotency-Key": "register-once"}
    body = {"url": receiver.url, "events": ["run.failed"]}
    first = telling.post("/v1/webhooks", body, headers=key)
    again = telling.post("/v1/webhooks", body, headers=key)
    assert again.json()["webhookId"] == first.json()["webhookId"]
    assert "secret" in first.json() and "secret" not in again.json()
    listed = telling.get(HOOKS)
    assert first.json()["secret"] not in listed.text
    assert first.json()["webhookId"] in listed.text


BAD = [
    ({"events": ["run.completed"]}, 400, "validation_error"),
    ({"url": "https://a.example/", "events": []}, 400, "validation_error"),
    ({"url": "https://a.example/"}, 400, "validation_error"),
    ({"url": "https://a.example/", "events": ["*"], "secret": "mine"}, 400, "validation_error"),
    ({"url": "http://a.example/", "events": ["run.failed"]}, 400, "webhook_url_rejected"),
    ({"url": "https://127.0.0.1/", "events": ["run.failed"]}, 400, "webhook_url_rejected"),
    ({"url": "https://[::ffff:10.0.0.1]/", "events": ["run.failed"]}, 400, "webhook_url_rejected"),
    ({"url": "https://localhost/", "events": ["run.failed"]}, 400, "webhook_url_rejected"),
    ({"url": "nonsense", "events": ["run.failed"]}, 400, "validation_error"),
    (
        {"url": "https://a.example/", "events": ["run.failed"], "tenantId": "elsewhere"},
        403,
        "tenant_membership_required",
    ),
]


def names(api: Api) -> list[str]:
    return [each["webhookId"] for each in api.get(HOOKS).json()["webhooks"]]


@pytest.mark.parametrize(("body", "status", "code"), BAD, ids=range(len(BAD)))
def test_a_registration_that_cannot_be_is_refused(
    api: Api, body: dict[str, object], status: int, code: str
) -> None:
    before = names(api)
    refused(api.post("/v1/webhooks", body), status, code)
    assert names(api) == before


def test_what_is_not_there_or_anothers_cannot_be_removed(api: Api, foreign: Api) -> None:
    refused(api.delete("/v1/webhooks/wh_nothing"), 404, "subscription_not_found")
    hook = foreign.post("/v1/webhooks", {"url": "https://a.example/", "events": ["*"]}).json()
    path = f"/v1/webhooks/{hook['webhookId']}"
    refused(api.delete(path), 404, "subscription_not_found")
    refused(api.post(f"{path}/rotate-secret", {}), 404, "subscription_not_found")
    assert foreign.delete(path).status_code == 204


# -- addresses inside the network ------------------------------------------------------------------


#: names are looked up here as a resolver that somebody else has filled would answer
RESOLVER = """
import json
import socket
from types import SimpleNamespace

from moot.net import dns

NAMES = json.loads({names!r})


def answered(name, port, **_):
    return [(0, 0, 0, "", (found, port)) for found in NAMES.get(name, [{public!r}])]


dns.socket = SimpleNamespace(getaddrinfo=answered, SOCK_STREAM=socket.SOCK_STREAM)
"""


def test_none_of_them_is_registered_and_nobody_inside_is_called(
    host: Callable[..., Any], tmp_path: Path
) -> None:
    nodes = tmp_path / "resolver.py"
    nodes.write_text(RESOLVER.format(names=json.dumps(NAMES), public=PUBLIC))
    api = host("--nodes", str(nodes))
    with socket.create_server(("127.0.0.1", 0)) as inside:
        port = str(inside.getsockname()[1])
        for address in TRICKY:
            url = address.replace("PORT", port)
            answer = api.post("/v1/webhooks", {"url": url, "events": ["*"]})
            assert answer.status_code == 400, (url, answer.text)
            assert answer.json()["error"] in ("webhook_url_rejected", "validation_error"), url
        assert api.get("/v1/host/moot/webhooks").json()["webhooks"] == []
        ordinary = {"url": "https://hooks.example.com/moot", "events": ["run.completed"]}
        assert api.post("/v1/webhooks", ordinary).status_code == 201, "the resolver is asked"
        inside.setblocking(False)
        with pytest.raises(BlockingIOError):
            inside.accept()
