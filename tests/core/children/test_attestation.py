"""Children whose outputs are vouched for: a checksum, a person, and nothing merged without them."""

from hashlib import sha256
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.children.handoff import TRANSITIONS
from moot.core.commands import CancelRun, PauseRun, ResumeRun, TimePassed
from moot.core.errors import BadRequest
from moot.core.state.run import fold
from moot.core.state.status import Status
from tests.support.core.random_flows import examples
from tests.support.core.simulator import Life, World, chain, compiled, node
from tests.support.core.supervisors import CHAIN, cause, variable
from tests.support.event_payloads import payload_json

OUT = {"result": "report", "points": "score"}
PARENT = [variable("result", "before"), {**variable("points", 0), "type": "number"}]
CHILD = [variable("report", "done"), {**variable("score", 0.9), "type": "number"}]
#: what a program of another make computes for {"report": "done", "score": 0.9}
SUM = sha256(b'{"report":"done","score":0.9}').hexdigest()


def world(
    attest: dict[str, Any], *, child: Any = "core.noop", variables: Any = PARENT, **config: Any
) -> tuple[World, Life]:
    worker = compiled(chain(node("w", child), id="child", variables=CHILD))
    config = {"workflowId": "child", "outputMapping": OUT, "outputAttestation": attest, **config}
    body = chain(node("sub", "core.subWorkflow", config=config), id="top", variables=variables)
    place = World({"child": worker})
    return place, place.start(compiled(body))


def told(place: World, life: Life) -> None:
    place.tell_parent(place.child_of(life))


def phases(life: Life) -> list[str]:
    return [payload_json(event)["phase"] for event in life.told(CHAIN)]


def outputs(life: Life) -> dict[str, Any]:
    found = life.run.nodes["sub"].outputs
    assert found is not None
    return found


def walked(life: Life) -> None:
    """Every step of the handoff follows the one before, back to where the node began."""
    for event in life.told(CHAIN):
        here = event
        while here.type == CHAIN:
            before = life.log[cause(life, here) or 0]
            allowed = TRANSITIONS[payload_json(here)["phase"]]
            assert not allowed or payload_json(before).get("phase") in allowed
            here = before
        assert (here.type, here.node_id) == ("node.started", "sub")


def test_a_checksum_says_what_the_child_gave() -> None:
    place, life = world({"checksum": True})
    told(place, life)
    assert phases(life) == [
        "dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"
    ]  # fmt: skip
    said = payload_json(life.told(CHAIN)[-1])
    assert said["attestation"] == {"checksum": SUM, "algorithm": "sha256"}
    assert said["harvestedKeys"] == ["result", "points"]
    assert outputs(life)["attestation"] == said["attestation"]
    assert outputs(life)["childOutputs"] == {"report": "done", "score": 0.9}
    assert life.run.variables == {"result": "done", "points": 0.9}
    assert life.run.status is Status.COMPLETED
    walked(life)


def test_what_asks_for_nothing_stays_as_it_was() -> None:
    place, life = world({})
    told(place, life)
    assert phases(life) == [] and life.run.variables == {"result": "done", "points": 0.9}
    assert "attestation" not in outputs(life)


def test_without_a_mapping_the_outputs_of_the_run_are_vouched_for() -> None:
    place, life = world({"checksum": True}, outputMapping={})
    told(place, life)
    assert outputs(life)["attestation"]["checksum"] == sha256(b"{}").hexdigest()
    assert phases(life)[-1] == "child.completed" and life.run.variables["result"] == "before"


# -- a person --------------------------------------------------------------------------------


def asked(**config: Any) -> tuple[World, Life]:
    place, life = world({"checksum": True, "requireApproval": True}, **config)
    told(place, life)
    return place, life


def test_a_person_sees_the_outputs_before_they_are_merged() -> None:
    place, life = asked()
    [said] = life.told("interrupt.requested")
    assert payload_json(said)["kind"] == "approval"
    assert payload_json(said)["data"]["artifactData"] == {"report": "done", "score": 0.9}
    assert SUM in payload_json(said)["data"]["description"]
    assert life.run.status is Status.WAITING_APPROVAL
    assert life.run.variables == {"result": "before", "points": 0}
    assert phases(life)[-1] == "child.completed"
    place.answer(life, "sub", {"action": "accept"})
    assert life.run.status is Status.COMPLETED
    assert life.run.variables == {"result": "done", "points": 0.9}
    assert (outputs(life)["action"], outputs(life)["merged"]) == ("accept", True)
    walked(life)


def test_an_edit_is_merged_in_the_place_of_the_outputs() -> None:
    place, life = asked()
    place.answer(
        life, "sub", {"action": "edit-accept", "editedArtifactData": {"report": "shorter"}}
    )
    assert life.run.variables == {"result": "shorter", "points": 0}
    assert payload_json(life.told(CHAIN)[-1])["harvestedKeys"] == ["result"]
    assert outputs(life)["attestation"]["checksum"] == SUM, "it is about what the child gave"
    assert outputs(life)["childOutputs"] == {"report": "shorter"}


@pytest.mark.parametrize("bad", [None, [], "x", {"other": 1}, {"report": 7}, {"score": "high"}])
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(bad: Any) -> None:
    place, life = asked()
    value = {"action": "edit-accept", "editedArtifactData": bad}
    assert isinstance(place.refused(life, place.answering("sub", value)), BadRequest)
    place.answer(life, "sub", {"action": "accept"})
    assert life.run.status is Status.COMPLETED


@pytest.mark.parametrize("policy", ["fail-parent", "absorb"])
def test_a_rejection_merges_nothing_and_is_what_a_failed_child_is(policy: str) -> None:
    place, life = asked(onChildFailure=policy)
    place.answer(life, "sub", {"action": "reject"})
    assert life.run.variables == {"result": "before", "points": 0}
    assert "output.harvested" not in phases(life)
    if policy == "absorb":
        assert life.run.status is Status.COMPLETED
        assert (outputs(life)["merged"], outputs(life)["childOutputs"]) == (False, {})
        assert outputs(life)["childStatus"] == "completed"
    else:
        assert life.run.error is not None and life.run.error.code == "approval_rejected"


@pytest.mark.parametrize("policy", ["fail-parent", "absorb"])
def test_nobody_in_time_merges_nothing(policy: str) -> None:
    attest = {"requireApproval": True, "timeoutMs": 50}
    place, life = world(attest, onChildFailure=policy)
    told(place, life)
    place.pass_time(60)
    place.take(life, TimePassed(place.at))
    assert life.run.variables == {"result": "before", "points": 0}
    assert "output.harvested" not in phases(life)
    if policy == "absorb":
        assert life.run.status is Status.COMPLETED and outputs(life)["merged"] is False
    else:
        assert life.run.error is not None and life.run.error.code == "interrupt_timeout"
    refusal = place.refused(life, place.answering("sub", {"action": "accept"}))
    assert refusal is not None and refusal.status == 409


def test_a_cancelled_run_merges_nothing() -> None:
    place, life = asked()
    place.take(life, CancelRun(place.at))
    assert life.run.variables == {"result": "before", "points": 0}
    assert "output.harvested" not in phases(life)
    assert place.refused(life, place.answering("sub", {"action": "accept"})) is not None


@pytest.mark.parametrize("how", ["failed", "cancelled"])
@pytest.mark.parametrize("policy", ["fail-parent", "absorb"])
def test_a_child_that_does_not_complete_asks_nobody(how: str, policy: str) -> None:
    attest = {"checksum": True, "requireApproval": True}
    place, life = world(attest, child="acme.work", onChildFailure=policy)
    child = place.child_of(life)
    if how == "failed":
        place.fail(child, "w", retryable=False)
    else:
        place.take(child, CancelRun(place.at))
    told(place, life)
    assert phases(life)[-1] == f"child.{how}" and not life.told("interrupt.requested")
    assert life.run.variables == {"result": "before", "points": 0}
    ok = life.run.status is Status.COMPLETED
    assert ok is (policy == "absorb") and life.run.terminal
    walked(life)


def test_a_pause_beside_an_open_question_loses_nothing() -> None:
    worker = compiled(chain(node("w"), id="child", variables=CHILD))
    config = {"workflowId": "child", "outputMapping": OUT,
              "outputAttestation": {"requireApproval": True}}  # fmt: skip
    sub = node("sub", "core.subWorkflow", config=config)
    body = {**chain(sub, id="top", variables=PARENT)}
    body["nodes"].append(node("beside", "acme.work"))
    place = World({"child": worker})
    life = place.start(compiled(body))
    told(place, life)
    place.take(life, PauseRun(place.at, "immediate"))
    place.take(life, ResumeRun(place.at))
    place.answer(life, "sub", {"action": "accept"})
    assert life.run.variables == {"result": "done", "points": 0.9}


def test_what_a_parent_keeps_secret_is_neither_shown_nor_lost() -> None:
    hidden = [{**variable("result"), "sensitive": True}, PARENT[1]]
    place, life = asked(variables=hidden)
    assert "done" not in str([payload_json(event) for event in life.log])
    place.answer(life, "sub", {"action": "accept"})
    assert life.sealed["var:result"] == "done"
    assert "done" not in str([payload_json(event) for event in life.log])


# -- rights ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "inner", "expected"),
    [
        (["runs:read"], None, (["runs:read"], None)),
        (["runs:create", "x:y"], ["runs:create", "keys:manage"],
         (["runs:create", "x:y"], ["runs:create"])),
        (["runs:create"], [], (["runs:create"], [])),
    ],
)  # fmt: skip
def test_a_scope_narrows_and_never_widens(scope: Any, inner: Any, expected: Any) -> None:
    leaf = compiled(chain(node("w"), id="leaf"))
    narrowed = {"outputAttestation": {"principalScope": inner}} if inner is not None else {}
    middle = node("sub", "core.subWorkflow", config={"workflowId": "leaf", **narrowed})
    top = {"workflowId": "middle", "outputAttestation": {"principalScope": scope}}
    place = World({"leaf": leaf, "middle": compiled(chain(middle, id="middle"))})
    life = place.start(compiled(chain(node("sub", "core.subWorkflow", config=top), id="top")))
    assert life.run.rights is None
    child = place.child_of(life)
    assert child.run.rights == expected[0]
    if "runs:create" in scope:
        assert place.child_of(child).run.rights == expected[1]
    else:
        assert child.run.error is not None and child.run.error.code == "forbidden"
        assert not child.run.children


@pytest.mark.parametrize("bad", [{"checksum": 1}, {"algorithm": "md5"}, {"principalScope": "x"},
                                 {"timeoutMs": 0}, {"approve": True}, [], "yes"])  # fmt: skip
def test_what_is_no_attestation_is_refused_when_registered(bad: Any) -> None:
    with pytest.raises(BadRequest):
        world(bad)


def test_a_workflow_of_another_host_is_not_attested() -> None:
    asked = {"workflowId": "lab/w", "outputAttestation": {"checksum": True}}
    with pytest.raises(BadRequest, match="another one"):
        compiled(chain(node("sub", "core.subWorkflow", config=asked), id="top"))


# -- in any order ------------------------------------------------------------------------------

ACTIONS = st.sampled_from(["accept", "reject", "edit-accept", "wait", "cancel"])


@given(ACTIONS, st.booleans(), st.booleans(), st.sampled_from(["fail-parent", "absorb"]))
@examples(60)
def test_only_an_acceptance_merges(
    action: str, checksum: bool, approval: bool, policy: str
) -> None:
    attest = {"checksum": checksum, "requireApproval": approval, "timeoutMs": 10}
    place, life = world(attest, onChildFailure=policy)
    told(place, life)
    if approval:
        if action == "wait":
            place.pass_time(20)
            place.take(life, TimePassed(place.at))
        elif action == "cancel":
            place.take(life, CancelRun(place.at))
        else:
            place.answer(life, "sub", {"action": action, "editedArtifactData": {"report": "e"}})
    merged = not approval or action in ("accept", "edit-accept")
    assert life.run.terminal and ("output.harvested" in phases(life)) is merged
    assert (life.run.variables["result"] == "before") is not merged
    assert fold(life.run.run_id, life.log) == life.run
    walked(life)
