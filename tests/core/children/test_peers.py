"""Children on other hosts in the pure core: any answers in any order keep what must hold."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.children.decide import ChildWaits
from moot.core.children.handoff import TRANSITIONS
from moot.core.commands import (
    CancelRun,
    PauseRun,
    PeerFound,
    PeerRefused,
    PeerStopped,
    ResumeRun,
    TimePassed,
)
from moot.core.payloads.runs import RunFork
from moot.core.runs.child_outputs import ChildEnded
from moot.core.state.remote_children import CREATE, FOLLOW, MOST_WAITS, STOP
from moot.core.state.status import Status
from moot.core.workflows.node_types import NodeError
from tests.support.core.random_flows import examples
from tests.support.core.simulator import Life, World, chain, compiled, node
from tests.support.core.supervisors import CHAIN, DONE, fast, hand, planned, settle, variable, world
from tests.support.event_payloads import payload_json

OUT = {"outputMapping": {"result": "out"}}
RESULT = variable("result", "before")
BROKEN = NodeError(code="peer_unreachable", message="Nobody answers.")


def supervised(*workers: str, **config: Any) -> tuple[World, Life]:
    place = world(fast("here", variable("out", "of here")))
    flow = planned(hand(*workers), DONE, dispatch={**OUT, **config}, variables=[RESULT])
    return place, place.start(flow)


def single(**given: Any) -> tuple[World, Life]:
    place = world()
    step = node("sub", "core.subWorkflow", config={"workflowId": "lab/w", **OUT}, **given)
    return place, place.start(compiled(chain(step, id="top", variables=[RESULT])))


def owed(life: Life, what: str) -> list[str]:
    return [name for name, step in World.owed(None, life).abroad if step == what]  # type: ignore[arg-type]


def found(place: World, life: Life, name: str, child: str) -> list[Any]:
    command = PeerFound(ask_id=name, child_run=child, host_id="the-lab", at=place.at)
    return place.take(life, command)


def refused(place: World, life: Life, name: str, unsure: bool = False) -> list[Any]:
    command = PeerRefused(ask_id=name, error=BROKEN, unsure=unsure, at=place.at)
    return place.take(life, command)


def over(place: World, life: Life, child: str, status: str, **given: Any) -> list[Any]:
    [entry] = [each for each in life.run.abroad.values() if each.child == child]
    ended = ChildEnded(
        node_id=entry.node_id, child_run=child, status=status, at=place.at,
        variables={"out": f"of {child}"}, cause=f"{child}.9", cause_host="the-lab", **given,
    )  # fmt: skip
    return place.take(life, ended)


def phases(life: Life) -> list[str]:
    return [payload_json(event)["phase"] for event in life.told(CHAIN)]


def test_a_child_is_asked_for_then_followed_then_harvested() -> None:
    place, life = supervised("lab/w")
    [name] = owed(life, CREATE)
    assert phases(life) == ["dispatch.began"] and not life.run.children
    found(place, life, name, "far")
    assert owed(life, FOLLOW) == [name] and not owed(life, CREATE)
    assert found(place, life, name, "other") == []
    over(place, life, "far", "completed")
    assert life.run.variables == {"result": "of far"} and life.run.status is Status.COMPLETED
    assert life.run.abroad == {} and life.run.children == {"far": "completed"}


def test_nothing_is_sent_that_was_not_written_down() -> None:
    _, life = supervised("lab/w")
    [event] = life.told("moot.peer.asked")
    assert payload_json(event)["peer"] == "lab" and payload_json(event)["workflowId"] == "w"
    again = World({}).start(life.flow)
    assert [payload_json(e)["askId"] for e in again.told("moot.peer.asked")] == [
        payload_json(event)["askId"]
    ]


def test_a_name_that_is_taken_is_refused() -> None:
    place, life = supervised("lab/w", "lab/w", fanOutPolicy="parallel")
    first, second = owed(life, CREATE)
    found(place, life, first, "far")
    found(place, life, second, "far")
    assert life.run.error is not None and life.run.error.code == "peer_answer_invalid"
    assert owed(life, STOP) == [first]


def test_a_child_that_may_have_begun_is_stopped_after_a_refusal() -> None:
    place, life = supervised("lab/w")
    refused(place, life, owed(life, CREATE)[0], unsure=True)
    assert life.run.status is Status.FAILED and len(owed(life, STOP)) == 1
    place, life = supervised("lab/w")
    refused(place, life, owed(life, CREATE)[0])
    assert life.run.status is Status.FAILED and not life.run.abroad


def test_a_retry_is_asked_under_another_name() -> None:
    place, life = single(settings={"maxRetries": 1, "retryDelayMs": 0})
    [first] = owed(life, CREATE)
    refused(place, life, first, unsure=True)
    place.pass_time(1)
    place.take(life, TimePassed(place.at))
    [second] = owed(life, CREATE)
    assert second != first and owed(life, STOP) == [first]
    place.take(life, PeerStopped(ask_id=first, outcome="stopped"))
    assert owed(life, STOP) == []
    found(place, life, second, "far")
    over(place, life, "far", "completed")
    assert life.run.status is Status.COMPLETED and life.run.children == {"far": "completed"}


def test_a_child_that_may_live_on_is_left_alone() -> None:
    place = world()
    config = {"workflowId": "lab/w", "propagateCancellation": False}
    life = place.start(compiled(chain(node("sub", "core.subWorkflow", config=config), id="top")))
    found(place, life, owed(life, CREATE)[0], "far")
    place.take(life, CancelRun(place.at))
    assert life.run.abroad == {}


def test_a_pause_asks_nobody_and_goes_on() -> None:
    place, life = single()
    [name] = owed(life, CREATE)
    place.take(life, PauseRun(place.at, "immediate"))
    assert World.owed(place, life).abroad == []
    place.take(life, ResumeRun(place.at))
    assert owed(life, CREATE) == [name]
    found(place, life, name, "far")
    over(place, life, "far", "completed")
    assert life.run.variables == {"result": "of far"}


def test_a_child_here_never_gets_a_name_that_was_chosen_elsewhere() -> None:
    place, life = supervised("lab/w", "here", fanOutPolicy="parallel")
    [mine] = life.run.children
    place, life = supervised("lab/w", "lab/w", "here", fanOutPolicy="parallel", maxConcurrency=2)
    first, second = owed(life, CREATE)
    found(place, life, second, mine)
    found(place, life, first, "far")
    over(place, life, "far", "completed")
    assert mine not in life.run.children and len(life.run.children) == 2


CONFIGS = [
    {}, {"fanOutPolicy": "parallel"}, {"fanOutPolicy": "parallel", "maxConcurrency": 2},
    {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}},
    {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "quorum", "quorum": 2}},
    {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "race", "onChildFailure": "fail-fast"}},
]  # fmt: skip


@examples(150)
@given(
    st.lists(st.sampled_from(["lab/w", "here", "far/w"]), min_size=1, max_size=4),
    st.sampled_from(CONFIGS),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=14),
)
def test_whatever_is_answered_every_handoff_is_whole(
    workers: list[str], config: dict[str, Any], moves: list[tuple[int, int]]
) -> None:
    place, life = supervised(*workers, **config)
    for number, (which, how) in enumerate(moves):
        _move(place, life, which, how, number)
        settle(place)
        _check(place, life)
    if not life.run.terminal:
        place.take(life, CancelRun(place.at))
    _check(place, life)
    assert {step for _, step in World.owed(place, life).abroad} <= {STOP}


def _move(place: World, life: Life, which: int, how: int, number: int) -> None:
    """Somebody answers, or the run is steered; also what comes too late."""
    names = list(life.run.abroad)
    if not names:
        return
    name = names[which % len(names)]
    child = life.run.abroad[name].child
    if how == 9:
        place.take(life, CancelRun(place.at))
    elif how == 8:
        place.take(life, PeerStopped(ask_id=name, outcome="stopped"))
    elif child is None and how < 5:
        found(place, life, name, f"far{number}")
    elif child is None:
        refused(place, life, name, unsure=how == 6)
    elif how in (6, 7):
        status = ("waiting-input", "running")[how - 6]
        entry = life.run.abroad[name]
        told = ChildWaits(
            node_id=entry.node_id, child_run=child, workflow_id="lab/w", status=status
        )  # fmt: skip
        place.take(life, told)
    else:
        status = ("completed", "completed", "failed", "cancelled", "failed", "completed")[how]
        over(place, life, child, status, stop=how == 4)


def _check(place: World, life: Life) -> None:
    """Each step follows one it may follow, names a child where it must, and says where its cause
    is when that is elsewhere."""
    run, by_id = life.run, {event.event_id: event for event in life.log}
    began = 0
    for event in life.told(CHAIN):
        phase, said = payload_json(event)["phase"], payload_json(event)
        began += phase == "dispatch.began"
        assert ("childRunId" in said) == (phase not in ("dispatch.began", "dispatch.failed"))
        assert not str(said.get("childRunId", "")).startswith("ask_")
        assert ("causationHostId" in said) == (event.causation_id not in by_id)
        if event.causation_id in by_id and TRANSITIONS[phase]:
            assert payload_json(by_id[event.causation_id])["phase"] in TRANSITIONS[phase]
    ends = [e for e in life.told(CHAIN) if payload_json(e)["phase"].startswith("child.")]
    assert len({payload_json(e)["childRunId"] for e in ends}) == len(ends)
    assert all(run.children[name] for name in set(run.children) - set(place.lives))
    if run.terminal:
        failed = phases(life).count("dispatch.failed")
        assert all(each.stop for each in run.abroad.values())
        assert began - failed >= len(ends)


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_replayed_run_is_owed_nothing_elsewhere(status: str) -> None:
    place, life = supervised("lab/w")
    life.run.forked_from = RunFork(mode="replay")
    assert World.owed(place, life).abroad == []


def test_a_child_that_waits_and_goes_on_for_ever_does_not_fill_the_log() -> None:
    for place, life in (supervised("lab/w"), single()):
        found(place, life, owed(life, CREATE)[0], "far")
        [entry] = life.run.abroad.values()
        before = len(life.log)
        for number in range(2000):
            status = ("waiting-input", "waiting-approval", "running")[number % 3]
            told = ChildWaits(
                node_id=entry.node_id, child_run="far", workflow_id="lab/w", status=status
            )
            place.take(life, told)
        assert len(life.log) - before <= 2 * MOST_WAITS and life.run.status is Status.RUNNING
        over(place, life, "far", "completed")
        assert life.run.status is Status.COMPLETED
