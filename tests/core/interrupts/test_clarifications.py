"""Clarifications: both spellings of answers, every question, each with its schema (8.5)."""

from typing import Any

import pytest

from moot.core.errors import BadRequest
from moot.core.state.status import Status
from tests.support.core.gates import caused_by, clarification, short
from tests.support.core.simulator import ADA, compiled, definition, node
from tests.support.event_payloads import payload_json

COLOUR = {"id": "colour", "question": "Which colour?"}
COUNT = {"id": "count", "question": "How many?", "schema": {"type": "integer", "minimum": 1}}


def test_asking_is_recorded_in_the_protocols_order() -> None:
    _, life = clarification(COLOUR, COUNT)
    assert life.types[2:] == ["interrupt.requested", "node.suspended", "clarification.requested"]
    said = payload_json(life.log[-1])
    assert said["questions"] == [COLOUR, COUNT]
    assert said["interruptId"] == payload_json(life.log[-2])["interruptId"]
    assert life.run.status is Status.WAITING_INPUT


@pytest.mark.parametrize(
    "answers",
    [
        {"colour": "blue", "count": 2},
        [{"id": "colour", "answer": "blue"}, {"id": "count", "answer": 2}],
    ],
)
def test_both_spellings_are_taken_and_recorded_as_one(answers: Any) -> None:
    world, life = clarification(COLOUR, COUNT)
    found = world.answer(life, "ask", {"answers": answers}, ADA)
    assert short(found) == [
        "interrupt.resolved", "clarification.resolved", "node.resumed", "node.completed",
        "run.completed",
    ]  # fmt: skip
    resolved, said = found[:2]
    assert caused_by(life, resolved).type == "interrupt.requested"
    assert payload_json(said) == {
        "nodeId": "ask", "answers": {"colour": "blue", "count": 2}, "answeredBy": "key_ada"
    }  # fmt: skip
    assert payload_json(resolved)["resumeValue"] == {"answers": {"colour": "blue", "count": 2}}
    outputs = life.run.nodes["ask"].outputs
    assert outputs is not None and (outputs["colour"], outputs["count"]) == ("blue", 2)


def test_a_null_is_an_answer() -> None:
    world, life = clarification(COLOUR)
    world.answer(life, "ask", {"answers": {"colour": None}})
    assert life.run.status is Status.COMPLETED


@pytest.mark.parametrize(
    "value",
    [
        None, [], "blue", {}, {"answers": None}, {"answers": "blue"}, {"answers": {}},
        {"answers": {"colour": "blue"}}, {"answers": []}, {"answers": ["blue"]},
        {"answers": [{"id": "colour"}, {"id": "count", "answer": 2}]},
        {"answers": [{"id": ["colour"], "answer": 1}, {"id": "count", "answer": 2}]},
        {"answers": {"colour": "blue", "count": 0}}, {"answers": {"colour": "blue", "count": "2"}},
    ],
)  # fmt: skip
def test_what_does_not_answer_every_question_is_refused(value: Any) -> None:
    world, life = clarification(COLOUR, COUNT)
    assert isinstance(world.refused(life, world.answering("ask", value)), BadRequest)
    assert life.run.status is Status.WAITING_INPUT


def test_a_refusal_names_what_is_missing() -> None:
    world, life = clarification(COLOUR, COUNT)
    refusal = world.refused(life, world.answering("ask", {"answers": {"x": 1}}))
    assert isinstance(refusal, BadRequest)
    assert refusal.details["missing"] == ["colour", "count"]


@pytest.mark.parametrize(
    "questions",
    [
        [], "what?", [{}], [{"id": "a"}], [{"question": "?"}], [COLOUR, COLOUR],
        [{"id": ["a"], "question": "?"}], [{"id": 1, "question": "?"}],
        [{**COLOUR, "schema": {"type": "nonsense"}}], [{**COLOUR, "schema": "string"}],
    ],
)  # fmt: skip
def test_questions_nobody_could_answer_are_refused_with_the_definition(questions: Any) -> None:
    gate = node("ask", "core.clarificationGate", config={"questions": questions})
    with pytest.raises(BadRequest):
        compiled(definition([gate]))
