"""Presence of participants in conversations, in memory only."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import msgspec

from moot.clock import Clock
from moot.core.events import iso
from moot.core.state.conversation import Conversation
from moot.core.threads.presence import (
    RETENTION_MS,
    TTL_MS,
    PresenceRecord,
    PresenceState,
    update_presence,
)
from moot.engine.streams.hub import Hub
from moot.engine.streams.speech import OpenSpeeches

#: most conversations, and names in one of them; the longest silent are dropped first
MOST_PLACES = 4096
MOST_HERE = 256

#: states that should not be interrupted, and how long others wait for them
BUSY = frozenset({"thinking", "typing"})
PATIENCE_S = 10.0

#: run and conversation
ConversationKey = tuple[str, str]
#: conversation -> name -> presence, longest silent first
PresenceTable = OrderedDict[ConversationKey, OrderedDict[str, PresenceRecord]]

_encode = msgspec.json.Encoder().encode


class Presence:
    """The presence that participants report, and that of members the host speaks for."""

    def __init__(self, hub: Hub, speeches: OpenSpeeches, clock: Clock) -> None:
        self._hub, self._speeches, self._clock = hub, speeches, clock
        self._places: PresenceTable = OrderedDict()
        #: participants that fell silent, for a while
        self._gone: PresenceTable = OrderedDict()
        #: set when the presence in a conversation changes
        self._changes: dict[ConversationKey, asyncio.Event] = {}
        self._watch: asyncio.TimerHandle | None = None
        #: how long a report counts
        self.ttl_ms = TTL_MS

    def set(
        self, place: ConversationKey, name: str, state: PresenceState, details: Any = None
    ) -> PresenceRecord:
        """Store a report. Listeners get it when the state is new."""
        now = self._clock.micros()
        before = _get(self._places, place, name) or _get(self._gone, place, name)
        presence = update_presence(before, state, details, now)
        _remove(self._gone, place, name)
        _put(self._places, place, name, presence)
        if (change := self._changes.pop(place, None)) is not None:
            change.set()
        if before is None or before.shown(now, self.ttl_ms) != state:
            self._tell(place, name, presence, state)
        self._look_later()
        return presence

    def snapshot(self, run_id: str, conversation: Conversation) -> dict[str, PresenceRecord]:
        """Return everyone with a recent report, and members at work for the host."""
        place = (run_id, conversation.conversation_id)
        presences = {**self._gone.get(place, {}), **self._places.get(place, {})}
        for wake in conversation.floor.wakes.values() if conversation.floor is not None else ():
            presences[wake.agent] = _busy_presence(
                presences.get(wake.agent), "thinking", self._clock.micros()
            )
        for name in self._speeches.speaking(*place):
            presences[name] = _busy_presence(presences.get(name), "typing", self._clock.micros())
        return presences

    def spoke(self, place: ConversationKey, name: str) -> None:
        """Set a participant back to listening after its turn."""
        here = self._places.get(place)
        before = None if here is None else here.get(name)
        if before is not None and before.state in BUSY:
            self.set(place, name, "listening")

    async def quiet(self, place: ConversationKey, but: str) -> None:
        """Wait until no other participant is about to speak, up to ``PATIENCE_S``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while self._busy(place, but):
                    await self._changes.setdefault(place, asyncio.Event()).wait()

    def _busy(self, place: ConversationKey, but: str) -> bool:
        now = self._clock.micros()
        here = self._places.get(place)
        others = [] if here is None else [one for name, one in here.items() if name != but]
        return any(one.shown(now, self.ttl_ms) in BUSY for one in others)

    def now(self) -> int:
        return self._clock.micros()

    def _look_later(self) -> None:
        """Schedule the next expiry: silent participants go offline and are forgotten later."""
        loop, ttl = asyncio.get_running_loop(), self.ttl_ms * 1000
        if self._watch is not None:
            if self._watch.when() <= loop.time() + ttl / 1_000_000 + 0.001:
                return  # the timer fires before the newest report expires
            self._watch.cancel()
        due = [next(iter(here.values())).at + ttl for here in self._places.values()]
        due += [
            next(iter(here.values())).at + ttl + RETENTION_MS * 1000 for here in self._gone.values()
        ]
        left = max(0, min(due) - self._clock.micros()) / 1_000_000 if due else 0
        self._watch = loop.call_later(left + 0.001, self._look) if due else None

    def _look(self) -> None:
        self._watch, now = None, self._clock.micros() - self.ttl_ms * 1000
        for place, name, last in _take_expired(self._places, now):
            _put(self._gone, place, name, last)
            if last.state != "offline":
                self._tell(place, name, last, "offline")
        _take_expired(self._gone, now - RETENTION_MS * 1000)
        self._look_later()

    def _tell(
        self, place: ConversationKey, name: str, here: PresenceRecord, state: PresenceState
    ) -> None:
        run_id, conversation_id = place
        if not self._hub.has_readers(run_id):
            return
        body: dict[str, object] = {
            "runId": run_id,
            "conversationId": conversation_id,
            "participant": name,
            "state": state,
            "updatedAt": iso(here.at),
        }
        if here.details is not None:
            body["details"] = here.details
        self._hub.tell(run_id, b"event: presence\ndata: %b\n\n" % _encode(body))


def _busy_presence(before: PresenceRecord | None, state: PresenceState, now: int) -> PresenceRecord:
    return update_presence(before, state, None, now)


def _put(table: PresenceTable, place: ConversationKey, name: str, presence: PresenceRecord) -> None:
    """Store as the newest. The longest silent makes room."""
    here = table.setdefault(place, OrderedDict())
    here[name] = presence
    here.move_to_end(name)
    table.move_to_end(place)
    if len(here) > MOST_HERE:
        here.popitem(last=False)
    if len(table) > MOST_PLACES:
        table.popitem(last=False)


def _get(table: PresenceTable, place: ConversationKey, name: str) -> PresenceRecord | None:
    here = table.get(place)
    return None if here is None else here.get(name)


def _remove(table: PresenceTable, place: ConversationKey, name: str) -> None:
    here = table.get(place)
    if here is not None:
        here.pop(name, None)
        if not here:
            del table[place]


def _take_expired(
    table: PresenceTable, until: int
) -> list[tuple[ConversationKey, str, PresenceRecord]]:
    """Remove and return every presence last reported before ``until``."""
    expired = []
    for place, here in list(table.items()):
        while here and (first := next(iter(here.items())))[1].at < until:
            del here[first[0]]
            expired.append((place, *first))
        if not here:
            del table[place]
    return expired
