"""A webhook that leads back to where runs begin does not feed itself for ever."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from moot.core.triggers.hops import MOST_HOPS, parse_hops
from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused
from tests.support.servers import ServerProcess, server_environment
from tests.support.webhook_receiver import Receiver

NOOP = definition("noop", [{"id": "a", "typeId": "core.noop"}])
RING = definition("ring", [{"id": "a", "typeId": "core.noop"}])
ABOVE = definition("above", [
    {"id": "a", "typeId": "core.subWorkflow", "config": {"workflowId": "noop"}}
])  # fmt: skip


@pytest.fixture(scope="module")
def api(answers: AnswerChecks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    inside = {"MOOT_ALLOW_PRIVATE_TARGETS": "1"}
    process = ServerProcess(tmp_path_factory.mktemp("loops"), [], server_environment() | inside)
    with Api(process.url, process.key, answers) as found:
        found.register(NOOP)
        found.register(RING)
        found.register(ABOVE)
        yield found
    process.stop()


def listening(api: Api, workflow: str) -> str:
    """An address where whoever calls begins a run."""
    asked = {"source": "webhook", "workflowId": workflow, "verification": {"mode": "none"}}
    made = api.post("/v1/trigger-subscriptions", asked)
    assert made.status_code == 201, made.text
    return str(api.url + httpx.URL(made.json()["binding"]["ingestUrl"]).path)


def runs(api: Api, workflow: str) -> list[dict[str, Any]]:
    found = api.get("/v1/host/moot/runs", params={"limit": 200}).json()["runs"]
    return [row for row in found if row["workflowId"] == workflow]


def test_a_webhook_that_begins_what_it_tells_of_comes_to_an_end(api: Api) -> None:
    hook = api.post("/v1/webhooks", {"url": listening(api, "ring"), "events": ["run.completed"]})
    path = f"/v1/host/moot/webhooks/{hook.json()['webhookId']}"
    api.run("ring")
    until = time.monotonic() + 60
    while "lastError" not in (shown := api.get(path).json()):
        assert time.monotonic() < until, shown
        time.sleep(0.05)
    assert shown["lastError"] == "The receiver answered 409."
    api.delete(path.replace("/host/moot", ""))
    assert len(runs(api, "ring")) == 1 + MOST_HOPS


def test_a_run_keeps_how_many_steps_lie_behind_it_and_says_one_more(api: Api) -> None:
    receiver = Receiver()
    told = api.post("/v1/webhooks", {"url": receiver.url, "events": ["run.completed"]}).json()
    place = listening(api, "noop")
    for said, behind in (("3", 3), ("", 0), ("-1", 0), ("9" * 20, 0), (str(MOST_HOPS), MOST_HOPS)):
        answer = httpx.post(place, content=b"{}", headers={"X-Moot-Hops": said})
        run_id = answer.json()["runId"]
        seen = receiver.until(lambda all_, run_id=run_id: [  # type: ignore[misc]
            one for one in all_ if one.body["runId"] == run_id
        ])  # fmt: skip
        [one] = [one for one in seen if one.body["runId"] == run_id]
        assert one.headers["x-moot-hops"] == str(behind + 1)
        assert api.events(run_id)[0]["payload"].get("hops", 0) == behind
    parent = httpx.post(listening(api, "above"), content=b"{}", headers={"X-Moot-Hops": "2"})
    seen = receiver.until(lambda all_: len(all_) == 7)
    told_of = {one.body["runId"] for one in seen[-2:]}
    assert parent.json()["runId"] in told_of and len(told_of) == 2
    assert [one.headers["x-moot-hops"] for one in seen[-2:]] == ["3", "3"]
    answer = httpx.post(place, content=b"{}", headers={"X-Moot-Hops": str(MOST_HOPS + 1)})
    assert refused(answer, 409, "loop_detected") == {"hops": MOST_HOPS + 1}
    api.delete(f"/v1/webhooks/{told['webhookId']}")
    receiver.close()


def test_only_a_small_number_is_believed() -> None:
    assert [parse_hops(text) for text in (None, "", "7", " 7 ", "٣", "1e3", "0007")] == [
        0, 0, 7, 7, 0, 0, 7,
    ]  # fmt: skip
