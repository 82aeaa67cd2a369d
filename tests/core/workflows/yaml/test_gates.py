"""Steps that wait for somebody, from the file to the end of the run."""

from typing import Any

import pytest

from moot.core.state.participants import roster_names
from moot.core.state.status import Status
from moot.core.workflows.yaml import FlowFileError, compile_yaml
from tests.support.core.flow_player import flow, nodes
from tests.support.core.simulator import Life, World, compiled

VARIABLES = "variables:\n  who: {type: str, default: Ada}\n"


def started(steps: str) -> tuple[World, Life]:
    world = World()
    return world, world.start(compiled(compile_yaml(flow(steps, VARIABLES), "flow.yaml")))


def asked(life: Life, name: str) -> dict[str, Any]:
    return life.run.interrupts[name].data


def test_an_approval_says_what_it_is_about_and_who_may_give_it() -> None:
    world, life = started("""
  - id: ok
    approve: "Publish what {who} wrote?"
    by: ["user:eve", "user:bob"]
    need: 2
    policy: majority
    show: {by: "{who}"}
    timeout: 2h
""")
    data = asked(life, "ok")
    assert data["title"] == "Publish what Ada wrote?"
    assert data["artifactData"] == {"by": "Ada"}
    assert (data["approversList"], data["requiredApprovals"]) == (["user:eve", "user:bob"], 2)
    assert data["rejectionPolicy"] == "majority"
    assert life.run.interrupts["ok"].due == world.at + 7_200_000


@pytest.mark.parametrize(("action", "result"), [("accept", "sent"), ("reject", "kept")])
def test_a_no_is_taken_by_on_error(action: str, result: str) -> None:
    world, life = started("""
  - id: ok
    approve: Send it?
    on_error:
      - set: {result: kept}
  - when: "!has(variables.result)"
    then:
      - set: {result: sent}
""")
    world.answer(life, "ok", {"action": action})
    assert life.run.status is Status.COMPLETED
    assert life.run.variables["result"] == result


def test_a_no_that_nothing_takes_fails_the_run() -> None:
    world, life = started("  - {id: ok, approve: Send it?}\n  - set: {result: sent}\n")
    world.answer(life, "ok", {"action": "reject"})
    assert life.run.status is Status.FAILED and "result" not in life.run.variables


def test_one_question_has_one_answer() -> None:
    world, life = started('  - {id: q, ask: Which colour?}\n  - set: {said: "in {q.answer}"}\n')
    world.answer(life, "q", {"answers": {"answer": "blue"}})
    assert life.run.variables["said"] == "in blue"


def test_several_questions_are_answered_by_name() -> None:
    steps = "  - {id: q, ask: {colour: Which?, size: How big?}}\n"
    world, life = started(steps + '  - set: {said: "{q.colour} {q.size}"}\n')
    assert [each["id"] for each in asked(life, "q")["questions"]] == ["colour", "size"]
    world.answer(life, "q", {"answers": {"colour": "blue", "size": "XL"}})
    assert life.run.variables["said"] == "blue XL"


def test_a_discussion_is_among_those_who_are_named_and_has_an_outcome() -> None:
    world, life = started("""
  - id: talk
    discuss: "Do we hire {who}?"
    with: [cfo, "host:cto"]
    turns: 1
  - set: {said: "{talk.outcome}"}
""")
    talk = life.run.conversations["talk"]
    assert roster_names(talk) == ["host:cfo", "host:cto"]
    turn = {"role": "agent", "speakerId": "host:cto", "content": "Yes."}
    world.answer(life, "talk", turn)
    assert life.run.variables["said"] == "Yes."


def test_what_runs_out_of_time_may_go_on_with_nothing() -> None:
    found = nodes(flow("  - {id: q, ask: Well?, timeout: 5m, on_timeout: complete}\n"))["q"]
    assert found["config"]["timeoutMs"] == 300_000
    assert found["config"]["onTimeout"] == "complete"
    assert "settings" not in found


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("  - {approve: x, policy: majorty}\n", "majority"),
        ("  - {approve: x, by: []}\n", "at least one name"),
        ("  - {approve: x, need: 0}\n", "need"),
        ("  - {ask: {}}\n", "at least one question"),
        ("  - {ask: {a: 1}}\n", "ask.a"),
        ("  - {discuss: x, with: cfo}\n", "with"),
        ("  - {discuss: x, turns: 0}\n", "turns"),
        ("  - {ask: x, on_timeout: never}\n", "never"),
        ("  - {ask: x, timeout: soon}\n", "soon"),
        ("  - {aprove: x}\n", "approve"),
        ('  - {approve: "{nobody}"}\n', "nobody"),
    ],
)
def test_a_mistake_is_named_with_its_line(steps: str, words: str) -> None:
    with pytest.raises(FlowFileError, match=r"flow\.yaml:5") as found:
        compile_yaml(flow(steps, VARIABLES.rstrip()), "flow.yaml")
    assert words in str(found.value)
