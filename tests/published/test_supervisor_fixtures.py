"""The published fixtures of supervisors and their workers, each as its own description says."""

from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.questions import answered, of, resolve

CHAIN = "core.workflowChain.event"

#: every fixture that this file is about
OURS = (
    "conformance-dispatch-cross-worker-handoff", "conformance-dispatch-input-mapping",
    "conformance-dispatch-input-mapping-no-default", "conformance-dispatch-loop",
    "conformance-dispatch-output-mapping", "conformance-dispatch-per-worker-override",
    "conformance-multi-agent-confidence-escalation", "conformance-multi-agent-handoff",
    "conformance-orchestrator-dispatch", "conformance-orchestrator-low-confidence",
    "conformance-orchestrator-terminate",
)  # fmt: skip


def decided(api: Api, run_id: str) -> list[str]:
    return [said["decision"]["kind"] for said in of(api, run_id, "runOrchestrator.decided")]


def children(api: Api, run_id: str) -> list[dict[str, Any]]:
    """The snapshots of the children, in the order they began."""
    return [api.read(said["childRunId"]) for said in of(api, run_id, "node.dispatched")]


def completed(api: Api, name: str) -> dict[str, Any]:
    found = api.run(name)
    assert found["status"] == "completed", found
    events = api.events(found["runId"])
    assert [event["sequence"] for event in events] == list(range(len(events)))
    walk(events)
    return found


def walk(events: list[dict[str, Any]]) -> None:
    """Every chain leads back to a decision."""
    by_id = {event["eventId"]: event for event in events}
    for event in events:
        here = event
        while here["type"] == CHAIN:
            here = by_id[here["causationId"]]
        assert event["type"] != CHAIN or here["type"] == "runOrchestrator.decided"


def test_all_of_them_are_listed(api: Api) -> None:
    assert set(OURS) <= set(api.get("/.well-known/openwop").json()["fixtures"])


@pytest.mark.parametrize("name", ["conformance-orchestrator-dispatch", "conformance-dispatch-loop"])
def test_the_loop_comes_back_and_ends(api: Api, name: str) -> None:
    found = completed(api, name)
    assert decided(api, found["runId"]) == ["next-worker", "terminate"]
    [agent] = {said["agentId"] for said in of(api, found["runId"], "runOrchestrator.decided")}
    assert found["runOrchestrator"] == {"agentId": agent}
    [child] = children(api, found["runId"])
    assert (child["workflowId"], child["status"]) == ("conformance-noop", "completed")
    assert child["parentRunId"] == found["runId"] and child["parentNodeId"] == "dispatch"


def test_terminate_is_the_last_decision(api: Api) -> None:
    found = completed(api, "conformance-orchestrator-terminate")
    assert decided(api, found["runId"]) == ["terminate"]
    assert "node.dispatched" not in api.types(found["runId"])


def test_an_unsure_supervisor_is_held(api: Api) -> None:
    run_id = api.create("conformance-orchestrator-low-confidence")
    assert api.until(run_id, "waiting-approval")["status"] == "waiting-approval"
    [waits] = of(api, run_id, "node.suspended")
    assert waits["reason"] == "low-confidence"
    assert (waits["threshold"], waits["observed"]) == (0.7, 0.5)
    assert decided(api, run_id) == []
    end = {"kind": "terminate"}
    value = {"action": "edit-accept", "editedArtifactData": end}
    answered(resolve(api, run_id, value, "supervisor"))
    assert api.until(run_id)["status"] == "completed"
    assert decided(api, run_id) == ["terminate"]


def test_a_held_decision_is_ratified_once_and_the_run_comes_to_its_end(api: Api) -> None:
    run_id = api.create("conformance-orchestrator-low-confidence")
    api.until(run_id, "waiting-approval")
    answered(resolve(api, run_id, {"action": "accept"}, "supervisor"))
    assert api.until(run_id)["status"] == "completed"
    assert decided(api, run_id) == ["next-worker", "terminate"]
    assert [child["status"] for child in children(api, run_id)] == ["completed"]


def test_inputs_are_mapped(api: Api) -> None:
    found = completed(api, "conformance-dispatch-input-mapping")
    [child] = children(api, found["runId"])
    assert child["inputs"]["childGreeting"] == "Alice"


def test_an_unset_variable_is_absent_and_not_null(api: Api) -> None:
    found = completed(api, "conformance-dispatch-input-mapping-no-default")
    [child] = children(api, found["runId"])
    assert "childGreeting" not in child["inputs"]


def test_outputs_are_mapped(api: Api) -> None:
    found = completed(api, "conformance-dispatch-output-mapping")
    assert found["variables"]["parentResult"] == "done"


def test_one_worker_hands_over_to_the_next(api: Api) -> None:
    found = completed(api, "conformance-dispatch-cross-worker-handoff")
    _a, b = children(api, found["runId"])
    assert b["inputs"]["input"] == "hello"
    assert found["variables"]["sharedVar"] == "hello"


def test_a_worker_s_own_mapping_comes_before_the_common_one(api: Api) -> None:
    found = completed(api, "conformance-dispatch-per-worker-override")
    a, b = children(api, found["runId"])
    mine = found["variables"]
    assert (a["inputs"]["input"], b["inputs"]["input"]) == (mine["defaultX"], mine["sharedVar"])


def test_a_handoff_has_four_steps(api: Api) -> None:
    found = completed(api, "conformance-multi-agent-handoff")
    said = of(api, found["runId"], CHAIN)
    assert [each["phase"] for each in said] == [
        "dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"
    ]  # fmt: skip
    assert said[-1]["harvestedKeys"] == ["parentResult"]
    assert found["variables"]["parentResult"] == "handoff-complete"


def test_a_weak_decision_is_not_carried_out_unseen(api: Api) -> None:
    """The description says waiting-clarification, which no run's status can be."""
    run_id = api.create("conformance-multi-agent-confidence-escalation")
    api.until(run_id, "waiting-approval")
    [said] = of(api, run_id, "core.workflowChain.confidence-escalated")
    assert (said["confidence"], said["floor"]) == (0.3, 0.5)
    assert of(api, run_id, CHAIN) == []
    answered(resolve(api, run_id, {"action": "accept"}, "dispatch"))
    assert api.until(run_id)["status"] == "completed"
    assert len(of(api, run_id, CHAIN)) == 3


def test_a_replay_of_a_loop_starts_nobody(api: Api) -> None:
    found = api.run("conformance-multi-agent-handoff")
    answer = api.post(f"/v1/runs/{found['runId']}:fork", {"mode": "replay", "fromSeq": 0})
    assert answer.status_code == 201, answer.text
    fork = api.until(answer.json()["runId"])
    assert (fork["status"], fork["variables"]) == (found["status"], found["variables"])
    assert api.types(fork["runId"]) == api.types(found["runId"])
    for run_id, children in ((found["runId"], 1), (fork["runId"], 0)):
        listed = api.get("/v1/host/moot/runs", params={"parent": run_id}).json()["runs"]
        assert len(listed) == children
