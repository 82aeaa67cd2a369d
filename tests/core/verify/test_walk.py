"""Logs that this engine wrote are found to be so; logs that anybody changed are not."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from moot.core.runs.child_outputs import ChildEnded, ChildReport
from moot.core.runs.start import RunLimits
from moot.core.verify.walk import Difference, verify
from tests.core.replay.test_properties import lived
from tests.support.core.random_flows import Move, Story, bodies, examples, flows_of, limits, moves
from tests.support.core.replays import retold
from tests.support.core.simulator import TENANT, Life, World
from tests.support.core.supervisors import DONE, hand, kids, planned, worker, world


def verified(life: Life) -> Difference | None:
    return verify(life.flow, TENANT, life.run.run_id, life.log)


@given(bodies(), st.lists(moves, max_size=12), limits)
@examples(300)
def test_a_log_that_was_written_here_is_found_to_be_so(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits
) -> None:
    for life in lived(body, happened, ceilings).lives.values():
        assert verified(life) is None, life.order()


@given(bodies(), st.lists(moves, max_size=12), limits)
@examples(100)
def test_so_is_one_with_secrets(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits
) -> None:
    flows = flows_of(body)
    world = World(flows, limits=ceilings)
    story = Story(world)
    world.start(flows["self"])
    for move in happened:
        story.happen(move)
    story.to_the_end()
    for life in world.lives.values():
        assert verified(life) is None, life.order()


@given(bodies(), st.lists(moves, max_size=12), limits, st.data())
@examples(100)
def test_so_is_a_replay(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits, data: st.DataObject
) -> None:
    for life in lived(body, happened, ceilings).lives.values():
        cut = data.draw(st.integers(0, len(life.log)))
        found = retold(life, cut)
        assert verify(life.flow, TENANT, found.run.run_id, found.log) is None, life.order()


# -- large decisions -------------------------------------------------------------------------------


MANY = 120


def test_a_decision_that_gives_up_hundreds_of_workers_is_verified() -> None:
    place = world(worker("w"), most_events=10_000, limits=RunLimits(tree=2 * MANY))
    config = {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}}
    life = place.start(planned(hand(*["w"] * MANY), DONE, dispatch=config))
    first, *_, last = kids(place, life)
    known = {last.run.run_id: ChildReport("cancelled", 2)}  # it has led to another run
    place.finish(first, "w")
    ended = ChildEnded(
        node_id="dis", child_run=first.run.run_id, status="completed", at=place.at,
        variables=first.run.variables, outputs={}, runs=1, seen=known,
    )  # fmt: skip
    place.take(life, ended)
    counted: dict[str, int] = {}
    for event in life.log:
        counted[event.timestamp] = counted.get(event.timestamp, 0) + 1
    assert max(counted.values()) > MANY - 2, counted
    assert verify(life.flow, TENANT, life.run.run_id, life.log) is None
