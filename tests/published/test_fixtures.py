"""Every published fixture the host lists runs as its own description says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.agents import test_agents
from tests.conformance import test_mock_model
from tests.published import test_agent_fixtures, test_supervisor_fixtures
from tests.support.api.caller import Api, in_time
from tests.support.api.questions import answered, link, of, refused, resolve, say, turns, unchanged
from tests.support.servers import WORKFLOWS

#: tested in test_memory
MEMORIES = {
    "conformance-agent-memory-cross-tenant",
    "conformance-agent-memory-redaction",
    "conformance-agent-memory-roundtrip",
    "conformance-agent-memory-ttl",
}

#: what belongs to a host without agents of its own, envelopes, prompts and packs
OURS = {
    *test_supervisor_fixtures.OURS,
    *test_agent_fixtures.OURS,
    *test_mock_model.OURS,
    *test_agents.OURS,
    *MEMORIES,
    "conformance-approval",
    "conformance-cancellable",
    "conformance-cap-breach",
    "conformance-capability-missing",
    "conformance-channel-ttl",
    "conformance-clarification",
    "conformance-configurable-schema",
    "conformance-conversation-capability-negotiation",
    "conformance-conversation-lifecycle",
    "conformance-conversation-replay",
    "conformance-conversation-vs-clarification",
    "conformance-delay",
    "conformance-dispatch-cancellable-child",
    "conformance-dispatch-cross-worker-handoff-child-a",
    "conformance-dispatch-cross-worker-handoff-child-b",
    "conformance-dispatch-deterministic-fail-child",
    "conformance-dispatch-input-mapping-child",
    "conformance-dispatch-output-mapping-child",
    "conformance-failure",
    "conformance-idempotent",
    "conformance-identity",
    "conformance-interrupt-auth-required",
    "conformance-interrupt-external-event",
    "conformance-interrupt-parent-child-cancel",
    "conformance-interrupt-parent-child-cancel-child",
    "conformance-interrupt-quorum",
    "conformance-message-reducer",
    "conformance-model-capability-insufficient",
    "conformance-multi-agent-handoff-child",
    "conformance-multi-node",
    "conformance-multi-party-council",
    "conformance-multi-party-council-oversize",
    "conformance-noop",
    "conformance-replay-side-effect",
    "conformance-run-duration-breach",
    "conformance-stream-text",
    "conformance-subworkflow-child",
    "conformance-subworkflow-input-mapping",
    "conformance-subworkflow-input-mapping-child",
    "conformance-subworkflow-input-mapping-no-default",
    "conformance-subworkflow-mid-run-mutation",
    "conformance-subworkflow-mid-run-mutation-child",
    "conformance-subworkflow-parent",
    "conformance-version-fold",
}

#: node type -> the capability that would bring it
FOREIGN_NODES = {
    "core.a2a.invoke",
    "local.sample.demo.mock-ai",
    "conformance.secret.echo", "conformance.cost.emit", "vendor.openwop.rust-hello.greet",
    "vendor.openwop.misbehaving.memory-bomb",
}  # fmt: skip


#: the parts of a definition that decide how its runs go
MEANINGFUL = ("id", "version", "nodes", "edges", "variables", "channels", "settings")


@pytest.fixture(scope="module")
def listed(api: Api) -> list[str]:
    return list(api.get("/.well-known/openwop").json()["fixtures"])


def test_exactly_the_fixtures_that_run_here_are_listed(listed: list[str]) -> None:
    assert set(listed) == OURS
    assert len(listed) == len(set(listed))


def test_no_listed_fixture_needs_what_the_host_lacks(listed: list[str], openwop: Path) -> None:
    for name in listed:
        flow = json.loads((openwop / "fixtures" / f"{name}.json").read_bytes())
        used = {node["typeId"] for node in flow["nodes"]}
        assert not used & FOREIGN_NODES, name


def test_a_listed_fixture_is_served_as_published(
    api: Api, listed: list[str], openwop: Path
) -> None:
    for name in listed:
        answer = api.get(f"/v1/workflows/{name}")
        assert answer.status_code == 200
        assert answer.json() == json.loads((openwop / "fixtures" / f"{name}.json").read_bytes())


def meaning(file: Path) -> Any:
    """A definition without the words that only people read."""
    flow = json.loads(file.read_bytes())
    return without_words({name: flow.get(name) for name in MEANINGFUL})


def without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_words(v) for k, v in value.items() if k not in ("name", "description")}
    if isinstance(value, list):
        return [without_words(each) for each in value]
    return "words" if isinstance(value, str) and " " in value else value


def test_the_projects_own_workflows_do_what_the_published_ones_do(openwop: Path) -> None:
    """Other tests run these: so they are tests of the fixtures, too."""
    own = sorted((WORKFLOWS / "fixtures").glob("*.json"))
    assert own
    assert [
        file.stem for file in own if meaning(file) != meaning(openwop / "fixtures" / file.name)
    ] == []


def test_a_fixture_that_is_not_listed_cannot_be_run(
    api: Api, listed: list[str], openwop: Path
) -> None:
    for file in (openwop / "fixtures").glob("*.json"):
        if file.stem not in listed:
            answer = api.post("/v1/runs", {"workflowId": file.stem})
            assert answer.status_code in (400, 404, 422), file.stem


def test_without_conformance_no_fixture_is_there(host: Callable[..., Api]) -> None:
    plain = host()
    assert "fixtures" not in plain.get("/.well-known/openwop").json()
    assert plain.post("/v1/runs", {"workflowId": "conformance-noop"}).status_code == 404


# -- each fixture ------------------------------------------------------------------------------


def well_formed(api: Api, run_id: str) -> list[dict[str, Any]]:
    """What holds for the log of every run that has ended."""
    events = api.events(run_id)
    types = [event["type"] for event in events]
    ends = [type_ for type_ in types if type_ in ("run.completed", "run.failed", "run.cancelled")]
    assert [event["sequence"] for event in events] == list(range(len(events)))
    assert types[0] == "run.started"
    assert types.count("run.started") == 1
    assert ends == [types[-1]]
    assert len({event["eventId"] for event in events}) == len(events)
    known = {event["eventId"] for event in events}
    for event in events:
        own = event.get("causationId", "").startswith(run_id)
        assert not own or event["causationId"] in known
        if event["type"].startswith("node."):
            assert event["nodeId"] == event["payload"].get("nodeId", event["nodeId"])
    return events


def node_order(events: list[dict[str, Any]], type_: str) -> list[str]:
    return [event["nodeId"] for event in events if event["type"] == type_]


def test_noop_completes(api: Api) -> None:
    found = api.run("conformance-noop")
    assert found["status"] == "completed"
    events = well_formed(api, found["runId"])
    assert [event["type"] for event in events] == [
        "run.started", "node.started", "node.completed", "run.completed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "payload",
    [{"a": [1, 2.5, None, True, {"ü": "雪\n\u0000"}]}, {}, {"big": 2**53, "deep": [[[[]]]]}],
)
def test_identity_gives_back_its_payload(api: Api, payload: Any) -> None:
    found = api.run("conformance-identity", inputs={"payload": payload})
    assert found["status"] == "completed"
    assert found["variables"]["payload"] == payload
    completed = [e for e in well_formed(api, found["runId"]) if e["type"] == "node.completed"]
    assert completed[0]["payload"]["outputs"]["payload"] == payload


def test_identity_without_its_payload_is_refused(api: Api) -> None:
    answer = api.post("/v1/runs", {"workflowId": "conformance-identity"})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_delay_stays_running_while_it_sleeps(api: Api) -> None:
    def attempt(ms: int) -> str | None:
        run_id = api.create("conformance-delay", inputs={"delayMs": ms})
        seen = api.read(run_id)["status"]
        return run_id if seen == "running" else None

    run_id = in_time(attempt, 700)
    found = api.until(run_id, "completed")
    well_formed(api, run_id)
    assert found["nodeStates"]["wait"]["status"] == "completed"


def test_delay_has_a_default(api: Api) -> None:
    run_id = api.create("conformance-delay")
    assert api.read(run_id)["variables"]["delayMs"] == 1000
    assert api.until(run_id)["status"] == "completed"


def test_cancellable_is_cancelled_in_the_middle(api: Api) -> None:
    run_id = api.create("conformance-cancellable", inputs={"delayMs": 60_000})
    answer = api.post(f"/v1/runs/{run_id}/cancel", {"reason": "enough"})
    assert answer.status_code == 200
    assert answer.json()["status"] in ("cancelling", "cancelled")
    api.until(run_id, "cancelled")
    events = well_formed(api, run_id)
    assert [event["type"] for event in events][-2:] == ["node.cancelled", "run.cancelled"]
    said = events[-1]["payload"]
    assert said["reason"] == "enough"
    assert "parentRunId" not in said


def test_failure_fails_with_a_code_and_a_sentence(api: Api) -> None:
    found = api.run("conformance-failure")
    assert found["status"] == "failed"
    assert found["error"]["code"] == "conformance_test_failure"
    assert found["error"]["message"] == "Intentional conformance failure"
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert types[0] == "run.started"
    assert types[-2:] == ["node.failed", "run.failed"]


def test_multi_node_runs_in_order(api: Api) -> None:
    found = api.run("conformance-multi-node")
    events = well_formed(api, found["runId"])
    assert node_order(events, "node.completed") == ["a", "b", "c"]
    assert node_order(events, "node.started") == ["a", "b", "c"]


def test_idempotent_needs_its_nonce(api: Api) -> None:
    assert api.run("conformance-idempotent", inputs={"nonce": "n"})["status"] == "completed"
    assert api.post("/v1/runs", {"workflowId": "conformance-idempotent"}).status_code == 400


def test_cap_breach_stops_before_the_fourth_node(api: Api) -> None:
    found = api.run("conformance-cap-breach", configurable={"recursionLimit": 3})
    assert found["status"] == "failed"
    assert found["error"]["code"] == "recursion_limit_exceeded"
    events = well_formed(api, found["runId"])
    types = [event["type"] for event in events]
    breaches = [event["payload"] for event in events if event["type"] == "cap.breached"]
    assert len(breaches) == 1
    assert breaches[0]["kind"] == "node-executions"
    assert breaches[0]["limit"] == 3
    assert breaches[0]["observed"] > 3
    assert breaches[0]["nodeId"] == "n4"
    assert types.index("cap.breached") < types.index("run.failed")
    assert node_order(events, "node.started") == ["n1", "n2", "n3"]


def test_without_a_limit_the_chain_of_six_completes(api: Api) -> None:
    assert api.run("conformance-cap-breach")["status"] == "completed"


def test_run_duration_breach_interrupts_the_sleep(api: Api) -> None:
    found = api.run("conformance-run-duration-breach", configurable={"runTimeoutMs": 300})
    assert found["status"] == "failed"
    assert found["error"]["code"] == "run_timeout"
    events = well_formed(api, found["runId"])
    breach = next(event["payload"] for event in events if event["type"] == "cap.breached")
    assert breach["kind"] == "run-duration"
    assert breach["limit"] == 300
    assert breach["observed"] > 300
    assert "run.cancelled" not in [event["type"] for event in events]


def test_capability_missing_is_refused_before_the_node_starts(api: Api) -> None:
    found = api.run("conformance-capability-missing")
    assert found["status"] == "failed"
    assert found["error"]["code"] == "capability_not_provided"
    assert "conformance.never-provided" in found["error"]["message"]
    assert found["error"]["details"]["capability"] == "conformance.never-provided"
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert types == ["run.started", "node.failed", "run.failed"]


def test_model_capability_insufficient_is_told_before_the_failure(api: Api) -> None:
    found = api.run("conformance-model-capability-insufficient")
    assert found["error"]["code"] == "capability_not_provided"
    assert "nonexistent-capability-9b3f" in found["error"]["message"]
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert types.index("model.capability.insufficient") < types.index("node.failed")
    assert "node.started" not in types


def test_channel_ttl_keeps_only_the_fourth_entry(api: Api) -> None:
    found = api.run("conformance-channel-ttl")
    entries = found["variables"]["events"]
    assert [entry["value"] for entry in entries] == ["d"]
    assert isinstance(entries[0]["_ts"], (int, float))
    writes = [e for e in well_formed(api, found["runId"]) if e["type"] == "channel.written"]
    assert [event["payload"]["value"]["value"] for event in writes] == ["a", "b", "c", "d"]


def test_message_reducer_keeps_each_id_once(api: Api) -> None:
    found = api.run("conformance-message-reducer")
    assert found["status"] == "completed"
    messages = found["channels"]["messages"]
    ids = [entry["messageId"] for entry in messages]
    assert len(ids) == len(set(ids)) == 1
    assert found["variables"]["messages"] == messages


def test_configurable_schema_is_shown_and_enforced(api: Api) -> None:
    name = "conformance-configurable-schema"
    schema = api.get(f"/v1/workflows/{name}").json()["configurableSchema"]
    assert schema["additionalProperties"] is False
    for wrong in ({"recursionLimit": 0}, {"recursionLimit": "many"}, {"unknown": 1}, {"tags": 1}):
        answer = api.post("/v1/runs", {"workflowId": name, "configurable": wrong})
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error"), wrong
    fine = api.run(name, configurable={"recursionLimit": 5, "tags": ["x"]})
    assert fine["status"] == "completed"
    assert fine["configurable"] == {"recursionLimit": 5, "tags": ["x"]}


def test_stream_text_streams_its_tokens(api: Api) -> None:
    mock = {"id": "stream-text", "config": {"tokens": ["a", "b", "c"], "finishReason": "length"}}
    run_id = api.create("conformance-stream-text", configurable={"mockProvider": mock})
    chunks = [frame.data["payload"] for frame in api.stream(run_id, streamMode="messages")]
    assert [chunk["chunk"] for chunk in chunks] == ["a", "b", "c"]
    assert [chunk["isLast"] for chunk in chunks] == [False, False, True]
    assert chunks[-1]["meta"]["finishReason"] == "length"
    assert chunks[-1]["meta"]["usage"]["completionTokens"] == 3
    assert {chunk["meta"]["model"] for chunk in chunks} == {"mock-stream-text-v1"}
    assert api.until(run_id)["status"] == "completed"
    well_formed(api, run_id)


def test_stream_text_without_a_model_fails_with_a_sentence(api: Api) -> None:
    found = api.run("conformance-stream-text")
    assert found["status"] == "failed"
    assert found["error"]["code"] == "model_not_configured"


def test_version_fold_completes_under_every_advertised_version(api: Api) -> None:
    testing = api.get("/.well-known/openwop").json()["testing"]["forceEngineVersionRange"]
    for number in range(testing["min"], testing["max"] + 1):
        version = str(number)
        found = api.run("conformance-version-fold", headers={"X-Force-Engine-Version": version})
        assert found["status"] == "completed"
        assert found["engineVersion"] == version
        events = well_formed(api, found["runId"])
        assert {event["engineVersion"] for event in events} == {version}


def test_agent_identity_is_on_the_snapshot(api: Api) -> None:
    pinned = api.get("/v1/workflows/conformance-agent-identity").json()["nodes"][0]["agent"]
    found = api.run("conformance-agent-identity")
    assert found["agent"] == pinned
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert not [type_ for type_ in types if type_.startswith("agent.")]


def child_of(api: Api, parent: dict[str, Any]) -> dict[str, Any]:
    assert [child["status"] for child in parent["childRuns"]] == ["completed"]
    return api.read(parent["childRuns"][0]["runId"])


def test_subworkflow_parent_waits_and_harvests(api: Api) -> None:
    found = api.run("conformance-subworkflow-parent")
    assert found["status"] == "completed"
    assert found["variables"]["childOutcome"] == "child-completed"
    child = child_of(api, found)
    assert child["workflowId"] == "conformance-subworkflow-child"
    assert child["parentRunId"] == found["runId"]
    assert child["parentNodeId"] == "subwf-call"
    assert child["owner"] == found["owner"]
    events = well_formed(api, found["runId"])
    dispatched = next(event for event in events if event["type"] == "node.dispatched")
    assert dispatched["payload"]["childRunId"] == child["runId"]
    assert dispatched["payload"]["childWorkflowId"] == child["workflowId"]
    done = next(
        event
        for event in events
        if event["type"] == "node.completed" and event["nodeId"] == "subwf-call"
    )
    assert done["payload"]["outputs"]["childRunId"] == child["runId"]
    assert done["payload"]["outputs"]["childStatus"] == "completed"
    assert node_order(events, "node.completed") == ["parent-start", "subwf-call", "parent-end"]
    assert {event["runId"] for event in events} == {found["runId"]}
    well_formed(api, child["runId"])


def test_input_mapping_overrides_the_default(api: Api) -> None:
    found = api.run("conformance-subworkflow-input-mapping")
    assert child_of(api, found)["variables"]["receivedPrdId"] == "prd-1"


def test_an_unset_parent_variable_is_neither_null_nor_the_default(api: Api) -> None:
    found = api.run("conformance-subworkflow-input-mapping-no-default")
    assert found["status"] == "completed"
    assert "receivedPrdId" not in child_of(api, found)["variables"]


def test_the_plain_children_complete_alone(api: Api) -> None:
    expected = {
        "conformance-subworkflow-child": {"childResult": "child-completed"},
        "conformance-subworkflow-input-mapping-child": {"receivedPrdId": "baked-in"},
        "conformance-dispatch-cross-worker-handoff-child-a": {"output": "hello"},
        "conformance-dispatch-cross-worker-handoff-child-b": {},
        "conformance-dispatch-input-mapping-child": {},
        "conformance-dispatch-output-mapping-child": {"childOutcome": "done"},
        "conformance-multi-agent-handoff-child": {"childOutcome": "handoff-complete"},
    }
    for name, variables in expected.items():
        found = api.run(name)
        assert (found["status"], found["variables"]) == ("completed", variables), name
        well_formed(api, found["runId"])


def test_the_failing_child_fails_as_told(api: Api) -> None:
    found = api.run("conformance-dispatch-deterministic-fail-child")
    assert found["status"] == "failed"
    assert found["error"]["code"] == "hvmap_1b_failed_fixture"


def test_the_cancellable_child_is_cancelled(api: Api) -> None:
    run_id = api.create("conformance-dispatch-cancellable-child")
    assert api.read(run_id)["status"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")
    assert api.until(run_id, "cancelled")["status"] == "cancelled"
    well_formed(api, run_id)


def test_the_side_effect_happens_once_and_is_logged(api: Api) -> None:
    found = api.run("conformance-replay-side-effect", inputs={"delayMs": 1})
    assert found["status"] == "completed"
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert types.count("moot.effect.started") == types.count("moot.effect.finished") == 1


# -- what waits for somebody -------------------------------------------------------------------


def waiting(api: Api, name: str, status: str, node: str) -> str:
    run_id = api.create(name)
    found = api.until(run_id, status)
    assert found["currentNodeId"] == node
    return run_id


def test_approval_completes_when_accepted(api: Api) -> None:
    run_id = waiting(api, "conformance-approval", "waiting-approval", "gate")
    body = answered(resolve(api, run_id, {"action": "accept"}))
    assert (body["runId"], body["nodeId"]) == (run_id, "gate")
    assert api.until(run_id)["status"] == "completed"
    types = [event["type"] for event in well_formed(api, run_id)]
    order = ["interrupt.requested", "node.suspended", "approval.requested", "interrupt.resolved",
             "approval.received", "node.resumed", "node.completed"]  # fmt: skip
    assert [type_ for type_ in types if type_ in order] == order
    assert of(api, run_id, "approval.received")[0]["decidedBy"]


def test_approval_fails_when_rejected_and_takes_nothing_else(api: Api) -> None:
    run_id = waiting(api, "conformance-approval", "waiting-approval", "gate")
    with unchanged(api, run_id):
        for wrong in ({"action": "refine"}, {"action": "x"}, {}, "accept"):
            refused(resolve(api, run_id, wrong), 400, "validation_error")
    refused(resolve(api, run_id, {"action": "accept"}, "nobody"), 404, "interrupt_not_found")
    answered(resolve(api, run_id, {"action": "reject"}))
    assert api.until(run_id)["status"] == "failed"
    well_formed(api, run_id)


def test_clarification_goes_on_with_the_answer(api: Api) -> None:
    run_id = waiting(api, "conformance-clarification", "waiting-input", "ask")
    assert of(api, run_id, "clarification.requested")[0]["questions"][0]["id"] == "q1"
    with unchanged(api, run_id):
        refused(resolve(api, run_id, {"answers": {}}, "ask"), 400, "validation_error")
    answered(resolve(api, run_id, {"answers": {"q1": "blue"}}, "ask"))
    assert api.until(run_id)["status"] == "completed"
    well_formed(api, run_id)
    assert of(api, run_id, "clarification.resolved")[0]["answers"] == {"q1": "blue"}


def vote(api: Api, run_id: str, action: str, voter: str) -> str:
    return str(answered(resolve(api, run_id, {"action": action, "voter": voter}))["status"])


def test_quorum_waits_for_the_third_accept(api: Api) -> None:
    run_id = waiting(api, "conformance-interrupt-quorum", "waiting-approval", "gate")
    for number, voter in enumerate(("a", "b"), 1):
        assert vote(api, run_id, "accept", voter) == "waiting-approval"
        progress = of(api, run_id, "moot.approval.granted")[-1]["quorumProgress"]
        assert progress == {"granted": number, "required": 3}
    assert "node.resumed" not in api.types(run_id)
    vote(api, run_id, "accept", "c")
    assert api.until(run_id)["status"] == "completed"
    well_formed(api, run_id)
    votes = of(api, run_id, "moot.approval.granted")
    assert [said["principal"] for said in votes] == ["a", "b", "c"]


def test_quorum_ends_with_the_majority_against(api: Api) -> None:
    run_id = waiting(api, "conformance-interrupt-quorum", "waiting-approval", "gate")
    assert vote(api, run_id, "reject", "a") == "waiting-approval"
    vote(api, run_id, "reject", "b")
    assert api.until(run_id)["status"] == "failed"
    well_formed(api, run_id)
    assert of(api, run_id, "approval.received")[0]["action"] == "reject"


def test_external_event_resumes_only_what_correlates(api: Api) -> None:
    name = "conformance-interrupt-external-event"
    run_id = waiting(api, name, "waiting-external", "wait-for-external")
    path, outside = link(api, run_id), api.with_key(None)
    event = {"orderId": "fixture-order-1", "status": "completed", "total": 5}
    with unchanged(api, run_id):
        for wrong in ({**event, "orderId": "other"}, {"orderId": "fixture-order-1"}, {}):
            answer = outside.post(path, {"resumeValue": wrong})
            refused(answer, 422, "correlation_mismatch")
    answered(outside.post(path, {"resumeValue": event}))
    assert api.until(run_id)["status"] == "completed"
    well_formed(api, run_id)
    assert of(api, run_id, "interrupt.resolved")[0]["resumeValue"] == event


def test_auth_required_refuses_links_and_takes_keys(api: Api) -> None:
    name = "conformance-interrupt-auth-required"
    run_id = waiting(api, name, "waiting-approval", "gate")
    accept = {"resumeValue": {"action": "accept"}}
    weak = api.with_key(api.new_key("weak", scopes=["runs:read", "runs:create"]))
    path = f"/v1/runs/{run_id}/interrupts/gate"
    with unchanged(api, run_id):
        refused(api.with_key(None).post(link(api, run_id), accept), 403, "forbidden")
        assert refused(weak.post(path, accept), 403, "forbidden") == {
            "scopeRequired": "approvals:respond"
        }
        refused(api.with_key(None).post(path, accept), 401, "unauthenticated")
    answered(api.post(path, accept))
    assert api.until(run_id)["status"] == "completed"
    well_formed(api, run_id)


def child_that_waits(api: Api, parent: str) -> str:
    api.until(parent, "waiting-approval")
    [child] = api.read(parent)["childRuns"]
    api.until(child["runId"], "waiting-approval")
    return str(child["runId"])


def test_cancelling_a_parent_takes_the_childs_question_away(api: Api) -> None:
    parent = api.create("conformance-interrupt-parent-child-cancel")
    child = child_that_waits(api, parent)
    path = link(api, child)
    assert api.post(f"/v1/runs/{parent}/cancel").status_code == 200
    api.until(parent, "cancelled")
    api.until(child, "cancelled")
    ended = well_formed(api, child)[-1]["payload"]
    assert (ended["reason"], ended["parentRunId"]) == ("parent-cancelled", parent)
    assert "parentRunId" not in well_formed(api, parent)[-1]["payload"]
    with unchanged(api, child):
        accept = {"action": "accept"}
        refused(resolve(api, child, accept, "child-gate"), 410, "interrupt_gone")
        answer = api.with_key(None).post(path, {"resumeValue": accept})
        refused(answer, 410, "interrupt_gone")
        refused(api.with_key(None).get(path), 410, "interrupt_gone")


def test_the_child_alone_is_a_plain_approval(api: Api) -> None:
    name = "conformance-interrupt-parent-child-cancel-child"
    run_id = waiting(api, name, "waiting-approval", "child-gate")
    answered(resolve(api, run_id, {"action": "accept"}, "child-gate"))
    assert api.until(run_id)["status"] == "completed"
    well_formed(api, run_id)


def test_a_parents_later_change_does_not_reach_its_child(api: Api) -> None:
    parent = api.create("conformance-subworkflow-mid-run-mutation")
    child = child_that_waits(api, parent)
    body = {"variables": {"currentPrdId": "mutated-id"}}
    path = f"/v1/host/sample/test/runs/{parent}/variables"
    assert api.post(path, body).status_code == 200
    answered(resolve(api, child, {"action": "accept"}, "child-gate"))
    assert api.until(parent)["status"] == "completed"
    assert api.read(child)["variables"]["receivedPrdId"] == "seeded-id"
    assert api.read(parent)["variables"]["currentPrdId"] == "mutated-id"
    well_formed(api, child)
    well_formed(api, parent)


def test_the_mid_run_child_alone_has_its_default(api: Api) -> None:
    name = "conformance-subworkflow-mid-run-mutation-child"
    run_id = waiting(api, name, "waiting-approval", "child-gate")
    answered(resolve(api, run_id, {"action": "accept"}, "child-gate"))
    assert api.until(run_id)["variables"]["receivedPrdId"] == "baked-in"


# -- conversations -----------------------------------------------------------------------------


def conversation(api: Api, run_id: str) -> list[dict[str, Any]]:
    """The conversation's events, checked for what holds for every one."""
    events = api.events(run_id)
    talk = [event for event in events if event["type"].startswith("conversation.")]
    suspended = next(event for event in events if event["type"] == "node.suspended")
    assert talk[0]["type"] == "conversation.opened"
    assert talk[0]["causationId"] == suspended["eventId"]
    assert len({event["payload"]["conversationId"] for event in talk}) == 1
    for index, (turn, event) in enumerate(zip(turns(api, run_id), talk, strict=True)):
        assert turn["turnIndex"] == index == event["payload"].get("turnIndex", 0)
        assert turn["role"] != "agent" or turn["speakerId"] == turn["from"]
    return talk


def test_conversation_lifecycle_opens_exchanges_and_closes(api: Api) -> None:
    found = api.run("conformance-conversation-lifecycle")
    assert found["status"] == "completed"
    types = [event["type"] for event in conversation(api, found["runId"])]
    assert types[0] == "conversation.opened"
    assert set(types[1:-1]) == {"conversation.exchanged"}
    assert types[-1] == "conversation.closed"
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert types.index("conversation.closed") < types.index("node.resumed")
    said = turns(api, found["runId"])
    messages = found["channels"]["conversation"]
    assert [each["content"] for each in messages] == [turn["content"] for turn in said]


def test_a_conversation_is_no_clarification(api: Api) -> None:
    found = api.run("conformance-conversation-vs-clarification")
    assert found["status"] == "completed"
    assert conversation(api, found["runId"])
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert not [type_ for type_ in types if type_.startswith("clarification.")]


def test_capability_negotiation_is_accepted_by_a_host_that_has_it(api: Api) -> None:
    """The fixture is about hosts without conversations; with them it is a conversation."""
    assert api.get("/.well-known/openwop").json()["conversationPrimitive"] is True
    name = "conformance-conversation-capability-negotiation"
    run_id = waiting(api, name, "waiting-approval", "convo")
    answered(resolve(api, run_id, {"operation": "close", "outcome": 1}, "convo"))
    assert api.until(run_id)["status"] == "completed"
    conversation(api, run_id)


def test_council_hears_its_members_and_nobody_else(api: Api) -> None:
    run_id = waiting(api, "conformance-multi-party-council", "waiting-approval", "convo")
    [opened] = of(api, run_id, "conversation.opened")
    names = [member["agentId"] for member in opened["participants"]]
    assert names == [f"host:conformance-council-{letter}" for letter in "abc"]
    with unchanged(api, run_id):
        answer = say(api, run_id, role="agent", speakerId="host:conformance-intruder")
        details = refused(answer, 422, "validation_error")
        assert details["code"] == "conversation_speaker_not_participant"
        assert details["speakerId"] == "host:conformance-intruder"
    answered(say(api, run_id, role="agent", speakerId="host:conformance-council-a"))
    [said] = of(api, run_id, "conversation.exchanged")
    assert said["turn"]["speakerId"] == "host:conformance-council-a"
    assert api.until(run_id)["status"] == "completed"
    conversation(api, run_id)
    well_formed(api, run_id)


def test_an_oversize_council_is_refused_before_there_is_a_run(api: Api) -> None:
    before = api.runs(limit=500)
    answer = api.post("/v1/runs", {"workflowId": "conformance-multi-party-council-oversize"})
    details = refused(answer, 422, "validation_error")
    most = api.get("/.well-known/openwop").json()["multiPartyConversation"]["maxParticipants"]
    assert details == {
        "code": "conversation_roster_exceeded", "maxParticipants": most, "participants": 64,
    }  # fmt: skip
    assert api.runs(limit=500) == before


def test_a_replayed_conversation_is_the_same_to_the_byte(api: Api) -> None:
    found = api.run("conformance-conversation-replay")
    assert found["status"] == "completed"
    conversation(api, found["runId"])
    well_formed(api, found["runId"])
    assert len(found["channels"]["conversation"]) >= 3
    answer = api.post(f"/v1/runs/{found['runId']}:fork", {"mode": "replay", "fromSeq": 0})
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert (body["sourceRunId"], body["mode"], body["fromSeq"]) == (found["runId"], "replay", 0)
    fork = api.until(body["runId"])
    assert fork["status"] == "completed"
    assert json.dumps(fork["channels"]) == json.dumps(found["channels"])
    said = [turn["content"] for turn in turns(api, found["runId"])]
    assert [turn["content"] for turn in turns(api, fork["runId"])] == said
    assert "replay.diverged" not in api.types(fork["runId"])
    well_formed(api, fork["runId"])


def test_every_listed_fixture_has_a_test(listed: list[str]) -> None:
    source = Path(__file__).read_text().partition("# -- each fixture")[2]
    rest = set(listed) - {
        *test_supervisor_fixtures.OURS,
        *test_agent_fixtures.OURS,
        *test_mock_model.OURS,
        *test_agents.OURS,
        *MEMORIES,
    }
    assert not [name for name in rest if f'"{name}"' not in source]
