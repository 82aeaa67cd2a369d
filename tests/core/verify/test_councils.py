"""Led councils in which anything happened: their logs hold, and are said again the same."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from moot.core.commands import PauseRun, ResumeRun
from moot.core.events import Event, with_fields
from moot.core.verify.walk import verify
from tests.core.councils.test_next_speaker import end, floor_of
from tests.core.verify.test_walk import verified
from tests.support.core.random_councils import deeds, lived, stories
from tests.support.core.random_flows import examples
from tests.support.core.replays import check_same, retold
from tests.support.core.simulator import TENANT, Life, World, compiled, definition, node
from tests.support.event_payloads import payload_json


def said(log: list[Event], type_: str) -> list[dict[str, Any]]:
    return [payload_json(event) for event in log if event.type == type_]


@examples(300)
@given(stories, deeds)
def test_the_log_of_a_council_is_found_to_be_one(story: Any, more: list[str]) -> None:
    _, life = lived(story, more)
    assert verified(life) is None, life.order()


@examples(150)
@given(stories, deeds, st.data())
def test_a_replay_of_a_council_decides_the_same_and_is_found_to_be_one(
    story: Any, more: list[str], data: st.DataObject
) -> None:
    _, life = lived(story, more)
    found = retold(life, data.draw(st.integers(0, len(life.log))))
    check_same(life, found)
    for type_ in ("moot.participation.decided", "moot.participation.stopped"):
        assert said(found.log, type_) == said(life.log, type_)
    assert verify(life.flow, TENANT, found.run.run_id, found.log) is None, life.order()


def test_names_stay_as_they_were_given_though_a_replay_leaves_out_pauses() -> None:
    """A wake is named after its place, which is another one in the replay."""
    config = {
        "prompt": "Ship?",
        "participants": [{"agentId": "host:ada"}, {"agentId": "host:bo"}],
        "participation": {"mode": "round-robin", "rounds": 1},
    }
    gate = node("convo", "core.conversationGate", config=config)
    world = World()
    life = world.start(compiled(definition([gate, node("work", "acme.work")])))
    world.take(life, PauseRun(world.at, "immediate"))
    world.take(life, ResumeRun(world.at))
    end(world, life, content="First.")
    world.control(life, {"mute": ["host:bo"]})
    end(world, life, content="Too late?")
    [held] = said(life.log, "moot.turn.held")
    world.control(life, {"unmute": ["host:bo"], "admit": held["held"]})
    found = retold(life)
    assert len(found.log) < len(life.log) + 1 and not found.told("run.paused")
    for type_ in ("moot.participation.decided", "moot.turn.held", "moot.turn.admitted"):
        assert said(found.log, type_) == said(life.log, type_)
    again, then = found.run.conversations["convo"].floor, floor_of(life)
    assert again is not None and (again.held, again.had) == ({}, then.had)
    assert verified(life) is None
    assert verify(life.flow, TENANT, found.run.run_id, found.log) is None


@examples(100)
@given(stories, deeds, st.data())
def test_a_decision_that_somebody_changed_is_found(
    story: Any, more: list[str], data: st.DataObject
) -> None:
    _, life = lived(story, more)
    places = [event for event in life.log if event.type.startswith("moot.participation.")]
    event = data.draw(st.sampled_from(places))
    key = data.draw(st.sampled_from(sorted(payload_json(event))))
    if key in ("usage", "answer", "error"):
        return  # what a member said is a fact
    changed = {**payload_json(event), key: ["something else"]}
    log = list(life.log)
    log[event.sequence] = with_fields(event, changed)
    fake = Life(life.run.run_id, life.flow)
    fake.log = log
    assert verified(fake) is not None, event
