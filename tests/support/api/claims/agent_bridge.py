"""What discovery claims of what comes in, each tried on the host."""

from typing import Any

from tests.support.api.caller import Api
from tests.support.api.questions import refused

DELIVER = "/v1/host/sample/trigger-bridge/deliver"
INGEST = "/v1/host/sample/trigger-bridge/ingest"
SUBSCRIPTIONS = "/v1/trigger-subscriptions"


def bridge(api: Api, value: Any) -> None:
    """Signatures and repeats: test_ingest; queues, states and dead letters: test_queues."""
    assert value["supported"] is True and value["dedup"] is True
    for source in value["sources"]:
        _source(api, source)
    body = {"source": "webhook", "workflowId": "conformance-seam-trigger"}
    made = api.post(SUBSCRIPTIONS, body).json()["subscription"]
    assert made["retryPolicy"] == value["retryPolicy"]
    path = f"{SUBSCRIPTIONS}/{made['subscriptionId']}"
    assert set(value["subscriptionStates"]) == {"active", "paused", "failed", "dead-lettered"}
    assert api.call("PATCH", path, json={"state": "paused"}).status_code == 200
    assert api.get(path).json()["subscription"]["state"] == "paused"
    assert _changes(api, made["subscriptionId"])[-1]["reason"] == "operator-paused"
    assert api.call("PATCH", path, json={"state": "active"}).status_code == 200
    taken = value["ingestion"]
    assert taken["registrationEndpoint"] is True
    for source in {"webhook", "email", "form"} - set(taken["externalSources"]):
        answer = api.post(SUBSCRIPTIONS, {**body, "source": source})
        refused(answer, 501, "capability_not_provided")
    assert taken["verification"] == ["webhook-signature"]
    required = api.post(INGEST, {"source": "webhook"}).json()
    assert required["triggerEvent"] is None
    assert required["deliveryEvent"]["payload"]["outcome"] == "dead-lettered"
    large = api.with_key(None).post(
        f"/v1/host/moot/ingest/{made['subscriptionId']}", b"x" * (taken["maxBodyBytes"] + 1)
    )
    refused(large, 413, "payload_too_large")
    assert api.delete(path).status_code == 204


def _source(api: Api, source: str) -> None:
    """Delivered with its cause, once for a key, given up in the open."""
    run_id = api.post(DELIVER, {"scenario": "deliver", "source": source}).json()["runId"]
    started, attempted, *_ = api.events(run_id)
    assert started["causationId"] == attempted["eventId"]
    assert attempted["payload"]["outcome"] == "delivered"
    twice = api.post(DELIVER, {"scenario": "dedup", "dedupKey": "k", "source": source}).json()
    assert twice["deliveredCount"] == 1 and "runId" in twice
    ended = api.post(DELIVER, {"scenario": "exhaust", "source": source}).json()
    assert ended["outcome"] == "dead-lettered" and "runId" not in ended
    ends = [name for name in _own(api, source, "dead-lettered") if _changes(api, name)]
    last = _changes(api, ends[-1])[-1]
    assert last["toState"] == "dead-lettered" and last["reason"] == "retry-exhausted"


def _own(api: Api, source: str, state: str) -> list[str]:
    found = api.get(SUBSCRIPTIONS).json()["subscriptions"]
    wanted = (source, state)
    return [each["subscriptionId"] for each in found if (each["source"], each["state"]) == wanted]


def _changes(api: Api, name: str) -> list[dict[str, Any]]:
    """By the log of the subscription, under the name that the protocol has for it."""
    path = f"/v1/host/sample/test/runs/{name}/events"
    found = api.get(path, params={"type": "trigger.subscription.state.changed"}).json()["events"]
    assert found == [
        event for event in api.get(path).json()["events"]
        if event["type"] == "trigger.subscription.state.changed"
    ]  # fmt: skip
    shown = api.get(f"{SUBSCRIPTIONS}/{name}").json()["stateChanges"]
    assert [(each["eventId"], each["type"]) for each in shown] == [
        (event["eventId"], event["type"]) for event in found
    ]
    return [dict(event["payload"]) for event in found]
