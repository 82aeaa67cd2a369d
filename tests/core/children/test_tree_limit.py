"""How many runs a tree has is bounded across hosts: what another host was lent, it may use."""

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moot.core.commands import CancelRun, TimePassed
from moot.core.payloads.runs import RecordedLimits
from moot.core.state.remote_children import CREATE
from moot.core.state.status import Status
from moot.core.state.supervisor import count_lent_runs
from moot.engine.peers.calls import RemoteRun
from tests.core.children.test_peers import found, over, owed, refused, single
from tests.support.core.random_flows import examples
from tests.support.core.simulator import Life, World
from tests.support.core.supervisors import DONE, hand, planned, world


def looped(turns: int) -> tuple[World, Life]:
    place = world()
    return place, place.start(planned(*[hand("lab/w")] * turns, DONE))


def shares(life: Life) -> list[int]:
    return [event.hints["tree"] for event in life.told("moot.peer.asked")]


def test_every_child_elsewhere_is_lent_from_what_is_left() -> None:
    workers = ["lab/w"] * 4
    life = world().start(planned(hand(*workers), DONE, dispatch={"fanOutPolicy": "parallel"}))
    assert (
        len(shares(life)) == 4
        and count_lent_runs(life.run) == sum(shares(life)) < RecordedLimits().tree
    )
    place, life = looped(1)
    found(place, life, owed(life, CREATE)[0], "far")
    assert count_lent_runs(life.run) == shares(life)[0]


def test_what_a_child_elsewhere_did_not_use_is_there_again() -> None:
    place, life = looped(3)
    for number in range(3):
        found(place, life, owed(life, CREATE)[0], f"far{number}")
        over(place, life, f"far{number}", "completed", runs=2)
    assert life.run.spent == 6 and life.run.status is Status.COMPLETED


def test_hosts_that_never_say_how_much_they_used_come_to_an_end() -> None:
    place, life = looped(500)
    for number in range(500):
        if life.run.terminal:
            break
        found(place, life, owed(life, CREATE)[0], f"far{number}")
        over(place, life, f"far{number}", "completed", runs=shares(life)[-1])
    assert life.run.error is not None and life.run.error.code == "tree_exceeded"
    assert (
        len(shares(life)) > 50 and sum(shares(life)) == life.run.spent == RecordedLimits().tree - 1
    )


def test_a_child_that_is_given_up_keeps_what_it_was_lent() -> None:
    for asked in (True, False):
        place, life = single(settings={"timeoutMs": 1000, "maxRetries": 1, "retryDelayMs": 0})
        if not asked:
            found(place, life, owed(life, CREATE)[0], "far")
        place.pass_time(1000)
        place.take(life, TimePassed(place.at))
        assert life.run.spent == shares(life)[0] > 1


@pytest.mark.parametrize("unsure", [True, False])
def test_only_a_child_that_may_be_there_is_counted(unsure: bool) -> None:
    for place, life in (single(), looped(1)):
        refused(place, life, owed(life, CREATE)[0], unsure)
        assert life.run.spent == (shares(life)[0] if unsure else 0)


def test_a_cancelled_run_has_spent_what_its_children_elsewhere_hold() -> None:
    for place, life in (single(), looped(1)):
        place.take(life, CancelRun(place.at))
        assert life.run.spent == shares(life)[0]


@examples(50)
@given(told=st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()))
def test_what_a_host_says_of_its_runs_is_never_more_than_it_was_lent(told: Any) -> None:
    body = msgspec.json.encode({"runId": "r", "status": "completed", "treeRuns": told})
    used = msgspec.json.decode(body, type=RemoteRun).used(9)
    whole = isinstance(told, int) and not isinstance(told, bool)
    assert used == (min(max(told, 1), 9) if whole else 9)
