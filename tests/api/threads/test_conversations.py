"""Conversations and councils (multi-agent I, J): turns, speakers, rosters, closing."""

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.api.caller import PATIENCE, Api, in_time
from tests.support.api.questions import (
    answered,
    asked,
    begun,
    close,
    council,
    gate,
    link,
    of,
    operate,
    refused,
    resolve,
    say,
    talk,
    turns,
    unchanged,
)

VALIDATION = "validation_error"


CLOSED = "interrupt_already_resolved"


A, B, C = "host:a", "host:b", "host:c"


# -- turns --------------------------------------------------------------------------------------


def test_a_conversation_is_opened_with_turn_zero(api: Api) -> None:
    run_id = asked(api, talk(prompt="May or June?", groupId="g"))
    events = {event["type"]: event for event in api.events(run_id)}
    opened = events["conversation.opened"]
    assert opened["causationId"] == events["node.suspended"]["eventId"]
    assert events["node.suspended"]["payload"]["reason"] == "conversation-input"
    assert events["interrupt.requested"]["payload"]["data"]["prompt"] == "May or June?"
    said = opened["payload"]
    assert said["conversationId"] == f"{run_id}:convo:1"
    assert said["initialTurn"] == {
        "messageId": f"{run_id}:convo:1:0:user", "from": "user", "role": "user", "turnIndex": 0,
        "content": "May or June?", "groupId": "g", "ts": said["initialTurn"]["ts"],
    }  # fmt: skip
    found = api.read(run_id)
    assert (found["status"], found["currentNodeId"]) == ("waiting-approval", "convo")


def test_an_agent_may_open(api: Api) -> None:
    run_id = asked(api, council(A, B, agentId=A, prompt="Shall we?"))
    [opened] = of(api, run_id, "conversation.opened")
    first = opened["initialTurn"]
    assert (opened["agentId"], first["role"], first["speakerId"]) == (A, "agent", A)


def test_a_bare_value_and_an_operation_are_the_same(api: Api) -> None:
    run_id = asked(api, talk())
    bare = answered(say(api, run_id, "one"))
    named = answered(operate(api, run_id, "exchange", turn={"content": "two"}))
    turn_only = answered(resolve(api, run_id, {"turn": {"content": "three"}}, "convo"))
    seed = api.post(f"/v1/runs/{run_id}:resolveInterrupt", {"content": "four"})
    by_link = api.with_key(None).post(link(api, run_id), {"resumeValue": {"content": "five"}})
    bodies = [bare, named, turn_only, answered(seed), answered(by_link)]
    for number, body in enumerate(bodies, 1):
        assert (body["runId"], body["nodeId"]) == (run_id, "convo")
        assert body["status"] == "waiting-approval"
        about = body["conversation"]
        assert about["conversationId"] == f"{run_id}:convo:1"
        assert (about["operation"], about["turnIndex"]) == ("exchange", number)
        assert about["turns"] == number + 1
    said = turns(api, run_id)[1:]
    assert [turn["content"] for turn in said] == ["one", "two", "three", "four", "five"]
    assert [turn["turnIndex"] for turn in said] == [1, 2, 3, 4, 5]
    assert {turn["role"] for turn in said} == {"user"}


def test_each_turn_follows_from_the_last(api: Api) -> None:
    run_id = asked(api, talk())
    for number in range(3):
        answered(say(api, run_id, number))
    answered(close(api, run_id, outcome=1))
    chain = [event for event in api.events(run_id) if event["type"].startswith("conversation.")]
    for before, after in itertools.pairwise(chain):
        assert after["causationId"] == before["eventId"]


@pytest.mark.parametrize(
    "content", [None, True, 0, -1.5, "", "ü", [], [1], {}, {"a": {"b": [None]}}]
)
def test_content_is_any_json(api: Api, content: Any) -> None:
    run_id = asked(api, talk())
    answered(say(api, run_id, content))
    assert turns(api, run_id)[1]["content"] == content


def test_what_a_turn_brings_along_is_kept(api: Api) -> None:
    run_id = asked(api, talk())
    given = {
        "role": "agent", "speakerId": A, "from": A, "to": "user:ann", "groupId": "g", "ts": 1234,
        "messageId": "mine-1", "turnIndex": 1, "meta": {"replyTo": "x"},
        "agent": {"agentId": "acme.writer", "model": {"provider": "mock", "model": "mini"}},
    }  # fmt: skip
    answered(say(api, run_id, "hello", **given))
    turn = turns(api, run_id)[1]
    assert {key: turn[key] for key in given} == given


WRONG_TURNS: list[Any] = [
    None, "hello", 1, [], {}, {"turn": None}, {"turn": "hello"}, {"turn": {}}, {"role": "user"},
    {"operation": "exchange"}, {"operation": "open", "turn": {"content": 1}},
    {"operation": "start", "turn": {"content": 1}}, {"operation": None, "turn": {"content": 1}},
    {"operation": ["close"]}, {"operation": "exchange", "turn": {"role": "user"}},
    *({"content": "x", **wrong} for wrong in (
        {"role": "assistant"}, {"role": "system"}, {"role": None}, {"role": ["agent"]},
        {"turnIndex": 0}, {"turnIndex": 2}, {"turnIndex": -1}, {"turnIndex": "1"},
        {"turnIndex": True}, {"turnIndex": None}, {"messageId": ""}, {"messageId": 1},
        {"messageId": "x" * 257}, {"messageId": None}, {"from": ""}, {"from": 1},
        {"from": "host:a"}, {"to": ""}, {"to": 1}, {"to": "x" * 257}, {"groupId": 1},
        {"ts": -1}, {"ts": 1.5}, {"ts": "1"}, {"ts": True}, {"ts": None}, {"ts": 10**30},
        {"role": "agent", "speakerId": ""}, {"role": "agent", "speakerId": 1},
        {"role": "agent", "speakerId": A, "from": B}, {"role": "agent", "speakerId": "x" * 257},
        {"agent": "x"}, {"agent": {"agentId": ""}}, {"agent": {"agentId": 1}},
        {"agent": {"agentSharing": "x"}}, {"agent": {"memoryRef": 1}}, {"agent": {"model": "x"}},
    )),
]  # fmt: skip


def test_a_turn_that_does_not_fit_is_refused_and_not_consumed(api: Api) -> None:
    run_id = asked(api, talk())
    path = link(api, run_id)
    with unchanged(api, run_id):
        for wrong in WRONG_TURNS:
            answer = resolve(api, run_id, wrong, "convo")
            assert answer.status_code == 400, (wrong, answer.text)
            refused(answer, 400, VALIDATION)
            answer = api.with_key(None).post(path, {"resumeValue": wrong})
            assert answer.status_code in (400, 403), (wrong, answer.text)
    assert answered(say(api, run_id))["conversation"]["turnIndex"] == 1


def test_a_wrong_index_is_told_the_right_one(api: Api) -> None:
    run_id = asked(api, talk())
    answered(say(api, run_id, turnIndex=1))
    with unchanged(api, run_id):
        details = refused(say(api, run_id, turnIndex=1), 400, VALIDATION)
        assert details["expected"] == 2
    answered(say(api, run_id, turnIndex=2))


def test_content_keeps_to_the_schema_of_the_conversation(api: Api) -> None:
    schema = {"type": "object", "required": ["vote"], "properties": {"vote": {"enum": [1, 2]}}}
    run_id = asked(api, talk(schema=schema))
    assert of(api, run_id, "conversation.opened")[0]["schema"] == schema
    with unchanged(api, run_id):
        for wrong in ("x", {}, {"vote": 3}):
            assert refused(say(api, run_id, wrong), 400, VALIDATION)["fields"]
            refused(close(api, run_id, turn={"content": wrong}), 400, VALIDATION)
    answered(say(api, run_id, {"vote": 1}))


def test_turns_at_once_each_have_an_index_of_their_own(api: Api) -> None:
    run_id = asked(api, talk())
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda number: (number, say(api, run_id, number)), range(48)))
    said = {turn["content"]: turn["turnIndex"] for turn in turns(api, run_id)[1:]}
    assert sorted(said.values()) == list(range(1, 49))
    for number, answer in answers:
        about = answered(answer)["conversation"]
        assert (about["turnIndex"], about["turns"]) == (said[number], said[number] + 1)


def test_turns_are_folded_into_the_messages_channel(api: Api) -> None:
    more = {"channels": {"conversation": {"schema": {"type": "array"}, "reducer": "message"}}}
    run_id = asked(api, talk(), **more)
    answered(say(api, run_id, "hello"))
    answered(say(api, run_id, "hi", role="agent", speakerId=A))
    first, second = api.read(run_id)["channels"]["conversation"][-2:]
    assert (first["role"], first["content"]) == ("user", "hello")
    assert (second["role"], second["content"], second["agentId"]) == ("assistant", "hi", A)


# -- the same message again ---------------------------------------------------------------------


def test_a_repeated_message_gets_the_first_answer(api: Api) -> None:
    run_id = asked(api, talk())
    first = say(api, run_id, "hello", messageId="m-1")
    answered(say(api, run_id, "more"))
    with unchanged(api, run_id):
        again = say(api, run_id, "hello", messageId="m-1")
        assert answered(again) == answered(first)
        refused(say(api, run_id, "other", messageId="m-1"), 409, "message_id_conflict")
        operated = operate(api, run_id, "exchange", turn={"content": "x", "messageId": "m-1"})
        refused(operated, 409, "message_id_conflict")
        by_link = {"resumeValue": {"content": "other", "messageId": "m-1"}}
        answer = api.with_key(None).post(link(api, run_id), by_link)
        refused(answer, 409, "message_id_conflict")
    answered(close(api, run_id))
    with unchanged(api, run_id):
        assert answered(say(api, run_id, "hello", messageId="m-1")) == answered(first)


def test_a_message_of_the_hosts_own_naming_is_taken(api: Api) -> None:
    run_id = asked(api, talk())
    talk_id = f"{run_id}:convo:1"
    answered(say(api, run_id))
    with unchanged(api, run_id):
        for taken in (f"{talk_id}:0:system", f"{talk_id}:1:user", f"{talk_id}:3:user"):
            refused(say(api, run_id, messageId=taken), 400, VALIDATION)
    answered(say(api, run_id, messageId=f"{talk_id}:2:user"))


def test_a_message_id_is_a_matter_of_its_conversation(api: Api) -> None:
    one, two = asked(api, talk()), asked(api, talk())
    answered(say(api, one, "a", messageId="shared"))
    answered(say(api, two, "b", messageId="shared"))


def test_a_refused_message_has_not_used_its_id(api: Api) -> None:
    run_id = asked(api, council(A, B))
    refused(say(api, run_id, role="agent", speakerId=C, messageId="m"), 422, VALIDATION)
    answered(say(api, run_id, role="agent", speakerId=A, messageId="m"))


def test_the_same_message_at_once_is_said_once(api: Api) -> None:
    run_id = asked(api, talk())
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: say(api, run_id, "hello", messageId="once"), range(10)))
    assert len({answer.text for answer in answers}) == 1
    assert len(of(api, run_id, "conversation.exchanged")) == 1


def test_a_repeat_is_known_after_a_kill(host: Callable[..., Any]) -> None:
    plain = host()
    run_id = asked(plain, talk())
    first = answered(say(plain, run_id, "hello", messageId="m"))
    plain.server.kill()
    plain.server.start()
    assert answered(say(plain, run_id, "hello", messageId="m")) == first
    assert len(of(plain, run_id, "conversation.exchanged")) == 1
    assert answered(say(plain, run_id, "more"))["conversation"]["turnIndex"] == 2


# -- closing ------------------------------------------------------------------------------------


def test_a_close_ends_the_wait_with_its_outcome(api: Api) -> None:
    after = {"id": "after", "typeId": "core.noop"}
    run_id = asked(api, talk(), after)
    answered(say(api, run_id))
    outcome = {"month": "June"}
    body = answered(close(api, run_id, turn={"content": "Thanks"}, outcome=outcome))
    assert body["conversation"]["operation"] == "close"
    assert api.until(run_id)["status"] == "completed"
    [closed] = of(api, run_id, "conversation.closed")
    assert (closed["turnIndex"], closed["outcome"]) == (2, outcome)
    assert (closed["finalTurn"]["content"], closed["finalTurn"]["role"]) == ("Thanks", "user")
    assert of(api, run_id, "node.resumed")[0]["resumeValue"] == outcome
    state = api.read(run_id)["nodeStates"]["convo"]["outputs"]
    assert (state["outcome"], state["turnCount"]) == (outcome, 2)


def test_a_close_without_a_turn_is_the_hosts(api: Api) -> None:
    run_id = asked(api, talk())
    answered(close(api, run_id))
    [closed] = of(api, run_id, "conversation.closed")
    assert closed["outcome"] is None
    assert (closed["finalTurn"]["role"], closed["finalTurn"]["from"]) == ("system", "system")


def test_nothing_follows_a_close(api: Api) -> None:
    run_id = asked(api, talk(), gate("clarificationGate", "more", questions=[
        {"id": "q", "question": "Well?"}]))  # fmt: skip
    path = link(api, run_id)
    answered(close(api, run_id))
    assert api.until(run_id, "waiting-input")
    with unchanged(api, run_id):
        for answer in (
            say(api, run_id), close(api, run_id), operate(api, run_id, "exchange", turn={}),
            api.with_key(None).post(path, {"resumeValue": {"content": "late"}}),
            api.post(f"/v1/runs/{run_id}:resolveInterrupt", {"nodeId": "convo", "content": "x"}),
        ):  # fmt: skip
            details = refused(answer, 409, CLOSED)
            assert details["resolvedBy"]
    answered(resolve(api, run_id, {"answers": {"q": 1}}, "more"))
    api.until(run_id, "completed")
    with unchanged(api, run_id):
        refused(say(api, run_id), 409, CLOSED)


def test_of_many_closes_one_wins(api: Api) -> None:
    run_id = asked(api, talk())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: close(api, run_id, outcome=n), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert len(of(api, run_id, "conversation.closed")) == 1


def test_a_conversation_may_close_by_itself(api: Api) -> None:
    run_id = asked(api, council(A, B, lifecycle="open-exchange-close", turnCount=2))
    answered(say(api, run_id, "one", role="agent", speakerId=A))
    assert api.read(run_id)["status"] == "waiting-approval"
    answered(say(api, run_id, "two", role="agent", speakerId=B))
    assert api.until(run_id)["status"] == "completed"
    [closed] = of(api, run_id, "conversation.closed")
    assert (closed["turnIndex"], closed["outcome"]) == (3, "two")
    assert closed["finalTurn"]["role"] == "system"


def test_a_decision_is_kept_as_the_outcome(api: Api) -> None:
    run_id = asked(api, council(A, B))
    answered(say(api, run_id, "June", role="agent", speakerId=A))
    decision = {
        "text": "We ship in June.", "votes": [{"by": A, "vote": "yes"}, {"by": B, "vote": "no"}],
        "dissent": [{"by": B, "text": "too late"}], "citedTurns": [1],
        "actionItems": [{"text": "tell sales", "owner": "user:ann"}],
    }  # fmt: skip
    with unchanged(api, run_id):
        for wrong in (
            {"text": ""}, {"text": 1}, {"votes": []}, {**decision, "citedTurns": [9]},
            {**decision, "votes": [{"by": C, "vote": "yes"}]}, {**decision, "votes": "all"},
            {**decision, "dissent": [{"by": A}]}, {**decision, "actionItems": [{}]}, 1, [],
        ):  # fmt: skip
            refused(close(api, run_id, decision=wrong), 400, VALIDATION)
    answered(close(api, run_id, decision=decision))
    assert of(api, run_id, "conversation.closed")[0]["outcome"] == decision


def test_time_closes_a_conversation_without_an_outcome(api: Api) -> None:
    def attempt(ms: int) -> tuple[str, str] | None:
        run_id = begun(api, talk(timeoutMs=ms, onTimeout="complete"))
        asks = api.read(run_id).get("interrupt")
        if asks is None or (said := say(api, run_id)).status_code == 409:
            return None
        answered(said)
        return run_id, str(asks["callbackUrl"])

    run_id, path = in_time(attempt, 400)
    found = api.until(run_id)
    assert found["status"] == "completed"
    [closed] = of(api, run_id, "conversation.closed")
    assert closed["outcome"] is None
    final = closed["finalTurn"]
    assert (final["role"], final["from"], final["turnIndex"]) == ("system", "system", 2)
    assert "timed out" in final["content"]
    with unchanged(api, run_id):
        refused(say(api, run_id), 409, CLOSED)
        late = {"resumeValue": {"content": "late"}}
        refused(api.with_key(None).post(path, late), 410, "interrupt_expired")


def test_time_may_fail_the_node_and_a_turn_does_not_prolong_it(api: Api) -> None:
    run_id = begun(api, talk(timeoutMs=700))
    began = time.monotonic()
    while api.read(run_id)["status"] == "waiting-approval" and time.monotonic() < began + PATIENCE:
        say(api, run_id)
    found = api.read(run_id)
    assert (found["status"], found["error"]["code"]) == ("failed", "interrupt_timeout")
    assert of(api, run_id, "conversation.closed")[0]["outcome"] is None


def test_a_cancelled_conversation_takes_no_turn(api: Api) -> None:
    run_id = asked(api, talk())
    api.post(f"/v1/runs/{run_id}/cancel")
    api.until(run_id, "cancelled")
    with unchanged(api, run_id):
        refused(say(api, run_id), 422, "interrupt_cancelled")


# -- what is not there --------------------------------------------------------------------------


def test_before_it_opens_there_is_no_conversation(api: Api) -> None:
    first = {"id": "sleep", "typeId": "core.delay", "config": {"ms": 60_000}}
    run_id = begun(api, first, talk())
    with unchanged(api, run_id):
        refused(say(api, run_id), 404, "interrupt_not_found")
        refused(close(api, run_id), 404, "interrupt_not_found")
        bare = api.post(f"/v1/runs/{run_id}:resolveInterrupt", {"content": "x"})
        refused(bare, 404, "interrupt_not_found")
    api.post(f"/v1/runs/{run_id}/cancel")


def test_a_foreign_conversation_is_not_there(api: Api, foreign: Api) -> None:
    run_id = asked(api, talk())
    answered(say(api, run_id, "hello", messageId="m"))
    with unchanged(api, run_id):
        for answer in (
            say(foreign, run_id), close(foreign, run_id),
            say(foreign, run_id, "hello", messageId="m"), say(foreign, "nobody"),
        ):  # fmt: skip
            refused(answer, 404, "run_not_found")


def test_without_the_scope_nobody_speaks(api: Api) -> None:
    run_id = asked(api, talk())
    names = {"as": [A]}
    mute = api.with_key(api.new_key("mute", scopes=["runs:read", "runs:create"], **names))
    with unchanged(api, run_id):
        refused(say(mute, run_id, role="agent", speakerId=A), 403, "forbidden")
