"""What comes in for a standing agent: whose run it becomes, and the same work given once more."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import httpx2 as httpx
import pytest

from tests.api.roster.test_roster import ROSTER, hired
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused

QUEUES = "/v1/host/moot/queues"
SUBSCRIPTIONS = "/v1/trigger-subscriptions"
CANARY = "canary-5b1e-in-what-came-in"
WORK = {"id": "w", "typeId": "moot.agent", "config": {"prompt": f"Say {CANARY}."}}
TRIAGE = {
    **definition("triage", [WORK]),
    "variables": [
        {"name": "subject", "type": "string", "required": True},
        {"name": "amount", "type": "number", "defaultValue": 0},
        {"name": "item", "type": "object"},
    ],
}


@pytest.fixture
def desk(api: Api, request: pytest.FixtureRequest) -> Api:
    """The administrator of a tenant of its own."""
    name = f"items-{request.node.name[-50:]}".replace("[", "-").replace("]", "")
    found = api.with_key(api.new_key("owner", tenant=name, admin=True))
    found.register(TRIAGE)
    return found


@pytest.fixture
def sally(desk: Api) -> str:
    return str(hired(desk, workflows=["triage"])["rosterId"])


def bound(desk: Api, sally: str | None, queue: str = "leads", **more: Any) -> httpx.Response:
    body = {"workflowId": "triage", "rosterId": sally, **more}
    return desk.call("PUT", f"{QUEUES}/{queue}", json=body)


def pushed(desk: Api, queue: str = "leads", **item: Any) -> dict[str, Any]:
    answer = desk.post(f"{QUEUES}/{queue}/items", item)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def run_now(desk: Api, sally: str, **more: Any) -> httpx.Response:
    return desk.post(f"{ROSTER}/{sally}/run", {"workflowId": "triage", **more})


def variables(desk: Api, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.until(run_id)["variables"]
    return {name: found.get(name) for name in ("subject", "amount", "item")}


@pytest.mark.parametrize("taken", [True, False])
def test_work_done_again_by_hand_is_given_what_the_queue_gives(
    desk: Api, sally: str, taken: bool
) -> None:
    """Whether a run has it already, or it still waits."""
    if taken:
        assert bound(desk, sally).status_code == 200
    item = pushed(desk, subject="neg", amount=-5)
    said = {"subject": "neg", "amount": -5}
    answer = run_now(desk, sally, item=item["itemId"])
    assert answer.status_code == 202, answer.text
    again = answer.json()["runId"]
    assert variables(desk, again) == {**said, "item": said}
    trigger = desk.events(again)[0]["payload"]["trigger"]
    assert (trigger["deliveryId"], trigger["queue"]) == (item["itemId"], said)
    if taken:
        assert again != item["runId"]
        assert desk.events(item["runId"])[0]["payload"]["trigger"] == trigger
    more = run_now(desk, sally, item=item["itemId"], inputs={"amount": 7}).json()["runId"]
    assert variables(desk, more)["amount"] == 7


def test_work_done_again_is_mapped_as_its_queue_maps_it(desk: Api, sally: str) -> None:
    bound(desk, sally, inputMapping={"subject": "queue.mail.title"})
    item = pushed(desk, mail={"title": "ACME"})
    again = run_now(desk, sally, item=item["itemId"]).json()["runId"]
    assert variables(desk, again)["subject"] == "ACME"


def test_work_of_which_nothing_is_kept_is_not_done_again(desk: Api, sally: str) -> None:
    item = pushed(desk, subject="gone")["itemId"]
    desk.post(f"{QUEUES}/leads/items/{item}:drop")
    refused(run_now(desk, sally, item=item), 409, "conflict")
    refused(run_now(desk, sally, item="wi_nobody"), 404, "not_found")


def test_a_secret_that_came_in_is_not_taken_for_nothing(desk: Api) -> None:
    token = {"name": "token", "type": "string", "sensitive": True}
    body = definition("secretive", [{"id": "a", "typeId": "core.noop"}])
    desk.register({**body, "variables": [token]})
    sally = hired(desk, workflows=["secretive"])["rosterId"]
    bound(desk, sally, workflowId="secretive")
    item = pushed(desk, token=CANARY)["itemId"]
    refused(run_now(desk, sally, workflowId="secretive", item=item), 409, "conflict")


def begun(desk: Api, run_id: str, sally: str, source: str) -> dict[str, Any]:
    """What is said of whose run it is: at its place, once, and nothing that came in."""
    desk.until(run_id)
    started, initiated, attempted, *rest = desk.events(run_id)
    assert initiated["type"] == "roster.run.initiated" and initiated["sequence"] == 1
    assert "roster.run.initiated" not in [event["type"] for event in rest]
    assert started["causationId"] == attempted["eventId"]
    assert CANARY in str(started)
    for told in (initiated, attempted):
        assert CANARY not in str(told) and str(desk.key) not in str(told)
    said: dict[str, Any] = initiated["payload"]
    assert set(said) == {
        "rosterId", "persona", "agentId", "workflowId", "triggerSource", "triggerSubscriptionId",
    }  # fmt: skip
    assert (said["rosterId"], said["triggerSource"]) == (sally, source)
    assert said["triggerSubscriptionId"] == attempted["payload"]["subscriptionId"]
    return said


def test_nothing_of_an_item_is_said_of_whose_run_it_is(desk: Api, sally: str) -> None:
    """Neither its body nor its key, nor the prompt of who takes it."""
    queue = bound(desk, sally).json()
    body = {"subject": CANARY, "body": {"deep": [CANARY]}}
    headers = {"Idempotency-Key": f"{CANARY}-key"}
    item = desk.post(f"{QUEUES}/leads/items", body, headers=headers).json()
    said = begun(desk, item["runId"], sally, "queue")
    assert said["triggerSubscriptionId"] == queue["subscriptionId"]


def signed(desk: Api, binding: dict[str, Any], body: bytes, name: str) -> httpx.Response:
    seconds = str(int(time.time()))
    key = base64.b64decode(binding["signingSecret"].removeprefix("whsec_"))
    digest = hmac.new(key, f"{name}.{seconds}.".encode() + body, hashlib.sha256).digest()
    headers = {
        "webhook-id": name, "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }  # fmt: skip
    path = binding["ingestUrl"].removeprefix(desk.url)
    return desk.with_key(None).post(path, body, headers=headers)


def test_nothing_of_a_webhook_is_said_of_whose_run_it_is(desk: Api, sally: str) -> None:
    body = {"source": "webhook", "workflowId": "triage", "rosterId": sally}
    made = desk.post(SUBSCRIPTIONS, body).json()
    came = json.dumps({"subject": CANARY, "body": CANARY}).encode()
    sent = signed(desk, made["binding"], came, f"msg_{CANARY}")
    assert sent.status_code == 202, sent.text
    begun(desk, sent.json()["runId"], sally, "webhook")


def test_a_queue_of_somebody_is_not_taken_over_by_the_way(desk: Api, sally: str) -> None:
    bound(desk, sally)
    tam = hired(desk, persona="Tam", workflows=["triage"])["rosterId"]
    for other in (tam, None):
        told = refused(bound(desk, other), 409, "queue_taken")
        assert told["rosterId"] == sally
    assert desk.get(f"{QUEUES}/leads").json()["rosterId"] == sally
    assert bound(desk, sally).status_code == 200
    assert bound(desk, tam, takeOver=True).json()["rosterId"] == tam
    desk.delete(f"{ROSTER}/{tam}")
    assert bound(desk, sally).json()["rosterId"] == sally
