"""Who is here in which conversation, for whoever asks or listens now. Nothing of it is kept."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import msgspec

from moot.clock import Clock
from moot.core.events import iso
from moot.core.presence import TTL_MS, Here, State, heard
from moot.core.waiting import Conversation
from moot.engine.hub import Hub
from moot.engine.speech import Speeches

#: conversations, and names in one of them; who was not heard of for the longest time goes first
MOST_PLACES = 4096
MOST_HERE = 256

#: what somebody does who should not be interrupted, and how long others wait for that
BUSY = frozenset({"thinking", "typing"})
PATIENCE_S = 10.0

#: run and conversation
Place = tuple[str, str]

_encode = msgspec.json.Encoder().encode


class Presence:
    """What participants say of themselves, and what can be seen of those the host speaks for."""

    def __init__(self, hub: Hub, speeches: Speeches, clock: Clock) -> None:
        self._hub, self._speeches, self._clock = hub, speeches, clock
        self._places: OrderedDict[Place, OrderedDict[str, Here]] = OrderedDict()
        #: somebody waits for a change there
        self._changes: dict[Place, asyncio.Event] = {}
        self._watch: asyncio.TimerHandle | None = None

    def set(
        self, place: Place, name: str, state: State, details: dict[str, Any] | None = None
    ) -> Here:
        """A sign of life; whoever listens is told when it says something new."""
        now = self._clock.micros()
        here = self._places.setdefault(place, OrderedDict())
        before = here.get(name)
        here[name] = found = heard(before, state, details, now)
        here.move_to_end(name)
        self._places.move_to_end(place)
        self._make_room(here)
        if (change := self._changes.pop(place, None)) is not None:
            change.set()
        if before is None or before.shown(now) != state:
            self._tell(place, name, found, state)
        self._look_later()
        return found

    def snapshot(self, run_id: str, talk: Conversation) -> dict[str, Here]:
        """Everybody who was heard of, and members at work for the host."""
        place = (run_id, talk.conversation_id)
        found = dict(self._places.get(place, {}))
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
        return any(one.shown(now) in BUSY for one in others)

    def now(self) -> int:
        return self._clock.micros()

    def _make_room(self, here: OrderedDict[str, Here]) -> None:
        if len(here) > MOST_HERE:
            here.popitem(last=False)
        if len(self._places) > MOST_PLACES:
            self._places.popitem(last=False)

    def _look_later(self) -> None:
        """Who says nothing any more is gone, and whoever listens is told."""
        if self._watch is None and self._places:
            oldest = min(next(iter(here.values())).at for here in self._places.values())
            left = max(0, oldest + TTL_MS * 1000 - self._clock.micros()) / 1_000_000
            self._watch = asyncio.get_running_loop().call_later(left + 0.001, self._look)

    def _look(self) -> None:
        self._watch, now = None, self._clock.micros()
        for place, here in list(self._places.items()):
            while here and (first := next(iter(here.items())))[1].stale(now):
                name, last = first
                del here[name]
                if last.state != "offline":
                    self._tell(place, name, last, "offline")
            if not here:
                del self._places[place]
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
