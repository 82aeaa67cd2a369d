"""Queues over the wire: an item becomes one run, is kept, given up, tried again, dropped."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused
from tests.support.servers import ServerProcess, server_environment

QUEUES = "/v1/host/moot/queues"
CANARY = "canary-3f9a-in-an-item"


def taking(name: str, *variables: dict[str, Any]) -> dict[str, Any]:
    body = definition(name, [{"id": "a", "typeId": "core.noop"}])
    return {**body, "variables": list(variables)}


TAKES = taking("takes", {"name": "subject", "type": "string"}, {"name": "item", "type": "object"})
PICKY = taking("picky", {"name": "amount", "type": "number", "required": True})
NEVER = {"maxAttempts": 1, "backoff": "none"}


@pytest.fixture(scope="module")
def desk(answers: AnswerChecks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    process = ServerProcess(tmp_path_factory.mktemp("desk"), [], server_environment())
    with Api(process.url, process.key, answers) as found:
        found.register(TAKES)
        found.register(PICKY)
        yield found
    process.stop()


def bound(api: Api, queue: str, workflow_id: str = "takes", **more: Any) -> dict[str, Any]:
    answer = api.call("PUT", f"{QUEUES}/{queue}", json={"workflowId": workflow_id, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def pushed(api: Api, queue: str, key: str | None = None, **item: Any) -> dict[str, Any]:
    headers = {"Idempotency-Key": key} if key is not None else {}
    answer = api.post(f"{QUEUES}/{queue}/items", {"body": "x", **item}, headers=headers)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def test_an_item_becomes_a_run_whose_cause_is_its_delivery(desk: Api) -> None:
    queue = bound(desk, "leads")
    item = pushed(desk, "leads", subject="ACME wants a quote", body={"secret": CANARY})
    assert item["status"] == "accepted"
    run = desk.until(item["runId"])
    assert run["variables"]["subject"] == "ACME wants a quote"
    assert run["variables"]["item"]["body"] == {"secret": CANARY}
    started, attempted, *rest = desk.events(item["runId"])
    assert started["causationId"] == attempted["eventId"] == item["itemId"]
    assert attempted["type"] == "trigger.delivery.attempted"
    assert attempted["payload"]["outcome"] == "delivered"
    assert attempted["payload"]["subscriptionId"] == queue["subscriptionId"]
    trigger = started["payload"]["trigger"]
    assert trigger["contentTrust"] == "untrusted" and trigger["deliveryId"] == item["itemId"]
    assert CANARY not in str(attempted) + str(rest)
    shown = desk.get(f"{QUEUES}/leads/items/{item['itemId']}").json()
    assert shown["run"]["status"] == "completed" and shown["turns"] == []
    assert shown["run"]["metrics"]["eventCount"] == len(rest) + 2
    assert desk.get(f"/v1/trigger-subscriptions/{queue['subscriptionId']}").json()["counts"] == {
        "delivered": 1
    }


def test_a_queue_that_nobody_takes_from_keeps_its_items_until_somebody_does(desk: Api) -> None:
    item = pushed(desk, "later", subject="first")
    assert item["status"] == "waiting" and "runId" not in item
    [kept] = desk.get(f"{QUEUES}/later/items", params={"state": "waiting"}).json()["items"]
    assert kept["itemId"] == item["itemId"] and kept["subject"] == "first"
    bound(desk, "later")
    run_id = delivered(desk, "later", item["itemId"])
    assert desk.until(run_id)["variables"]["subject"] == "first"
    unbound = desk.delete(f"{QUEUES}/later").json()
    assert unbound["state"] == "paused" and "workflowId" not in unbound
    assert pushed(desk, "later")["status"] == "waiting"


def test_a_queue_that_nobody_takes_from_and_that_is_empty_can_be_removed(desk: Api) -> None:
    bound(desk, "ending")
    done = pushed(desk, "ending", subject="done")
    assert "removed" not in desk.delete(f"{QUEUES}/ending").json()
    left = pushed(desk, "ending", subject="left")["itemId"]
    refused(desk.delete(f"{QUEUES}/ending"), 409, "conflict")
    desk.post(f"{QUEUES}/ending/items/{left}:drop")
    assert desk.delete(f"{QUEUES}/ending").json()["removed"] is True
    refused(desk.delete(f"{QUEUES}/ending"), 404, "not_found")
    assert "ending" not in [each["name"] for each in desk.get(QUEUES).json()["queues"]]
    found = desk.get(f"/v1/host/moot/deliveries/{done['itemId']}").json()
    assert found["run"]["runId"] == done["runId"]
    assert pushed(desk, "ending", subject="again")["status"] == "waiting"


def delivered(api: Api, queue: str, item_id: str) -> str:
    for _ in range(600):
        shown = api.get(f"{QUEUES}/{queue}/items/{item_id}").json()
        if "runId" in shown:
            return str(shown["runId"])
        api.get("/v1/host/moot/inbox", params={"wait": 1, "revision": 0})
    raise AssertionError(shown)


def test_an_item_that_can_never_fit_is_given_up_alone_and_at_once(desk: Api) -> None:
    queue = bound(desk, "amounts", "picky")
    path = f"/v1/trigger-subscriptions/{queue['subscriptionId']}"
    item = pushed(desk, "amounts", amount="many", body=CANARY)
    assert item["status"] == "dead" and "'amount' must be a number" in item["reason"]
    [letter] = desk.get(f"{path}/dead-letters").json()["deadLetters"]
    assert letter["attempt"]["attempt"] == 1 and "stateChange" not in letter
    shown = desk.get(path).json()
    assert [each["payload"]["toState"] for each in shown["stateChanges"]] == ["active"]
    assert pushed(desk, "amounts", amount=3)["status"] == "accepted"
    bound(desk, "amounts", "takes")
    again = f"{QUEUES}/amounts/items/{item['itemId']}:redeliver"
    assert desk.post(again).json()["state"] == "delivered"


def unserved(name: str) -> dict[str, Any]:
    """One that cannot begin, for now: it counts on an agent who is not here."""
    asks = {"agent": "nobody-of-this-name", "prompt": "Are you there?"}
    return definition(name, [{"id": "a", "typeId": "moot.agent", "config": asks}])


def test_an_item_that_cannot_become_a_run_is_a_dead_letter_and_ends_the_subscription(
    desk: Api,
) -> None:
    desk.register(unserved("quoting"))
    queue = bound(desk, "quotes", "quoting", retryPolicy=NEVER)
    path = f"/v1/trigger-subscriptions/{queue['subscriptionId']}"
    item = pushed(desk, "quotes", body=CANARY)
    assert item["status"] == "dead" and "runId" not in item
    [letter] = desk.get(f"{path}/dead-letters").json()["deadLetters"]
    assert letter["reason"] == "retries_exhausted" and letter["deliveryId"] == item["itemId"]
    assert letter["attempt"]["outcome"] == "dead-lettered" and "runId" not in letter["attempt"]
    assert CANARY not in str(letter)
    shown = desk.get(path).json()
    assert shown["subscription"]["state"] == "dead-lettered"
    change = shown["stateChanges"][-1]["payload"]
    assert (change["fromState"], change["toState"]) == ("active", "dead-lettered")
    assert change["reason"] == "retry-exhausted"
    [notice] = [
        each
        for each in desk.get("/v1/host/moot/inbox").json()["notices"]
        if each["id"] == item["itemId"]
    ]
    assert notice["kind"] == "dead-letter" and notice["queue"] == "quotes"
    second = pushed(desk, "quotes")
    assert second["status"] == "waiting" and "quotes is dead-lettered" in second["reason"]
    desk.register(taking("quoting"))
    again = f"{QUEUES}/quotes/items/{item['itemId']}:redeliver"
    refused(desk.post(again), 409, "subscription_not_active")
    resumed = desk.call("PATCH", path, json={"state": "active"}).json()
    assert resumed["subscription"]["state"] == "active"
    delivered(desk, "quotes", second["itemId"])
    assert desk.post(again).json()["state"] == "delivered"
    refused(desk.post(again), 409, "conflict")


def test_a_dropped_item_is_forgotten_and_was_there(desk: Api) -> None:
    item = pushed(desk, "bin", body=CANARY)
    path = f"{QUEUES}/bin/items/{item['itemId']}"
    assert desk.post(f"{path}:drop").json()["state"] == "dropped"
    refused(desk.post(f"{path}:redeliver"), 409, "conflict")
    bound(desk, "bin")
    assert desk.get(path).json()["state"] == "dropped"


def test_retries_back_off_and_end_well_once_somebody_is_there(desk: Api) -> None:
    desk.register(unserved("early"))
    bound(desk, "early", "early", retryPolicy={"maxAttempts": 20, "backoff": "fixed"})
    item = pushed(desk, "early")
    assert item["status"] == "retrying"
    desk.register(taking("early"))
    desk.until(delivered(desk, "early", item["itemId"]))
    tries = desk.get(f"{QUEUES}/early/items/{item['itemId']}").json()["attempts"]
    assert [each["outcome"] for each in tries][-1] == "delivered"
    assert [each["payload"]["attempt"] for each in tries] == list(range(1, len(tries) + 1))


def test_queues_of_others_are_not_there(desk: Api) -> None:
    item = pushed(desk, "private")
    other = desk.with_key(desk.new_key("other", tenant="others", admin=True))
    refused(other.get(f"{QUEUES}/private"), 404, "not_found")
    refused(other.get(f"{QUEUES}/private/items/{item['itemId']}"), 404, "not_found")
    assert other.get(QUEUES).json() == {"queues": []}
    assert other.get("/v1/trigger-subscriptions").json() == {"subscriptions": [], "total": 0}


BAD = [
    ("PUT", "ok", {"workflowId": "nothing"}, 404, "workflow_not_found"),
    ("PUT", "ok", {}, 400, "validation_error"),
    ("PUT", "ok", {"workflowId": "takes", "rosterId": "host:nobody"}, 404, "not_found"),
    ("PUT", "UPPER", {"workflowId": "takes"}, 400, "validation_error"),
    ("PUT", "ok", {"workflowId": "takes", "more": 1}, 400, "validation_error"),
    ("POST", "ok/items", {"subject": 1}, 400, "validation_error"),
    ("POST", "ok/items", [1], 400, "validation_error"),
    ("DELETE", "none", None, 404, "not_found"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_is_refused(
    desk: Api, method: str, path: str, body: Any, status: int, code: str
) -> None:
    refused(desk.call(method, f"{QUEUES}/{path}", json=body), status, code)
