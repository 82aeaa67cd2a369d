"""The inbox: a row for each open question that waits for a person, and no other."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.questions import (
    answered,
    approval,
    asked,
    begun,
    council,
    gate,
    mine,
    of,
    refused,
    resolve,
    say,
    talk,
    unchanged,
)

ACCEPT = {"action": "accept"}
QUESTIONS = [{"id": "a", "question": "Which?"}, {"id": "b", "question": "When?"}]
CLARIFICATION = gate("clarificationGate", questions=QUESTIONS)
EVENT = gate("interrupt", kind="external-event", data={"eventType": "x", "correlation": {}})
AUTH = approval(profile="openwop-interrupt-auth-required")
A, B = "host:a", "host:b"


def listed(api: Api, **query: Any) -> dict[str, Any]:
    answer = api.get("/v1/host/moot/inbox", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture
def tenant(api: Api, request: pytest.FixtureRequest) -> Api:
    """The administrator of a tenant of its own, whose inbox begins empty."""
    name = re.sub(r"\W", "-", f"inbox-{request.node.name}")[:100]
    return api.with_key(api.new_key("owner", tenant=name, admin=True))


# -- what has a row -----------------------------------------------------------------------------


def test_an_approval_is_asked_and_gone_when_answered(tenant: Api) -> None:
    node = approval(description="Read it.", actions=["accept", "reject"], timeoutMs=600_000)
    run_id = asked(tenant, node)
    [item] = listed(tenant)["items"]
    snapshot = tenant.read(run_id)
    assert item == {
        "id": snapshot["interrupt"]["interruptId"], "runId": run_id, "nodeId": "gate",
        "kind": "approval", "question": "Ship it?: Read it.", "actions": ["accept", "reject"],
        "askedBy": f"{snapshot['workflowId']}/gate", "since": snapshot["interrupt"]["requestedAt"],
        "deadline": of(tenant, run_id, "node.suspended")[0]["dueAt"],
    }  # fmt: skip
    answered(resolve(tenant, run_id, ACCEPT))
    assert listed(tenant)["items"] == []


@pytest.mark.parametrize(
    ("node", "kind", "question"),
    [
        (CLARIFICATION, "clarification", "Which? When?"),
        (AUTH, "approval", "Ship it?"),
        (gate("interrupt", data={"customKind": "acme.sign"}), "custom", "acme.sign"),
    ],
    ids=["clarification", "auth-required", "custom"],
)
def test_other_questions_for_people(tenant: Api, node: Any, kind: str, question: str) -> None:
    run_id = asked(tenant, node)
    [item] = listed(tenant)["items"]
    assert (item["runId"], item["kind"], item["question"]) == (run_id, kind, question)
    assert item["actions"]
    assert "deadline" not in item


@pytest.mark.parametrize("node", [EVENT, talk(), talk(prompt="Well?"), council(A, B)], ids=range(4))
def test_what_waits_for_nobody_in_particular_has_no_row(tenant: Api, node: Any) -> None:
    asked(tenant, node)
    assert listed(tenant)["items"] == []


def test_a_conversation_has_a_row_while_a_person_is_addressed(api: Api) -> None:
    run_id = asked(api, council(A, B))
    answered(say(api, run_id, "your turn", role="agent", speakerId=A, to=B))
    assert mine(api, run_id) == []
    answered(say(api, run_id, "what do you think?", role="agent", speakerId=B, to="user:ann"))
    [item] = mine(api, run_id)
    assert (item["kind"], item["nodeId"]) == ("conversation", "convo")
    assert "user:ann" in item["question"]
    answered(say(api, run_id, "and me?", role="agent", speakerId=A))
    answered(say(api, run_id, "not ann", **{"from": "user:bob"}))
    assert len(mine(api, run_id)) == 1
    answered(say(api, run_id, "June", **{"from": "user:ann"}))
    assert mine(api, run_id) == []


def test_whoever_of_the_people_answers_a_question_to_the_user(api: Api) -> None:
    run_id = asked(api, council(A, B))
    answered(say(api, run_id, "well?", role="agent", speakerId=A, to="user"))
    assert len(mine(api, run_id)) == 1
    answered(say(api, run_id, "June", **{"from": "user:ann"}))
    assert mine(api, run_id) == []


# -- when a row goes ----------------------------------------------------------------------------


def test_every_way_to_end_a_wait_ends_its_row(api: Api) -> None:
    cancelled = asked(api, approval())
    api.post(f"/v1/runs/{cancelled}/cancel")
    api.until(cancelled, "cancelled")
    late = begun(api, approval(timeoutMs=200))
    api.until(late, "failed")
    closed = asked(api, council(A, B))
    answered(say(api, closed, "well?", role="agent", speakerId=A, to="user"))
    answered(resolve(api, closed, {"operation": "close"}, "convo"))
    rejected = asked(api, approval())
    answered(resolve(api, rejected, {"action": "reject"}))
    for run_id in (cancelled, late, closed, rejected):
        assert mine(api, run_id) == [], run_id


def test_a_partial_quorum_a_question_and_a_refusal_keep_the_row(api: Api) -> None:
    run_id = asked(api, approval(requiredApprovals=2, actions=["accept", "ask"]))
    [before] = mine(api, run_id)
    answered(resolve(api, run_id, {**ACCEPT, "voter": "a"}))
    answered(resolve(api, run_id, {"action": "ask", "question": "why?"}))
    with unchanged(api, run_id):
        refused(resolve(api, run_id, {"action": "reject"}), 400, "validation_error")
    assert mine(api, run_id) == [before]
    answered(resolve(api, run_id, {**ACCEPT, "voter": "b"}))
    assert mine(api, run_id) == []


def test_the_question_of_a_child_is_the_childs(api: Api) -> None:
    parent = api.create("conformance-interrupt-parent-child-cancel")
    api.until(parent, "waiting-approval")
    child = api.read(parent)["childRuns"][0]["runId"]
    assert mine(api, parent) == []
    assert len(mine(api, child)) == 1
    api.post(f"/v1/runs/{parent}/cancel")
    api.until(child, "cancelled")
    assert mine(api, child) == []


def test_each_of_two_gates_has_a_row(tenant: Api) -> None:
    run_id = asked(tenant, gate(name="one"), gate(name="two"), edges=[])
    assert {item["nodeId"] for item in listed(tenant)["items"]} == {"one", "two"}
    answered(resolve(tenant, run_id, ACCEPT, "one"))
    assert [item["nodeId"] for item in listed(tenant)["items"]] == ["two"]


# -- the list -----------------------------------------------------------------------------------


def test_the_oldest_comes_first_and_a_page_has_a_size(tenant: Api) -> None:
    runs = [asked(tenant, approval()) for _ in range(5)]
    assert [item["runId"] for item in listed(tenant)["items"]] == runs
    assert [item["runId"] for item in listed(tenant, limit=2)["items"]] == runs[:2]
    for wrong in ("0", "1001", "x", "-1", ""):
        answer = tenant.get("/v1/host/moot/inbox", params={"limit": wrong})
        refused(answer, 400, "validation_error")


def test_the_revision_moves_with_the_rows_and_only_with_them(tenant: Api) -> None:
    first = listed(tenant)["revision"]
    run_id = asked(tenant, approval(requiredApprovals=2))
    second = listed(tenant)["revision"]
    assert second > first
    answered(resolve(tenant, run_id, ACCEPT))
    asked(tenant, EVENT)
    assert listed(tenant)["revision"] == second
    tenant.post(f"/v1/runs/{run_id}/cancel")
    assert listed(tenant)["revision"] > second


def test_an_inbox_is_of_one_tenant_and_needs_the_right_to_read(tenant: Api, foreign: Api) -> None:
    run_id = asked(tenant, approval())
    assert mine(foreign, run_id) == []
    assert len(mine(tenant, run_id)) == 1
    assert tenant.with_key(None).get("/v1/host/moot/inbox").status_code == 401


def test_an_inbox_survives_a_kill(host: Callable[..., Any]) -> None:
    plain = host()
    for node in (approval(), CLARIFICATION, EVENT, talk()):
        asked(plain, node)
    before = listed(plain)
    assert len(before["items"]) == 2
    plain.server.kill()
    plain.server.start()
    assert listed(plain) == before
    for item in before["items"]:
        value = ACCEPT if item["kind"] == "approval" else {"answers": {"a": 1, "b": 2}}
        answered(resolve(plain, item["runId"], value))
    assert listed(plain)["items"] == []


# -- the property -------------------------------------------------------------------------------


def waits_for_people(api: Api, run_id: str) -> set[str]:
    """Worked out from the log alone: the ids of the questions that must have a row."""
    if api.read(run_id)["status"] in ("completed", "failed", "cancelled"):
        return set()
    questions: dict[str, str] = {}
    addressed: set[str] = set()
    for event in api.events(run_id):
        said = event["payload"]
        if event["type"] == "node.suspended":
            questions[said["interruptId"]] = said["kind"]
        elif event["type"] == "interrupt.resolved":
            questions.pop(said["interruptId"])
        elif event["type"] == "conversation.exchanged":
            turn = said["turn"]
            addressed -= {turn["from"]} | ({"user"} if turn["from"].startswith("user") else set())
            if str(turn.get("to", "")).startswith("user"):
                addressed.add(turn["to"])
    kinds = {"approval", "clarification", "custom"}
    if addressed:
        kinds.add("conversation.exchange")
    return {name for name, kind in questions.items() if kind in kinds}


@pytest.mark.parametrize("seed", range(6))
def test_there_is_a_row_for_each_question_and_a_question_for_each_row(
    tenant: Api, seed: int
) -> None:
    dice = random.Random(seed)
    nodes = [approval(requiredApprovals=2), CLARIFICATION, EVENT, talk(), council(A, B), AUTH]
    runs = [asked(tenant, dice.choice(nodes)) for _ in range(4)]
    for _ in range(24):
        run_id = dice.choice(runs)
        act(tenant, run_id, dice)
        rows = {item["id"] for item in listed(tenant)["items"]}
        assert rows == set().union(*(waits_for_people(tenant, name) for name in runs))


def act(api: Api, run_id: str, dice: random.Random) -> None:
    """Something somebody might do, whether it is allowed or not."""
    to = dice.choice(["user", "user:ann", B, None])
    turn: dict[str, Any] = {"content": "x", "role": "agent", "speakerId": dice.choice([A, B])}
    person = {"content": "x", "from": dice.choice(["user", "user:ann", "user:bob"])}
    value: Any = dice.choice(
        [
            {"action": dice.choice(["accept", "reject"]), "voter": dice.choice("abc")},
            {"answers": {"a": 1, "b": 2}},
            turn if to is None else {**turn, "to": to},
            person,
            {"operation": "close"},
        ]
    )
    node = "convo" if "convo" in api.read(run_id)["nodeStates"] else "gate"
    if dice.random() < 0.08:
        api.post(f"/v1/runs/{run_id}/cancel")
    else:
        assert resolve(api, run_id, value, node).status_code < 500
