"""A standing agent by its handle: whom it is an instance of is found once, and it works under its
own name."""

import itertools
from typing import Any

import pytest

from tests.api.agents.test_agents import deploy, node, promoted
from tests.api.roster.test_roster import ROSTER, hired
from tests.support.api.caller import Api, definition
from tests.support.api.councils import convened, run_of
from tests.support.api.questions import of, refused

_numbers = itertools.count()


def flow(api: Api, *nodes: dict[str, Any], **more: Any) -> str:
    return api.register(definition(f"handles-{next(_numbers)}", list(nodes), **more))


def asked(api: Api, **body: Any) -> str:
    answer = api.post("/v1/runs", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def verified(api: Api, run_id: str) -> None:
    found = api.post(f"/v1/host/moot/runs/{run_id}:verify", {}).json()
    assert found["identical"], str(found)


def manifest(member: dict[str, Any]) -> str:
    return "local.agents." + str(member["agentRef"]["agentId"]).removeprefix("host:")


def change(api: Api, member: dict[str, Any], **body: Any) -> None:
    answer = api.http.patch(f"{ROSTER}/{member['rosterId']}", json=body, headers=api.auth)
    assert answer.status_code == 200, answer.text


def test_a_member_is_asked_by_its_handle(api: Api) -> None:
    sally = hired(api)
    run_id = asked(api, agentId=sally["rosterId"], inputs={"prompt": "Ready?"})
    found = api.until(run_id, "completed")
    log = api.events(run_id)
    assert [event["type"] for event in log[:2]] == ["run.started", "roster.run.initiated"]
    assert log[1]["payload"] == {
        "rosterId": sally["rosterId"], "persona": "Sally", "workflowId": "moot.ask",
        "agentId": sally["agentRef"]["agentId"], "triggerSource": "run-api",
    }  # fmt: skip
    assert found["agent"]["agentId"] == sally["rosterId"]
    assert (found["agent"]["name"], found["agent"]["sourceManifestId"]) == (
        "Sally", manifest(sally),
    )  # fmt: skip
    [began] = of(api, run_id, "agent.invocation.started")
    assert (began["agentId"], began["source"]) == (sally["rosterId"], "run-api")
    said = [event for event in log if event["type"].startswith("agent.")]
    assert {event["payload"]["agentId"] for event in said} == {sally["rosterId"]}
    verified(api, run_id)


def test_a_node_is_carried_out_by_the_member_it_names(api: Api) -> None:
    sally = hired(api)
    by_pin = node({"agentId": sally["rosterId"]}, prompt="Say it.")
    by_name = {"id": "more", "typeId": "moot.agent", "config": {"agent": sally["rosterId"]}}
    found = api.run(flow(api, by_pin, by_name))
    assert found["status"] == "completed", found
    assert sum(type_ == "roster.run.initiated" for type_ in api.types(found["runId"])) == 1
    for started in of(api, found["runId"], "node.started"):
        assert started["agent"]["agentId"] == sally["rosterId"]
        assert started["agent"]["name"] == "Sally"
    assert not of(api, found["runId"], "agent.handoff")
    verified(api, found["runId"])


def test_a_node_that_names_nobody_is_work_of_whose_run_it_is(api: Api) -> None:
    bare = {"id": "work", "typeId": "moot.agent", "config": {"prompt": "Say it."}}
    name = flow(api, bare)
    sally = hired(api, workflows=[name])
    run_id = asked(api, workflowId=name, agentId=sally["rosterId"])
    assert api.until(run_id)["status"] == "completed"
    [began] = of(api, run_id, "agent.invocation.started")
    assert began["agentId"] == sally["rosterId"]
    [initiated] = of(api, run_id, "roster.run.initiated")
    assert initiated["workflowId"] == name
    alone = api.run(name)
    assert alone["status"] == "failed" and "nobody is named" in alone["error"]["message"]
    refused(
        api.post("/v1/runs", {"workflowId": "conformance-noop", "agentId": sally["rosterId"]}),
        409, "workflow_not_in_portfolio",
    )  # fmt: skip


def test_several_members_are_named_node_by_node(api: Api) -> None:
    sally, bob = hired(api), hired(api, persona="Bob")
    one = node({"agentId": sally["rosterId"]})
    two = {**node({"agentId": bob["rosterId"]}), "id": "two"}
    found = api.run(flow(api, one, two))
    assert "roster.run.initiated" not in api.types(found["runId"])
    began = of(api, found["runId"], "agent.invocation.started")
    assert [each["agentId"] for each in began] == [sally["rosterId"], bob["rosterId"]]
    [passed] = of(api, found["runId"], "agent.handoff")
    assert passed["toAgentId"] == bob["rosterId"]


def test_a_channel_is_drawn_once_and_the_next_run_follows_a_promotion(api: Api) -> None:
    sally = hired(api)
    name, agent_id = sally["agentRef"]["agentId"].removeprefix("host:"), manifest(sally)
    first = api.get(f"/v1/host/moot/agents/{name}").json()["version"]
    promoted(api, agent_id, first, channel="stable")
    change(api, sally, agentRef={"agentId": agent_id, "channel": "stable"})
    again = {**node({"agentId": sally["rosterId"]}), "id": "again"}
    gate = {"id": "gate", "typeId": "core.approvalGate", "config": {"title": "Go on?"}}
    run_id = api.create(flow(api, node({"agentId": sally["rosterId"]}), gate, again))
    api.until(run_id, "waiting-approval")
    body = {"name": name, "prompt": "You do other work."}
    second = api.post("/v1/host/moot/agents", body).json()["version"]
    promoted(api, agent_id, second, channel="stable")
    assert deploy(api, agent_id, first, "deprecate").status_code == 200
    change(api, sally, persona="Sal", agentRef={"agentId": f"host:{name}"})
    assert api.delete(f"{ROSTER}/{sally['rosterId']}").status_code == 204
    answer = api.post(f"/v1/runs/{run_id}/interrupts/gate", {"resumeValue": {"action": "accept"}})
    assert answer.status_code == 200, answer.text
    assert api.until(run_id)["status"] == "completed"
    for began in of(api, run_id, "agent.invocation.started"):
        assert (began["resolvedAgentVersion"], began["resolvedChannel"]) == (first, "stable")
    names = [each["agent"]["name"] for each in of(api, run_id, "node.started") if "agent" in each]
    assert names == ["Sally", "Sally"]
    verified(api, run_id)
    fork = api.post(f"/v1/runs/{run_id}:fork", {"fromSeq": 0, "mode": "replay"}).json()
    began = of(api, fork["runId"], "agent.invocation.started")
    assert began == of(api, run_id, "agent.invocation.started")


def test_work_is_handed_to_a_member(api: Api) -> None:
    sally = hired(api)
    plan = [{"kind": "next-worker", "nextWorkerIds": [sally["rosterId"]]}]
    boss = {"id": "boss", "typeId": "core.orchestrator.supervisor", "config": {"plan": plan}}
    hands = {"id": "hands", "typeId": "core.dispatch", "config": {"inputMapping": {"prompt": "p"}}}
    name = flow(
        api, boss, hands, edges=[("boss", "hands"), ("hands", "boss")],
        variables=[{"name": "p", "type": "string", "defaultValue": "Say it."}],
    )  # fmt: skip
    found = api.run(name)
    assert found["status"] == "completed", found
    assert "roster.run.initiated" not in api.types(found["runId"])
    [child] = found["childRuns"]
    [said] = of(api, child["runId"], "roster.run.initiated")
    assert (said["rosterId"], said["triggerSource"]) == (sally["rosterId"], "dispatch")
    [began] = of(api, child["runId"], "agent.invocation.started")
    assert began["agentId"] == sally["rosterId"]
    for run_id in (found["runId"], child["runId"]):
        verified(api, run_id)


def test_what_a_members_run_begins_is_counted_as_its_work_without_saying_so_again(
    api: Api,
) -> None:
    bare = {"id": "work", "typeId": "moot.agent", "config": {"prompt": "Say it."}}
    inner = flow(api, bare)
    outer = flow(
        api, {"id": "sub", "typeId": "core.subWorkflow", "config": {"workflowId": inner}}
    )  # fmt: skip
    sally = hired(api, workflows=[outer])
    run_id = asked(api, workflowId=outer, agentId=sally["rosterId"])
    found = api.until(run_id)
    assert found["status"] == "completed", found
    [child] = found["childRuns"]
    assert "roster.run.initiated" not in api.types(child["runId"])
    [began] = of(api, child["runId"], "agent.invocation.started")
    assert began["agentId"] == sally["rosterId"]
    listed = api.get(f"/v1/host/moot/runs?member={sally['rosterId']}").json()["runs"]
    assert {each["runId"] for each in listed} == {run_id, child["runId"]}
    verified(api, child["runId"])


def test_a_member_speaks_in_a_council_under_its_own_name(api: Api) -> None:
    sally, bob = hired(api), hired(api, persona="Bob")
    names = [sally["rosterId"], bob["rosterId"]]
    run_id = run_of(convened(api, *names, policy={"mode": "round-robin", "rounds": 1}))
    api.until(run_id, "waiting-input", "waiting-approval")
    while "moot.participation.stopped" not in api.types(run_id):
        api.poll(run_id, len(api.events(run_id)) - 1, 1)
    began = of(api, run_id, "agent.invocation.started")
    assert [each["agentId"] for each in began] == names
    turns = [said["turn"] for said in of(api, run_id, "conversation.exchanged")]
    assert [turn["speakerId"] for turn in turns if turn["role"] == "agent"] == names
    verified(api, run_id)


@pytest.mark.parametrize("how", ["pause", "disable"])
def test_who_is_off_duty_is_asked_for_nothing(api: Api, how: str) -> None:
    sally = hired(api)
    name = flow(api, node({"agentId": sally["rosterId"]}))
    if how == "pause":
        api.post(f"{ROSTER}/{sally['rosterId']}/pause", {})
    else:
        change(api, sally, enabled=False)
    before = api.runs()
    body = {"agentId": sally["rosterId"], "inputs": {"prompt": "?"}}
    refused(api.post("/v1/runs", body), 409, "roster_entry_disabled")
    refused(api.post("/v1/runs", {"workflowId": name}), 409, "roster_entry_disabled")
    assert api.runs() == before


def test_a_handle_is_nobody_elses(api: Api, foreign: Api) -> None:
    sally = hired(api)
    body = {"agentId": sally["rosterId"], "inputs": {"prompt": "?"}}
    refused(foreign.post("/v1/runs", body), 404, "not_found")
    name = flow(foreign, node({"agentId": sally["rosterId"]}))
    refused(foreign.post("/v1/runs", {"workflowId": name}), 422, "validation_error")
