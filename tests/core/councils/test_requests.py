"""Who is named, prodded or given a task while he is muted is asked when he may speak again."""

from typing import Any

import pytest

from moot.core.commands import TimePassed
from tests.support.core.threads import (
    check,
    decisions,
    floor_of,
    named,
    say,
    speak,
    speak_all,
    steer,
    talk_of,
    thread,
    told,
    woken,
)  # fmt: skip

MUTE = {"mute": {"targets": ["ada", "rex"], "seconds": 60}}
ASKS: list[tuple[str, dict[str, Any]]] = [
    ("{name}, what is it?", {"to": "host:{name}"}),
    ("What is it, @{name}?", {}),
    ("Count them.", {"to": "host:{name}", "meta": {"kind": "task"}}),
]


def asked(name: str, ask: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    text, turn = ask
    return text.format(name=name), {
        key: value.format(name=name) if isinstance(value, str) else value
        for key, value in turn.items()
    }


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("by", ["unmute", "time"])
def test_who_was_named_while_muted_is_asked_afterwards(
    ask: tuple[str, dict[str, Any]], by: str
) -> None:
    world, life = thread("ada", outside=("rex",))
    steer(world, life, MUTE)
    for name in ("ada", "rex"):
        text, turn = asked(name, ask)
        say(world, life, text, **turn)
        assert named(decisions(life)[-1], "skipped") == {name: "muted"}
    assert woken(life) == [] and set(floor_of(life).later) == {"host:ada", "host:rex"}
    if by == "unmute":
        assert world.owed(life).due is not None
        steer(world, life, {"unmute": ["ada", "rex"]})
    else:
        world.pass_time(60_001)
        due = world.owed(life).due
        assert due is not None and due <= world.at
        world.take(life, TimePassed(world.at))
        assert told(life)[-2]["from"] == "moot"
        assert told(life)[-2]["content"] == {"unmute": ["ada", "rex"]}
    assert woken(life) == ["ada"] and named(decisions(life)[-1], "called").keys() == {"rex"}
    assert floor_of(life).later == {} and talk_of(life).state.muted == {}
    speak(world, life)
    assert woken(life) == [] and world.owed(life).due is None
    check(life)


def test_a_prod_is_kept_as_well_and_what_was_said_to_all_is_not() -> None:
    world, life = thread("ada", "bo")
    steer(world, life, {"mute": ["ada"]})
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["bo"]
    steer(world, life, {"unmute": ["ada"]})
    assert woken(life) == []
    steer(world, life, {"mute": ["ada"]})
    steer(world, life, {"prod": ["ada"]})
    assert woken(life) == []
    steer(world, life, {"unmute": ["ada"]})
    assert woken(life) == ["ada"]
    check(life)


def test_a_mute_that_nobody_waits_for_is_over_without_a_word() -> None:
    world, life = thread("ada")
    steer(world, life, MUTE)
    assert world.owed(life).due is None
    say(world, life, "ada?", to="host:ada")
    steer(world, life, {"uninvite": {"participant_id": "ada"}})
    assert world.owed(life).due is None and floor_of(life).later == {}
    check(life)


def test_while_it_is_paused_the_end_of_a_mute_wakes_nobody() -> None:
    world, life = thread("ada")
    steer(world, life, MUTE)
    say(world, life, "ada?", to="host:ada")
    steer(world, life, {"pause": True})
    world.pass_time(60_001)
    world.take(life, TimePassed(world.at))
    assert woken(life) == []
    steer(world, life, {"pause": False})
    assert woken(life) == ["ada"]
    check(life)
