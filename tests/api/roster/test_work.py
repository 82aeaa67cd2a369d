"""What standing agents use up, are stopped in, are tried with; and what nobody is told of it."""

from typing import Any

import pytest

from tests.api.roster.test_handles import asked, change, flow, verified
from tests.api.roster.test_roster import FLOW, ROSTER, hired
from tests.support.api.bundles import bundle_of, take_in
from tests.support.api.caller import Api, definition
from tests.support.api.questions import of, refused, talk

pytestmark = pytest.mark.usefixtures("within_a_day")

CANARY = "canary-7f3a9c"
GATE = {"id": "gate", "typeId": "core.approvalGate", "config": {"title": "Go on?"}}


def question(api: Api, member: dict[str, Any], expected: str) -> str:
    run_id = asked(api, agentId=member["rosterId"], inputs={"prompt": "Ready?"})
    assert api.until(run_id)["status"] == expected
    return run_id


def budget_of(api: Api, member: dict[str, Any]) -> dict[str, Any]:
    [bound] = api.get(f"{ROSTER}/{member['rosterId']}").json()["budget"]
    return dict(bound)


@pytest.mark.parametrize("limit", ["tokensPerDay", "tokensPerMonth"])
def test_a_member_is_warned_then_stopped_before_the_next_call_and_goes_on_with_more(
    api: Api, limit: str
) -> None:
    sally = hired(api)
    question(api, sally, "completed")
    change(api, sally, budget={limit: 1_000_000})
    used = budget_of(api, sally)["used"]
    assert used > 0
    change(api, sally, budget={limit: round(used * 1.15)})
    assert budget_of(api, sally)["state"] == "nearly used up"
    run_id = question(api, sally, "completed")
    [line] = of(api, run_id, "log.appended")
    assert line["level"] == "warn" and limit in line["message"]
    verified(api, run_id)
    assert budget_of(api, sally)["state"] == "used up"
    calls = budget_of(api, sally)["used"]
    stopped = question(api, sally, "failed")
    assert api.read(stopped)["error"]["code"] == "member_budget_used_up"
    assert budget_of(api, sally)["used"] == calls, "nothing was called"
    assert not of(api, stopped, "log.appended")
    change(api, sally, budget={limit: 1_000_000})
    question(api, sally, "completed")
    change(api, sally, budget=None)
    assert "budget" not in api.get(f"{ROSTER}/{sally['rosterId']}").json()


def test_what_a_members_children_use_up_is_its_own(api: Api) -> None:
    inner = flow(api, {"id": "w", "typeId": "moot.agent", "config": {"prompt": "Say it."}})
    outer = flow(api, {"id": "s", "typeId": "core.subWorkflow", "config": {"workflowId": inner}})
    sally = hired(api, workflows=[outer], budget={"tokensPerDay": 1})
    assert api.until(asked(api, workflowId=outer, agentId=sally["rosterId"]))["status"] in (
        "completed", "failed",
    )  # fmt: skip
    assert budget_of(api, sally)["used"] > 1
    assert "budget" not in api.get(f"/v1/agents/roster/{sally['rosterId']}").json()


@pytest.mark.parametrize("wrong", [{"tokensPerDay": 0}, {"moneyPerDay": -1}, {"tokens": 5}])
def test_a_budget_of_no_sense_is_refused(api: Api, wrong: dict[str, Any]) -> None:
    sally = hired(api)
    answer = api.http.patch(f"{ROSTER}/{sally['rosterId']}", json={"budget": wrong},
                            headers=api.auth)  # fmt: skip
    assert answer.status_code == 400 and "budget" in answer.text


def test_a_pause_lets_go_on_what_is_under_way_or_stops_it(api: Api) -> None:
    name = flow(api, GATE)
    sally = hired(api, workflows=[name])
    path = f"{ROSTER}/{sally['rosterId']}"
    run_id = api.post(f"{path}/run", {"workflowId": name}).json()["runId"]
    api.until(run_id, "waiting-approval")
    assert api.post(f"{path}/pause", {}).json()["running"] == [run_id]
    assert api.read(run_id)["status"] == "waiting-approval"
    body = {"stop": True, "reason": "quarter close"}
    assert api.post(f"{path}/pause", body).json()["stopped"] == [run_id]
    assert api.until(run_id)["status"] == "cancelled"


def test_a_dry_run_says_who_would_do_what_and_starts_nothing(api: Api) -> None:
    sally = hired(api)
    path = f"{ROSTER}/{sally['rosterId']}/run"
    before = api.runs()
    found = api.post(path, {"workflowId": "sally-noop", "dryRun": True}).json()
    assert found["dryRun"] is True and found["would"]["persona"] == "Sally"
    assert found["would"]["version"]
    refused(api.post(path, {"workflowId": "x", "dryRun": True}), 409, "workflow_not_in_portfolio")
    assert api.runs() == before


def test_a_fire_is_attributed_and_its_delivery_is_the_cause(api: Api) -> None:
    body = {"triggerSource": "queue", "asWorkItem": True}
    fired = api.post("/v1/host/sample/roster/fire", body).json()
    api.until(fired["runId"])
    log = api.events(fired["runId"])
    assert [event["type"] for event in log[:3]] == [
        "run.started", "roster.run.initiated", "trigger.delivery.attempted",
    ]  # fmt: skip
    assert log[0]["causationId"] == log[2]["eventId"]
    assert log[1]["payload"]["triggerSubscriptionId"] == fired["triggerSubscriptionId"]
    verified(api, fired["runId"])
    plain = api.post("/v1/host/sample/roster/fire", {"triggerSource": "schedule"}).json()
    assert of(api, plain["runId"], "roster.run.initiated")[0]["triggerSource"] == "schedule"
    alias = api.get("/v1/host/sample/roster").json()
    assert fired["rosterId"] in [each["rosterId"] for each in alias["roster"]]


def test_nothing_that_came_in_is_said_of_whose_run_it_is(api: Api) -> None:
    """Not the inputs, not the prompt, not the key: ids and a name, whatever there is."""
    work = {"id": "w", "typeId": "moot.agent", "config": {"prompt": f"Say {CANARY}."}}
    name = flow(
        api, work, variables=[{"name": "body", "type": "string", "sensitive": True}],
    )  # fmt: skip
    sally = hired(api, workflows=[name], description=CANARY)
    body = {"workflowId": name, "inputs": {"body": CANARY}}
    run_id = api.post(f"{ROSTER}/{sally['rosterId']}/run", body).json()["runId"]
    api.until(run_id)
    [said] = of(api, run_id, "roster.run.initiated")
    assert CANARY not in str(said) and str(api.key) not in str(said)
    assert set(said) == {"rosterId", "persona", "agentId", "workflowId", "triggerSource"}


def test_a_run_taken_elsewhere_is_still_the_members(api: Api, elsewhere: Api) -> None:
    name = flow(api, talk(participants=[{"agentId": "host:ada"}, {"agentId": "host:bo"}]))
    sally = hired(api, workflows=[name])
    path = f"{ROSTER}/{sally['rosterId']}/run"
    run_id = api.post(path, {"workflowId": name}).json()["runId"]
    api.until(run_id, "waiting-approval", "waiting-input")
    taken = take_in(elsewhere, bundle_of(api, f"{run_id}~convo~1"))
    assert taken.status_code in (200, 201), taken.text
    assert of(elsewhere, run_id, "roster.run.initiated") == of(api, run_id, "roster.run.initiated")


def test_a_host_without_a_roster_keeps_and_wakes_nobody(host: Any) -> None:
    api = host(MOOT_ROSTER="false")
    assert "roster" not in api.get("/.well-known/openwop").json()["agents"]
    for path in ("/v1/agents/roster", "/v1/agents/roster/host:sally", ROSTER):
        refused(api.get(path), 501, "capability_not_provided")
    refused(api.post(ROSTER, {}), 501, "capability_not_provided")
    api.register(definition("any", FLOW["nodes"]))
    assert api.run("any")["status"] == "completed"
