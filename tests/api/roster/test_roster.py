"""Standing agents over the wire: who there is, whose work a run is, and for ever."""

import itertools
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused

ROSTER = "/v1/host/moot/roster"
FLOW = definition("sally-noop", [{"id": "a", "typeId": "core.noop"}])
_numbers = itertools.count()


def hired(api: Api, **more: Any) -> dict[str, Any]:
    number = next(_numbers)
    agent = f"clerk-{number}"
    api.post("/v1/host/moot/agents", {"name": agent, "prompt": "You do clerical work."})
    api.post("/v1/host/moot/workflows", FLOW)
    body = {
        "rosterId": f"host:sally-{number}", "persona": "Sally",
        "agentRef": {"agentId": f"host:{agent}"}, "workflows": ["sally-noop"], **more,
    }  # fmt: skip
    answer = api.post(ROSTER, body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_member_is_read_as_the_protocol_has_it(api: Api) -> None:
    sally = hired(api)
    entry = api.get(f"/v1/agents/roster/{sally['rosterId']}").json()
    assert entry == {
        "rosterId": sally["rosterId"], "persona": "Sally", "agentRef": sally["agentRef"],
        "workflows": ["sally-noop"], "owner": sally["owner"],
    }  # fmt: skip
    listed = api.get("/v1/agents/roster").json()
    ids = [each["rosterId"] for each in listed["roster"]]
    assert ids == sorted(ids) and listed["total"] == len(ids) and sally["rosterId"] in ids
    encoded = sally["rosterId"].replace(":", "%3A")
    assert api.get(f"/v1/agents/roster/{encoded}").json() == entry
    agent = sally["agentRef"]["agentId"]
    [shown] = api.get(f"/v1/agents/{agent}").json()["roster"]
    assert shown == {
        "rosterId": sally["rosterId"], "persona": "Sally", "workflows": ["sally-noop"],
    }  # fmt: skip


def test_a_run_of_a_member_says_so_right_after_its_start(api: Api) -> None:
    sally = hired(api)
    started = api.post(f"{ROSTER}/{sally['rosterId']}/run", {"workflowId": "sally-noop"}).json()
    api.until(started["runId"])
    log = api.events(started["runId"])
    assert [event["type"] for event in log[:2]] == ["run.started", "roster.run.initiated"]
    assert log[1]["payload"] == {
        "rosterId": sally["rosterId"], "persona": "Sally",
        "agentId": sally["agentRef"]["agentId"], "workflowId": "sally-noop",
        "triggerSource": "run-api",
    }  # fmt: skip
    assert sum(event["type"] == "roster.run.initiated" for event in log) == 1
    verified = api.post(f"/v1/host/moot/runs/{started['runId']}:verify", {}).json()
    assert verified["identical"], verified


def test_a_replay_stays_the_work_of_who_did_it(api: Api) -> None:
    sally = hired(api)
    path = f"{ROSTER}/{sally['rosterId']}"
    run_id = api.post(f"{path}/run", {"workflowId": "sally-noop"}).json()["runId"]
    api.until(run_id)
    said = api.events(run_id)[1]["payload"]
    assert api.http.patch(path, json={"persona": "Sal"}, headers=api.auth).status_code == 200
    assert api.delete(path).status_code == 204
    assert api.get(f"{path}/history").json()["left"] == []
    for mode in ("replay", "branch"):
        fork = api.post(f"/v1/runs/{run_id}:fork", {"fromSeq": 2, "mode": mode}).json()
        api.until(fork["runId"])
        assert api.events(fork["runId"])[1]["payload"] == said
        assert api.post(f"/v1/host/moot/runs/{fork['runId']}:verify", {}).json()["identical"]


def test_who_is_off_duty_starts_nothing_and_is_still_listed(api: Api) -> None:
    sally = hired(api)
    path = f"{ROSTER}/{sally['rosterId']}"
    paused = api.post(f"{path}/pause", {"reason": "quarter close"}).json()
    assert paused["status"] == "paused" and paused["paused"]["reason"] == "quarter close"
    before = api.runs()
    refused(api.post(f"{path}/run", {"workflowId": "sally-noop"}), 409, "roster_entry_disabled")
    assert api.runs() == before
    assert api.post(f"{path}/resume").json()["status"] == "on-duty"
    api.http.patch(path, json={"enabled": False}, headers=api.auth)
    refused(api.post(f"{path}/run", {"workflowId": "sally-noop"}), 409, "roster_entry_disabled")
    shown = api.get(f"/v1/agents/roster/{sally['rosterId']}").json()
    assert shown["enabled"] is False
    did = [each["did"] for each in api.get(path).json()["history"]]
    assert did == ["changed", "resumed", "paused", "hired"]


def test_anothers_member_looks_like_none(api: Api, foreign: Api) -> None:
    sally = hired(foreign)
    for path in (f"/v1/agents/roster/{sally['rosterId']}", f"{ROSTER}/{sally['rosterId']}"):
        refused(api.get(path), 404, "not_found")
    listed = api.get("/v1/agents/roster").json()["roster"]
    assert sally["rosterId"] not in [each["rosterId"] for each in listed]


def test_a_workflow_outside_of_the_portfolio_is_not_its_work(api: Api) -> None:
    sally = hired(api, workflows=[])
    answer = api.post(f"{ROSTER}/{sally['rosterId']}/run", {"workflowId": "sally-noop"})
    refused(answer, 409, "workflow_not_in_portfolio")


BAD = [
    ({"persona": "S"}, "agentRef"),
    ({"agentRef": {"agentId": "host:clerk-0"}}, "persona"),
    ({"persona": "S", "agentRef": {"agentId": "host:nobody-here"}}, "no agent"),
    (
        {"persona": "S", "agentRef": {"agentId": "host:clerk-0", "version": "1", "channel": "c"}},
        "leave one out",
    ),
    ({"persona": "S", "agentRef": {"agentId": "host:clerk-0", "version": "9.9"}}, "no version"),
    ({"persona": "S", "agentRef": {"agentId": "host:clerk-0"}, "workflows": [5]}, "workflows"),
    ({"persona": "S", "agentRef": {"agentId": "host:clerk-0"}, "workflows": ["x"]}, "no workflow"),
    ({"persona": "S", "agentRef": {"agentId": "host:clerk-0"}, "owner": {}}, "owner"),
    ({"persona": "S", "agentRef": {"agentId": "host:clerk-0"}, "rosterId": "sally"}, "rosterId"),
]


@pytest.mark.parametrize(("body", "word"), BAD, ids=range(len(BAD)))
def test_who_cannot_be_hired_is_not(api: Api, body: dict[str, Any], word: str) -> None:
    api.post("/v1/host/moot/agents", {"name": "clerk-0", "prompt": "You do clerical work."})
    before = api.get("/v1/agents/roster").json()
    answer = api.post(ROSTER, body)
    refused(answer, 400, "validation_error")
    assert word in answer.text
    assert api.get("/v1/agents/roster").json() == before


def test_a_workflow_of_another_tenant_is_in_nobodys_portfolio(api: Api, foreign: Api) -> None:
    foreign.post("/v1/host/moot/workflows", {**FLOW, "id": "theirs-alone"})
    sally = hired(api)
    path, body = f"{ROSTER}/{sally['rosterId']}", {"workflows": ["theirs-alone"]}
    answer = api.http.patch(path, json=body, headers=api.auth)
    refused(answer, 403, "workspace_membership_required")
    assert "elsewhere" not in answer.text
    assert api.get(path).json()["workflows"] == ["sally-noop"]


def test_two_members_of_one_id_there_are_not(api: Api) -> None:
    sally = hired(api)
    body = {"persona": "S", "agentRef": sally["agentRef"], "rosterId": sally["rosterId"]}
    refused(api.post(ROSTER, body), 409, "conflict")
    itself = {"persona": "S", "agentRef": {"agentId": sally["rosterId"]}}
    refused(api.post(ROSTER, itself), 400, "validation_error")
