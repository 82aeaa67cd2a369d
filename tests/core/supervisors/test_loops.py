"""The loop of a supervisor as it goes on: questions, ends, pauses, what is cut short."""

from typing import Any

import msgspec
import pytest

from moot.core.commands import CancelRun, FinishNode, PauseRun, ResumeRun, TimePassed
from moot.core.interrupts import inbox
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.node_types import Decided
from tests.support.core.simulator import ADA, Life, World, chain, compiled, definition, edge, node
from tests.support.core.supervisors import (
    DONE,
    ask,
    check_chains,
    end,
    fast,
    hand,
    kids,
    phases,
    planned,
    settle,
    variable,
    worker,
    world,
)  # fmt: skip
from tests.support.event_payloads import payload_json

RESULT = variable("result", "before")
OUT = {"result": "out"}


def errors(life: Life) -> str:
    assert life.run.error is not None
    return str(life.run.error.code)


# -- caps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "options", "bound"),
    [
        ({"supervisor": {"iterationCap": 2}}, {}, "orchestrator-iterations"),
        ({"dispatch": {"iterationCap": 2}}, {}, "dispatch-iterations"),
        ({}, {"configurable": {"maxLoopIterations": 2}}, "loop-iterations"),
    ],
)
def test_a_cap_of_rounds_ends_the_run(given: Any, options: Any, bound: str) -> None:
    """The published kinds of a cap have one word for all three; which it was stands beside it."""
    place = world(fast("a"))
    life = place.start(planned(*[hand("a")] * 5, **given), **options)
    settle(place)
    [cap] = life.told("cap.breached")
    assert {key: payload_json(cap)[key] for key in ("kind", "limit", "observed", "bound")} == {
        "kind": "loop-iterations", "limit": 2, "observed": 3, "bound": bound
    }  # fmt: skip
    assert errors(life) == "loop_limit_exceeded"
    assert life.run.error.details == {"iteration": 3, "bound": bound}


def test_the_run_s_own_cap_is_clamped_by_nothing_larger() -> None:
    place = world(fast("a"))
    life = place.start(planned(*[hand("a")] * 5), configurable={"maxLoopIterations": 1})
    settle(place)
    assert payload_json(life.told("cap.breached")[0])["observed"] == 2
    assert kids(place, life)[0].run.limits.loop_iterations is msgspec.UNSET


def test_a_cap_in_the_middle_of_a_wave_takes_the_children_along() -> None:
    place = world(worker("a"), worker("b"))
    life = place.start(
        planned(hand("a", "b"), dispatch={"fanOutPolicy": "parallel", "iterationCap": 1})
    )
    assert errors(life) == "loop_limit_exceeded"
    assert [each.run.status for each in kids(place, life)] == [Status.CANCELLED]


# -- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["auto", "conversation", "clarification"])
def test_a_question_of_a_supervisor_waits_in_the_inbox_until_a_person_answers(way: str) -> None:
    place = world()
    life = place.start(planned(ask("Blue?"), DONE, dispatch={"askUserRouting": way}))
    assert [item.node_id for item in inbox.inbox_items(life.run)] == ["dis"]
    said = {"answers": {"answer": "no"}} if way == "clarification" else {"content": "no"}
    place.answer(life, "dis", said, ADA)
    settle(place)
    assert life.run.status is Status.COMPLETED and inbox.inbox_items(life.run) == []


def test_a_question_is_a_conversation_unless_told_otherwise() -> None:
    life = (place := world()).start(planned(ask("Blue?"), ask("Red?"), DONE))
    first = life.told("conversation.opened")[0]
    assert payload_json(first)["initialTurn"]["content"] == "Blue?"
    place.answer(life, "dis", {"content": "yes"}, ADA)
    second = life.told("conversation.opened")[1]
    assert payload_json(second)["conversationId"] != payload_json(first)["conversationId"]
    place.answer(life, "dis", {"content": "no"}, ADA)
    assert life.run.status is Status.COMPLETED
    assert not [type_ for type_ in life.types if type_.startswith("clarification.")]
    names = [payload_json(e)["interruptId"] for e in life.told("node.suspended")]
    assert len(set(names)) == 2


def test_a_question_may_be_a_clarification() -> None:
    place = world()
    for flow in (
        planned(ask("Blue?"), DONE, dispatch={"askUserRouting": "clarification"}),
        planned({"kind": "clarify", "prompt": "Blue?"}, DONE),
    ):
        life = place.start(flow)
        [asked] = life.told("clarification.requested")
        assert [q["question"] for q in payload_json(asked)["questions"]] == ["Blue?"]
        assert life.run.orchestrator.decision == ask("Blue?")
        place.answer(life, "dis", {"answers": {"answer": "yes"}}, ADA)
        assert life.run.status is Status.COMPLETED
        assert not life.told("conversation.opened")


@pytest.mark.parametrize("word", ["clarify", "escalate"])
def test_the_supervisor_s_own_word_for_a_question_is_kept(word: str) -> None:
    life = world().start(planned({"kind": word, "prompt": "Blue?"}, DONE))
    [waits] = life.told("node.suspended")
    assert payload_json(waits)["escalationKind"] == word
    for way in ("clarification", "conversation"):
        plain = world().start(planned(ask("Blue?"), DONE, dispatch={"askUserRouting": way}))
        assert "escalationKind" not in payload_json(plain.told("node.suspended")[0])


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_a_question_may_be_an_approval_and_is_asked_once(action: str) -> None:
    place = world()
    life = place.start(planned({"kind": "escalate", "reason": "Really?"}, DONE))
    assert life.run.status is Status.WAITING_APPROVAL
    place.answer(life, "dis", {"action": action})
    assert len(life.told("approval.requested")) == 1
    assert payload_json(life.told("node.completed")[1])["outputs"]["answer"]["action"] == action
    assert life.run.status is Status.COMPLETED


# -- ends ----------------------------------------------------------------------------------------


def test_an_end_stops_what_goes_on_beside() -> None:
    life = world().start(planned(DONE, more=(node("beside", "acme.work"),)))
    assert life.run.status is Status.COMPLETED
    assert life.run.nodes["beside"].status == "cancelled"


def test_what_comes_after_the_loop_comes_once_after_its_end() -> None:
    place = world(fast("a"))
    flow = planned(hand("a"), DONE, more=(node("last"),), edges=(edge("dis", "last"),))
    life = place.start(flow)
    settle(place)
    assert life.order()[-4:] == [
        "node.completed dis",
        "node.started last",
        "node.completed last",
        "run.completed",
    ]
    assert life.order().count("node.started last") == 1


def test_a_failed_dispatch_node_may_be_caught() -> None:
    caught = edge("dis", "rescue", "any_failed")
    place = world(worker("a"))
    config = {"fanOutPolicy": "parallel"}
    flow = planned(hand("a", "nobody"), dispatch=config, more=(node("rescue"),), edges=(caught,))
    life = place.start(flow)
    assert life.run.nodes["rescue"].status == "completed" and life.run.status is Status.COMPLETED
    assert place.lives[next(iter(life.run.children))].run.status is Status.CANCELLED
    assert "child.cancelled a" in phases(life)
    check_chains(life)


def test_nodes_of_a_loop_are_new_in_every_round() -> None:
    place = world(fast("a"))
    between = node("mid", "acme.work")
    flow = planned(hand("a"), DONE, more=(between,), edges=(edge("sup", "mid"), edge("mid", "dis")))
    life = place.start(flow)
    place.finish(life, "mid")
    settle(place)
    assert life.run.nodes["mid"].status == "running"
    place.finish(life, "mid")
    assert life.run.status is Status.COMPLETED
    attempts = [payload_json(e)["attempt"] for e in life.told("node.started") if e.node_id == "mid"]
    assert attempts == [1, 2] and life.run.nodes["mid"].failures == 0


# -- in the middle of a wave ---------------------------------------------------------------------


def wave(*names: str, **config: Any) -> tuple[World, Life]:
    place = world(*(worker(name, variable("out", f"of {name}")) for name in names))
    config = {"fanOutPolicy": "parallel", "outputMapping": OUT, **config}
    life = place.start(planned(hand(*names), DONE, dispatch=config, variables=[RESULT]))
    return place, life


@pytest.mark.parametrize("policy", ["immediate", "drain-current-node"])
def test_a_pause_holds_a_wave_and_loses_nothing(policy: str) -> None:
    place, life = wave("a", "b")
    a, b = kids(place, life)
    end(place, a)
    place.take(life, PauseRun(place.at, policy))
    assert life.run.status is Status.PAUSED
    end(place, b)
    assert phases(life)[-1] == "child.completed a"
    place.take(life, ResumeRun(place.at))
    settle(place)
    assert life.run.status is Status.COMPLETED and life.run.variables == {"result": "of b"}
    assert len(kids(place, life)) == 2
    check_chains(life)


def test_a_cancel_takes_the_wave_along() -> None:
    place, life = wave("a", "b")
    place.take(life, CancelRun(place.at))
    assert [each.run.status for each in kids(place, life)] == [Status.CANCELLED] * 2
    for each in kids(place, life):
        assert payload_json(each.log[-1])["parentRunId"] == life.run.run_id
        assert place.tell_parent(each) == []


def test_a_time_limit_of_the_node_cancels_its_children() -> None:
    place = world(worker("a"), worker("b"))
    body = [
        node("sup", SUPERVISOR, config={"plan": [hand("a", "b")]}),
        node("dis", DISPATCH, config={"fanOutPolicy": "parallel"}, settings={"timeoutMs": 50}),
        node("r"),
    ]
    flow = compiled(
        definition(body, [edge("sup", "dis"), edge("dis", "sup"), edge("dis", "r", "any_failed")])
    )
    life = place.start(flow)
    place.pass_time(60)
    place.take(life, TimePassed(place.at))
    assert life.run.nodes["dis"].error.code == "node_timeout"
    assert [each.run.status for each in kids(place, life)] == [Status.CANCELLED] * 2
    assert life.run.children == dict.fromkeys(life.run.children, "cancelled")
    assert life.run.status is Status.COMPLETED
    check_chains(life)


def test_a_child_that_waits_shows_in_its_parent() -> None:
    place = world(worker("a", type_id="core.approvalGate"))
    life = place.start(planned(hand("a"), DONE))
    child = place.child_of(life)
    place.mirror(child)
    assert life.run.status is Status.WAITING_APPROVAL
    place.answer(child, "w", {"action": "accept"})
    place.tell_parent(child)
    assert life.run.status is Status.COMPLETED and not life.run.mirrored


def test_a_wave_waits_when_everyone_left_of_it_waits() -> None:
    place = world(worker("ask", type_id="core.approvalGate"), worker("b"))
    config = {"fanOutPolicy": "parallel"}
    life = place.start(planned(hand("ask", "b", "ask"), DONE, dispatch=config))
    first, b, second = kids(place, life)
    place.mirror(first)
    assert life.run.status is Status.RUNNING and place.mirror(first) == []
    place.mirror(second)
    assert life.run.status is Status.RUNNING, "b is still at work"
    end(place, b)
    assert life.run.status is Status.WAITING_APPROVAL
    shown = [
        payload_json(e)
        for e in life.told("node.dispatched")
        if payload_json(e)["childStatus"] != "running"
    ]
    assert [(each["childRunId"], each["childStatus"]) for each in shown] == [
        (first.run.run_id, "waiting-approval"), (second.run.run_id, "waiting-approval")
    ]  # fmt: skip
    place.answer(first, "w", {"action": "accept"})
    place.tell_parent(first)
    assert life.run.status is Status.WAITING_APPROVAL, "the other one still waits"
    place.answer(second, "w", {"action": "accept"})
    place.tell_parent(second)
    assert life.run.status is Status.COMPLETED and not life.run.mirrored


def test_a_wave_goes_on_with_the_first_that_goes_on() -> None:
    gates = node("w", "core.approvalGate"), node("x", "acme.work")
    place = world(compiled(chain(*gates, id="ask")), worker("c"))
    config = {"fanOutPolicy": "parallel", "maxConcurrency": 2}
    life = place.start(planned(hand("ask", "ask", "c"), DONE, dispatch=config))
    first, second = kids(place, life)
    for each in (first, second):
        place.mirror(each)
    assert life.run.status is Status.WAITING_APPROVAL, "who is queued waits behind them"
    place.answer(second, "w", {"action": "accept"})
    place.mirror(second)
    assert life.run.status is Status.RUNNING
    place.finish(second, "x")
    place.tell_parent(second)
    assert len(life.run.children) == 3 and life.run.status is Status.RUNNING


def test_a_decision_that_comes_late_changes_nothing() -> None:
    place, life = wave("a", "b")
    stale = FinishNode("sup", 1, Decided(agent_id="supervisor-sup", decision=DONE), place.at)
    assert place.take(life, stale) == []


def test_a_rejected_decision_does_not_close_the_way_out_of_the_loop() -> None:
    last = {"more": (node("last"),), "edges": (edge("dis", "last"),)}
    place = world(fast("a"))
    life = place.start(planned(hand("a", confidence=0.3), DONE, **last))
    place.answer(life, "dis", {"action": "reject"})
    assert life.run.nodes["last"].status == "completed"
    assert life.run.status is Status.COMPLETED


def test_who_answers_an_earlier_question_late_learns_so() -> None:
    place = world()
    life = place.start(
        planned(
            {"kind": "escalate", "reason": "Really?"},
            DONE,
            more=(node("w", "acme.work"),),
            edges=(edge("dis", "w"),),
        )
    )
    place.answer(life, "dis", {"action": "accept"})
    refusal = place.refused(life, place.answering("dis", {"action": "reject"}))
    assert refusal is not None and refusal.status == 409
