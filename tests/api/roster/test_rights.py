"""What nobody gets by way of a standing agent: another's name, work it is not hired for, its hands
while it is away."""

import hashlib
import hmac
import time
from typing import Any

import httpx2 as httpx
import pytest

from tests.api.roster.test_roster import ROSTER, hired
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused

SUBSCRIPTIONS = "/v1/trigger-subscriptions"


def test_a_name_that_a_key_speaks_as_or_an_agent_has_is_not_hired_over(api: Api) -> None:
    for name in ("taken-a", "taken-b", "other"):
        api.post("/v1/host/moot/agents", {"name": name, "prompt": "You work."})
    api.new_key("hers", **{"as": ["host:taken-a"]})
    usual = api.with_key(api.new_key("usual", scopes=["manifest:read", "manifest:write"]))
    body = {"persona": "Ada", "agentRef": {"agentId": "host:other"}}
    refused(usual.post(ROSTER, {**body, "rosterId": "host:taken-a"}), 403, "forbidden")
    refused(usual.post(ROSTER, {**body, "rosterId": "host:taken-b"}), 409, "conflict")
    own = {"persona": "Bo", "agentRef": {"agentId": "host:taken-b"}, "rosterId": "host:taken-b"}
    assert usual.post(ROSTER, own).status_code == 201


def test_an_agents_key_hires_changes_and_dismisses_nobody(api: Api) -> None:
    sally = hired(api)
    agent = api.with_key(api.new_key("agents", scopes=["manifest:read", "manifest:write"],
                                     **{"as": ["host:worker-x"]}))  # fmt: skip
    path = f"{ROSTER}/{sally['rosterId']}"
    body = {"persona": "Eve", "agentRef": sally["agentRef"]}
    for answer in (agent.post(ROSTER, body), agent.call("PATCH", path, json={"enabled": False}),
                   agent.delete(path)):  # fmt: skip
        refused(answer, 403, "forbidden")


@pytest.mark.parametrize(
    "wrong",
    [{"rosterId": "host:evil\n"}, {"persona": " "}, {"persona": "A\nB"}, {"persona": "A\u202eB"},
     {"label": "a\x00b"}],
)  # fmt: skip
def test_a_member_has_a_name_that_can_be_read(api: Api, wrong: dict[str, Any]) -> None:
    agent = hired(api)["agentRef"]
    refused(api.post(ROSTER, {"persona": "Eve", "agentRef": agent, **wrong}), 400,
            "validation_error")  # fmt: skip
    assert api.get(ROSTER).status_code == 200


def test_a_pause_ends_within_the_calendar(api: Api) -> None:
    path = f"{ROSTER}/{hired(api)['rosterId']}"
    until = {"until": "9999-12-31T23:59:59-23:59"}
    refused(api.post(f"{path}/pause", until), 400, "validation_error")
    assert api.get(ROSTER).status_code == 200 == api.get(path).status_code


def test_who_is_away_goes_on_with_no_branch_and_who_was_let_go_stays_its_author(api: Api) -> None:
    sally = hired(api)
    path = f"{ROSTER}/{sally['rosterId']}"
    run_id = api.post(f"{path}/run", {"workflowId": "sally-noop"}).json()["runId"]
    api.until(run_id)
    api.post(f"{path}/pause", {})
    fork = {"mode": "branch", "fromSeq": 0}
    refused(api.post(f"/v1/runs/{run_id}:fork", fork), 409, "roster_entry_disabled")
    assert api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay"}).status_code == 201
    assert api.delete(path).status_code == 204
    made = api.post(f"/v1/runs/{run_id}:fork", fork).json()["runId"]
    api.until(made)
    said = next(e for e in api.events(made) if e["type"] == "roster.run.initiated")
    assert said["payload"]["rosterId"] == sally["rosterId"]


def test_a_trigger_of_nobody_makes_no_run_somebodys_outside_of_the_portfolio(api: Api) -> None:
    sally = hired(api)
    node = {"id": "a", "typeId": "core.noop", "agent": {"agentId": sally["rosterId"]}}
    api.register(definition("names-her", [node]))
    path = "/v1/host/moot/queues/side-of-sally"
    assert api.call("PUT", path, json={"workflowId": "names-her"}).status_code in (200, 201)
    first = api.post(f"{path}/items", {"subject": "x"}).json()["runId"]
    more = {"workflows": ["sally-noop", "names-her"]}
    assert api.call("PATCH", f"{ROSTER}/{sally['rosterId']}", json=more).status_code == 200
    second = api.post(f"{path}/items", {"subject": "x"}).json()["runId"]
    told = [
        [event["type"] for event in api.events(run)].count("roster.run.initiated")
        for run in (first, second)
    ]
    assert told == [0, 1]


def test_a_time_that_is_written_otherwise_is_no_other_event(api: Api) -> None:
    api.register(definition("signed-for", [{"id": "a", "typeId": "core.noop"}]))
    made = api.post(SUBSCRIPTIONS, {"source": "webhook", "workflowId": "signed-for"}).json()
    secret, url = made["binding"]["signingSecret"], made["binding"]["ingestUrl"]
    seconds = int(time.time())
    mac = hmac.new(secret.encode(), f"{seconds}.{{}}".encode(), hashlib.sha256).hexdigest()

    def sent(written: str) -> str:
        headers = {"X-openwop-Timestamp": written, "X-openwop-Signature": f"sha256={mac}"}
        answer = api.with_key(None).post(httpx.URL(url).path, b"{}", headers=headers)
        return str(answer.json()["outcome"])

    assert [sent(f"{zeros}{seconds}") for zeros in ("", "0", "00")] == [
        "delivered", "duplicate", "duplicate",
    ]  # fmt: skip


def test_a_workflow_that_starts_by_itself_needs_the_right_to_start_runs(api: Api) -> None:
    writer = api.with_key(api.new_key("writer", scopes=["manifest:write"]))
    body = definition("by-itself", [{"id": "a", "typeId": "core.noop"}])
    timed = {"id": "t", "type": "schedule", "config": {"kind": "interval", "intervalSeconds": 3600}}
    path = "/v1/host/moot/workflows"
    details = refused(writer.post(path, {**body, "triggers": [timed]}), 403, "forbidden")
    assert details == {"scopeRequired": "runs:create"}
    assert writer.post(path, {**body, "triggers": [{**timed, "enabled": False}]}).status_code == 201


def test_who_is_away_works_through_no_fork_of_a_parent_either(api: Api) -> None:
    sally = hired(api)
    node = {"id": "a", "typeId": "core.noop", "agent": {"agentId": sally["rosterId"]}}
    api.register(definition("hers-below", [node]))
    below = {"id": "s", "typeId": "core.subWorkflow", "config": {"workflowId": "hers-below"}}
    api.register(definition("above-her", [below]))
    run_id = api.run("above-her")["runId"]
    api.post(f"{ROSTER}/{sally['rosterId']}/pause", {})
    fork = {"mode": "branch", "fromSeq": 0}
    refused(api.post(f"/v1/runs/{run_id}:fork", fork), 409, "roster_entry_disabled")
