"""Turns under way: who goes silent loses the floor, and a full host forgets the longest silent."""

import json
from typing import Any

import pytest

from moot.core.errors import NotFound
from moot.engine.streams import speech
from moot.engine.streams.hub import Hub
from moot.engine.streams.speech import OpenSpeeches
from moot.testing.clock import VirtualClock
from tests.support.engine.hosts import soon


class Room:
    """A host's speeches, and somebody who listens to one run."""

    def __init__(self) -> None:
        self.hub, self.clock = Hub(), VirtualClock()
        self.speeches = OpenSpeeches(self.hub, self.clock)
        self.listener = self.hub.subscribe("run_1", spoken=True)

    def begin(self, principal: str = "key_ada") -> str:
        return self.speeches.begin("run_1", "run_1:talk:1", principal, {"from": "x"}).speech_id

    def heard(self) -> list[tuple[str, Any]]:
        found = []
        while self.listener.waiting:
            frame = self.listener.waiting.popleft()
            assert isinstance(frame, bytes)
            name, data = frame.decode().split("\n")[:2]
            found.append((name.split("speech.")[1], json.loads(data[6:])["speechId"]))
        return found


async def test_who_goes_silent_is_over_when_another_begins() -> None:
    room = Room()
    silent, talking = room.begin(), room.begin()
    room.clock.forward(speech.SILENCE_MS / 1000 - 1)
    room.speeches.say("run_1", talking, "key_ada", "still here")
    room.clock.forward(1)
    other = room.begin()
    assert room.heard()[2:] == [("delta", talking), ("ended", silent), ("started", other)]
    with pytest.raises(NotFound):
        room.speeches.say("run_1", silent, "key_ada", "hello?")


async def test_who_goes_silent_is_over_though_nobody_else_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speech, "SILENCE_MS", 60)
    room = Room()
    first, second = room.begin(), room.begin()
    room.clock.forward(0.04)
    room.speeches.say("run_1", first, "key_ada", "still here")
    room.heard()
    room.clock.forward(0.04)
    await soon(lambda: room.listener.waiting)
    assert room.heard() == [("ended", second)]
    room.clock.forward(0.1)
    await soon(lambda: room.listener.waiting)
    assert room.heard() == [("ended", first)]
    with pytest.raises(NotFound):
        room.speeches.end("run_1", first, "key_ada")


async def test_a_full_host_forgets_the_longest_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "MOST_SPEECHES", 3)
    room = Room()
    names = [room.begin() for _ in range(3)]
    room.speeches.say("run_1", names[0], "key_ada", "x")
    room.begin()
    assert ("ended", names[1]) in room.heard()
    room.speeches.say("run_1", names[0], "key_ada", "y")


async def test_a_turn_that_was_not_announced_ends_nothing() -> None:
    room = Room()
    mine = room.begin()
    room.speeches.over("run_1", "sp_unknown", "key_ada")
    room.speeches.over("run_1", mine, "key_bo")
    room.speeches.over("run_2", mine, "key_ada")
    assert room.heard() == [("started", mine)]
    room.speeches.over("run_1", mine, "key_ada")
    assert room.heard() == [("ended", mine)]
