"""Parse server-sent events from pieces of bytes, within a size limit."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.client.errors import BadAnswer
from moot.wire.runs import ENDED_STATUSES

#: the most bytes of one frame
LARGEST_FRAME = 16 * 1024 * 1024
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


class SseFrame(Struct, frozen=True):
    """One frame of a stream."""

    event: str
    data: bytes
    id: int | None

    def read(self) -> Event | Spoken:
        try:
            if self.event.startswith("speech."):
                spoken = msgspec.json.decode(self.data, type=Spoken)
                what = msgspec.convert(self.event[7:], Literal["started", "delta", "ended"])
                return msgspec.structs.replace(spoken, what=what)
            return msgspec.json.decode(self.data, type=Event)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadAnswer(f"A frame of the stream was not understood: {error}") from None


class SseParser:
    """Turns pieces of bytes into frames. ``retry_s`` is the server's wish for a reconnect delay."""

    def __init__(self) -> None:
        self.retry_s: float | None = None
        #: the number of comments, which the server sends as signs of life
        self.comments = 0
        self._rest = b""
        self._size = 0
        self._event, self._id = "", ""
        self._data: list[bytes] = []

    def take(self, piece: bytes) -> list[SseFrame]:
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        frames = []
        for line in lines:
            frame = self._take_line(line.removesuffix(b"\r"))
            if frame is not None:
                frames.append(frame)
        if self._size + len(self._rest) > LARGEST_FRAME:
            raise BadAnswer(f"A frame of the stream is larger than {LARGEST_FRAME} bytes.")
        return frames

    def _take_line(self, line: bytes) -> SseFrame | None:
        if not line:
            return self._finish_frame()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self._size += len(value)
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._event = value.decode("utf-8", "replace")
            case b"id":
                self._id = value.decode("ascii", "replace")
            case b"retry" if value.isdigit():
                self.retry_s = int(value[:9]) / 1000
            case b"":
                self.comments += 1
            case _:
                pass  # an unknown field
        return None

    def _finish_frame(self) -> SseFrame | None:
        data, event, id_ = b"\n".join(self._data), self._event, self._id
        self._data, self._event, self._id, self._size = [], "", "", 0
        if not data:
            return None
        return SseFrame(event, data, int(id_) if id_.isdigit() and len(id_) < 16 else None)
