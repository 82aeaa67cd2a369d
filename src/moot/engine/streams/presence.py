"""Who is here in which conversation, for whoever asks or listens now. Nothing of it is kept."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import msgspec

from moot.clock import Clock
from moot.core.events import iso
from moot.core.state.conversation import Conversation
from moot.core.threads.presence import KEPT_MS, TTL_MS, Here, State, heard
from moot.engine.streams.hub import Hub
from moot.engine.streams.speech import Speeches

#: conversations, and names in one of them; who was not heard of for the longest time goes first
MOST_PLACES = 4096
MOST_HERE = 256

#: what somebody does who should not be interrupted, and how long others wait for that
BUSY = frozenset({"thinking", "typing"})
PATIENCE_S = 10.0

#: run and conversation
Place = tuple[str, str]
#: of each, who was heard of; the longest ago first
Heard = OrderedDict[Place, OrderedDict[str, Here]]

_encode = msgspec.json.Encoder().encode


class Presence:
    """What participants say of themselves, and what can be seen of those the host speaks for."""

    def __init__(self, hub: Hub, speeches: Speeches, clock: Clock) -> None:
        self._hub, self._speeches, self._clock = hub, speeches, clock
        self._places: Heard = OrderedDict()
        #: who was heard of and is not any more, for a while
        self._gone: Heard = OrderedDict()
        #: somebody waits for a change there
        self._changes: dict[Place, asyncio.Event] = {}
        self._watch: asyncio.TimerHandle | None = None
        #: how long a sign of life counts
        self.ttl_ms = TTL_MS

    def set(self, place: Place, name: str, state: State, details: Any = None) -> Here:
        """A sign of life; whoever listens is told when it says something new."""
        now = self._clock.micros()
        before = _last(self._places, place, name) or _last(self._gone, place, name)
        found = heard(before, state, details, now)
        _forget(self._gone, place, name)
        _note(self._places, place, name, found)
        if (change := self._changes.pop(place, None)) is not None:
            change.set()
        if before is None or before.shown(now, self.ttl_ms) != state:
            self._tell(place, name, found, state)
        self._look_later()
        return found

    def snapshot(self, run_id: str, talk: Conversation) -> dict[str, Here]:
        """Everybody who was heard of, and members at work for the host."""
        place = (run_id, talk.conversation_id)
        found = {**self._gone.get(place, {}), **self._places.get(place, {})}
        for wake in talk.floor.wakes.values() if talk.floor is not None else ():
            found[wake.agent] = _busy(found.get(wake.agent), "thinking", self._clock.micros())
        for name in self._speeches.speaking(*place):
            found[name] = _busy(found.get(name), "typing", self._clock.micros())
        return found

    def spoke(self, place: Place, name: str) -> None:
        """Who has said what he was about to say listens again."""
        here = self._places.get(place)
        before = None if here is None else here.get(name)
        if before is not None and before.state in BUSY:
            self.set(place, name, "listening")

    async def quiet(self, place: Place, but: str) -> None:
        """Until nobody else is about to say something, though not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while self._busy(place, but):
                    await self._changes.setdefault(place, asyncio.Event()).wait()

    def _busy(self, place: Place, but: str) -> bool:
        now = self._clock.micros()
        here = self._places.get(place)
        others = [] if here is None else [one for name, one in here.items() if name != but]
        return any(one.shown(now, self.ttl_ms) in BUSY for one in others)

    def now(self) -> int:
        return self._clock.micros()

    def _look_later(self) -> None:
        """Who says nothing any more is gone, and whoever listens is told; one day he is
        forgotten."""
        loop, ttl = asyncio.get_running_loop(), self.ttl_ms * 1000
        if self._watch is not None:
            if self._watch.when() <= loop.time() + ttl / 1_000_000 + 0.001:
                return  # it comes before whoever was just heard of is gone
            self._watch.cancel()
        due = [next(iter(here.values())).at + ttl for here in self._places.values()]
        due += [next(iter(here.values())).at + ttl + KEPT_MS * 1000 for here in self._gone.values()]
        left = max(0, min(due) - self._clock.micros()) / 1_000_000 if due else 0
        self._watch = loop.call_later(left + 0.001, self._look) if due else None

    def _look(self) -> None:
        self._watch, now = None, self._clock.micros() - self.ttl_ms * 1000
        for place, name, last in _taken(self._places, now):
            _note(self._gone, place, name, last)
            if last.state != "offline":
                self._tell(place, name, last, "offline")
        _taken(self._gone, now - KEPT_MS * 1000)
        self._look_later()

    def _tell(self, place: Place, name: str, here: Here, state: State) -> None:
        run_id, conversation_id = place
        if not self._hub.listens(run_id):
            return
        body: dict[str, Any] = {
            "runId": run_id,
            "conversationId": conversation_id,
            "participant": name,
            "state": state,
            "updatedAt": iso(here.at),
        }
        if here.details is not None:
            body["details"] = here.details
        self._hub.tell(run_id, b"event: presence\ndata: %b\n\n" % _encode(body))


def _busy(before: Here | None, state: State, now: int) -> Here:
    return heard(before, state, None, now)


def _note(known: Heard, place: Place, name: str, found: Here) -> None:
    """As the newest there; whoever was not heard of for the longest time makes room."""
    here = known.setdefault(place, OrderedDict())
    here[name] = found
    here.move_to_end(name)
    known.move_to_end(place)
    if len(here) > MOST_HERE:
        here.popitem(last=False)
    if len(known) > MOST_PLACES:
        known.popitem(last=False)


def _last(known: Heard, place: Place, name: str) -> Here | None:
    here = known.get(place)
    return None if here is None else here.get(name)


def _forget(known: Heard, place: Place, name: str) -> None:
    here = known.get(place)
    if here is not None:
        here.pop(name, None)
        if not here:
            del known[place]


def _taken(known: Heard, until: int) -> list[tuple[Place, str, Here]]:
    """Everybody who was heard of last before this time, who is there no longer."""
    found = []
    for place, here in list(known.items()):
        while here and (first := next(iter(here.items())))[1].at < until:
            del here[first[0]]
            found.append((place, *first))
        if not here:
            del known[place]
    return found
