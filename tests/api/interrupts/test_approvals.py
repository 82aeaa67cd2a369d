"""Approvals: actions, approvers and quorums."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import (
    ACCEPT,
    answered,
    approval,
    asked,
    by_link,
    by_run,
    link,
    mine,
    of,
    refused,
    resolve,
    unchanged,
)

ALL = ["accept", "reject", "refine", "edit-accept", "ask"]


VALIDATION = "validation_error"


def routed(api: Api, **config: Any) -> str:
    """A gate whose every action has a way of its own."""
    nodes = [approval(actions=ALL, **config)]
    nodes += [{"id": f"after-{action}", "typeId": "core.noop"} for action in ALL[:-1]]
    edges = [
        {"id": action, "sourceNodeId": "gate", "targetNodeId": f"after-{action}",
         "sourceOutput": action}
        for action in ALL[:-1]
    ]  # fmt: skip
    flow = {**definition("routed-approval", nodes, []), "edges": edges}
    api.register(flow)
    run_id = api.create("routed-approval")
    api.until(run_id, "waiting-approval")
    return run_id


ACTIONS: dict[str, dict[str, Any]] = {
    "accept": {"comment": "fine"},
    "reject": {"comment": "no"},
    "refine": {"refineFeedback": {"scope": "section", "sectionPath": "2.1", "text": "shorter"}},
    "edit-accept": {"editedArtifactData": {"text": "mine"}},
}


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_takes_its_own_way(api: Api, action: str) -> None:
    run_id = routed(api)
    answered(resolve(api, run_id, {"action": action, **ACTIONS[action]}))
    found = api.until(run_id)
    assert found["status"] == "completed"
    ways = {name for name, node in found["nodeStates"].items() if node["status"] == "completed"}
    assert ways == {"gate", f"after-{action}"}
    [received] = of(api, run_id, "approval.received")
    assert received["action"] == action
    assert received["decidedBy"]
    for key, value in ACTIONS[action].items():
        assert received[key] == value
    [resolved] = of(api, run_id, "interrupt.resolved")
    assert resolved["resumeValue"] == {"action": action, **ACTIONS[action]}


def test_edit_is_another_word_for_edit_accept(api: Api) -> None:
    run_id = asked(api, approval(actions=["accept", "edit"]))
    [requested] = of(api, run_id, "interrupt.requested")
    assert requested["data"]["actions"] == ["accept", "edit-accept"]
    assert of(api, run_id, "approval.requested")[0]["actions"] == ["accept", "edit"]
    answered(resolve(api, run_id, {"action": "edit", "editedArtifactData": 1}))
    assert api.until(run_id)["outputs"]["editedArtifactData"] == 1


@pytest.mark.parametrize(
    ("sent", "action"),
    [
        ({"decision": "approved"}, "accept"),
        ({"decision": "rejected"}, "reject"),
        ({"decision": "rejected", "feedback": "shorter"}, "refine"),
    ],
)
def test_the_older_spelling_is_understood(api: Api, sent: Any, action: str) -> None:
    run_id = routed(api)
    answered(resolve(api, run_id, sent))
    api.until(run_id, "completed")
    assert of(api, run_id, "approval.received")[0]["action"] == action


def test_a_question_back_leaves_the_gate_open(api: Api, person: Api) -> None:
    run_id = routed(api)
    for number in (1, 2):
        body = answered(resolve(person, run_id, {"action": "ask", "question": f"why {number}?"}))
        assert body["status"] == "waiting-approval"
    assert "approval.received" not in api.types(run_id)
    kept = api.read(run_id)["variables"]["_askExchanges:gate"]
    assert [entry["question"] for entry in kept] == ["why 1?", "why 2?"]
    assert all(entry["askedBy"].startswith("key_") for entry in kept)
    answered(resolve(api, run_id, ACCEPT))
    assert api.until(run_id)["status"] == "completed"


WRONG_APPROVALS: list[Any] = [
    None, True, 1, "accept", [], {}, {"action": None}, {"action": 1}, {"action": "Accept"},
    {"action": ["accept"]}, {"action": {}}, {"action": "timeout"}, {"decision": "timeout"},
    {"decision": "approve"}, {"action": "refine"}, {"action": "refine", "refineFeedback": "x"},
    {"action": "refine", "refineFeedback": {}},
    {"action": "refine", "refineFeedback": {"scope": 1}},
    {"action": "refine", "refineFeedback": {"scope": "whole", "text": 1}},
    {"action": "refine", "refineFeedback": {"scope": "items", "itemIds": "x"}},
    {"action": "edit-accept"}, {"action": "ask"}, {"action": "ask", "question": 1},
    {"action": "accept", "comment": 1}, {"action": "reject", "feedback": {"x": 1}},
]  # fmt: skip


def test_an_approval_that_does_not_fit_is_refused_and_the_gate_stays_open(api: Api) -> None:
    run_id = routed(api)
    path = link(api, run_id)
    with unchanged(api, run_id):
        for wrong in WRONG_APPROVALS:
            refused(resolve(api, run_id, wrong), 400, VALIDATION)
            refused(by_link(api, path, wrong), 400, VALIDATION)
    answered(resolve(api, run_id, ACCEPT))


def test_an_action_that_the_gate_does_not_offer_is_refused(api: Api) -> None:
    run_id = asked(api, approval(actions=["accept"]))
    with unchanged(api, run_id):
        details = refused(resolve(api, run_id, {"action": "reject"}), 400, VALIDATION)
        assert details["allowed"] == ["accept"]


def test_a_refusal_that_no_edge_takes_stops_the_run(api: Api) -> None:
    """Whatever is not an acceptance does not pass a plain edge."""
    for action in ("reject", "refine"):
        after = {"id": "deploy", "typeId": "core.noop"}
        run_id = asked(api, approval(actions=ALL, requiredApprovals=1), after)
        answered(resolve(api, run_id, {"action": action, **ACTIONS[action]}))
        found = api.until(run_id)
        assert found["status"] == "failed", action
        assert found["error"]["code"] == "approval_rejected"
        assert "node.started" not in [
            event["type"] for event in api.events(run_id) if event.get("nodeId") == "deploy"
        ]


def test_a_schema_of_the_gate_is_kept_to(api: Api) -> None:
    schema = {"type": "object", "required": ["comment"]}
    run_id = asked(api, approval(resumeSchema=schema))
    assert of(api, run_id, "interrupt.requested")[0]["resumeSchema"] == schema
    with unchanged(api, run_id):
        assert refused(resolve(api, run_id, ACCEPT), 400, VALIDATION)["fields"]
    answered(resolve(api, run_id, {**ACCEPT, "comment": "fine"}))


def test_without_the_scope_nothing_is_answered_not_even_by_the_link_one_reads(api: Api) -> None:
    run_id = asked(api, approval())
    reader = api.with_key(api.new_key("reader", scopes=["runs:read"]))
    with unchanged(api, run_id):
        for answer in (resolve(reader, run_id, ACCEPT), by_run(reader, run_id, ACCEPT)):
            assert refused(answer, 403, "forbidden") == {"scopeRequired": "approvals:respond"}
        shown = reader.read(run_id)["interrupt"]
        assert shown["intent"] == "inspect"
        assert reader.get(shown["callbackUrl"]).json()["intent"] == "inspect"
        refused(by_link(api, shown["callbackUrl"], ACCEPT), 403, "forbidden")
    assert (
        reader.get(f"/v1/runs/{run_id}").headers["etag"]
        != (api.get(f"/v1/runs/{run_id}").headers["etag"])
    )
    assert api.read(run_id)["interrupt"]["intent"] == "resolve"


def test_anothers_question_is_not_there(api: Api, foreign: Api) -> None:
    run_id = asked(api, approval())
    with unchanged(api, run_id):
        refused(resolve(foreign, run_id, ACCEPT), 404, "run_not_found")
        refused(by_run(foreign, run_id, ACCEPT), 404, "run_not_found")
        refused(resolve(foreign, run_id, ACCEPT, "other"), 404, "run_not_found")
    assert mine(foreign, run_id) == []


def test_only_listed_approvers_approve(api: Api, person: Api, live: Api) -> None:
    run_id = asked(api, approval(approversList=["user:ann"]))
    with unchanged(api, run_id):
        for caller in (live, api.with_key(api.new_key("bob", **{"as": ["user:bob"]}))):
            for value in (ACCEPT, {"action": "reject"}):
                details = refused(resolve(caller, run_id, value), 403, "forbidden")
                assert details["approversList"] == ["user:ann"]
            named = {**ACCEPT, "voter": "user:ann"}
            assert "maySpeakAs" in refused(resolve(caller, run_id, named), 403, "forbidden")
        refused(by_link(api, link(api, run_id), ACCEPT), 403, "forbidden")
    answered(resolve(person, run_id, ACCEPT))
    assert api.until(run_id)["status"] == "completed"


def test_an_approver_may_be_a_key(api: Api) -> None:
    made = api.post("/v1/host/moot/keys", {"name": "approver"}).json()
    run_id = asked(api, approval(approversList=[made["id"]]))
    answered(resolve(api.with_key(made["key"]), run_id, ACCEPT))
    assert of(api, run_id, "approval.received")[0]["decidedBy"] == made["id"]


def voters(api: Api, count: int) -> list[Api]:
    return [api.with_key(api.new_key(f"voter-{number}")) for number in range(count)]


def test_one_veto_ends_a_quorum(api: Api) -> None:
    one, two, _ = voters(api, 3)
    run_id = asked(api, approval(requiredApprovals=3))
    assert answered(resolve(one, run_id, ACCEPT))["status"] == "waiting-approval"
    answered(resolve(two, run_id, {"action": "reject", "comment": "no"}))
    found = api.until(run_id)
    assert (found["status"], found["error"]["code"]) == ("failed", "approval_rejected")
    assert of(api, run_id, "moot.approval.rejected")[0]["reason"] == "no"
    refused(resolve(one, run_id, ACCEPT), 409, "interrupt_already_resolved")


@pytest.mark.parametrize(("needed", "against"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_against_ends_a_quorum(api: Api, needed: int, against: int) -> None:
    run_id = asked(api, approval(requiredApprovals=needed, rejectionPolicy="majority"))
    for number in range(against):
        assert api.read(run_id)["status"] == "waiting-approval"
        answered(resolve(api, run_id, {"action": "reject", "voter": f"v{number}"}))
    assert api.until(run_id)["status"] == "failed"


def test_a_voter_has_one_vote_and_may_change_it(api: Api) -> None:
    one, two, three = voters(api, 3)
    run_id = asked(api, approval(requiredApprovals=2, rejectionPolicy="majority"))
    for action in ("accept", "accept", "reject", "accept", "reject"):
        assert answered(resolve(one, run_id, {"action": action}))["status"] == "waiting-approval"
    votes = of(api, run_id, "moot.approval.granted")
    assert [said["quorumProgress"]["granted"] for said in votes] == [
        1,
        1,
    ]  # who repeats adds nothing
    answered(resolve(two, run_id, ACCEPT))
    assert api.read(run_id)["status"] == "waiting-approval"
    answered(resolve(three, run_id, ACCEPT))
    assert api.until(run_id)["status"] == "completed"
    [received] = of(api, run_id, "approval.received")
    assert received["decidedBy"].startswith("key_")


def test_nobody_votes_in_anothers_name(api: Api, live: Api) -> None:
    run_id = asked(api, approval(requiredApprovals=2))
    with unchanged(api, run_id):
        for voter in ("somebody", "somebody-else", "key_x"):
            refused(resolve(live, run_id, {**ACCEPT, "voter": voter}), 403, "forbidden")
    for voter in ("", 1, None):
        body = answered(resolve(live, run_id, {**ACCEPT, "voter": voter}))
        assert body["status"] == "waiting-approval"
    assert len({said["principal"] for said in of(api, run_id, "moot.approval.granted")}) == 1


def test_a_link_is_no_voter(api: Api) -> None:
    """Whoever holds it may have voted with a key already."""
    run_id = asked(api, approval(requiredApprovals=2))
    with unchanged(api, run_id):
        refused(by_link(api, link(api, run_id), ACCEPT), 403, "forbidden")


def test_votes_at_once_are_all_counted(api: Api) -> None:
    callers = voters(api, 8)
    run_id = asked(api, approval(requiredApprovals=8))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda caller: resolve(caller, run_id, ACCEPT), callers))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert api.until(run_id)["status"] == "completed"
    granted = [
        said["quorumProgress"]["granted"] for said in of(api, run_id, "moot.approval.granted")
    ]
    assert granted == list(range(1, 9))


def test_refining_one_vote_does_not_pass_a_quorum(api: Api) -> None:
    after = {"id": "deploy", "typeId": "core.noop"}
    run_id = asked(api, approval(actions=ALL, requiredApprovals=3), after)
    answered(resolve(api, run_id, {"action": "refine", **ACTIONS["refine"]}))
    assert api.until(run_id)["status"] == "failed"
