"""Parse server-sent events from another host."""

from typing import NamedTuple

#: a longer frame is refused
MOST_FRAME_BYTES = 4 * 1_048_576


class PeerFrame(NamedTuple):
    id: str
    event: str
    data: bytes


class PeerFrameParser:
    """Turns bytes into whole frames and skips comments. Raise ValueError when a frame does not
    end."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = self._event = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[PeerFrame]:
        self._rest += piece
        frames: list[PeerFrame] = []
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._line(line.rstrip(b"\r"), frames)
        if self._size + len(self._rest) > MOST_FRAME_BYTES:
            raise ValueError("a frame of its stream does not end")
        return frames

    def _line(self, line: bytes, frames: list[PeerFrame]) -> None:
        if not line:
            if self._data:
                frames.append(PeerFrame(self._id, self._event, b"\n".join(self._data)))
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
