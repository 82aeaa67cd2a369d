"""Any workflow, anything that may happen to it: the log keeps its promises."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from moot.core.events import decode, encode
from moot.core.runs.start import RunLimits
from moot.core.state.run import Run, apply, fold
from tests.support.core.invariants import check_world
from tests.support.core.random_flows import (
    SECRET,
    Move,
    Story,
    bodies,
    examples,
    flows_of,
    limits,
    moves,
)
from tests.support.core.simulator import World, state


def lived(body: dict[str, object], ceilings: RunLimits, story: list[Move], most: int) -> World:
    """A world in which all of it happened, checked after every move and brought to its end."""
    world = World(flows_of(body), most, ceilings)
    before = msgspec.json.encode(body)
    world.start(world.flows["self"])
    teller = Story(world)
    for move in story:
        teller.happen(move)
        check_world(world)
    teller.to_the_end()
    check_world(world)
    assert msgspec.json.encode(body) == before, "a run changed its own definition"
    return world


SHALLOW = RunLimits(depth=2)

stories = st.lists(moves, max_size=25)
mosts = st.sampled_from([1, 3, 10, 512])


@examples(250)
@given(bodies(), limits, stories, mosts)
def test_every_log_keeps_its_promises_and_every_run_comes_to_its_end(
    body: dict[str, object], ceilings: RunLimits, story: list[Move], most: int
) -> None:
    lived(body, ceilings, story, most)


@examples(100)
@given(bodies(), stories, st.data())
def test_a_fold_splits_anywhere(
    body: dict[str, object], story: list[Move], data: st.DataObject
) -> None:
    world = lived(body, SHALLOW, story, 512)
    life = data.draw(st.sampled_from(list(world.lives.values())))
    cut = data.draw(st.integers(0, len(life.log)))
    whole = fold(life.run.run_id, life.log)
    assert whole.tenant == life.run.tenant
    in_two = fold(life.run.run_id, life.log[:cut])
    for event in life.log[cut:]:
        apply(in_two, event)
    assert in_two == whole
    assert world.folded(life, cut) == whole
    assert state(whole) == state(life.run)


@examples(60)
@given(bodies(), stories)
def test_reading_a_log_twice_gives_the_same_state_and_leaves_the_log_alone(
    body: dict[str, object], story: list[Move]
) -> None:
    world = lived(body, SHALLOW, story, 512)
    for life in world.lives.values():
        written = [encode(event) for event in life.log]
        first, second = fold(life.run.run_id, life.log), fold(life.run.run_id, life.log)
        assert first == second
        assert [encode(event) for event in life.log] == written
        assert [encode(decode(row)) for row in written] == written


@examples(60)
@given(bodies(with_children=False), stories)
def test_a_sensitive_value_is_in_no_log_and_no_state(
    body: dict[str, object], story: list[Move]
) -> None:
    world = lived(body, SHALLOW, story, 512)
    for life in world.lives.values():
        for event in life.log:
            assert SECRET.encode() not in encode(event), event.type
        assert SECRET.encode() not in state(life.run)


@examples(60)
@given(bodies(), stories, st.text(min_size=1), st.dictionaries(st.text(), st.integers()))
def test_an_unknown_event_only_moves_the_position(
    body: dict[str, object], story: list[Move], type_: str, payload: dict[str, int]
) -> None:
    world = lived(body, SHALLOW, story, 512)
    life = next(iter(world.lives.values()))
    strange = msgspec.structs.replace(
        life.log[-1], type=f"acme.{type_}", payload=payload, sequence=len(life.log)
    )
    before = msgspec.structs.asdict(fold(life.run.run_id, life.log))
    after = msgspec.structs.asdict(fold(life.run.run_id, [*life.log, strange]))
    before["next_sequence"] += 1
    assert after == before


def test_the_fold_of_nothing_is_a_pending_run() -> None:
    assert fold("r", []) == Run("r")
