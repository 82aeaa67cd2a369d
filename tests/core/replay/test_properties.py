"""Random lives of random workflows, said again: the same in every way that can be seen."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from moot.core.events import encode
from moot.core.runs.start import RunLimits
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
from tests.support.core.replays import check_same, retold
from tests.support.core.simulator import Life, World


def without_secrets(body: dict[str, Any]) -> dict[str, Any]:
    """A replay sees of a secret what the log has of it, which may lead elsewhere."""
    plain = dict(body)
    plain["variables"] = [{**each, "sensitive": False} for each in body["variables"]]
    plain["channels"] = {
        name: {**each, "sensitive": False} for name, each in body["channels"].items()
    }
    return plain


def lived(body: dict[str, Any], happened: list[Move], ceilings: RunLimits) -> World:
    """A world in which all this happened and everything has come to its end."""
    flows = flows_of(without_secrets(body))
    world = World(flows, limits=ceilings)
    story = Story(world)
    world.start(flows["self"])
    for move in happened:
        story.happen(move)
    story.to_the_end()
    return world


def said_again(world: World) -> list[Life]:
    """Those that nobody cancelled: of the others the end is not known."""
    return [life for life in world.lives.values() if life.run.status != "cancelled"]


@given(bodies(), st.lists(moves, max_size=12), limits)
@examples(300)
def test_a_replay_is_the_same_in_every_way_that_can_be_seen(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits
) -> None:
    for life in said_again(lived(body, happened, ceilings)):
        check_same(life, retold(life))


@given(bodies(), st.lists(moves, max_size=12), limits, st.data())
@examples(150)
def test_a_replay_from_anywhere_comes_to_the_same(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits, data: st.DataObject
) -> None:
    for life in said_again(lived(body, happened, ceilings)):
        cut = data.draw(st.integers(0, len(life.log)))
        check_same(life, retold(life, cut))


@given(bodies(), st.lists(moves, max_size=12), limits, st.data())
@examples(100)
def test_half_a_life_or_a_cancelled_one_is_said_as_far_as_it_went(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits, data: st.DataObject
) -> None:
    """Whatever is missing is told as missing; nothing differs, and it always comes to rest."""
    for life in lived(body, happened, ceilings).lives.values():
        until = data.draw(st.integers(1, len(life.log)))
        life.log = life.log[:until]
        found = retold(life, data.draw(st.integers(0, until)))
        assert found.told("replay.diverged") == []


@given(bodies(), st.lists(moves, max_size=12), limits)
@examples(100)
def test_a_secret_stays_one_in_a_replay(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits
) -> None:
    """What was masked is not known again: it may lead elsewhere, and never shows."""
    flows = flows_of(body)
    world = World(flows, limits=ceilings)
    story = Story(world)
    world.start(flows["self"])
    for move in happened:
        story.happen(move)
    story.to_the_end()
    for life in world.lives.values():
        found = retold(life)
        told = b"".join(encode(event) for event in found.log).decode()
        assert SECRET not in told
