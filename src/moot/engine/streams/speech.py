"""Turns in progress: start, words and end, sent to current listeners only.

Nothing here is stored. The whole turn is recorded in the log when it is finished.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from moot.clock import Clock
from moot.core.errors import NotFound
from moot.core.events import iso
from moot.engine.streams.hub import Hub

#: most open speeches on the host and of one key, and how long one may be silent
MOST_SPEECHES = 4096
MOST_SPEECHES_OF_KEY = 64
SILENCE_MS = 120_000

_encode = msgspec.json.Encoder().encode


class OpenSpeech:
    """One turn in progress."""

    __slots__ = ("conversation_id", "heard_at", "index", "principal", "run_id", "speech_id", "who")

    def __init__(self, run_id: str, conversation_id: str, speech_id: str, principal: str) -> None:
        self.run_id, self.conversation_id = run_id, conversation_id
        self.speech_id, self.principal = speech_id, principal
        #: the speaker's fields of the first frame
        self.who: dict[str, str] = {}
        self.index = 0
        self.heard_at = 0


class OpenSpeeches:
    """The speeches in progress. A silent one is ended; the longest silent is ended first."""

    def __init__(self, hub: Hub, clock: Clock) -> None:
        self._hub, self._clock = hub, clock
        self._under_way: OrderedDict[str, OpenSpeech] = OrderedDict()
        self._watch: asyncio.TimerHandle | None = None
        #: a name of this process; each speech id adds its number
        self._name, self._count = clock.new_id("sp_"), 0

    def begin(
        self, run_id: str, conversation_id: str, principal: str, who: dict[str, str]
    ) -> OpenSpeech:
        self._count += 1
        speech = OpenSpeech(run_id, conversation_id, f"{self._name}{self._count}", principal)
        speech.who, speech.heard_at = who, self._clock.millis()
        self._forget_silent(speech.heard_at, MOST_SPEECHES - 1)
        self._make_room(principal)
        self._under_way[speech.speech_id] = speech
        self._look_later()
        self._tell(speech, "started", {**who, "startedAt": iso(self._clock.micros())})
        return speech

    def say(self, run_id: str, speech_id: str, principal: str, delta: str) -> None:
        speech = self.mine(run_id, speech_id, principal)
        speech.heard_at = self._clock.millis()
        self._under_way.move_to_end(speech_id)
        speech.index += 1
        self._tell(speech, "delta", {"index": speech.index, "delta": delta})

    def end(self, run_id: str, speech_id: str, principal: str, void: bool = False) -> None:
        """End the speech. ``void``: its words will be in no turn."""
        speech = self.mine(run_id, speech_id, principal)
        del self._under_way[speech_id]
        self._tell(speech, "ended", {"void": True} if void else {})

    def over(self, run_id: str, speech_id: str, principal: str, void: bool = False) -> None:
        """End the speech if it was announced; the turn was recorded."""
        with suppress(NotFound):
            self.end(run_id, speech_id, principal, void)

    def speaking(self, run_id: str, conversation_id: str) -> list[str]:
        """Return the names of those speaking in the conversation now."""
        place = (run_id, conversation_id)
        speeches = self._under_way.values()
        return [
            str(each.who.get("from"))
            for each in speeches
            if (each.run_id, each.conversation_id) == place
        ]

    def mine(self, run_id: str, speech_id: str, principal: str) -> OpenSpeech:
        """Return the speech if it belongs to this principal. Raise NotFound."""
        speech = self._under_way.get(speech_id)
        if speech is None or speech.run_id != run_id or speech.principal != principal:
            raise NotFound("No such speech is under way; begin one.", speechId=speech_id)
        return speech

    def _make_room(self, principal: str) -> None:
        """End the oldest speech of a key that has too many, so that it cannot crowd out others."""
        own = [speech for speech in self._under_way.values() if speech.principal == principal]
        if len(own) >= MOST_SPEECHES_OF_KEY:
            del self._under_way[own[0].speech_id]
            self._tell(own[0], "ended", {})

    def _forget_silent(self, at: int, most: int) -> None:
        while self._under_way:
            speech = next(iter(self._under_way.values()))
            if len(self._under_way) <= most and at - speech.heard_at < SILENCE_MS:
                return
            del self._under_way[speech.speech_id]
            self._tell(speech, "ended", {})

    def _look_later(self) -> None:
        """Schedule the check for the longest silent speech."""
        if self._watch is None and self._under_way:
            until = next(iter(self._under_way.values())).heard_at + SILENCE_MS
            left = max(0, until - self._clock.millis()) / 1000
            self._watch = asyncio.get_running_loop().call_later(left, self._look)

    def _look(self) -> None:
        self._watch = None
        self._forget_silent(self._clock.millis(), MOST_SPEECHES)
        self._look_later()

    def _tell(self, speech: OpenSpeech, what: str, more: Mapping[str, object]) -> None:
        if not self._hub.has_readers(speech.run_id):
            return
        body = {
            "speechId": speech.speech_id,
            "conversationId": speech.conversation_id,
            "runId": speech.run_id,
            **more,
        }
        frame = b"event: speech.%b\ndata: %b\n\n" % (what.encode(), _encode(body))
        self._hub.tell(speech.run_id, frame)
