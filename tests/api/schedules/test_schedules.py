"""Schedules over the wire: written, shown with their next times, fired, and worked by hand."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api.caller import PATIENCE, Api, definition
from tests.support.api.questions import refused

PATH = "/v1/host/moot/schedules"
WEEKDAYS = {"workflowId": "timed", "kind": "words", "words": "weekday 08:30 Europe/Berlin"}
EACH_SECOND = {"workflowId": "timed", "kind": "interval", "intervalSeconds": 1}


@pytest.fixture(scope="module")
def timed(api: Api) -> Iterator[Api]:
    """A tenant whose schedules are gone afterwards."""
    found = api.with_key(api.new_key("timed", tenant="timed", admin=True))
    found.post("/v1/host/moot/workflows", definition("timed", [{"id": "a", "typeId": "core.noop"}]))
    found.post(
        "/v1/host/moot/workflows",
        definition("patient", [{"id": "gate", "typeId": "core.approvalGate"}]),
    )
    yield found
    for each in found.get(PATH).json()["schedules"]:
        assert found.delete(f"{PATH}/{each['scheduleId']}").status_code == 204


def made(api: Api, **body: Any) -> dict[str, Any]:
    answer = api.post(PATH, body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"{PATH}/{found['scheduleId']}"
    return found


def fires(api: Api, schedule_id: str, count: int, state: str = "delivered") -> list[dict[str, Any]]:
    """As soon as there are so many, oldest first."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = api.get(f"{PATH}/{schedule_id}/fires?state={state}").json()["fires"]
        if len(found) >= count:
            return list(reversed(found))
        assert time.monotonic() < deadline, api.get(f"{PATH}/{schedule_id}").text
        time.sleep(0.02)


def test_a_schedule_shows_its_next_five_times(timed: Api) -> None:
    found = made(timed, **WEEKDAYS)
    assert found["state"] == "active" and found["comesTo"] == "30 8 * * 1-5"
    assert found["timezone"] == "Europe/Berlin" and found["overlap"] == "skip"
    assert len(found["nextFires"]) == 5 and found["nextFires"][0] == found["nextFireAt"]
    assert found["nextFires"] == sorted(found["nextFires"])
    path = f"{PATH}/{found['scheduleId']}"
    assert timed.get(path).json()["nextFires"] == found["nextFires"]
    skipped = timed.post(f"{path}/skip", {}).json()["skipped"]
    assert skipped == found["nextFires"][0]
    after = timed.get(path).json()
    assert after["nextFires"][:4] == found["nextFires"][1:] and after["leftOut"] == [skipped]
    did = [each["did"] for each in timed.get(f"{path}/history").json()["changes"]]
    assert did == ["skipped", "made"]


def test_slots_start_runs_that_are_attributed_to_their_delivery(timed: Api) -> None:
    found = made(timed, **EACH_SECOND)
    path = f"{PATH}/{found['scheduleId']}"
    first, second = fires(timed, found["scheduleId"], 2)[:2]
    assert first["slot"] < second["slot"] and first["runId"] != second["runId"]
    timed.until(first["runId"], "completed")
    begun, attempted, *_ = timed.events(first["runId"])
    assert attempted["type"] == "trigger.delivery.attempted"
    assert begun["causationId"] == attempted["eventId"] == first["fireId"]
    assert attempted["payload"]["subscriptionId"] == found["subscriptionId"]
    shown = timed.get(path).json()
    assert shown["fires"]["delivered"] >= 2 and shown["lastRunId"]
    paused = timed.post(f"{path}/pause", {"reason": "quarter close"}).json()
    assert paused["state"] == "paused" and paused["nextFires"] == []
    assert paused["pause"]["reason"] == "quarter close"
    count = timed.get(path).json()["fires"]["delivered"]
    resumed = timed.post(f"{path}/resume", {}).json()
    assert resumed["state"] == "active" and "pause" not in resumed
    fires(timed, found["scheduleId"], count + 1)
    off = timed.call("PATCH", path, json={"enabled": False}).json()
    assert (off["state"], off["nextFireAt"]) == ("disabled", None)
    refused(timed.post(f"{path}/run", {}), 409, "conflict")
    assert timed.delete(path).status_code == 204
    assert timed.get(path).status_code == 404


def test_by_hand_a_run_is_started_tried_dry_and_refused_while_one_is_going(timed: Api) -> None:
    found = made(timed, **{**WEEKDAYS, "workflowId": "patient"})
    path = f"{PATH}/{found['scheduleId']}"
    dry = timed.post(f"{path}/run", {"dryRun": True})
    assert dry.status_code == 200 and "runId" not in dry.json()
    began = timed.post(f"{path}/run", {})
    assert began.status_code == 202
    run_id = began.json()["runId"]
    assert timed.get(path).json()["going"] == [run_id]
    busy = timed.post(f"{path}/run", {})
    assert busy.status_code == 409 and busy.json()["details"]["activeRunId"] == run_id
    waits = timed.post(f"{path}/run", {"overlap": "buffer-one"}).json()
    assert [each["act"] for each in waits["fires"]] == ["buffer"]
    timed.post(f"/v1/runs/{run_id}/cancel", {"reason": "enough"})
    deadline = time.monotonic() + PATIENCE
    while timed.get(path).json()["going"] in ([], [run_id]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    day = {"from": "2020-01-06T00:00", "to": "2020-01-07T00:00"}
    assert timed.post(f"{path}/backfill", {**day, "dryRun": True}).json()["fires"][0]["slot"] == (
        "2020-01-06T07:30:00.000000Z"
    )
    refused(timed.post(f"{path}/backfill", {"from": "x", "to": "y"}), 400, "validation_error")


def test_mistakes_are_refused_with_the_field_and_nothing_is_kept(timed: Api) -> None:
    before = len(timed.get(PATH).json()["schedules"])
    for field, body in {
        "words": {**WEEKDAYS, "words": "wekday 08:30"},
        "workflowId": {**WEEKDAYS, "workflowId": "tmed"},
        "rosterId": {**WEEKDAYS, "rosterId": "host:nobody"},
        "timezone": {"workflowId": "timed", "kind": "cron", "cronExpr": "0 8 * * *",
                     "timezone": "Europe/Berln"},
        "condition": {**WEEKDAYS, "condition": {"expression": "1 +"}},
        "overlp": {**WEEKDAYS, "overlp": "skip"},
    }.items():  # fmt: skip
        answer = timed.post(PATH, body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["details"]["field"] == field
    far = {"workflowId": "timed", "kind": "once", "at": "2999-01-01T00:00:00Z"}
    answer = timed.post(PATH, far)
    assert answer.json()["error"] == "schedule_horizon_exceeded"
    assert answer.json()["details"]["maxFutureHorizon"] == "P400D"
    checked = timed.post(f"{PATH}:check", WEEKDAYS).json()
    assert checked["ok"] and len(checked["nextFires"]) == 5
    assert len(timed.get(PATH).json()["schedules"]) == before


def test_lists_have_pages_and_belong_to_their_tenant(timed: Api, foreign: Api) -> None:
    ids = sorted(made(timed, **WEEKDAYS)["scheduleId"] for _ in range(3))
    first = timed.get(f"{PATH}?limit=1&workflowId=timed").json()
    seen = [first["schedules"][0]["scheduleId"]]
    while "nextCursor" in first:
        cursor = first["nextCursor"]
        first = timed.get(f"{PATH}?limit=1&workflowId=timed&cursor={cursor}").json()
        seen += [each["scheduleId"] for each in first["schedules"]]
    assert set(ids) <= set(seen) and seen == sorted(seen)
    assert timed.get(f"{PATH}?rosterId=host:sally").json()["schedules"] == []
    assert foreign.get(f"{PATH}/{ids[0]}").status_code == 404
    assert not {each["scheduleId"] for each in foreign.get(PATH).json()["schedules"]} & set(ids)


def test_the_seams_turn_the_real_clockwork(api: Api) -> None:
    seam = "/v1/host/sample"
    for body in (
        {"scenario": "single-tick"},
        {"scenario": "missed-window"},
        {"scenario": "missed-window", "missedTicks": 500},
    ):
        assert api.post(f"{seam}/scheduling/tick", body).json() == {"runsFired": 1}
    states: list[Any] = [{"v": 1}, {"v": 1}, {"v": "2"}, {"v": "2"}, {}]
    said = [
        api.post(f"{seam}/heartbeat/tick", {"heartbeatId": "pulse", "observedState": state}).json()
        for state in states
    ]
    assert [each["evaluated"][0]["changed"] for each in said] == [False, False, True, False, True]
    for each in said:
        api.answers.document("heartbeat-evaluated", each["evaluated"][0])
    api.answers.document("heartbeat-state-changed", said[2]["stateChanged"][0])
    assert said[2]["stateChanged"] == [{"heartbeatId": "pulse", "from": {"v": 1}, "to": {"v": "2"}}]
