"""Receivers that fail, over the wire: left alone for a while, seen, called again on a word."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused
from tests.support.servers import ServerProcess, server_environment
from tests.support.webhook_receiver import Receiver

HOOKS = "/v1/host/moot/webhooks"
FLOW = definition("noop", [{"id": "a", "typeId": "core.noop"}])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    inside = {"MOOT_ALLOW_PRIVATE_TARGETS": "1"}
    process = ServerProcess(tmp_path_factory.mktemp("failing"), [], server_environment() | inside)
    yield process
    process.stop()


@pytest.fixture(scope="module")
def api(server: ServerProcess, answers: AnswerChecks) -> Iterator[Api]:
    with Api(server.url, server.key, answers) as found:
        found.post("/v1/host/moot/workflows", FLOW)
        yield found


def eventually(api: Api, path: str, so: Callable[[Any], bool]) -> dict[str, Any]:
    """The webhook once it is so."""
    until = time.monotonic() + 60
    while not so(view := api.get(path).json()):
        assert time.monotonic() < until, view
        time.sleep(0.02)
    return dict(view)


def notices(api: Api) -> list[dict[str, Any]]:
    found = api.get("/v1/host/moot/inbox").json().get("notices", [])
    return [notice for notice in found if notice.get("source") == "outbound"]


def registered(api: Api, receiver: Receiver, *events: str) -> str:
    body = {"url": f"{receiver.url}/hook?token=CANARY", "events": list(events)}
    answer = api.post("/v1/webhooks", body)
    assert answer.status_code == 201, answer.text
    return f"{HOOKS}/{answer.json()['webhookId']}"


def test_who_is_left_alone_is_seen_with_why_and_what_waits_and_is_called_again_on_a_word(
    api: Api, receiver: Receiver
) -> None:
    receiver.answer = lambda told: 500
    path = registered(api, receiver, "*")
    run = api.run("noop")
    count = len(api.events(run["runId"]))
    shown = eventually(api, path, lambda view: "leftAloneUntil" in view)
    assert shown["state"] == "active" and shown["waiting"] == count
    assert shown["lastError"] == "The receiver answered 500." and shown["failuresInARow"] >= 4
    [listed] = [row for row in api.get(HOOKS).json()["webhooks"] if path.endswith(row["webhookId"])]
    assert listed["leftAloneUntil"] and listed["waiting"] == count
    [notice] = notices(api)
    assert notice["id"] == listed["webhookId"] and notice["actions"] == ["resume"]
    assert "The receiver answered 500." in notice["text"] and "CANARY" not in notice["text"]
    receiver.answer = lambda told: 200
    resumed = api.post(f"{path}/resume", {}).json()
    assert "leftAloneUntil" not in resumed and resumed["failuresInARow"] == 0
    eventually(api, path, lambda view: view["deliveries"] == {})
    assert notices(api) == []
    api.delete(path.replace("/host/moot", ""))


def test_while_it_is_paused_nothing_is_told_and_afterwards_everything(
    api: Api, receiver: Receiver
) -> None:
    path = registered(api, receiver, "run.completed")
    assert api.post(f"{path}/pause", {}).json()["state"] == "paused"
    runs = [api.run("noop")["runId"] for _ in range(3)]
    assert api.get(path).json()["waiting"] == 3 and receiver.told == []
    assert api.post(f"{path}/resume", {}).json()["state"] == "active"
    told = receiver.until(lambda seen: len(seen) == 3)
    assert sorted(each.body["runId"] for each in told) == sorted(runs)
    api.delete(path.replace("/host/moot", ""))


def test_what_is_no_dead_letter_is_neither_sent_again_nor_dropped(
    api: Api, receiver: Receiver
) -> None:
    path = registered(api, receiver, "run.completed")
    for verb in ("redeliver", "drop"):
        refused(api.post(f"{path}/dead-letters/out_nothing:{verb}", {}), 404, "not_found")
    api.delete(path.replace("/host/moot", ""))


def test_a_type_of_events_that_there_is_not_is_refused_with_the_one_that_is_meant(api: Api) -> None:
    body = {"url": "http://127.0.0.1:9/", "events": ["run.failed", "run.complete"]}
    answer = api.post("/v1/webhooks", body)
    refused(answer, 400, "validation_error")
    assert "did you mean 'run.completed'?" in answer.json()["message"]
    body["events"] = ["provider.usage", "moot.turn.held", "*"]
    made = api.post("/v1/webhooks", body)
    assert made.status_code == 201
    api.delete(f"/v1/webhooks/{made.json()['webhookId']}")


def test_addresses_that_are_called_are_not_in_the_log(
    api: Api, receiver: Receiver, server: ServerProcess
) -> None:
    path = registered(api, receiver, "run.completed")
    api.run("noop")
    receiver.until(lambda seen: seen)
    assert "CANARY" not in server.log.read_text()
    api.delete(path.replace("/host/moot", ""))
