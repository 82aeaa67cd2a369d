"""Server-sent events, read without knowing where the bytes come from, within bounds."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.client.errors import BadAnswer
from moot.wire.runs import ENDED

#: bytes of one frame
LARGEST_FRAME = 16 * 1024 * 1024
TERMINAL = tuple(f"run.{status}" for status in ENDED)


class Event(
    Struct,
    frozen=True,
    kw_only=True,
    rename={
        "id": "eventId", "run_id": "runId", "seq": "sequence", "time": "timestamp",
        "node": "nodeId", "cause": "causationId",
    },
):  # fmt: skip
    """A recorded fact of a run. ``seq`` counts from 0 without a gap."""

    seq: int
    type: str
    payload: dict[str, Any] = {}
    #: the node it is about, and the id of the event that caused it
    node: str | None = None
    cause: str | None = None
    id: str = ""
    run_id: str = ""
    time: str = ""

    @property
    def terminal(self) -> bool:
        """Nothing comes after it."""
        ended = self.type == "state.snapshot" and self.payload.get("status") in ENDED
        return ended or self.type in TERMINAL


class Spoken(Struct, frozen=True, kw_only=True, rename="camel"):
    """Words that are just being spoken. They are in no log."""

    speech_id: str
    what: Literal["started", "delta", "ended"] = "delta"
    run_id: str = ""
    conversation_id: str = ""
    #: who speaks, at the start
    speaker: str | None = msgspec.field(default=None, name="from")
    delta: str = ""
    index: int = 0
    #: at the end: these words are taken back, and will be in no turn
    void: bool = False


class Frame(Struct, frozen=True):
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


class Frames:
    """Pieces in, whole frames out. ``retry_s`` is what the server asks readers to wait."""

    def __init__(self) -> None:
        self.retry_s: float | None = None
        #: comments, by which a server says that it is still there
        self.comments = 0
        self._rest = b""
        self._size = 0
        self._event, self._id = "", ""
        self._data: list[bytes] = []

    def take(self, piece: bytes) -> list[Frame]:
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        found = []
        for line in lines:
            frame = self._line(line.removesuffix(b"\r"))
            if frame is not None:
                found.append(frame)
        if self._size + len(self._rest) > LARGEST_FRAME:
            raise BadAnswer(f"A frame of the stream is larger than {LARGEST_FRAME} bytes.")
        return found

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            return self._whole()
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
                pass  # a field nobody has heard of
        return None

    def _whole(self) -> Frame | None:
        data, event, id_ = b"\n".join(self._data), self._event, self._id
        self._data, self._event, self._id, self._size = [], "", "", 0
        if not data:
            return None
        return Frame(event, data, int(id_) if id_.isdigit() and len(id_) < 16 else None)
