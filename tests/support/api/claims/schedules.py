"""What discovery claims of schedules, each tried on the host."""

from datetime import datetime, timedelta
from typing import Any

from tests.support.api.caller import Api
from tests.support.api.questions import refused

PATH = "/v1/host/moot/schedules"


def scheduling(api: Api, value: Any) -> None:
    """How they fire, once each and after an outage: tests/api/schedules/test_schedules.py."""
    assert set(value) == {"supported", "cron", "delayed", "maxFutureHorizon"}
    assert value["supported"] is True
    ticks = {"scenario": "single-tick"}
    assert api.post("/v1/host/sample/scheduling/tick", ticks).json() == {"runsFired": 1}


def cron(api: Api, value: Any) -> None:
    assert value is True
    kept(api, kind="cron", cronExpr="30 8 * * 1-5", timezone="Asia/Tokyo")


def delayed(api: Api, value: Any) -> None:
    assert value is True
    found = kept(api, kind="once", at=in_days(api, 10))
    assert len(found["nextFires"]) == 1


def horizon(api: Api, value: Any) -> None:
    days = int(value.removeprefix("P").removesuffix("D"))
    kept(api, kind="once", at=in_days(api, days - 1))
    far = {"workflowId": "conformance-noop", "kind": "once", "at": in_days(api, days + 1)}
    answer = api.post(PATH, far)
    refused(answer, 400, "schedule_horizon_exceeded")
    assert answer.json()["details"]["maxFutureHorizon"] == value


def kept(api: Api, **times: Any) -> dict[str, Any]:
    answer = api.post(PATH, {"workflowId": "conformance-noop", **times})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert api.delete(f"{PATH}/{found['scheduleId']}").status_code == 204
    return found


def in_days(api: Api, days: int) -> str:
    """By the clock of the host."""
    now = datetime.fromisoformat(api.events(api.run("conformance-noop")["runId"])[0]["timestamp"])
    return (now + timedelta(days=days)).isoformat()
