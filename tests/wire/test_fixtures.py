"""Every published fixture the host lists runs as its own description says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .api import Api

#: what belongs to a host without conversations, dispatch, envelopes, prompts, memory and packs
OURS = {
    "conformance-agent-identity",
    "conformance-cancellable",
    "conformance-cap-breach",
    "conformance-capability-missing",
    "conformance-channel-ttl",
    "conformance-configurable-schema",
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
    "conformance-message-reducer",
    "conformance-model-capability-insufficient",
    "conformance-multi-agent-handoff-child",
    "conformance-multi-node",
    "conformance-noop",
    "conformance-replay-side-effect",
    "conformance-run-duration-breach",
    "conformance-stream-text",
    "conformance-subworkflow-child",
    "conformance-subworkflow-input-mapping",
    "conformance-subworkflow-input-mapping-child",
    "conformance-subworkflow-input-mapping-no-default",
    "conformance-subworkflow-parent",
    "conformance-version-fold",
}

#: node type -> the capability that would bring it
FOREIGN_NODES = {
    "core.a2a.invoke", "core.approvalGate", "core.clarificationGate", "core.interrupt",
    "core.conversationGate", "core.orchestrator.supervisor", "core.dispatch",
    "core.conformance.mock-agent", "core.ai.structuredOutput", "local.sample.demo.mock-ai",
    "conformance.secret.echo", "conformance.cost.emit", "vendor.openwop.rust-hello.greet",
    "vendor.openwop.misbehaving.memory-bomb",
}  # fmt: skip


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
    run_id = api.create("conformance-delay", inputs={"delayMs": 700})
    assert api.read(run_id)["status"] == "running"
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
    api.until(run_id, "cancelled", within=5)
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
    assert api.until(run_id, "cancelled", within=5)["status"] == "cancelled"
    well_formed(api, run_id)


def test_the_side_effect_happens_once_and_is_logged(api: Api) -> None:
    found = api.run("conformance-replay-side-effect", inputs={"delayMs": 1})
    assert found["status"] == "completed"
    types = [event["type"] for event in well_formed(api, found["runId"])]
    assert types.count("moot.effect.started") == types.count("moot.effect.finished") == 1


def test_every_listed_fixture_has_a_test(listed: list[str]) -> None:
    source = Path(__file__).read_text().partition("# -- each fixture")[2]
    assert not [name for name in listed if f'"{name}"' not in source]
