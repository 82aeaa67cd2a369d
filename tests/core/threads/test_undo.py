"""What was steered is taken back: as long as it holds, and to how it was before."""

from typing import Any

import pytest
from msgspec import convert

from moot.core.state.participants import joined_members
from moot.core.threads.rendered_event import RenderedEvent
from moot.core.threads.undo import undo_control
from tests.support.core.simulator import Life, World
from tests.support.core.threads import check, say, steer, talk_of, thread, told


def offered(world: World, life: Life, later: int = 0) -> dict[str, Any] | None:
    """What takes back the newest control of a person."""
    last = [each for each in told(life) if each["type"] == "control" and each["from"] == "user"][-1]
    return undo_control(convert(last, RenderedEvent), talk_of(life), world.at + later)


def test_a_mute_is_taken_back_until_its_time_is_over() -> None:
    world, life = thread("ada", "bo")
    steer(world, life, {"mute": {"targets": ["ada", "bo"], "seconds": 60}})
    assert offered(world, life) == {"unmute": ["ada", "bo"]}
    assert offered(world, life, 61_000) is None


def test_an_unmute_is_taken_back_for_the_rest_of_the_time() -> None:
    world, life = thread("ada", "bo", "cy")
    steer(world, life, {"mute": {"targets": ["ada"], "seconds": 60}})
    steer(world, life, {"mute": ["bo"]})
    steer(world, life, {"unmute": ["ada"]})
    back = offered(world, life, 20_000)
    assert back is not None and back["mute"]["targets"] == ["ada"]
    assert 39 <= back["mute"]["seconds"] <= 40
    assert offered(world, life, 61_000) is None
    steer(world, life, {"unmute": ["bo", "cy"]})
    assert offered(world, life) == {"mute": ["bo"]}, "cy was not muted before"


def test_who_was_sent_away_comes_back_as_he_was() -> None:
    about = {"nickname": "Cody", "roles": ["builder"], "client": "codex"}
    world, life = thread("ada")
    steer(world, life, {"invite": {"participant_id": "codex", "profile": about}})
    assert offered(world, life) == {"uninvite": {"participant_id": "codex"}}
    steer(world, life, {"uninvite": "codex"})
    back = offered(world, life)
    assert back == {"invite": {"participant_id": "codex", "profile": about}}
    steer(world, life, back)
    assert joined_members(talk_of(life))["host:codex"].profile == about
    check(life)


def undone(event: dict[str, Any], world: World, life: Life) -> dict[str, Any] | None:
    return undo_control(convert(event, RenderedEvent), talk_of(life), world.at)


@pytest.mark.parametrize("word", ["pause", "discussion", "invited_auto"])
def test_a_switch_is_taken_back_while_it_is_as_it_was_set(word: str) -> None:
    world, life = thread("ada")
    steer(world, life, {word: {"on": True}})
    [first] = [each for each in told(life) if each["content"] == {word: {"on": True}}]
    assert undone(first, world, life) == {word: {"on": False}}
    steer(world, life, {word: {"on": False}})
    assert undone(first, world, life) is None


def test_a_time_is_taken_back_unless_another_one_was_set() -> None:
    world, life = thread("ada")
    steer(world, life, {"ttl_seconds": 60})
    [first] = [each for each in told(life) if each["content"] == {"ttl_seconds": 60}]
    assert undone(first, world, life) == {"ttl_seconds": None}
    steer(world, life, {"ttl_seconds": 600})
    assert undone(first, world, life) is None
    say(world, life, "So?")
    assert offered(world, life) == {"ttl_seconds": None}
