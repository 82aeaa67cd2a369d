"""Questions that wait for an answer (protocol 8): by node, by run, by signed link."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2 as httpx
import pytest
from openwop_client import OpenwopClient, ResolveInterruptRequest, WopError

from tests.support.api.caller import Api, definition, in_time
from tests.support.api.questions import (
    ACCEPT,
    answered,
    approval,
    asked,
    begun,
    by_link,
    by_run,
    gate,
    link,
    of,
    refused,
    resolve,
    unchanged,
)

VALIDATION = "validation_error"


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
