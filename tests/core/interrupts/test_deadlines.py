"""A person is asked while a node has a time limit: the time is not the node's, the answer stays."""

from typing import Any

from moot.core.commands import PauseRun, ResumeRun, TimePassed
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from tests.support.core.simulator import Life, World, compiled, definition, edge, node
from tests.support.core.supervisors import DONE, hand, kids, world
from tests.support.core.supervisors import worker as slow

ESCALATED = "core.workflowChain.confidence-escalated"
LIMITS = {"timeoutMs": 1000, "maxRetries": 1, "retryDelayMs": 0}
ACCEPT = {"action": "accept"}


def weak(*more: dict[str, Any]) -> tuple[World, Life]:
    """A supervisor that is not sure, and a dispatch node that has one second."""
    plan = [hand("slow", confidence=0.2), DONE]
    nodes = [
        node("sup", SUPERVISOR, config={"plan": plan}),
        node("dis", DISPATCH, settings=LIMITS),
        *more,
    ]
    flow = compiled(definition(nodes, [edge("sup", "dis"), edge("dis", "sup")], id="top"))
    place = world(slow("slow"))
    return place, place.start(flow)


def later(place: World, life: Life, ms: int) -> None:
    place.pass_time(ms)
    place.take(life, TimePassed(place.at))


def test_waiting_for_a_person_does_not_count_against_a_time_limit() -> None:
    place, life = weak()
    later(place, life, 5000)
    place.answer(life, "dis", ACCEPT)
    later(place, life, 900)
    assert not life.told("node.retried") and life.run.status is Status.RUNNING
    later(place, life, 100)
    assert len(life.told("node.retried")) == 1


def test_a_pause_within_a_wait_counts_once() -> None:
    place, life = weak(node("busy", "acme.work"))
    place.pass_time(1000)
    place.take(life, PauseRun(place.at))
    place.finish(life, "busy")
    assert life.run.status is Status.PAUSED
    place.pass_time(1000)
    place.take(life, ResumeRun(place.at))
    place.pass_time(1000)
    place.answer(life, "dis", ACCEPT)
    later(place, life, 999)
    assert not life.told("node.retried")
    later(place, life, 1)
    assert len(life.told("node.retried")) == 1


def test_a_decision_that_was_accepted_is_not_asked_about_again_by_the_next_attempt() -> None:
    place, life = weak()
    place.answer(life, "dis", ACCEPT)
    later(place, life, 1000)
    later(place, life, 1)
    assert life.run.nodes["dis"].attempt == 2 and life.run.status is Status.RUNNING
    assert len(life.told(ESCALATED)) == 1 and len(kids(place, life)) == 2
    place.finish(kids(place, life)[-1], "w")
    place.tell_parent(kids(place, life)[-1])
    assert life.run.status is Status.COMPLETED
