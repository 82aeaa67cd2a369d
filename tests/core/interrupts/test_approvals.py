"""Approvals: what each answer records, quorums and vetoes, who may answer (protocol 8.4, 8.9)."""

from typing import Any

import pytest

from moot.core.errors import BadRequest, Forbidden, NotYourName
from moot.core.payloads.base import RecordedError
from moot.core.speaker import Speaker
from moot.core.state.status import Status
from tests.support.core.gates import approval, caused_by, short
from tests.support.core.simulator import (
    ADA,
    BOT,
    CHAIR,
    Life,
    World,
    compiled,
    definition,
    edge,
    node,
)
from tests.support.event_payloads import payload_json

ALL = ["accept", "reject", "refine", "edit", "ask"]
BOB = Speaker("key_bob", ("user:bob",))


def test_asking_is_recorded_in_the_protocols_order() -> None:
    _, life = approval(title="Ship it", actions=ALL, requiredApprovals=2)
    assert life.types[1:] == [
        "node.started", "interrupt.requested", "node.suspended", "approval.requested"
    ]  # fmt: skip
    asked, waits, legacy = life.log[2:]
    assert (
        payload_json(asked)["kind"] == "approval"
        and payload_json(asked)["data"]["title"] == "Ship it"
    )
    assert payload_json(asked)["data"]["actions"] == [
        "accept", "reject", "refine", "edit-accept", "ask"
    ]  # fmt: skip
    assert caused_by(life, asked).type == "node.started"
    assert caused_by(life, waits) == asked and caused_by(life, legacy) == waits
    assert payload_json(waits)["interruptId"] == payload_json(legacy)["interruptId"]
    assert payload_json(waits)["key"] == payload_json(asked)["key"] == f"{life.run.run_id}:ok:1"
    assert payload_json(legacy)["actions"] == ALL, "the older event knows 'edit' only"
    assert payload_json(legacy)["requiredApprovals"] == 2
    assert life.run.status is Status.WAITING_APPROVAL


def test_an_acceptance_ends_the_wait_and_the_run_goes_on() -> None:
    world, life = approval()
    found = world.answer(life, "ok", {"action": "accept", "comment": "fine"}, ADA)
    assert short(found) == [
        "interrupt.resolved", "approval.received", "node.resumed", "node.completed",
        "run.completed",
    ]  # fmt: skip
    resolved, received, resumed, completed, _ = found
    assert caused_by(life, resolved).type == "interrupt.requested"
    assert payload_json(resolved)["resumeValue"] == {"action": "accept", "comment": "fine"}
    assert payload_json(resolved)["resolvedBy"] == "key_ada"
    assert payload_json(received)["decidedBy"] == "user:ada"
    assert (
        payload_json(received)["action"] == "accept" and payload_json(received)["comment"] == "fine"
    )
    assert payload_json(resumed)["interruptId"] == payload_json(resolved)["interruptId"]
    assert payload_json(completed)["outputs"]["action"] == "accept"
    assert life.run.outputs == payload_json(completed)["outputs"]


def test_a_rejection_fails_the_run_unless_an_edge_takes_it() -> None:
    world, life = approval()
    found = world.answer(life, "ok", {"action": "reject", "comment": "not yet"})
    assert short(found)[-2:] == ["node.failed", "run.failed"]
    assert life.run.error == RecordedError(
        code="approval_rejected", message="not yet", retryable=False
    )


def test_a_rejection_that_an_edge_takes_goes_that_way_only() -> None:
    world = World()
    nodes = [node("ok", "core.approvalGate"), node("yes"), node("no")]
    edges = [edge("ok", "yes", sourceOutput="accept"), edge("ok", "no", sourceOutput="reject")]
    life = world.start(compiled(definition(nodes, edges)))
    world.answer(life, "ok", {"action": "reject"})
    assert life.run.status is Status.COMPLETED
    assert "node.completed no" in life.order() and "node.skipped yes" in life.order()


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({"decision": "approved"}, {"action": "accept"}),
        ({"decision": "rejected"}, {"action": "reject"}),
        (
            {"decision": "rejected", "feedback": "shorter"},
            {"action": "refine", "refineFeedback": {"scope": "whole", "text": "shorter"}},
        ),
        (
            {"action": "edit", "editedArtifactData": [1]},
            {"action": "edit-accept", "editedArtifactData": [1]},
        ),
    ],
)
def test_older_spellings_are_recorded_in_todays(
    given: dict[str, Any], recorded: dict[str, Any]
) -> None:
    world, life = approval(actions=ALL)
    world.answer(life, "ok", given)
    said = payload_json(life.told("approval.received")[0])
    assert {key: said[key] for key in recorded} == recorded
    assert (
        payload_json(life.told("interrupt.resolved")[0])["resumeValue"]["action"] == said["action"]
    )


@pytest.mark.parametrize(
    "given",
    [
        None, [], "accept", 1, {}, {"action": "ask"}, {"action": "refine"}, {"action": "dance"},
        {"action": ["accept"]}, {"decision": "maybe"}, {"decision": ["approved"]},
        {"decision": {"approved": True}}, {"action": "refine", "refineFeedback": "shorter"},
        {"action": "refine", "refineFeedback": {"scope": "some"}}, {"action": "edit-accept"},
        {"decision": "timeout"}, {"decision": "cancelled"}, {"action": "timeout"},
        {"action": "ask", "question": 1},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_and_the_run_goes_on_waiting(given: Any) -> None:
    world, life = approval(actions=ALL)
    assert isinstance(world.refused(life, world.answering("ok", given)), BadRequest)
    assert life.run.status is Status.WAITING_APPROVAL


def test_an_action_the_gate_does_not_offer_is_refused() -> None:
    world, life = approval()
    refine = {"action": "refine", "refineFeedback": {"scope": "whole"}}
    refusal = world.refused(life, world.answering("ok", refine))
    assert isinstance(refusal, BadRequest)
    assert refusal.details["allowed"] == ["accept", "reject"]


def test_a_question_does_not_end_the_wait_and_is_kept_beside_the_gate() -> None:
    world, life = approval(actions=ALL)
    for text in ("why?", "and when?"):
        found = world.answer(life, "ok", {"action": "ask", "question": text}, ADA)
        assert short(found) == ["channel.written"]
        assert caused_by(life, found[0]).type == "interrupt.requested"
    assert life.run.status is Status.WAITING_APPROVAL
    kept = life.run.channels["_askExchanges:ok"]
    assert [(each["question"], each["askedBy"]) for each in kept] == [
        ("why?", "key_ada"), ("and when?", "key_ada")
    ]  # fmt: skip
    world.answer(life, "ok", {"action": "accept"})
    assert life.run.status is Status.COMPLETED
    assert life.types.count("approval.received") == 1


# -- quorum --------------------------------------------------------------------------------------


def vote(world: World, life: Life, action: str, voter: str) -> list[str]:
    return short(world.answer(life, "ok", {"action": action, "voter": voter}))


def test_a_quorum_is_reached_by_the_last_distinct_acceptance() -> None:
    world, life = approval(requiredApprovals=3)
    assert vote(world, life, "accept", "ada") == ["moot.approval.granted"]
    assert vote(world, life, "accept", "bob") == ["moot.approval.granted"]
    assert life.run.status is Status.WAITING_APPROVAL
    assert vote(world, life, "accept", "cyd") == [
        "moot.approval.granted", "interrupt.resolved", "approval.received", "node.resumed",
        "node.completed", "run.completed",
    ]  # fmt: skip
    votes = [payload_json(event) for event in life.told("moot.approval.granted")]
    assert [each["principal"] for each in votes] == ["ada", "bob", "cyd"]
    assert votes[-1] == {
        "gateId": "ok", "principal": "cyd", "via": "key_chair",
        "quorumProgress": {"granted": 3, "required": 3},
    }  # fmt: skip
    assert payload_json(life.told("approval.received")[0])["decidedBy"] == "cyd"
    granted = life.told("moot.approval.granted")
    assert {caused_by(life, event).type for event in granted} == {"interrupt.requested"}


def test_who_votes_again_replaces_the_vote() -> None:
    world, life = approval(requiredApprovals=2, rejectionPolicy="majority")
    vote(world, life, "accept", "ada")
    vote(world, life, "accept", "ada")
    assert life.run.status is Status.WAITING_APPROVAL
    vote(world, life, "reject", "ada")
    vote(world, life, "accept", "bob")
    assert life.run.interrupts["ok"].votes == {"ada": "reject", "bob": "accept"}
    vote(world, life, "accept", "ada")
    assert life.run.status is Status.COMPLETED


def test_the_first_rejection_is_a_veto_by_default() -> None:
    world, life = approval(requiredApprovals=3)
    vote(world, life, "accept", "ada")
    found = vote(world, life, "reject", "bob")
    assert found[:3] == ["moot.approval.rejected", "interrupt.resolved", "approval.received"]
    assert life.run.status is Status.FAILED
    assert payload_json(life.told("moot.approval.rejected")[0]) == {
        "gateId": "ok", "principal": "bob", "via": "key_chair"
    }  # fmt: skip


@pytest.mark.parametrize(("needed", "rejections"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_with_a_majority_policy_more_than_half_must_reject(needed: int, rejections: int) -> None:
    world, life = approval(requiredApprovals=needed, rejectionPolicy="majority")
    for number in range(rejections):
        assert life.run.status is Status.WAITING_APPROVAL
        vote(world, life, "reject", f"v{number}")
    assert life.run.status is Status.FAILED
    assert payload_json(life.told("approval.received")[0])["action"] == "reject"


def test_a_reason_is_kept_with_the_vote() -> None:
    world, life = approval(requiredApprovals=2, rejectionPolicy="majority")
    world.answer(life, "ok", {"action": "reject", "comment": "too soon"}, ADA)
    assert payload_json(life.told("moot.approval.rejected")[0]) == {
        "gateId": "ok", "principal": "user:ada", "via": "key_ada", "reason": "too soon"
    }  # fmt: skip


def test_one_key_has_one_vote_whatever_names_it_goes_by() -> None:
    two_names = Speaker("key_two", ("user:ada", "user:eve"))
    world, life = approval(requiredApprovals=2)
    for more in ({}, {"voter": "user:ada"}):
        world.answer(life, "ok", {"action": "accept", **more}, two_names)
    for name in ("user:eve", "user:bob"):
        value = {"action": "accept", "voter": name}
        assert isinstance(world.refused(life, world.answering("ok", value, two_names)), NotYourName)
    assert life.run.status is Status.WAITING_APPROVAL
    world.answer(life, "ok", {"action": "accept"}, BOB)
    assert life.run.status is Status.COMPLETED


# -- who may -------------------------------------------------------------------------------------


def test_only_those_listed_may_answer_or_ask() -> None:
    world, life = approval(actions=ALL, approversList=["user:ada"])
    for value in ({"action": "accept"}, {"action": "ask", "question": "?"}):
        for who in (BOB, BOT, CHAIR):
            assert isinstance(world.refused(life, world.answering("ok", value, who)), Forbidden)
    world.answer(life, "ok", {"action": "accept"}, ADA)
    assert life.run.status is Status.COMPLETED


def test_who_is_told_of_a_gate_is_not_thereby_who_may_pass_it() -> None:
    world, life = approval(audience={"subjects": ["user:ada"]})
    world.answer(life, "ok", {"action": "accept"}, BOB)
    assert life.run.status is Status.COMPLETED


def test_a_listed_principal_may_answer_by_its_key_alone() -> None:
    world, life = approval(approversList=["key_bob"])
    world.answer(life, "ok", {"action": "accept"}, BOB)
    assert life.run.status is Status.COMPLETED


def test_an_administrator_who_is_not_listed_overrides_and_says_why() -> None:
    world, life = approval(approversList=["user:ada"])
    value = {"action": "accept", "override": True, "reason": "it burns"}
    found = world.answer(life, "ok", value, CHAIR)
    assert found[0].type == "approval.overridden"
    assert payload_json(found[0]) == {
        "gateId": "ok",
        "principal": "key_chair",
        "reason": "it burns",
    }
    assert life.run.status is Status.COMPLETED


@pytest.mark.parametrize("reason", [None, "", 5])
def test_an_override_needs_a_reason_and_an_administrator(reason: Any) -> None:
    world, life = approval(approversList=["user:ada"])
    value = {"action": "accept", "override": True, "reason": reason}
    assert isinstance(world.refused(life, world.answering("ok", value, CHAIR)), BadRequest)
    given = {**value, "reason": "because"}
    assert isinstance(world.refused(life, world.answering("ok", given, ADA)), Forbidden)


@pytest.mark.parametrize("bypasses", [True, False])
def test_an_override_is_one_vote_unless_the_gate_lets_it_bypass_the_quorum(bypasses: bool) -> None:
    world, life = approval(requiredApprovals=2, overrideBypassesQuorum=bypasses)
    world.answer(life, "ok", {"action": "accept", "override": True, "reason": "x"}, CHAIR)
    assert life.run.status is (Status.COMPLETED if bypasses else Status.WAITING_APPROVAL)


def test_a_rejection_takes_its_own_edge_and_no_other() -> None:
    """With a plain edge beside it, what was rejected must not be published."""
    nodes = [node("ok", "core.approvalGate"), node("publish"), node("undo")]
    edges = [edge("ok", "publish"), edge("ok", "undo", sourceOutput="reject")]
    world = World()
    life = world.start(compiled(definition(nodes, edges)))
    world.answer(life, "ok", {"action": "reject"})
    states = {name: str(state.status) for name, state in life.run.nodes.items()}
    assert (states["publish"], states["undo"]) == ("skipped", "completed")


def test_an_edit_is_not_lost_when_the_last_vote_only_accepts() -> None:
    world, life = approval(actions=ALL, requiredApprovals=2)
    edit = {"action": "edit-accept", "editedArtifactData": {"a": 1}}
    world.answer(life, "ok", {**edit, "voter": "ada"})
    world.answer(life, "ok", {"action": "accept", "voter": "bob"})
    assert life.run.nodes["ok"].outputs is not None
    assert life.run.nodes["ok"].outputs["editedArtifactData"] == {"a": 1}


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        ({"approverGroupRefs": ["legal"]}, "group:legal"),
        ({"approverRoleRefs": ["cfo"]}, "role:cfo"),
    ],
)
def test_a_group_or_role_is_a_name_of_the_key(listed: dict[str, Any], name: str) -> None:
    world, life = approval(**listed)
    accept = {"action": "accept"}
    assert isinstance(world.refused(life, world.answering("ok", accept, BOB)), Forbidden)
    world.answer(life, "ok", accept, Speaker("key_x", (name,)))
    assert life.run.status is Status.COMPLETED


def test_two_keys_of_one_person_are_one_vote() -> None:
    world, life = approval(requiredApprovals=2)
    for key in ("key_1", "key_2"):
        world.answer(life, "ok", {"action": "accept"}, Speaker(key, ("user:ada",)))
    assert life.run.status is Status.WAITING_APPROVAL


def test_an_edit_that_was_withdrawn_is_not_applied() -> None:
    world, life = approval(actions=ALL, requiredApprovals=2, rejectionPolicy="majority")
    edit = {"action": "edit-accept", "editedArtifactData": {"a": 1}}
    world.answer(life, "ok", {**edit, "voter": "ada"})
    world.answer(life, "ok", {"action": "reject", "voter": "ada"})
    for name in ("bob", "eve"):
        world.answer(life, "ok", {"action": "accept", "voter": name})
    outputs = life.run.nodes["ok"].outputs
    assert outputs is not None and outputs["action"] == "accept"


def test_nothing_is_approved_by_waiting() -> None:
    with pytest.raises(BadRequest, match="onTimeout"):
        approval(timeoutMs=10, onTimeout="complete")
