"""What waits for a person (DECISIONS 12): by example; the random stories compare every step."""

from typing import Any

import pytest

from moot.core.commands import CancelRun, PauseRun, TimePassed
from moot.core.interrupts import inbox
from tests.support.core.gates import (
    approval,
    asking,
    beside_work,
    clarification,
    council,
    external,
    say,
)
from tests.support.core.simulator import ADA, CHAIR, Life, node


def rows(life: Life) -> list[inbox.InboxEntry]:
    return inbox.inbox_items(life.run)


def test_an_approval_is_a_row_with_its_own_actions() -> None:
    world, life = approval(
        title="Ship it", description="all of it", actions=["accept", "edit", "ask"], timeoutMs=1000
    )
    found = life.run.interrupts["ok"]
    assert rows(life) == [
        inbox.InboxEntry(
            id=found.interrupt_id, run_id=life.run.run_id, node_id="ok", kind="approval",
            question="Ship it: all of it", actions=["accept", "edit-accept", "ask"],
            asked_by="sample/ok", since=found.requested_at, deadline=found.due,
        )
    ]  # fmt: skip
    assert found.due is not None and found.due >= world.at


def test_a_clarification_is_a_row_with_its_questions() -> None:
    _, life = clarification({"id": "a", "question": "How?"}, {"id": "b", "question": "When?"})
    assert [(row.kind, row.question, row.actions) for row in rows(life)] == [
        ("clarification", "How? When?", ["answer"])
    ]  # fmt: skip


def test_a_custom_question_is_a_row_also_when_it_takes_keys_only() -> None:
    config = {"profile": "openwop-interrupt-auth-required", "data": {"customKind": "sign"}}
    _, life = asking(node("x", "core.interrupt", config=config))
    assert [(row.kind, row.question) for row in rows(life)] == [("custom", "sign")]


def test_an_external_event_waits_for_nobody() -> None:
    _, life = external({"id": 1})
    assert rows(life) == []


def test_a_conversation_is_a_row_only_while_a_person_is_addressed() -> None:
    world, life = council()
    assert rows(life) == []
    say(world, life, "host:cfo", to="host:cto")
    assert rows(life) == []
    say(world, life, "host:cfo", to="user:ada")
    assert [(row.kind, row.question) for row in rows(life)] == [
        ("conversation", "user:ada: asked in turn 2")
    ]  # fmt: skip
    say(world, life, "host:cto")
    say(world, life, "user:bob")
    assert len(rows(life)) == 1, "another's turn is no answer"
    say(world, life, "user:ada", who=ADA)
    assert rows(life) == []


@pytest.mark.parametrize("speaker", ["user", "user:ada"])
def test_whoever_speaks_first_answers_for_the_user(speaker: str) -> None:
    world, life = council()
    say(world, life, "host:cfo", to="user")
    assert len(rows(life)) == 1
    say(world, life, speaker)
    assert rows(life) == []


def test_an_agent_whose_name_begins_like_a_persons_answers_for_nobody() -> None:
    world, life = council(roster=False)
    value = {"role": "agent", "speakerId": "userbot", "content": "x"}
    world.answer(life, "convo", {**value, "to": "user"})
    world.answer(life, "convo", value)
    assert len(rows(life)) == 1


def test_two_people_may_be_asked_and_the_row_stays_until_both_have_answered() -> None:
    world, life = council()
    say(world, life, "host:cfo", to="user:ada")
    say(world, life, "host:cfo", to="user:bob")
    say(world, life, "user:ada")
    assert [row.question for row in rows(life)] == ["user:bob: asked in turn 2"]
    say(world, life, "user:bob", to="user:ada")
    assert [row.question for row in rows(life)] == ["user:bob, user:ada: asked in turn 2"]
    say(world, life, "user:bob", to="host:cfo")
    assert [row.question for row in rows(life)] == ["user:ada: asked in turn 4"]
    say(world, life, "user:ada", to="user:bob")
    assert [row.question for row in rows(life)] == ["user:bob: asked in turn 6"]


def test_who_is_asked_by_two_answers_the_one_he_speaks_to() -> None:
    world, life = council()
    say(world, life, "host:cfo", to="user:ada")
    say(world, life, "host:cto", to="user:ada")
    say(world, life, "user:ada", to="host:cfo")
    assert [row.question for row in rows(life)] == ["user:ada: asked in turn 2"]
    say(world, life, "user:ada")
    assert rows(life) == []


@pytest.mark.parametrize("value", [{"operation": "close"}, {"operation": "close", "outcome": 1}])
def test_a_close_takes_the_row_away(value: Any) -> None:
    world, life = council()
    say(world, life, "host:cfo", to="user:ada")
    world.answer(life, "convo", value)
    assert rows(life) == []


def test_an_answer_a_timeout_and_a_cancel_take_the_row_away() -> None:
    world, life = approval()
    world.answer(life, "ok", {"action": "accept"})
    assert rows(life) == []
    world, life = approval(timeoutMs=10)
    world.pass_time(10)
    world.take(life, TimePassed(world.at))
    assert rows(life) == []
    world, life = approval()
    world.take(life, CancelRun(world.at))
    assert rows(life) == []


def test_a_vote_or_a_question_leaves_the_row() -> None:
    world, life = approval(actions=["accept", "ask"], requiredApprovals=2)
    world.answer(life, "ok", {"action": "accept"})
    world.answer(life, "ok", {"action": "ask", "question": "why?"}, CHAIR)
    assert len(rows(life)) == 1


def test_rows_come_in_the_order_of_the_questions_and_stay_in_a_pause() -> None:
    gates = [
        node("a", "core.approvalGate"), node("b", "core.interrupt"),
        node("c", "core.conversationGate"),
    ]  # fmt: skip
    world, life = beside_work(*gates)
    assert [row.node_id for row in rows(life)] == ["a", "b"]
    world.take(life, PauseRun(world.at, "immediate"))
    assert [row.node_id for row in rows(life)] == ["a", "b"]
