"""Frames of an event stream, out of the pieces they arrive in."""

from typing import NamedTuple

#: one event is never longer than this, or it is not one
MOST_FRAME_BYTES = 4 * 1_048_576


class Frame(NamedTuple):
    id: str
    event: str
    data: bytes


class Frames:
    """Fed with bytes, gives whole frames; comments are skipped. Raises ValueError when a frame
    does not end."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = self._event = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[Frame]:
        self._rest += piece
        found: list[Frame] = []
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._line(line.rstrip(b"\r"), found)
        if self._size + len(self._rest) > MOST_FRAME_BYTES:
            raise ValueError("a frame of its stream does not end")
        return found

    def _line(self, line: bytes, found: list[Frame]) -> None:
        if not line:
            if self._data:
                found.append(Frame(self._id, self._event, b"\n".join(self._data)))
            self._event, self._data, self._size = "", [], 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
