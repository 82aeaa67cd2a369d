"""Turns while they are being spoken: who has begun, the words as they come, the end.

Nothing here is kept: words reach who listens now. The turn itself is said in the log when it is
whole.
"""

from collections import OrderedDict
from contextlib import suppress
from typing import Any

import msgspec

from moot.clock import Clock
from moot.core.errors import NotFound
from moot.core.events import iso
from moot.engine.hub import Hub

#: speeches under way on the whole host, and how long one may be silent
MOST = 4096
MOST_OWN = 64
SILENCE_MS = 120_000

_encode = msgspec.json.Encoder().encode


class Speech:
    """One turn under way."""

    __slots__ = (
        "conversation_id",
        "heard_at",
        "index",
        "principal",
        "run_id",
        "said",
        "speech_id",
    )

    def __init__(self, run_id: str, conversation_id: str, speech_id: str, principal: str) -> None:
        self.run_id, self.conversation_id = run_id, conversation_id
        self.speech_id, self.principal = speech_id, principal
        self.index = 0
        self.heard_at = 0
        #: as whom it was begun
        self.said: dict[str, str] = {}


class Speeches:
    """The speeches under way. Who goes silent loses the floor; the longest silent goes first."""

    def __init__(self, hub: Hub, clock: Clock) -> None:
        self._hub, self._clock = hub, clock
        self._under_way: OrderedDict[str, Speech] = OrderedDict()

    def begin(
        self, run_id: str, conversation_id: str, principal: str, who: dict[str, Any]
    ) -> Speech:
        """``who`` is what the first frame says of the speaker."""
        speech = Speech(run_id, conversation_id, self._clock.new_id("sp_"), principal)
        speech.heard_at = self._clock.millis()
        self._forget_silent(speech.heard_at)
        self._make_room(principal)
        self._under_way[speech.speech_id] = speech
        self._tell(speech, "started", {**who, "startedAt": iso(self._clock.micros())})
        return speech

    def say(self, speech: Speech, delta: str) -> None:
        speech.heard_at = self._clock.millis()
        self._under_way.move_to_end(speech.speech_id)
        speech.index += 1
        self._tell(speech, "delta", {"index": speech.index, "delta": delta})

    def end(self, run_id: str, speech_id: str, principal: str) -> None:
        speech = self.mine(run_id, speech_id, principal)
        del self._under_way[speech_id]
        self._tell(speech, "ended", {})

    def over(self, run_id: str, speech_id: str, principal: str) -> None:
        """The turn was taken; whether it was announced before does not matter."""
        with suppress(NotFound):
            self.end(run_id, speech_id, principal)

    def mine(self, run_id: str, speech_id: str, principal: str) -> Speech:
        speech = self._under_way.get(speech_id)
        if speech is None or speech.run_id != run_id or speech.principal != principal:
            raise NotFound("No such speech is under way; begin one.", speechId=speech_id)
        return speech

    def _make_room(self, principal: str) -> None:
        """One key does not take the floor from all others."""
        own = [speech for speech in self._under_way.values() if speech.principal == principal]
        if len(own) >= MOST_OWN:
            del self._under_way[own[0].speech_id]
            self._tell(own[0], "ended", {})

    def _forget_silent(self, at: int) -> None:
        while self._under_way:
            speech = next(iter(self._under_way.values()))
            if len(self._under_way) < MOST and at - speech.heard_at < SILENCE_MS:
                return
            del self._under_way[speech.speech_id]
            self._tell(speech, "ended", {})

    def _tell(self, speech: Speech, what: str, more: dict[str, Any]) -> None:
        body = {
            "speechId": speech.speech_id,
            "conversationId": speech.conversation_id,
            "runId": speech.run_id,
            **more,
        }
        frame = b"event: speech.%b\ndata: %b\n\n" % (what.encode(), _encode(body))
        self._hub.tell(speech.run_id, frame)
