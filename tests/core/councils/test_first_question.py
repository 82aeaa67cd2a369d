"""A question that names somebody is put to them, as everything else that a person says."""

import pytest

from tests.core.councils.test_next_speaker import council, end, speakers, woken
from tests.core.verify.test_walk import verified
from tests.support.core.replays import check_same, retold
from tests.support.event_payloads import payload_json

BO = [("host:bo", "speak")]


@pytest.mark.parametrize("mode", ["declared", "addressed", "small", "large", "auto"])
def test_who_is_named_in_the_question_answers_it_and_nobody_else_does(mode: str) -> None:
    world, life = council({"mode": mode}, prompt="@Bo, do we ship? `@cy` is away.")
    assert woken(life) == BO
    [given] = [payload_json(event)["wakes"] for event in life.told("moot.participation.decided")]
    assert [wake["reason"] for wake in given] == ["addressed by user"]
    end(world, life, content="We do.")
    assert (woken(life), speakers(life)) == ([], ["bo"])
    assert verified(life) is None
    check_same(life, retold(life))


def test_in_rounds_everybody_has_a_turn_whoever_is_named_in_the_question() -> None:
    _, life = council({"mode": "round-robin"}, prompt="@bo, do we ship?")
    assert woken(life) == [("host:ada", "speak")]


def test_a_question_that_names_nobody_who_is_there_is_for_all() -> None:
    _, life = council({"mode": "declared"}, prompt="Does @rex know whether we ship?")
    assert woken(life) == [("host:ada", "speak")]
