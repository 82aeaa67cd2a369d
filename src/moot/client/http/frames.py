"""Frames of a stream: recorded events, and words of speech in progress."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.client.errors import BadAnswer
from moot.wire.runs import ENDED_STATUSES
from moot.wire.sse import SseFrame

TERMINAL = tuple(f"run.{status}" for status in ENDED_STATUSES)


class Event(
    Struct,
    frozen=True,
    kw_only=True,
    rename={
        "id": "eventId", "run_id": "runId", "seq": "sequence", "time": "timestamp",
        "node": "nodeId", "cause": "causationId",
    },
):  # fmt: skip
    """A recorded fact of a run. ``seq`` counts from 0 without gaps."""

    seq: int
    type: str
    payload: dict[str, Any] = {}
    #: the node of the event, and the id of the event that caused it
    node: str | None = None
    cause: str | None = None
    id: str = ""
    run_id: str = ""
    time: str = ""

    @property
    def terminal(self) -> bool:
        """True for the last event of a run."""
        ended = self.type == "state.snapshot" and self.payload.get("status") in ENDED_STATUSES
        return ended or self.type in TERMINAL


class Spoken(Struct, frozen=True, kw_only=True, rename="camel"):
    """Words of speech in progress. They are not in the log."""

    speech_id: str
    what: Literal["started", "delta", "ended"] = "delta"
    run_id: str = ""
    conversation_id: str = ""
    #: the speaker, only at the start
    speaker: str | None = msgspec.field(default=None, name="from")
    delta: str = ""
    index: int = 0
    #: at the end: the words are withdrawn and become no turn
    void: bool = False


def read_frame(frame: SseFrame) -> Event | Spoken:
    """Return the content of a frame. Raise BadAnswer when it has another form."""
    try:
        if frame.event.startswith("speech."):
            spoken = msgspec.json.decode(frame.data, type=Spoken)
            what = msgspec.convert(frame.event[7:], Literal["started", "delta", "ended"])
            return msgspec.structs.replace(spoken, what=what)
        return msgspec.json.decode(frame.data, type=Event)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"A frame of the stream was not understood: {error}") from None


def frame_sequence(frame: SseFrame) -> int | None:
    """Return the sequence of a recorded event, or None for a frame without one."""
    return int(frame.id) if frame.id.isdigit() and len(frame.id) < 16 else None
