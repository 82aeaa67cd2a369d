"""Who is here: heard of for a while, told to who listens when it changes, written nowhere."""

import asyncio
import json
from typing import Any

import pytest

from moot.core.state.conversation import Conversation
from moot.core.state.floor import Floor, Invitation
from moot.core.threads.presence import TTL_MS, parse_presence
from moot.engine.streams import presence
from moot.engine.streams.hub import Hub
from moot.engine.streams.presence import Presence
from moot.engine.streams.speech import OpenSpeeches
from moot.testing.clock import VirtualClock
from tests.support.engine.hosts import soon

PLACE = ("th_1", "th_1:talk:1")


class Room:
    def __init__(self) -> None:
        self.hub, self.clock = Hub(), VirtualClock()
        self.speeches = OpenSpeeches(self.hub, self.clock)
        self.presence = Presence(self.hub, self.speeches, self.clock)
        self.listener = self.hub.subscribe("th_1", spoken=True)
        self.talk = Conversation(
            conversation_id=PLACE[1], node_id="talk", opened_at=0, opened_seq=4, last_seq=4
        )

    def heard(self) -> list[tuple[str, str]]:
        found = []
        while self.listener.waiting:
            frame = self.listener.waiting.popleft()
            assert isinstance(frame, bytes)
            name, data = frame.decode().split("\n")[:2]
            if name == "event: presence":
                told = json.loads(data[6:])
                found.append((told["participant"], told["state"]))
        return found

    def here(self) -> dict[str, str]:
        found = self.presence.snapshot("th_1", self.talk)
        now = self.presence.now()
        ttl = self.presence.ttl_ms
        return {name: here.shown(now, ttl) for name, here in found.items()}


async def test_only_what_changes_is_told() -> None:
    room = Room()
    for state in ("listening", "listening", "thinking", "thinking", "typing"):
        room.presence.set(PLACE, "host:codex", state)  # type: ignore[arg-type]
    assert room.heard() == [
        ("host:codex", "listening"), ("host:codex", "thinking"), ("host:codex", "typing"),
    ]  # fmt: skip
    assert room.here() == {"host:codex": "typing"}


async def test_details_stay_until_there_are_others() -> None:
    room = Room()
    room.presence.set(PLACE, "host:codex", "listening", {"model": "gpt"})
    assert room.presence.set(PLACE, "host:codex", "thinking").details == {"model": "gpt"}
    assert room.presence.set(PLACE, "host:codex", "idle", {}).details == {}


async def test_who_is_not_heard_of_any_more_is_offline() -> None:
    room = Room()
    room.presence.set(PLACE, "host:codex", "listening")
    room.clock.forward((TTL_MS - 500) / 1000)
    assert room.here() == {"host:codex": "listening"}
    room.clock.forward(0.501)
    [here] = room.presence.snapshot("th_1", room.talk).values()
    now = room.presence.now()
    assert here.stale(now) and here.shown(now) == "offline"
    room.heard()
    room.presence.set(PLACE, "host:codex", "listening")
    assert room.heard() == [("host:codex", "listening")], "who comes back is told"


async def test_who_goes_silent_is_told_to_be_gone_and_shown_so_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "RETENTION_MS", 400)
    room = Room()
    room.presence.ttl_ms = 40
    room.presence.set(PLACE, "host:codex", "thinking", {"model": "gpt"})
    room.presence.set(PLACE, "user:eve", "offline")
    room.heard()
    room.clock.forward(0.05)
    await soon(lambda: room.listener.waiting)
    assert room.heard() == [("host:codex", "offline")]
    codex = room.presence.snapshot("th_1", room.talk)["host:codex"]
    assert codex.stale(room.presence.now(), 40) and codex.details == {"model": "gpt"}
    assert room.presence.set(PLACE, "user:eve", "idle").state == "idle"
    assert room.heard() == [("user:eve", "idle")], "it is told once, and who is back at once"
    room.clock.forward(0.05)
    await soon(lambda: room.listener.waiting)
    assert room.heard() == [("user:eve", "offline")]
    assert set(room.here()) == {"host:codex", "user:eve"}, "for a while"
    room.clock.forward(0.4)
    await soon(lambda: not room.presence.snapshot("th_1", room.talk))
    assert room.heard() == []


async def test_members_at_work_for_the_host_are_seen_to_be() -> None:
    room = Room()
    wake = Invitation(agent="host:ada", task="speak", turn=1, seq=9, since=0, due=1)
    room.talk.floor = Floor(wakes={"9.0": wake})
    assert room.here() == {"host:ada": "thinking"}
    told = {"role": "agent", "from": "host:ada", "speakerId": "host:ada"}
    room.speeches.begin(*PLACE, "moot", told)
    room.speeches.begin("th_1", "th_1:other:1", "key", {"from": "user:eve"})
    assert room.here() == {"host:ada": "typing"}


async def test_who_is_about_to_speak_is_waited_for_until_he_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room()
    await room.presence.quiet(PLACE, "host:ada")
    room.presence.set(PLACE, "host:ada", "thinking")
    await room.presence.quiet(PLACE, "host:ada")  # one's own thinking is no reason
    room.presence.set(PLACE, "user:eve", "typing")
    waiting = asyncio.ensure_future(room.presence.quiet(PLACE, "host:ada"))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    room.presence.spoke(PLACE, "user:eve")
    assert room.here()["user:eve"] == "listening"
    async with asyncio.timeout(60):
        await waiting
    monkeypatch.setattr(presence, "PATIENCE_S", 0.02)
    room.presence.set(PLACE, "user:eve", "typing")
    await room.presence.quiet(PLACE, "host:ada")  # but not for ever


async def test_there_is_room_for_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "MOST_HERE", 3)
    monkeypatch.setattr(presence, "MOST_PLACES", 2)
    room = Room()
    for name in "abcd":
        room.presence.set(PLACE, name, "idle")
    assert list(room.here()) == ["b", "c", "d"]
    for place in ("th_2", "th_3"):
        room.presence.set((place, f"{place}:talk:1"), "a", "idle")
    assert room.here() == {}


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("thinking", "thinking"), ("thinking.start", "thinking"), ("thinking.end", "listening"),
        ({"state": "typing"}, "typing"), ("flying", None), ("thinking.now", None), (5, None),
        ({}, "listening"), (None, None),
    ],
)  # fmt: skip
def test_a_transition_is_read_as_it_is_written(said: Any, state: str | None) -> None:
    assert parse_presence(said) == state
