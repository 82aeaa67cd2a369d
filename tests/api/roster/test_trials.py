"""Standing agents and what wakes them, as somebody tries them who knows only the protocol."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.roster.test_roster import ROSTER, hired
from tests.api.triggers.test_ingest import Sender
from tests.support.api.caller import Api
from tests.support.api.claims.agent_bridge import DELIVER, SUBSCRIPTIONS
from tests.support.api.questions import refused

EVENTS = "/v1/host/sample/test/runs"
TOGGLE = "/v1/host/sample/test/capability-toggle"
FIRE = "/v1/host/sample/roster/fire"
CANARY = "canary-5e11-in-an-item"


def test_who_is_paused_is_not_enabled_until_it_is_back(api: Api) -> None:
    sally = hired(api)
    path, read = f"{ROSTER}/{sally['rosterId']}", f"/v1/agents/roster/{sally['rosterId']}"
    assert api.post(f"{path}/pause", {}).json()["enabled"] is False
    assert api.get(read).json()["enabled"] is False
    listed = api.get("/v1/agents/roster").json()["roster"]
    assert next(each for each in listed if each["rosterId"] == sally["rosterId"]) == {
        **api.get(read).json()
    }
    assert "enabled" not in api.post(f"{path}/resume").json()
    assert "enabled" not in api.get(read).json()
    changed = [each for each in api.get(path).json()["history"] if each["did"] == "changed"]
    assert changed == [], "a pause changes nothing of the entry"


@pytest.mark.parametrize("name", ["agents.roster", "agents.roster.supported"])
def test_a_roster_that_a_suite_has_switched_off_is_not_there(api: Api, name: str) -> None:
    sally = hired(api)
    assert api.post(TOGGLE, {"name": name, "value": False}).status_code == 200
    try:
        claimed = api.get("/.well-known/openwop").json()["agents"].get("roster")
        assert claimed is None or claimed["supported"] is False
        refused(api.get("/v1/agents/roster"), 501, "capability_not_provided")
        one = api.get(f"/v1/agents/roster/{sally['rosterId']}")
        refused(one, 501, "capability_not_provided")
        assert all("roster" not in each for each in api.get("/v1/agents").json()["agents"])
    finally:
        api.post(TOGGLE, {"reset": True})
    assert api.get(f"/v1/agents/roster/{sally['rosterId']}").status_code == 200


def test_a_workflow_that_is_not_there_is_refused_with_the_one_meant(api: Api) -> None:
    sally = hired(api)
    asked = {"persona": "Sal", "agentRef": sally["agentRef"], "workflows": ["sally-nop"]}
    assert refused(api.post(ROSTER, asked), 400, "validation_error")["suggestion"] == "sally-noop"


def test_whom_nobody_named_is_hired_once_for_all_who_ask_at_once(host: Callable[..., Api]) -> None:
    fresh = host("--conformance")
    with ThreadPoolExecutor(8) as others:
        sources = ["queue", "webhook", "schedule"] * 4
        fired = list(others.map(lambda each: fresh.post(FIRE, {"triggerSource": each}), sources))
    assert {answer.status_code for answer in fired} == {200}, [answer.text for answer in fired]
    assert len({answer.json()["runId"] for answer in fired}) == len(sources)
    assert len({answer.json()["rosterId"] for answer in fired}) == 1


def test_who_is_disabled_is_enabled_and_not_resumed(api: Api) -> None:
    sally = hired(api, enabled=False)
    answer = api.post(f"{ROSTER}/{sally['rosterId']}/run", {"workflowId": "sally-noop"})
    refused(answer, 409, "roster_entry_disabled")
    assert "enable it first" in answer.json()["message"]


def test_an_item_of_a_suites_own_reaches_the_run_and_not_its_attribution(api: Api) -> None:
    item = {"body": CANARY, "apiKey": f"sk-{CANARY}"}
    for source in ("queue", "webhook"):
        fired = api.post(FIRE, {"triggerSource": source, "asWorkItem": item}).json()
        started, initiated, *_ = api.events(fired["runId"])
        assert CANARY in str(started["payload"]["trigger"])
        assert initiated["type"] == "roster.run.initiated" and CANARY not in str(initiated)


@pytest.mark.parametrize("source", ["queue", "webhook"])
def test_a_suites_own_key_is_delivered_once_over_all_calls(api: Api, source: str) -> None:
    body = {"scenario": "dedup", "dedupKey": f"own-{source}-{api.new_key(source)}"[:200]}
    told = [api.post(DELIVER, {**body, "source": source}).json() for _ in range(2)]
    assert told[0] == told[1] and told[0]["deliveredCount"] == 1
    attempts = _told(api, told[0]["runId"], "trigger.delivery.attempted")
    assert [each["dedupKey"] for each in attempts] == [body["dedupKey"]]


def test_what_was_given_up_is_read_without_its_subscription_being_known(api: Api) -> None:
    api.post(DELIVER, {"scenario": "exhaust", "source": "schedule"})
    by_clock = _told(api, "__exhaust__", "trigger.delivery.attempted")
    assert [each["outcome"] for each in by_clock] == ["retrying", "retrying", "dead-lettered"]
    ended = api.post(DELIVER, {"scenario": "exhaust", "source": "webhook"}).json()
    attempts = _told(api, "__exhaust__", "trigger.delivery.attempted")
    assert attempts[-1]["outcome"] == "dead-lettered"
    [change] = _told(api, "__exhaust__", "trigger.subscription.state.changed")
    assert change["toState"] == "dead-lettered"
    assert {each["subscriptionId"] for each in [*attempts, change]} == {ended["subscriptionId"]}


def _told(api: Api, name: str, kind: str) -> list[dict[str, Any]]:
    found = api.get(f"{EVENTS}/{name}/events", params={"type": kind}).json()["events"]
    return [dict(event["payload"]) for event in found]


def test_a_key_as_it_is_usually_made_listens_and_sees_none_of_another_tenants(
    api: Api, foreign: Api
) -> None:
    other = api.with_key(api.new_key("usual", tenant="usual-tenant"))
    assert other.get(SUBSCRIPTIONS).json()["subscriptions"] == []
    foreign.post("/v1/host/moot/workflows", {**_NOOP})
    sender = Sender(foreign, workflowId=_NOOP["id"])
    refused(other.get(sender.path), 404, "subscription_not_found")
    refused(other.delete(sender.path), 404, "subscription_not_found")
    agent = api.with_key(api.new_key("agents", **{"as": ["host:usual-agent"]}))
    refused(agent.get(SUBSCRIPTIONS), 403, "forbidden")


def test_what_the_clock_wakes_is_listed_as_such(api: Api) -> None:
    api.post("/v1/host/moot/workflows", _NOOP)
    body = {"workflowId": _NOOP["id"], "kind": "interval", "intervalSeconds": 3600}
    made = api.post("/v1/host/moot/schedules", body).json()
    found = api.get(SUBSCRIPTIONS, params={"source": "schedule"}).json()
    assert {each["source"] for each in found["subscriptions"]} == {"schedule"}
    assert found["bound"][made["subscriptionId"]]["scheduleId"] == made["scheduleId"]
    ids = [each["subscriptionId"] for each in found["subscriptions"]]
    assert ids == sorted(ids) and found["total"] == len(ids)
    page = api.get(SUBSCRIPTIONS, params={"source": "schedule", "limit": 1}).json()
    assert [each["subscriptionId"] for each in page["subscriptions"]] == ids[:1]
    assert api.delete(f"/v1/host/moot/schedules/{made['scheduleId']}").status_code == 204


def test_an_item_is_an_object_and_not_nothing(api: Api) -> None:
    refused(api.post("/v1/host/moot/queues/nothing/items", b""), 400, "validation_error")


@pytest.mark.parametrize("url", ["not a url", "example.com", "//example.com/", "https://",
                                 "https:///x", "https:example.com"])  # fmt: skip
def test_what_is_no_address_is_a_mistake_in_the_body(api: Api, url: str) -> None:
    answer = api.post("/v1/webhooks", {"url": url, "events": ["run.completed"]})
    assert refused(answer, 400, "validation_error")["field"] == "url"


_NOOP: dict[str, Any] = {
    "id": "trial-noop", "name": "trial-noop", "version": "1.0", "edges": [], "triggers": [],
    "nodes": [{"id": "a", "typeId": "core.noop", "name": "a", "position": {"x": 0, "y": 0},
               "config": {}, "inputs": {}}],
    "variables": [], "metadata": {}, "settings": {},
}  # fmt: skip
