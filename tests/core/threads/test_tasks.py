"""Tasks and their results: asked of one, open until answered, done once."""

from typing import Any

import pytest

from moot.core.errors import BadRequest, Forbidden, MootError, ParticipantNotInvited
from moot.core.errors.threads import TaskNotOpen, TooManyTasks
from moot.core.state.council_policy import THREAD_POLICY
from moot.engine.workflows.built_in import TALK
from tests.support.core.simulator import CHAIR
from tests.support.core.threads import (
    check,
    decisions,
    floor_of,
    named,
    say,
    speak,
    talk_of,
    thread,
    told,
    woken,
)  # fmt: skip

TASK, RESULT = {"kind": "task"}, {"kind": "result"}
LARGE = {**THREAD_POLICY, "mode": "large"}


def task(world: Any, life: Any, to: str, content: Any = "Do it.", who: str = "user") -> int:
    """The place of a new task."""
    events = say(world, life, content, who, to=to, meta=TASK)
    return next(e.sequence for e in events if e.type == "conversation.exchanged")


def open_tasks(life: Any) -> dict[int, str]:
    return {place: task.to for place, task in talk_of(life).tasks.items()}


def refused(world: Any, life: Any, who: str, **turn: Any) -> MootError:
    name = who if who.startswith("user") else f"host:{who}"
    said = {"role": "user", "from": name} if who.startswith("user") else {
        "role": "agent", "speakerId": name
    }  # fmt: skip
    refusal = world.refused(life, world.answering(TALK, {"content": "x", **said, **turn}, CHAIR))
    assert refusal is not None
    return refusal


def test_a_task_wakes_its_addressee_whose_turn_is_the_result() -> None:
    world, life = thread("ada", "bo", policy=LARGE)
    place = task(world, life, "ada")
    assert woken(life) == ["ada"] and open_tasks(life) == {place: "host:ada"}
    speak(world, life, "Done.")
    assert open_tasks(life) == {} and woken(life) == []
    result = told(life)[-1]
    assert (result["type"], result["from"]) == ("result", "ada")
    assert result["meta"]["reply_to"] == f"{life.run.run_id}.{place}"
    check(life)


def test_a_task_stays_open_until_a_result_names_it() -> None:
    world, life = thread(outside=("rex", "codex"), policy=LARGE)
    place = task(world, life, "rex")
    assert named(decisions(life)[-1], "called") == {"rex": "addressed by user"}
    say(world, life, "I am on it.", "rex")
    assert open_tasks(life) == {place: "host:rex"}
    say(world, life, {"patch": "…"}, "rex", meta={**RESULT, "replyTo": place})
    assert open_tasks(life) == {}
    refusal = refused(world, life, "rex", meta={**RESULT, "replyTo": place})
    assert isinstance(refusal, TaskNotOpen), "it is done once"
    check(life)


@pytest.mark.parametrize("meta", [RESULT, {**RESULT, "replyTo": 1}, {**RESULT, "replyTo": "x"}])
def test_a_result_of_nothing_is_refused(meta: dict[str, Any]) -> None:
    world, life = thread("ada")
    task(world, life, "ada")
    assert isinstance(refused(world, life, "ada", meta=meta), TaskNotOpen)


def test_a_result_comes_from_who_was_asked_or_from_a_person() -> None:
    world, life = thread(outside=("rex", "codex"), policy=LARGE)
    place = task(world, life, "rex")
    meta = {**RESULT, "replyTo": place}
    assert isinstance(refused(world, life, "codex", meta=meta), Forbidden)
    say(world, life, "Never mind.", "user:eve", meta=meta)
    assert open_tasks(life) == {}


def test_a_task_is_for_one_who_takes_part() -> None:
    profiles = {"ada": {"role": "planner"}, "bo": {"role": "builder"}, "cy": {"role": "builder"}}
    world, life = thread("ada", "bo", "cy", policy=LARGE, profiles=profiles)
    assert isinstance(refused(world, life, "user", meta=TASK), BadRequest)
    assert isinstance(refused(world, life, "user", meta=TASK, to="nobody"), ParticipantNotInvited)
    several = refused(world, life, "user", meta=TASK, to="builder")
    assert several.details["could"] == ["host:bo", "host:cy"]
    place = task(world, life, "planner")
    assert open_tasks(life) == {place: "host:ada"} and woken(life) == ["ada"]
    person = task(world, life, "user:eve", who="ada")
    assert open_tasks(life)[person] == "user:eve" and "user:eve" in talk_of(life).asked
    check(life)


def test_open_tasks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.core.state.tasks.MOST_TASKS", 3)
    world, life = thread(outside=("rex",), policy=LARGE)
    for _ in range(3):
        task(world, life, "rex")
    assert isinstance(refused(world, life, "user", meta=TASK, to="rex"), TooManyTasks)


def test_a_task_that_was_settled_meanwhile_is_answered_by_a_plain_turn() -> None:
    world, life = thread("ada", policy=LARGE)
    place = task(world, life, "ada")
    say(world, life, "Never mind.", "user:eve", meta={**RESULT, "replyTo": place})
    speak(world, life, "Done!")
    assert [each["type"] for each in told(life)][-1] != "result" and not floor_of(life).wakes
    check(life)
