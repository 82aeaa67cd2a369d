"""Questions that wait for an answer (protocol 8): by node, by run, by signed link."""

import base64
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2 as httpx
import pytest
from openwop_client import OpenwopClient, ResolveInterruptRequest, WopError

from moot.api.access import signed_links
from moot.api.access.auth import hash_secret
from tests.support.api.caller import Api, definition, in_time
from tests.support.api.questions import (
    answered,
    approval,
    asked,
    begun,
    gate,
    link,
    mine,
    of,
    refused,
    resolve,
    unchanged,
)

ACCEPT = {"action": "accept"}
ALL = ["accept", "reject", "refine", "edit-accept", "ask"]
VALIDATION = "validation_error"


def by_run(api: Api, run_id: str, body: Any) -> httpx.Response:
    return api.post(f"/v1/runs/{run_id}:resolveInterrupt", body)


def by_link(api: Api, path: str, value: Any) -> httpx.Response:
    return api.with_key(None).post(path, {"resumeValue": value})


@pytest.fixture(scope="module")
def person(api: Api) -> Api:
    """An ordinary key of somebody with a name."""
    return api.with_key(api.new_key("ann", **{"as": ["user:ann"]}))


# -- by node and by run ------------------------------------------------------------------------


def test_an_answer_by_node_goes_on(api: Api) -> None:
    run_id = asked(api, approval())
    found = api.read(run_id)
    assert (found["status"], found["currentNodeId"]) == ("waiting-approval", "gate")
    assert found["interrupt"]["kind"] == "approval"
    body = answered(resolve(api, run_id, ACCEPT))
    assert set(body) == {"runId", "nodeId", "status"}
    found = api.until(run_id)
    assert found["status"] == "completed"
    assert "interrupt" not in found
    assert found["outputs"]["action"] == "accept"


@pytest.mark.parametrize(
    "body",
    [ACCEPT, {"resumeValue": ACCEPT}, {"nodeId": "gate", **ACCEPT},
     {"nodeId": "gate", "resumeValue": ACCEPT}],
)  # fmt: skip
def test_an_answer_by_run_is_the_value_or_wrapped(api: Api, body: Any) -> None:
    run_id = asked(api, approval())
    answered(by_run(api, run_id, body))
    assert api.until(run_id)["status"] == "completed"


def test_by_run_one_question_must_be_meant(api: Api) -> None:
    gates = [gate(name="one"), gate(name="two")]
    run_id = asked(api, *gates, edges=[])
    with unchanged(api, run_id):
        details = refused(by_run(api, run_id, ACCEPT), 400, VALIDATION)
        assert details["nodeIds"] == ["one", "two"]
        refused(by_run(api, run_id, {"nodeId": "x", **ACCEPT}), 404, "interrupt_not_found")
    answered(by_run(api, run_id, {"nodeId": "two", **ACCEPT}))
    assert api.read(run_id)["status"] == "waiting-approval"
    answered(by_run(api, run_id, ACCEPT))
    assert api.until(run_id)["status"] == "completed"
    quiet = api.run("conformance-noop")["runId"]
    refused(by_run(api, quiet, ACCEPT), 404, "interrupt_not_found")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"1", b'"accept"', b'{"resumeValue":', b"\xff"]
)
def test_a_body_that_is_none_is_refused(api: Api, body: bytes) -> None:
    run_id = asked(api, approval())
    with unchanged(api, run_id):
        for path in (f"{run_id}/interrupts/gate", f"{run_id}:resolveInterrupt"):
            refused(api.post(f"/v1/runs/{path}", body), 400, VALIDATION)
        refused(api.with_key(None).post(link(api, run_id), body), 400, VALIDATION)


def test_the_body_by_node_is_closed(api: Api) -> None:
    run_id = asked(api, approval())
    path = f"/v1/runs/{run_id}/interrupts/gate"
    with unchanged(api, run_id):
        for body in ({}, ACCEPT, {"resumeValue": ACCEPT, "voter": "x"}):
            refused(api.post(path, body), 400, VALIDATION)


def test_what_does_not_wait_is_not_found(api: Api) -> None:
    run_id = asked(api, approval())
    with unchanged(api, run_id):
        refused(resolve(api, run_id, ACCEPT, "other"), 404, "interrupt_not_found")
        refused(resolve(api, "nobody", ACCEPT), 404, "run_not_found")
        refused(resolve(api, run_id, ACCEPT, "%00"), 404, "interrupt_not_found")


def test_of_many_answers_at_once_one_wins(api: Api) -> None:
    run_id = asked(api, approval())
    path = link(api, run_id)
    ways: list[Callable[[], httpx.Response]] = [
        lambda: resolve(api, run_id, ACCEPT),
        lambda: by_run(api, run_id, ACCEPT),
        lambda: by_link(api, path, ACCEPT),
    ] * 6
    with ThreadPoolExecutor(len(ways)) as pool:
        answers = list(pool.map(lambda way: way(), ways))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 17
    assert api.types(run_id).count("interrupt.resolved") == 1
    for answer in answers:
        if answer.status_code == 409:
            details = refused(answer, 409, "interrupt_already_resolved")
            assert details["resolvedBy"]
            assert details["action"] == "accept"


def test_the_same_idempotency_key_answers_once(api: Api) -> None:
    run_id = asked(api, approval())
    headers = {"Idempotency-Key": f"answer-{run_id}"}
    first, again = (resolve(api, run_id, ACCEPT, headers=headers) for _ in range(2))
    assert answered(first) == answered(again)
    assert again.headers["openwop-idempotent-replay"] == "true"
    other = resolve(api, run_id, {"action": "reject"}, headers=headers)
    refused(other, 409, "idempotency_key_mismatch")


# -- approvals ---------------------------------------------------------------------------------


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


# -- who may ------------------------------------------------------------------------------------


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


# -- quorum -------------------------------------------------------------------------------------


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


# -- clarifications, events, anything -----------------------------------------------------------

QUESTIONS = [
    {"id": "colour", "question": "Which?", "schema": {"enum": ["red", "blue"]}},
    {"id": "size", "question": "How large?"},
]


def test_answers_come_as_an_object_or_a_list(api: Api, person: Api) -> None:
    as_list = [{"id": "colour", "answer": "red"}, {"id": "size", "answer": [1]}]
    for answers in ({"colour": "red", "size": [1]}, as_list):
        run_id = asked(api, gate("clarificationGate", questions=QUESTIONS))
        answered(resolve(person, run_id, {"answers": answers}))
        assert api.until(run_id)["outputs"]["colour"] == "red"
        [said] = of(api, run_id, "clarification.resolved")
        assert said["answers"] == {"colour": "red", "size": [1]}
        assert said["answeredBy"].startswith("key_")


@pytest.mark.parametrize(
    "value",
    [None, "red", [], {}, {"answers": None}, {"answers": {}}, {"answers": {"colour": "red"}},
     {"answers": {"colour": "green", "size": 1}}, {"answers": [{"id": "colour"}]},
     {"answers": ["red", 1]}, {"answers": [{"id": {}, "answer": 1}]}],
)  # fmt: skip
def test_answers_that_do_not_fit_are_refused(api: Api, value: Any) -> None:
    run_id = asked(api, gate("clarificationGate", questions=QUESTIONS))
    with unchanged(api, run_id):
        refused(resolve(api, run_id, value), 400, VALIDATION)


def test_an_event_must_be_the_one_that_is_waited_for(api: Api) -> None:
    wanted = {"order": 1, "paid": True, "to": {"name": "ann", "tags": [1, None]}, "note": None}
    data = {"eventType": "paid", "correlation": wanted}
    run_id = asked(api, gate("interrupt", kind="external-event", data=data))
    assert api.read(run_id)["status"] == "waiting-external"
    path = link(api, run_id)
    wrong: list[Any] = [
        {},
        {**wanted, "order": 2},
        {**wanted, "order": True},
        {**wanted, "paid": 1},
    ]
    wrong += [{**wanted, "to": {"name": "ann"}}, {**wanted, "to": {**wanted["to"], "x": 1}}]
    wrong += [{key: value for key, value in wanted.items() if key != "note"}]
    with unchanged(api, run_id):
        for event in wrong:
            refused(by_link(api, path, event), 422, "correlation_mismatch")
        refused(by_link(api, path, "paid"), 400, VALIDATION)
    answered(by_link(api, path, {**wanted, "more": 1}))
    assert api.until(run_id)["outputs"]["event"]["more"] == 1


@pytest.mark.parametrize("value", [None, True, 0, "", [], {}, {"a": [1]}, "x" * 5000])
def test_anything_answers_a_question_of_ones_own_kind(api: Api, value: Any) -> None:
    data = {"customKind": "acme.sign", "payload": {"x": 1}}
    run_id = asked(api, gate("interrupt", kind="custom", data=data))
    assert of(api, run_id, "interrupt.requested")[0]["data"] == data
    answered(resolve(api, run_id, value))
    assert of(api, run_id, "interrupt.resolved")[0]["resumeValue"] == value
    assert api.until(run_id)["status"] == "completed"


WRONG_GATES: list[dict[str, Any]] = [
    approval(actions="accept"), approval(actions=["approve"]), approval(actions=[{}]),
    approval(actions=[1]), approval(requiredApprovals=0), approval(requiredApprovals="2"),
    approval(requiredApprovals=True), approval(requiredApprovals=1.5),
    approval(rejectionPolicy="all"), approval(rejectionPolicy=[]), approval(approversList="ann"),
    approval(approversList=[1]), approval(timeoutMs=-1), approval(timeoutMs="1"),
    approval(timeoutMs=10**30), approval(timeoutMs=True), approval(onTimeout="accept"),
    approval(description=1), approval(title=1), approval(artifactType=""), approval(artifactId=1),
    approval(audience=[]), approval(audience={"subjects": "x"}), approval(audience={"x": []}),
    approval(approverGroupRefs="x"), approval(overrideBypassesQuorum=1),
    approval(resumeSchema="x"), approval(resumeSchema={"type": "nonsense"}),
    approval(profile=1),
    gate("clarificationGate"), gate("clarificationGate", questions=[]),
    gate("clarificationGate", questions="why"), gate("clarificationGate", questions=["why"]),
    gate("clarificationGate", questions=[{"id": "a"}]),
    gate("clarificationGate", questions=[{"id": 1, "question": "x"}]),
    gate("clarificationGate", questions=[{"id": "a", "question": ""}]),
    gate("clarificationGate", questions=[{"id": "a", "question": "x"}] * 2),
    gate("clarificationGate", questions=[{"id": "a", "question": "x", "schema": {"type": 1}}]),
    gate("clarificationGate", questions=[{"id": "a", "question": "x", "schema": 1}]),
    gate("clarificationGate", questions=[{"id": "a", "question": "x"}], contextType=1),
    gate("interrupt", kind="nonsense"), gate("interrupt", kind=[]), gate("interrupt", data=[]),
    gate("interrupt", kind="approval", data={"actions": [{}]}),
    gate("interrupt", kind="approval", data={"artifactId": ""}),
    gate("interrupt", kind="clarification", data={}),
    gate("interrupt", kind="external-event", data={"eventType": "x"}),
    gate("interrupt", kind="external-event", data={"eventType": 1, "correlation": {}}),
    gate("interrupt", kind="external-event", data={"eventType": "x", "correlation": [], }),
    gate("interrupt", kind="custom", data={"customKind": ""}),
    gate("interrupt", kind="custom", data={"more": 1}),
    gate("interrupt", resumeSchema={"$ref": 1}),
    gate("conversationGate", turnCount=0), gate("conversationGate", turnCount=10**9),
    gate("conversationGate", turnCount=10**4, mockAutoResume=True),
    gate("conversationGate", lifecycle="for-ever"), gate("conversationGate", schema="x"),
    gate("conversationGate", schema={"type": "nonsense"}),
    gate("conversationGate", participants="host:a"), gate("conversationGate", participants=["a"]),
    gate("conversationGate", agentId=""), gate("conversationGate", agentId=1),
    gate("conversationGate", groupId=1), gate("conversationGate", channel=[]),
    gate("conversationGate", title=1), gate("conversationGate", timeoutMs=-1),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG_GATES)))
def test_a_gate_that_cannot_be_is_refused_when_it_is_registered(api: Api, number: int) -> None:
    node = WRONG_GATES[number]
    answer = api.post("/v1/host/moot/workflows", definition("wrong-gate", [node]))
    refused(answer, 400, VALIDATION)
    assert "gate" in answer.json()["message"]


# -- signed links -------------------------------------------------------------------------------


def test_a_link_shows_the_question_and_takes_one_answer(api: Api) -> None:
    run_id = asked(api, approval(description="Read it first.", resumeSchema={"type": "object"}))
    path, outside = link(api, run_id), api.with_key(None)
    answer = outside.get(path)
    shown = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert (shown["kind"], shown["runId"], shown["nodeId"]) == ("approval", run_id, "gate")
    assert shown["data"]["description"] == "Read it first."
    assert shown["intent"] == "resolve"
    assert shown["requestedAt"] < shown["expiresAt"]
    assert shown["resumeSchema"] == {"type": "object"}
    body = answered(by_link(api, path, ACCEPT))
    assert (body["runId"], body["nodeId"]) == (run_id, "gate")
    assert api.until(run_id)["status"] == "completed"
    assert of(api, run_id, "approval.received")[0]["decidedBy"].startswith("link:")
    with unchanged(api, run_id):
        for answer in (by_link(api, path, ACCEPT), outside.get(path)):
            refused(answer, 409, "interrupt_already_resolved")


def damaged(token: str) -> list[str]:
    body, _, signature = token.partition(".")
    payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    changes = ({"nodeId": "x"}, {"expiresAt": 10**15}, {"tenant": "elsewhere"}, {"x": 1})
    others = [{**payload, **change} for change in changes]
    forged = [
        base64.urlsafe_b64encode(json.dumps(other).encode()).decode().rstrip("=")
        for other in others
    ]
    last = "A" if signature[-1] != "A" else "B"
    return [
        "x", body, f"{body}.", f".{signature}", f"{body}.{signature[:-2]}{last}A",
        f"{body}.{signature}x", f"{body}.{signature}.", f"{body}.é", f"é.{signature}",
        f"{body}é.{signature}", f"{body} .{signature}", f"{signature}.{body}",
        f"{body[:-1]}.{signature}", token.upper(), f"{body}.%ff",
        *(f"{other}.{signature}" for other in forged),
    ]  # fmt: skip


def test_an_altered_link_is_not_found(api: Api) -> None:
    run_id = asked(api, approval())
    token = api.read(run_id)["interrupt"]["interruptToken"]
    outside = api.with_key(None)
    with unchanged(api, run_id):
        for wrong in damaged(token):
            path = f"/v1/interrupts/{wrong}"
            refused(outside.get(path), 404, "interrupt_not_found")
            refused(by_link(api, path, ACCEPT), 404, "interrupt_not_found")
    answered(by_link(api, f"/v1/interrupts/{token}", ACCEPT))


@pytest.fixture
def minted(host: Callable[..., Any]) -> tuple[Any, Callable[..., str]]:
    """A host, and links as it would sign them itself: ``mint(run_id, **changes)``."""
    found = host()

    def mint(run_id: str, **changes: Any) -> str:
        with sqlite3.connect(found.server.database) as db:
            query = "SELECT value FROM secrets WHERE name = ?"
            [[secret]] = db.execute(query, [signed_links.SECRET_NAME])
        db.close()
        given = {
            "tenant": "default", "run_id": run_id, "node_id": "gate",
            "interrupt_id": found.read(run_id)["interrupt"]["interruptId"],
            "expires_at": int(time.time() * 1000) + 60_000,
            "by": hash_secret(found.key),
        }  # fmt: skip
        token = signed_links.sign_link(secret, signed_links.Ticket(**{**given, **changes}))
        return f"/v1/interrupts/{token}"

    return found, mint


def test_links_expire_and_keep_to_their_intent(minted: tuple[Any, Callable[..., str]]) -> None:
    api, mint = minted
    run_id = asked(api, approval())
    with unchanged(api, run_id):
        old = mint(run_id, expires_at=int(time.time() * 1000) - 1)
        refused(api.with_key(None).get(old), 410, "interrupt_expired")
        refused(by_link(api, old, ACCEPT), 410, "interrupt_expired")
        look = mint(run_id, intent="inspect")
        assert api.with_key(None).get(look).json()["intent"] == "inspect"
        refused(by_link(api, look, ACCEPT), 403, "forbidden")
        for other in ({"interrupt_id": "int_other"}, {"node_id": "x"}):
            refused(by_link(api, mint(run_id, **other), ACCEPT), 404, "interrupt_not_found")
        elsewhere = mint(run_id, tenant="elsewhere")
        refused(by_link(api, elsewhere, ACCEPT), 404, "run_not_found")
    answered(by_link(api, mint(run_id), ACCEPT))


def test_a_link_survives_a_restart_and_is_written_nowhere(host: Callable[..., Any]) -> None:
    plain = host("--log-json")
    run_id = asked(plain, approval())
    path = link(plain, run_id)
    token = path.rpartition("/")[2]
    for caller in (plain, plain.with_key(None)):
        assert caller.get(path).status_code == 200
    plain.with_key(None).get(f"{path}x")
    bundle = plain.get(f"/v1/runs/{run_id}/debug-bundle").text
    log = json.dumps(plain.events(run_id)) + json.dumps(mine(plain, run_id))
    assert token not in bundle + log
    plain.server.restart()
    answered(by_link(plain, path, ACCEPT))
    plain.server.stop()
    for file in plain.server.folder.iterdir():
        assert token.encode() not in file.read_bytes(), file.name


def test_a_link_ends_with_its_run(api: Api) -> None:
    run_id = asked(api, approval())
    path = link(api, run_id)
    api.post(f"/v1/runs/{run_id}/cancel")
    api.until(run_id, "cancelled")
    with unchanged(api, run_id):
        for answer in (resolve(api, run_id, ACCEPT), by_link(api, path, ACCEPT)):
            refused(answer, 422, "interrupt_cancelled")
        assert api.with_key(None).get(path).status_code in (409, 422)
        refused(by_run(api, run_id, {"nodeId": "gate", **ACCEPT}), 422, "interrupt_cancelled")


def test_an_idempotency_key_by_link_is_a_matter_of_this_link(api: Api) -> None:
    headers = {"Idempotency-Key": "everybodys"}
    outside = api.with_key(None)
    for _ in range(2):
        run_id = asked(api, approval())
        path, body = link(api, run_id), {"resumeValue": ACCEPT}
        first = outside.post(path, body, headers=headers)
        again = outside.post(path, body, headers=headers)
        assert answered(first) == answered(again)
        assert again.headers["openwop-idempotent-replay"] == "true"
        assert api.types(run_id).count("interrupt.resolved") == 1
        refused(outside.post(path, body), 409, "interrupt_already_resolved")


def test_a_snapshot_with_a_link_is_not_changed_for_its_reader(api: Api) -> None:
    run_id = asked(api, approval())
    tag = api.get(f"/v1/runs/{run_id}").headers["etag"]
    again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
    assert again.status_code == 304
    answered(resolve(api, run_id, ACCEPT))
    again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
    assert again.status_code == 200


# -- time ---------------------------------------------------------------------------------------


def test_nobody_approves_by_waiting(api: Api) -> None:
    def attempt(ms: int) -> tuple[str, str] | None:
        run_id = begun(api, approval(timeoutMs=ms))
        asks = api.read(run_id).get("interrupt")
        return None if asks is None else (run_id, str(asks["callbackUrl"]))

    run_id, path = in_time(attempt, 300)
    found = api.until(run_id)
    assert (found["status"], found["error"]["code"]) == ("failed", "interrupt_timeout")
    [received] = of(api, run_id, "approval.received")
    assert received["action"] == "timeout"
    assert "decidedBy" not in received
    [resolved] = of(api, run_id, "interrupt.resolved")
    assert (resolved["outcome"], resolved["reason"]) == ("rejected", "timeout")
    with unchanged(api, run_id):
        refused(api.with_key(None).get(path), 410, "interrupt_expired")
        refused(by_link(api, path, ACCEPT), 410, "interrupt_expired")
        refused(resolve(api, run_id, ACCEPT), 409, "interrupt_already_resolved")


@pytest.mark.parametrize(
    "node",
    [
        gate("clarificationGate", questions=QUESTIONS, timeoutMs=200, onTimeout="complete"),
        gate("interrupt", timeoutMs=200, onTimeout="complete"),
    ],
    ids=["clarification", "custom"],
)
def test_a_gate_may_go_on_without_an_answer(api: Api, node: dict[str, Any]) -> None:
    run_id = begun(api, node, {"id": "after", "typeId": "core.noop"})
    found = api.until(run_id)
    assert found["status"] == "completed"
    assert found["nodeStates"]["gate"]["outputs"] == {"outcome": None, "timedOut": True}


def test_a_timeout_survives_a_restart(host: Callable[..., Any]) -> None:
    plain = host()
    run_id = begun(plain, approval(timeoutMs=1500))
    plain.server.kill()
    plain.server.start()
    assert plain.until(run_id)["error"]["code"] == "interrupt_timeout"


def test_waiting_is_not_active_time(api: Api) -> None:
    run_id = asked(api, approval(), run={"configurable": {"runTimeoutMs": 300}})
    time.sleep(0.6)
    assert api.read(run_id)["status"] == "waiting-approval"
    answered(resolve(api, run_id, ACCEPT))
    assert api.until(run_id)["status"] == "completed"


def test_a_question_survives_a_kill(host: Callable[..., Any]) -> None:
    plain = host()
    run_id = asked(plain, approval(requiredApprovals=2))
    answered(resolve(plain, run_id, {**ACCEPT, "voter": "a"}))
    plain.server.kill()
    plain.server.start()
    assert plain.read(run_id)["status"] == "waiting-approval"
    assert plain.types(run_id).count("interrupt.requested") == 1
    answered(resolve(plain, run_id, {**ACCEPT, "voter": "b"}))
    assert plain.until(run_id)["status"] == "completed"


# -- families -----------------------------------------------------------------------------------


def test_a_parent_shows_that_its_child_waits(api: Api) -> None:
    api.register(definition("asking-child", [approval()]))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "asking-child"}}
    parent = begun(api, call)
    found = api.until(parent, "waiting-approval")
    child = found["childRuns"][0]["runId"]
    refused(resolve(api, parent, ACCEPT, "call"), 404, "interrupt_not_found")
    answered(resolve(api, child, ACCEPT))
    assert api.until(parent)["status"] == "completed"


def test_of_two_gates_side_by_side_each_is_asked(api: Api) -> None:
    run_id = asked(api, gate(name="one"), gate(name="two"), edges=[])
    answered(resolve(api, run_id, ACCEPT, "two"))
    found = api.read(run_id)
    assert (found["status"], found["currentNodeId"]) == ("waiting-approval", "one")
    answered(resolve(api, run_id, ACCEPT, "one"))
    assert api.until(run_id)["status"] == "completed"


# -- the published client -----------------------------------------------------------------------


@pytest.fixture
def client(api: Api) -> OpenwopClient:
    assert api.key is not None
    return OpenwopClient(api.url, api.key)


def test_the_published_client_answers_by_run(api: Api, client: OpenwopClient) -> None:
    run_id = asked(api, approval())
    answer = client.interrupts_resolve_by_run(run_id, "gate", ResolveInterruptRequest(ACCEPT))
    assert answer.runId == run_id
    assert api.until(run_id)["status"] == "completed"
    with pytest.raises(WopError) as refusal:
        client.interrupts_resolve_by_run(run_id, "gate", ResolveInterruptRequest(ACCEPT))
    assert refusal.value.status == 409


def test_the_published_client_answers_by_link(api: Api, client: OpenwopClient) -> None:
    run_id = asked(api, approval())
    token = api.read(run_id)["interrupt"]["interruptToken"]
    shown = client.interrupts_inspect_by_token(token)
    assert (shown.kind, shown.key) == ("approval", f"{run_id}:gate:1")
    client.interrupts_resolve_by_token(token, ResolveInterruptRequest(ACCEPT))
    assert api.until(run_id)["status"] == "completed"
    with pytest.raises(WopError) as refusal:
        client.interrupts_inspect_by_token(token)
    assert refusal.value.status == 409
