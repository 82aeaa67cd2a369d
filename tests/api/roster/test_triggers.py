"""What wakes a standing agent, on every view alike: paused once is paused, away is inert."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.roster.test_roster import ROSTER, hired
from tests.support.api.caller import PATIENCE, Api, definition, in_time
from tests.support.api.questions import refused

SCHEDULES = "/v1/host/moot/schedules"
QUEUES = "/v1/host/moot/queues"
SUBSCRIPTIONS = "/v1/trigger-subscriptions"
MORNINGS = {"workflowId": "sally-noop", "kind": "words", "words": "weekday 08:30 Europe/Berlin"}


@pytest.fixture
def desk(api: Api, request: pytest.FixtureRequest) -> Api:
    """The administrator of a tenant of its own."""
    name = f"wakes-{request.node.name[-60:]}".replace("[", "-").replace("]", "")
    return api.with_key(api.new_key("owner", tenant=name, admin=True))


def woken(desk: Api, sally: dict[str, Any]) -> tuple[str, str]:
    """A schedule of Sally's and that of it which the protocol knows: their paths."""
    made = desk.post(SCHEDULES, {**MORNINGS, "rosterId": sally["rosterId"]}).json()
    return f"{SCHEDULES}/{made['scheduleId']}", f"{SUBSCRIPTIONS}/{made['subscriptionId']}"


def states(desk: Api, schedule: str, subscription: str) -> tuple[str, str, str]:
    """By the schedule, by its subscription, and by the list of all subscriptions."""
    shown = desk.get(subscription).json()["subscription"]
    assert shown in desk.get(SUBSCRIPTIONS).json()["subscriptions"]
    found = desk.get(schedule).json()
    return found["state"], shown["state"], str(found["nextFireAt"] is not None)


def patched(desk: Api, path: str, **body: Any) -> dict[str, Any]:
    answer = desk.call("PATCH", path, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_schedule_and_its_subscription_are_paused_and_resumed_by_either(desk: Api) -> None:
    schedule, subscription = woken(desk, hired(desk))
    goes_on, stands = ("active", "active", "True"), ("paused", "paused", "False")
    assert states(desk, schedule, subscription) == goes_on
    desk.post(f"{schedule}/pause", {"reason": "quarter close"})
    assert states(desk, schedule, subscription) == stands
    assert patched(desk, subscription, state="active")["subscription"]["state"] == "active"
    assert states(desk, schedule, subscription) == goes_on
    patched(desk, subscription, state="paused")
    assert states(desk, schedule, subscription) == stands
    assert desk.get(schedule).json()["pause"]["by"]
    desk.post(f"{schedule}/resume", {})
    assert states(desk, schedule, subscription) == goes_on
    patched(desk, schedule, enabled=False)
    assert states(desk, schedule, subscription)[1] == "paused"
    patched(desk, subscription, state="active")
    assert states(desk, schedule, subscription) == goes_on
    told = [change["payload"] for change in desk.get(subscription).json()["stateChanges"]]
    assert [each["toState"] for each in told] == ["paused", "active"] * 3
    assert told[0]["reason"] == "operator-paused"


def test_a_pause_that_ends_by_itself_ends_on_both_views(desk: Api) -> None:
    schedule, subscription = woken(desk, hired(desk))

    def attempt(ms: int) -> dict[str, Any] | None:
        until = datetime.now(UTC) + timedelta(milliseconds=ms)
        answer = desk.post(f"{schedule}/pause", {"until": until.isoformat()})
        if answer.status_code == 400 and datetime.now(UTC) > until:
            return None
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    assert in_time(attempt, 400)["pause"]["until"]
    deadline = time.monotonic() + PATIENCE
    while desk.get(schedule).json()["state"] != "active":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert states(desk, schedule, subscription)[:2] == ("active", "active")
    last = desk.get(subscription).json()["stateChanges"][-1]
    assert (last["payload"]["toState"], last["by"]) == ("active", "moot")


def test_a_schedule_is_handed_over_by_its_subscription(desk: Api) -> None:
    sally, mo = hired(desk), hired(desk, persona="Mo")
    schedule, subscription = woken(desk, sally)
    found = patched(desk, subscription, rosterId=mo["rosterId"])
    assert found["bound"]["rosterId"] == mo["rosterId"]
    assert desk.get(schedule).json()["rosterId"] == mo["rosterId"]
    patched(desk, subscription, rosterId=None)
    assert "rosterId" not in desk.get(schedule).json()
    answer = desk.call("PATCH", subscription, json={"rosterId": "host:nobody"})
    refused(answer, 404, "not_found")


def test_what_wakes_a_member_that_is_away_says_so_in_every_list(desk: Api) -> None:
    sally = hired(desk)
    path = f"{ROSTER}/{sally['rosterId']}"
    _, subscription = woken(desk, sally)
    bound = {"workflowId": "sally-noop", "rosterId": sally["rosterId"]}
    assert desk.call("PUT", f"{QUEUES}/leads", json=bound).status_code == 200

    def said() -> set[Any]:
        [one] = desk.get(SCHEDULES).json()["schedules"]
        [queue] = desk.get(QUEUES).json()["queues"]
        listed = desk.get(SUBSCRIPTIONS).json()
        reasons = {listed.get("inert", {}).get(each["subscriptionId"])
                   for each in listed["subscriptions"]}  # fmt: skip
        single = desk.get(subscription).json()["bound"].get("inert")
        return {one.get("inert"), queue.get("inert"), single, *reasons}

    assert said() == {None}
    desk.post(f"{path}/pause", {})
    assert said() == {"Sally is paused"}
    desk.post(f"{path}/resume", {})
    patched(desk, path, workflows=[])
    assert said() == {"sally-noop is no longer Sally's"}
    patched(desk, path, workflows=["sally-noop"], enabled=False)
    assert said() == {"Sally is disabled"}
    desk.delete(path)
    assert said() == {"Sally is dismissed"}


def test_what_woke_who_is_let_go_rests_until_somebody_resumes_it(desk: Api) -> None:
    sally = hired(desk)
    schedule, subscription = woken(desk, sally)
    desk.delete(f"{ROSTER}/{sally['rosterId']}")
    deadline = time.monotonic() + PATIENCE
    while (found := desk.get(schedule).json())["state"] != "paused":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert found["pause"]["by"] == "moot" and found["pause"]["reason"] == "Sally is dismissed"
    assert states(desk, schedule, subscription)[1] == "paused"
    body = {
        **{name: sally[name] for name in ("rosterId", "agentRef", "workflows")},
        "persona": "Al",
    }
    assert desk.post(ROSTER, body).status_code == 201
    found = desk.get(schedule).json()
    assert found["state"] == "paused" and "inert" not in found
    assert desk.post(f"{schedule}/resume", {}).json()["state"] == "active"


def test_what_is_listened_to_is_read_page_by_page_and_of_one_source(desk: Api) -> None:
    sally = hired(desk)
    woken(desk, sally)
    bound = {"workflowId": "sally-noop", "rosterId": sally["rosterId"]}
    desk.call("PUT", f"{QUEUES}/leads", json=bound)
    desk.post(SUBSCRIPTIONS, {**bound, "source": "webhook"})
    whole = desk.get(SUBSCRIPTIONS).json()
    assert whole["total"] == len(whole["subscriptions"]) == 3 and "nextCursor" not in whole
    found, cursor = [], ""
    while cursor is not None:
        page = desk.get(SUBSCRIPTIONS, params={"limit": 1, "cursor": cursor}).json()
        found += page["subscriptions"]
        cursor = page.get("nextCursor")
    assert found == whole["subscriptions"]
    hooks = desk.get(SUBSCRIPTIONS, params={"source": "webhook"}).json()
    [hook] = hooks["subscriptions"]
    assert hooks["bound"][hook["subscriptionId"]]["rosterId"] == sally["rosterId"]
    refused(desk.get(SUBSCRIPTIONS, params={"source": "email"}), 400, "validation_error")


def test_who_let_somebody_go_can_be_read_for_ever(desk: Api) -> None:
    sally = hired(desk)
    path = f"{ROSTER}/{sally['rosterId']}"
    _, subscription = woken(desk, sally)
    assert desk.delete(path).status_code == 204
    [left] = desk.get(f"{path}/history").json()["left"]
    assert subscription.endswith(left["subscriptionId"]) and left["state"] == "paused"
    refused(desk.get(path), 404, "not_found")
    told = desk.get(f"{path}/history").json()["history"]
    assert [each["did"] for each in told] == ["dismissed", "hired"] and told[0]["by"]
    refused(desk.get(f"{ROSTER}/host:nobody/history"), 404, "not_found")


def test_a_pause_with_an_end_says_which_times_it_costs(desk: Api) -> None:
    sally = hired(desk)
    schedule, _ = woken(desk, sally)
    first, second, third, *_ = desk.get(schedule).json()["nextFires"]
    body = {"until": third}
    costs = desk.post(f"{schedule}/pause", body).json()["costs"]
    assert costs["count"] == 2 and [each["at"] for each in costs["fires"]] == [first, second]
    assert {each["timezone"] for each in costs["fires"]} == {"Europe/Berlin"}
    desk.post(f"{schedule}/resume", {})
    found = desk.post(f"{ROSTER}/{sally['rosterId']}/pause", body).json()
    assert found["costs"] == costs
    assert "costs" not in desk.post(f"{schedule}/pause", {}).json()
    refused(desk.post(f"{schedule}/pause", {"until": "2020-01-01T00:00"}), 400, "validation_error")


# -- the page of a member ------------------------------------------------------------------------


def test_a_members_page_has_what_wakes_it_how_it_went_and_what_it_asks(desk: Api) -> None:
    gate = {"id": "a", "typeId": "core.approvalGate", "config": {"title": "Go?"}}
    desk.post("/v1/host/moot/workflows", definition("page-asks", [gate]))
    hired(desk)  # somebody else, and the workflow of both
    sally = hired(desk, workflows=["sally-noop", "page-asks"], label="sales ops")
    path = f"{ROSTER}/{sally['rosterId']}"
    woken(desk, sally)
    bound = {"workflowId": "page-asks", "rosterId": sally["rosterId"]}
    desk.call("PUT", f"{QUEUES}/leads", json=bound)
    run_id = desk.post(f"{QUEUES}/leads/items", {"body": "x"}).json()["runId"]
    desk.until(run_id, "waiting-approval")
    done = [desk.post(f"{path}/run", {"workflowId": "sally-noop"}).json()["runId"] for _ in "ab"]
    desk.until(done[1], "completed")
    found = desk.get(f"{path}/work").json()
    assert (found["status"], found["model"], found["label"]) == ("on-duty", "demo", "sales ops")
    assert found["hiredBy"] == found["you"] and found["triggers"] == 2
    quick, asking = found["portfolio"]
    [timed] = quick["triggers"]
    assert timed["words"] == MORNINGS["words"] and timed["nextFireAt"] and timed["timezone"]
    assert quick["last"]["runId"] == done[1] and quick["last"]["endedAt"]
    assert (quick["runs"], quick["failed"]) == (2, 0)
    assert len(quick["days"]) == 14 and sum(quick["days"]) == 2
    assert asking["triggers"] == [{
        "source": "queue", "queue": "leads", "state": "active",
        "subscriptionId": asking["triggers"][0]["subscriptionId"],
    }]  # fmt: skip
    assert (asking["last"]["runId"], asking["last"]["status"]) == (run_id, "waiting-approval")
    [asked] = found["waiting"]
    assert (asked["runId"], asked["number"], asked["question"]) == (run_id, 1, "Go?")
    assert asked["id"] == desk.get("/v1/host/moot/inbox").json()["items"][0]["id"]
    assert desk.post(f"{path}/pause", {}).json()["inert"] == 2
    found = desk.get(f"{path}/work").json()
    assert {each["inert"] for flow in found["portfolio"] for each in flow["triggers"]} == {
        "Sally is paused",
    }  # fmt: skip


def test_the_page_of_who_was_let_go_stays_and_is_its_tenants(desk: Api, foreign: Api) -> None:
    sally = hired(desk)
    path = f"{ROSTER}/{sally['rosterId']}"
    run_id = desk.post(f"{path}/run", {"workflowId": "sally-noop"}).json()["runId"]
    desk.until(run_id, "completed")
    desk.delete(path)
    found = desk.get(f"{path}/work").json()
    assert found["status"] == "dismissed" and found["dismissed"]["by"] == found["you"]
    assert found["portfolio"][0]["last"]["runId"] == run_id
    refused(desk.get(path), 404, "not_found")
    refused(foreign.get(f"{path}/work"), 404, "not_found")
    refused(desk.get(f"{ROSTER}/host:nobody/work"), 404, "not_found")
