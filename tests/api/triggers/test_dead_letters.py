"""Dead letters of what comes in by a webhook: shown, put right, delivered again, dropped."""

from typing import Any

import pytest

from tests.api.roster.test_items import SUBSCRIPTIONS, TRIAGE, signed
from tests.api.triggers.test_queues import unserved
from tests.support.api.caller import Api
from tests.support.api.questions import refused

DELIVERIES = "/v1/host/moot/deliveries"


@pytest.fixture
def desk(api: Api, request: pytest.FixtureRequest) -> Api:
    """The administrator of a tenant of its own."""
    name = f"letters-{request.node.name[-50:]}"
    found = api.with_key(api.new_key("owner", tenant=name, admin=True))
    found.register(TRIAGE)
    return found


def listening(desk: Api, **more: Any) -> tuple[str, dict[str, Any]]:
    body = {"source": "webhook", "workflowId": "triage", **more}
    made = desk.post(SUBSCRIPTIONS, body).json()
    return f"{SUBSCRIPTIONS}/{made['subscription']['subscriptionId']}", made["binding"]


def dead(desk: Api, binding: dict[str, Any], number: int = 0) -> str:
    """The id of a delivery that does not fit, and ends nothing but itself."""
    sent = signed(desk, binding, b'{"title": "ACME"}', f"msg_0123456789_{number:04}")
    assert (sent.status_code, sent.json()) == (202, {"outcome": "dead-lettered"})
    newest = desk.get(DELIVERIES, params={"state": "dead"}).json()["deliveries"][0]
    assert newest["source"] == "webhook" and "'subject' is required" in newest["reason"]
    return str(newest["itemId"])


def notices(desk: Api) -> list[dict[str, Any]]:
    return list(desk.get("/v1/host/moot/inbox").json().get("notices", []))


def test_a_webhook_that_does_not_fit_is_put_right_and_delivered_again(desk: Api) -> None:
    path, binding = listening(desk)
    letter = dead(desk, binding)
    assert desk.get(path).json()["subscription"]["state"] == "active"
    shown = desk.get(f"{DELIVERIES}/{letter}").json()
    assert shown["content"]["body"] == {"title": "ACME"}
    assert [(each["id"], each["actions"]) for each in notices(desk)] == [
        (letter, ["redeliver", "drop"])
    ]
    assert desk.post(f"{DELIVERIES}/{letter}:redeliver").json()["state"] == "dead"
    mapping = {"subject": "webhook.body.title"}
    changed = desk.call("PATCH", path, json={"inputMapping": mapping}).json()
    assert changed["bound"]["inputMapping"] == mapping
    again = desk.post(f"{DELIVERIES}/{letter}:redeliver").json()
    assert again["state"] == "delivered" and notices(desk) == []
    assert desk.until(again["runId"])["variables"]["subject"] == "ACME"
    told = refused(desk.post(f"{DELIVERIES}/{letter}:redeliver"), 409, "conflict")
    assert told["state"] == "delivered"


def test_a_dropped_webhook_is_forgotten_and_no_notice(desk: Api) -> None:
    _, binding = listening(desk)
    letter = dead(desk, binding)
    assert desk.post(f"{DELIVERIES}/{letter}:drop").json()["state"] == "dropped"
    assert "content" not in desk.get(f"{DELIVERIES}/{letter}").json()
    assert notices(desk) == []


def test_a_subscription_takes_its_dead_letters_along(desk: Api) -> None:
    path, binding = listening(desk)
    letters = [dead(desk, binding, number) for number in range(3)]
    assert {each["id"] for each in notices(desk)} == set(letters)
    assert desk.delete(path).status_code == 204
    assert notices(desk) == []
    assert {desk.get(f"{DELIVERIES}/{name}").json()["state"] for name in letters} == {"dropped"}


def test_deliveries_of_others_are_not_there(desk: Api, api: Api) -> None:
    _, binding = listening(desk)
    letter = dead(desk, binding)
    for verb in ("redeliver", "drop"):
        refused(api.post(f"{DELIVERIES}/{letter}:{verb}"), 404, "not_found")
    refused(api.get(f"{DELIVERIES}/{letter}"), 404, "not_found")
    assert letter not in api.get(DELIVERIES, params={"prefix": letter}).text
    refused(desk.get(DELIVERIES, params={"state": "lost"}), 400, "validation_error")


def test_a_webhook_that_stands_still_is_said_with_the_way_on(desk: Api) -> None:
    """What may pass is tried again; when that was often enough, a person must help."""
    desk.register(unserved("triage"))
    path, binding = listening(desk, retryPolicy={"maxAttempts": 1, "backoff": "none"})
    sent = signed(desk, binding, b'{"subject": "x"}', "msg_0123456789abcdef")
    assert sent.json()["outcome"] == "dead-lettered"
    [stopped] = [each for each in notices(desk) if each["kind"] == "stopped"]
    assert stopped["actions"] == ["resume"] and stopped["subscriptionId"] in path
    desk.register(TRIAGE)
    desk.call("PATCH", path, json={"state": "active"})
    assert [each["kind"] for each in notices(desk)] == ["dead-letter"]
