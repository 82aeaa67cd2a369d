"""The seams for loops and attested children of a host under trial: thin callers of the engine."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.claims.agent_bridge import INGEST
from tests.support.api.questions import of, refused

LOOP, ATTEST = "/v1/host/sample/agentloop/run", "/v1/host/sample/subrun/attest"
VALIDATION = "validation_error"


def looped(api: Api, **asked: Any) -> dict[str, Any]:
    answer = api.post(LOOP, asked)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def attested(api: Api, outputs: Any, **asked: Any) -> dict[str, Any]:
    answer = api.post(ATTEST, {"childOutputs": outputs, **asked})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("turns", [1, 3, 12])
def test_every_turn_has_its_number(api: Api, turns: int) -> None:
    body = looped(api, turns=turns)
    assert [said["iteration"] for said in body["decisions"]] == list(range(1, turns + 1))
    assert body["decisions"][-1]["decision"]["kind"] == "terminate"
    assert set(body) == {"decisions"}


@pytest.mark.parametrize("suspended", [1, 2, 4])
def test_a_loop_goes_on_in_the_turn_it_was_held_in(api: Api, suspended: int) -> None:
    body = looped(api, turns=4, suspendAtTurn=suspended, resume=True)
    assert body["resumedIteration"] == suspended
    assert [said["iteration"] for said in body["decisions"]] == [1, 2, 3, 4]


def test_a_loop_that_nobody_resumes_goes_no_further_and_is_not_left_behind(api: Api) -> None:
    body = looped(api, turns=4, suspendAtTurn=2)
    assert [said["iteration"] for said in body["decisions"]] == [1, 2]
    assert "resumedIteration" not in body
    newest = api.get("/v1/host/moot/runs", params={"limit": 1, "status": "cancelled"}).json()
    assert newest["runs"][0]["workflowId"] == "conformance-seam-loop-4-2"


def test_behind_a_seam_is_a_run_like_any_other(api: Api) -> None:
    body = looped(api, turns=2)
    newest = api.get(
        "/v1/host/moot/runs", params={"limit": 1, "workflow": "conformance-seam-loop-2-0"}
    ).json()["runs"][0]
    assert of(api, newest["runId"], "runOrchestrator.decided") == body["decisions"]


def test_where_no_workspace_is_offered_none_is_spoken_of(api: Api) -> None:
    assert set(looped(api, turns=2, workspaceWriteAtTurn=1)) == {"decisions"}


@pytest.mark.parametrize("wrong", [{"turns": 0}, {"turns": 101}, {"turns": "x"},
                                   {"turns": 2, "suspendAtTurn": 0}, {"resume": 1}])  # fmt: skip
def test_a_loop_that_cannot_be_is_refused(api: Api, wrong: Any) -> None:
    refused(api.post(LOOP, wrong), 400, VALIDATION)


OUTPUTS = {"report": "done", "score": 0.9, "tags": ["a", "b"], "none": None}


def test_a_checksum_does_not_depend_on_the_order_of_keys(api: Api) -> None:
    asked = {"outputAttestation": {"checksum": True}}
    one = attested(api, OUTPUTS, **asked)
    other = attested(api, dict(reversed(OUTPUTS.items())), **asked)
    spelled = json.dumps(OUTPUTS, sort_keys=True, separators=(",", ":")).encode()
    assert one["attestation"] == other["attestation"] == {
        "checksum": sha256(spelled).hexdigest(), "algorithm": "sha256"
    }  # fmt: skip
    assert one["harvestedEvent"]["phase"] == "output.harvested"
    assert one["harvestedEvent"]["attestation"] == one["attestation"]
    assert (one["merged"], one["mergedValues"]) == (True, OUTPUTS)


@pytest.mark.parametrize(
    ("action", "merged"),
    [("accept", True), ("edit-accept", True), ("reject", False), (None, False)],
)
def test_only_an_acceptance_merges(api: Api, action: str | None, merged: bool) -> None:
    asked: dict[str, Any] = {"outputAttestation": {"checksum": True, "requireApproval": True}}
    if action is not None:
        asked["approvalAction"] = action
    body = attested(api, {"artifact": "x"}, **asked)
    assert body["merged"] is merged
    assert body.get("mergedValues") == ({"artifact": "x"} if merged else None)
    assert (body["harvestedEvent"] is not None) is merged


def test_an_edit_is_what_is_merged(api: Api) -> None:
    asked = {"outputAttestation": {"requireApproval": True}, "approvalAction": "edit-accept"}
    body = attested(api, {"a": 1, "b": 2}, editedArtifactData={"a": 3}, **asked)
    assert body["mergedValues"] == {"a": 3} and body["attestation"] == {}


@pytest.mark.parametrize(
    "wrong",
    [{}, {"childOutputs": []}, {"childOutputs": {"a": 1}, "outputAttestation": {"checksum": 1}},
     {"childOutputs": {"a": 1}, "outputAttestation": {"requireApproval": True},
      "approvalAction": "perhaps"}],
)  # fmt: skip
def test_what_is_no_attestation_is_refused(api: Api, wrong: Any) -> None:
    refused(api.post(ATTEST, wrong), 400, VALIDATION)


def test_without_trial_there_are_no_seams(host: Callable[..., Any]) -> None:
    plain = host()
    for path, body in ((LOOP, {"turns": 1}), (ATTEST, {"childOutputs": {}})):
        assert plain.post(path, body).status_code == 404


def test_a_turn_is_its_tenants_own_and_may_not_be_there(api: Api, foreign: Api) -> None:
    looped(api, turns=2)
    newest = api.get("/v1/host/moot/runs", params={"limit": 1}).json()["runs"][0]["runId"]
    runs = api.get("/v1/host/moot/runs", params={"workflow": "conformance-seam-loop-2-0"}).json()
    turns = f"/v1/host/moot/runs/{runs['runs'][0]['runId']}/turns"
    told = api.get(f"{turns}/2").json()
    assert told["workers"][0]["status"] == "completed" and told["memoryBoundary"] > 0
    for path in (f"{turns}/3", f"{turns}/0", f"{turns}/x", f"{turns}/-1", f"{turns}/²"):
        refused(api.get(path), 404, "not_found")
    refused(api.get(f"/v1/host/moot/runs/{newest}x/turns/1"), 404, "run_not_found")
    refused(foreign.get(f"{turns}/1"), 404, "run_not_found")


# -- the trigger bridge ----------------------------------------------------------------------------


def test_the_seam_tells_a_run_that_nobody_vouches_and_goes_nowhere_inside(api: Api) -> None:
    webhook = {"headers": {"Authorization": "x", "X-Event-Type": "y"}, "body": {"a": 1}}
    body = {"source": "webhook", "verification": {"mode": "none"}, "webhook": webhook}
    told = api.post(INGEST, body).json()
    api.answers.document("trigger-event", told["triggerEvent"])
    assert told["triggerEvent"]["webhook"]["headers"] == {"x-event-type": "y"}
    assert told["deliveryEvent"]["eventId"] == told["triggerEvent"]["deliveryId"]
    inside = {**body, "attachmentUrl": "http://169.254.169.254/latest"}
    assert api.post(INGEST, inside).json()["ssrfRefused"] is True
