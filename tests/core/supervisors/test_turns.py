"""Turns of a supervisor: their number, what each is decided from, what a person gives back."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.errors import BadRequest
from moot.core.state.run import fold
from moot.core.state.status import Status
from moot.core.workflows.turn_inputs import (
    MAX_CONTENT,
    WINDOW,
    SupervisorTurn,
    build_turn_inputs,
    fence_data,
    supervisor_turn,
)
from tests.support.core.random_flows import examples
from tests.support.core.simulator import ADA, CHAIR, Life, World
from tests.support.core.supervisors import (
    DONE,
    ask,
    fast,
    hand,
    kids,
    planned,
    settle,
    variable,
    worker,
    world,
)
from tests.support.event_payloads import payload_json

WEAK = hand("a", confidence=0.3)
DECIDED = "runOrchestrator.decided"


def iterations(life: Life) -> list[int]:
    return [payload_json(event)["iteration"] for event in life.told(DECIDED)]


def before(life: Life, number: int) -> SupervisorTurn:
    """The turn of the supervisor's nth start, from the log up to it alone."""
    start = [e for e in life.told("node.started") if e.node_id == "sup"][number]
    return supervisor_turn(fold(life.run.run_id, life.log[: start.sequence + 1]), "sup")


# -- their number --------------------------------------------------------------------------------

#: what a supervisor decides, and what a person makes of it where it is asked
STEPS = {
    "work": (hand("a"), []),
    "fail": (hand("bad"), []),
    "ask": (ask(), [{"content": "yes"}]),
    "escalate": ({"kind": "escalate", "reason": "Really?"}, [{"action": "accept"}]),
    "accept": (WEAK, [{"action": "accept"}]),
    "reject": (WEAK, [{"action": "reject", "comment": "no"}]),
    "edit": (WEAK, [{"action": "edit-accept", "editedArtifactData": hand("b")}]),
    "edit to ask": (WEAK, [{"action": "edit-accept", "editedArtifactData": ask()},
                           {"content": "yes"}]),
}  # fmt: skip


def led(steps: list[str]) -> tuple[World, Life]:
    """A run whose supervisor goes these steps, answered on the way."""
    place = world(fast("a"), fast("b"), worker("bad", type_id="core.fail"))
    life = place.start(planned(*(STEPS[step][0] for step in steps), DONE))
    for step in steps:
        for value in STEPS[step][1]:
            settle(place)
            place.answer(life, "dis", value, ADA if "content" in value else CHAIR)
        settle(place)
    return place, life


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=7))
@examples(120)
def test_turns_are_counted_from_one_whoever_was_asked_on_the_way(steps: list[str]) -> None:
    _place, life = led(steps)
    assert life.run.status is Status.COMPLETED
    expected: list[int] = []
    turn = 1
    for step in [*steps, "end"]:
        expected += [turn] * (2 if step.startswith("edit") else 1)
        turn += step != "reject"
    assert iterations(life) == expected
    assert sorted(set(expected)) == list(range(1, max(expected) + 1))
    assert life.run.orchestrator is not None
    assert life.run.orchestrator.own == len(steps) + 1, "each step of the plan was taken once"
    assert fold(life.run.run_id, life.log) == life.run


def test_a_decision_given_back_does_not_count_against_the_cap() -> None:
    place = world(fast("a"))
    life = place.start(planned(WEAK, WEAK, WEAK, DONE), configurable={"maxLoopIterations": 1})
    for _ in range(3):
        place.answer(life, "dis", {"action": "reject"})
    assert life.run.status is Status.COMPLETED and iterations(life) == [1] * 4


def test_giving_back_for_ever_ends_with_the_nodes_a_run_may_start() -> None:
    rules = [{"when": "true", "decision": WEAK}]
    place = world(fast("a"))
    life = place.start(planned(supervisor={"rules": rules}), configurable={"recursionLimit": 9})
    while life.run.interrupts:
        place.answer(life, "dis", {"action": "reject"})
    assert payload_json(life.told("cap.breached")[0])["kind"] == "node-executions"
    assert life.run.status is Status.FAILED and set(iterations(life)) == {1}


@pytest.mark.parametrize(
    "bad", [None, {}, "b", {"kind": "dance"}, {"kind": "next-worker", "nextWorkerIds": []},
            {"kind": "terminate", "x": 1}, hand("b", confidence=2)]
)  # fmt: skip
def test_an_edit_that_is_no_decision_is_refused_and_changes_nothing(bad: Any) -> None:
    place = world(fast("a"), fast("b"))
    weak = place.start(planned(WEAK, DONE))
    unsure = {"mockPendingDecision": DONE, "mockConfidence": 0.1}
    held = place.start(planned(supervisor=unsure))
    value = {"action": "edit-accept", "editedArtifactData": bad}
    for life, node_id in ((weak, "dis"), (held, "sup")):
        refusal = place.refused(life, place.answering(node_id, value))
        assert isinstance(refusal, BadRequest) and life.run.status is Status.WAITING_APPROVAL
        place.answer(life, node_id, {"action": "edit-accept", "editedArtifactData": DONE})
        assert life.run.status is Status.COMPLETED


# -- what a turn is decided from -----------------------------------------------------------------


def test_a_turn_knows_how_the_workers_of_the_last_one_ended() -> None:
    place = world(fast("a"), worker("bad", type_id="core.fail"))
    life = place.start(planned(hand("a", "bad"), hand("a"), DONE))
    settle(place)
    a, bad, again = kids(place, life)
    assert before(life, 0).workers == []
    assert before(life, 1).workers == [
        {"workerId": "a", "childRunId": a.run.run_id, "status": "completed"},
        {"workerId": "bad", "childRunId": bad.run.run_id, "status": "failed",
         "error": bad.run.error.code},
    ]  # fmt: skip
    assert [each["childRunId"] for each in before(life, 2).workers] == [again.run.run_id]


def test_rules_see_workers_and_answers() -> None:
    rules = [
        {"when": "turn == 1", "decision": hand("bad")},
        {"when": "workers.exists(w, w.status == 'failed')", "decision": ask("Go on?")},
        {"when": "answer == 'yes'", "decision": hand("a")},
    ]
    place = world(fast("a"), worker("bad", type_id="core.fail"))
    life = place.start(planned(supervisor={"rules": rules}))
    settle(place)
    place.answer(life, "dis", {"content": "yes"}, ADA)
    settle(place)
    assert life.run.status is Status.COMPLETED
    kinds = [payload_json(event)["decision"]["kind"] for event in life.told(DECIDED)]
    assert kinds == ["next-worker", "ask-user", "next-worker", "terminate"]


def test_who_takes_a_turn_again_knows_what_was_said_and_remembers_no_more_than_before() -> None:
    place = world(fast("a"))
    life = place.start(planned(hand("a"), WEAK, DONE))
    settle(place)
    place.answer(life, "dis", {"action": "reject", "comment": "not this one"})
    first, again = before(life, 1), before(life, 2)
    assert (first.iteration, again.iteration) == (2, 2)
    assert first.memory_boundary == again.memory_boundary == first.until < again.until
    assert again.answer == [{"action": "reject", "comment": "not this one"}]
    told = build_turn_inputs(again, life.log)
    assert told.transcript[-1].type == "node.completed" and "not this one" in str(told.transcript)


def test_a_held_decision_is_ratified_within_its_turn() -> None:
    place = world()
    life = place.start(planned(supervisor={"mockPendingDecision": DONE, "mockConfidence": 0.1}))
    waiting = supervisor_turn(life.run, "sup")
    place.answer(life, "sup", {"action": "accept"})
    assert waiting == before(life, 0) and iterations(life) == [1]


@given(st.integers(1, 60))
@examples(20)
def test_a_turn_looks_back_on_so_many_events_and_no_more(rounds: int) -> None:
    place = world(fast("a", variable("out", "x")))
    life = place.start(planned(*[hand("a")] * rounds, DONE))
    settle(place)
    for number in (0, rounds // 2, rounds):
        turn = before(life, number)
        seen = [entry.sequence for entry in build_turn_inputs(turn, life.log).transcript]
        assert turn.iteration == number + 1 and len(seen) <= WINDOW
        assert seen == list(range(max(0, turn.until - WINDOW), turn.until))


@given(st.text(max_size=6000) | st.sampled_from(["</data>", "<data>", "&lt;/data>", "…</data>"]))
@examples(200)
def test_nothing_that_was_said_ends_its_fence(text: str) -> None:
    found = fence_data({"said": text, text[:50]: 1})
    assert found.startswith("<data>") and found.endswith("</data>")
    assert not {"<", ">"} & set(found[6:-7]) and len(found) <= MAX_CONTENT + 14
