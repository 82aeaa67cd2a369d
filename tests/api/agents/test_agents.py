"""Agents of this host over the wire: asked by a run, by a node, in a council; their versions."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.councils import convened, run_of
from tests.support.api.questions import of, refused
from tests.support.servers import ROOT

#: every fixture that this file is about
OURS = ("conformance-agent-channel-dispatch",)

BRACKET = [
    "agent.invocation.started", "agent.promptResolved", "agent.reasoned", "agent.decided",
    "agent.invocation.completed",
]  # fmt: skip
CHANNEL_AGENT = "core.conformance.channel-agent"
_names = (f"live{number}" for number in itertools.count())


def hired(api: Api, name: str | None = None, **given: Any) -> dict[str, Any]:
    body = {"name": name or next(_names), "prompt": "You answer.", **given}
    answer = api.post("/v1/host/moot/agents", body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def told(api: Api, run_id: str) -> list[str]:
    return [type_ for type_ in api.types(run_id) if type_.startswith("agent.")]


def by_agent(api: Api, agent_id: str, **body: Any) -> str:
    answer = api.post("/v1/runs", {"agentId": agent_id, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def node(agent: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"id": "work", "typeId": "moot.agent", "config": config, "agent": agent}


def deploy(api: Api, agent_id: str, version: str, transition: str = "promote", **more: Any) -> Any:
    body = {"version": version, "transition": transition, **more}
    return api.post(f"/v1/agents/{agent_id}/deployments", body)


def promoted(api: Api, agent_id: str, version: str, **more: Any) -> dict[str, Any]:
    """From draft to active."""
    assert deploy(api, agent_id, version).json()["state"] == "test"
    assert deploy(api, agent_id, version).json()["state"] == "staged"
    answer = deploy(api, agent_id, version, **more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


# -- asked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["host", "manifest"])
def test_a_run_can_be_a_question_to_an_agent(api: Api, by: str) -> None:
    agent = hired(api)
    asked = agent["agentId"] if by == "host" else f"local.agents.{agent['name']}"
    run_id = by_agent(api, asked, inputs={"prompt": "Shall we ship on Friday?"})
    found = api.until(run_id, "completed")
    assert found["workflowId"] == "moot.ask" and found["variables"]["text"]
    assert found["agent"]["agentId"] == asked
    assert told(api, run_id) == BRACKET
    [began] = of(api, run_id, "agent.invocation.started")
    assert (began["source"], began["agentId"]) == ("run-api", asked)
    assert began["resolvedAgentVersion"] == agent["version"]


def test_a_bare_name_means_the_agent_of_this_host(api: Api) -> None:
    agent = hired(api)
    found = api.until(by_agent(api, agent["name"], inputs={"prompt": "Ready?"}), "completed")
    assert found["agent"]["agentId"] == agent["agentId"]


def test_who_is_not_here_is_not_asked(api: Api, foreign: Api) -> None:
    agent = hired(api)
    body = {"agentId": f"{agent['agentId']}x", "inputs": {"prompt": "?"}}
    answer = api.post("/v1/runs", body)
    refused(answer, 404, "not_found")
    assert f"'{agent['name']}'" in answer.json()["message"]
    refused(foreign.post("/v1/runs", {**body, "agentId": agent["agentId"]}), 404, "not_found")
    refused(api.post("/v1/runs", {"agentId": agent["agentId"]}), 400, "validation_error")
    both = {"agentId": agent["agentId"], "workflowId": "conformance-noop"}
    refused(api.post("/v1/runs", both), 400, "validation_error")


def test_a_workflow_that_needs_somebody_who_is_not_here_does_not_begin(api: Api) -> None:
    agent = hired(api)
    name = api.register(definition("needs", [node({"agentId": f"{agent['agentId']}x"})]))
    answer = api.post("/v1/runs", {"workflowId": name})
    refused(answer, 422, "validation_error")
    assert agent["name"] in answer.json()["message"]


def test_a_node_pinned_to_an_agent_is_its_work(api: Api) -> None:
    agent = hired(api)
    body = node({"agentId": agent["agentId"]}, prompt="Say it.")
    found = api.run(api.register(definition("pinned-work", [body])))
    assert found["status"] == "completed" and told(api, found["runId"]) == BRACKET
    [began] = of(api, found["runId"], "agent.invocation.started")
    assert began["source"] == "workflow-node"
    fork = api.post(f"/v1/runs/{found['runId']}:fork", {"mode": "replay", "fromSeq": 0})
    assert fork.status_code == 201, fork.text
    assert told(api, fork.json()["runId"]) == BRACKET
    again = of(api, fork.json()["runId"], "agent.invocation.started")
    assert again == [began]


def test_members_of_a_council_tell_the_same_family(api: Api) -> None:
    names = [hired(api)["agentId"] for _ in range(2)]
    thread = convened(api, *names, policy={"mode": "round-robin", "rounds": 1})
    run_id = run_of(thread)
    api.until(run_id, "waiting-input", "waiting-approval")
    while "moot.participation.stopped" not in api.types(run_id):
        api.poll(run_id, len(api.events(run_id)) - 1, 1)
    for name in names:
        mine = [
            event
            for event in api.events(run_id)
            if event["type"].startswith("agent.") and event["payload"]["agentId"] == name
        ]
        assert [event["type"] for event in mine] == BRACKET
        assert mine[0]["payload"]["source"] == "chat-mention"


def test_the_seam_asks_a_real_agent(api: Api) -> None:
    answer = api.post("/v1/host/sample/agents/live-invoke", {"source": "run-api"})
    run_id = answer.json()["runId"]
    api.until(run_id, "completed")
    assert told(api, run_id) == BRACKET


# -- inventory -----------------------------------------------------------------------------------


def test_the_inventory_is_sorted_counted_and_ones_own(api: Api, foreign: Api) -> None:
    agent = hired(api, memory="long-term")
    found = api.get("/v1/agents").json()
    ids = [each["agentId"] for each in found["agents"]]
    assert ids == sorted(ids) and found["total"] == len(ids)
    mine = f"local.agents.{agent['name']}"
    entry = api.get(f"/v1/agents/{mine}").json()
    assert entry["toolAllowlist"] == [] and "prompt" not in entry
    assert entry["memoryShape"]["longTerm"] is True
    assert foreign.get(f"/v1/agents/{mine}").status_code == 404
    assert mine not in [each["agentId"] for each in foreign.get("/v1/agents").json()["agents"]]
    assert api.with_key(None).get("/v1/agents").status_code == 401


def test_a_manifest_of_the_protocol_is_an_agent(api: Api) -> None:
    name = next(_names)
    manifest = {
        "agentId": f"vendor.acme.{name}", "persona": "Ada", "modelClass": "research",
        "systemPrompt": "You look things up.", "toolAllowlist": ["openwop:look"],
        "confidence": {"defaultThreshold": 0.9}, "memoryShape": {"longTerm": True},
    }  # fmt: skip
    assert api.post("/v1/host/moot/agents", manifest).status_code == 201
    entry = api.get(f"/v1/agents/vendor.acme.{name}").json()
    assert (entry["persona"], entry["confidenceThreshold"]) == ("Ada", 0.9)
    run_id = by_agent(api, f"vendor.acme.{name}", inputs={"prompt": "Who?"})
    api.until(run_id, "completed")
    for wrong in ({"agentId": "host:ada"}, {"systemPrompt": ""}, {"extra": 1}):
        answer = api.post("/v1/host/moot/agents", {**manifest, **wrong})
        assert answer.status_code == 400, answer.text
    packed = {**manifest, "handoff": {"taskSchemaRef": "x"}}
    assert api.post("/v1/host/moot/agents", packed).status_code == 501


# -- deployments ---------------------------------------------------------------------------------


def channelled(api: Api, agent_id: str, channel: str = "stable") -> str:
    pin = {"agentId": agent_id, "channel": channel}
    return api.register(definition(f"channelled-{next(_names)}", [node(pin, prompt="Go.")]))


def version_in(api: Api, run_id: str) -> str:
    [began] = of(api, run_id, "agent.invocation.started")
    return str(began["resolvedAgentVersion"])


def test_a_channel_serves_what_was_promoted_and_a_run_keeps_its_version(api: Api) -> None:
    first = hired(api)
    agent_id = f"local.agents.{first['name']}"
    flow = channelled(api, agent_id)
    details = refused(api.post("/v1/runs", {"workflowId": flow}), 400, "validation_error")
    assert details["code"] == "no_active_deployment"
    promoted(api, agent_id, first["version"])
    old = api.run(flow)
    second = hired(api, first["name"], prompt="You answer in rhymes.")
    assert second["version"] != first["version"]
    assert version_in(api, api.run(flow)["runId"]) == first["version"]
    found = promoted(api, agent_id, second["version"], channel="stable")
    assert found["rollbackPointer"] == first["version"] and found["channels"] == ["stable"]
    assert version_in(api, api.run(flow)["runId"]) == second["version"]
    fork = api.post(f"/v1/runs/{old['runId']}:fork", {"mode": "replay", "fromSeq": 0})
    assert version_in(api, fork.json()["runId"]) == first["version"]
    [began] = of(api, old["runId"], "agent.invocation.started")
    assert began["resolvedChannel"] == "stable"
    assert deploy(api, agent_id, second["version"], "rollback").json()["state"] == "rolled-back"
    assert version_in(api, api.run(flow)["runId"]) == first["version"]


def test_latest_needs_no_promotion_until_there_is_one(api: Api) -> None:
    agent = hired(api)
    agent_id = f"local.agents.{agent['name']}"
    flow = channelled(api, agent_id, "latest")
    assert version_in(api, api.run(flow)["runId"]) == agent["version"]
    flow = channelled(api, agent_id, "nightly")
    refused(api.post("/v1/runs", {"workflowId": flow}), 400, "validation_error")


def test_what_is_paused_serves_nobody_until_it_is_promoted_again(api: Api) -> None:
    agent = hired(api)
    agent_id, version = f"local.agents.{agent['name']}", agent["version"]
    promoted(api, agent_id, version)
    flow = channelled(api, agent_id)
    assert deploy(api, agent_id, version, "pause").json()["state"] == "paused"
    assert api.post("/v1/runs", {"workflowId": flow}).status_code == 400
    assert deploy(api, agent_id, version).json()["state"] == "active"
    assert api.run(flow)["status"] == "completed"
    assert deploy(api, agent_id, version, "deprecate").json()["state"] == "deprecated"
    assert api.post("/v1/runs", {"workflowId": flow}).status_code == 400
    refused(deploy(api, agent_id, version), 409, "conflict")


def test_a_canary_gets_its_share_and_a_run_draws_once(api: Api) -> None:
    first = hired(api)
    agent_id = f"local.agents.{first['name']}"
    promoted(api, agent_id, first["version"])
    second = hired(api, first["name"], prompt="You are new.")
    promoted(api, agent_id, second["version"], channel="stable", canaryPercent=50)
    flow = channelled(api, agent_id)
    assert drawn(api, flow, 30) == {first["version"], second["version"]}
    assert deploy(
        api, agent_id, second["version"], "adjust-canary", canaryPercent=100
    ).json()["canaryPercent"] == 100  # fmt: skip
    assert drawn(api, flow, 5) == {second["version"]}


def drawn(api: Api, flow: str, times: int) -> set[str]:
    """The versions that so many runs of it have got, all under way at once."""
    runs = [api.create(flow) for _ in range(times)]
    return {version_in(api, api.until(run_id)["runId"]) for run_id in runs}


def test_a_change_is_told_in_a_run_of_its_own(api: Api) -> None:
    agent = hired(api)
    agent_id = f"local.agents.{agent['name']}"
    answer = deploy(api, agent_id, agent["version"])
    run_id = answer.headers["location"].rpartition("/")[2]
    found = api.until(run_id, "completed")
    assert found["workflowId"] == "moot.deployment"
    assert of(api, run_id, "deployment.promoted") == [
        {"agentId": agent_id, "toVersion": agent["version"], "toState": "test"}
    ]


def test_changes_that_cannot_be_are_refused(api: Api, foreign: Api) -> None:
    agent = hired(api)
    agent_id, version = f"local.agents.{agent['name']}", agent["version"]
    refused(deploy(api, agent_id, "nope"), 404, "not_found")
    refused(deploy(api, agent_id, version, toState="active"), 409, "conflict")
    refused(deploy(api, agent_id, version, "rollback"), 409, "conflict")
    refused(deploy(api, agent_id, version, "adjust-canary"), 400, "validation_error")
    refused(deploy(api, agent_id, version, channel="latest"), 400, "validation_error")
    assert foreign.post(
        f"/v1/agents/{agent_id}/deployments", {"version": version, "transition": "promote"}
    ).status_code == 404  # fmt: skip
    found = api.get(f"/v1/host/moot/agents/host:{agent['name']}/deployments").json()
    assert found["deployments"] == []


def test_each_transition_needs_its_scope(api: Api) -> None:
    agent = hired(api)
    agent_id, version = f"local.agents.{agent['name']}", agent["version"]
    key = api.new_key("promoter", scopes=["manifest:read", "deploy:promote"])
    promoter = api.with_key(key)
    assert deploy(promoter, agent_id, version).status_code == 200
    for transition in ("pause", "rollback", "deprecate"):
        assert deploy(promoter, agent_id, version, transition).status_code == 403
    plain = api.with_key(api.new_key("plain"))
    assert deploy(plain, agent_id, version).status_code == 403


def test_a_reference_has_a_version_or_a_channel(api: Api) -> None:
    pin = {"agentId": "host:ada", "version": "1", "channel": "stable"}
    answer = api.post("/v1/host/moot/workflows", definition("both", [node(pin)]))
    refused(answer, 400, "validation_error")


def test_the_fixture_of_channels_says_which_version_serves(api: Api) -> None:
    [name] = OURS
    assert name in api.get("/.well-known/openwop").json()["fixtures"]
    found = api.run(name)
    [began] = of(api, found["runId"], "agent.invocation.started")
    assert (began["agentId"], began["resolvedChannel"]) == (CHANNEL_AGENT, "stable")
    fork = api.post(f"/v1/runs/{found['runId']}:fork", {"mode": "replay", "fromSeq": 0})
    assert of(api, fork.json()["runId"], "agent.invocation.started") == [began]


def test_the_seam_promotes_what_a_suite_names(api: Api) -> None:
    body = {"scenario": "promote", "agentId": f"core.conformance.{next(_names)}",
            "channel": "canary"}  # fmt: skip
    for _ in range(2):
        answer = api.post("/v1/host/sample/agents/deployment-transition", body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["state"] == "active" and answer.json()["channels"] == ["canary"]


# -- the example with agents -----------------------------------------------------------------------


FOLDERS = {
    "MOOT_AGENTS": str(ROOT / "examples" / "agents"),
    "MOOT_WORKFLOWS": str(ROOT / "examples" / "flows"),
    "MOOT_DEMO_WPS": "0",
}


def test_a_supervisor_two_workers_and_a_writer_do_their_work_offline(
    host: Callable[..., Api],
) -> None:
    api = host(**FOLDERS)
    found = api.run("research-brief")
    assert found["status"] == "completed", found
    told: dict[str, Any] = found["variables"]
    assert told["sources"] and told["verdict"]
    children = [api.read(child["runId"]) for child in found["childRuns"]]
    assert [child["workflowId"] for child in children] == ["moot.ask", "moot.ask"]
    assert [child["agent"]["agentId"] for child in children] == ["host:finder", "host:checker"]
    kinds = [
        event["payload"]["decision"]["kind"]
        for event in api.events(found["runId"])
        if event["type"] == "runOrchestrator.decided"
    ]
    assert kinds == ["next-worker", "terminate"]
