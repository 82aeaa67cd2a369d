"""Parse server-sent events from pieces of bytes, within a size limit."""

from typing import NamedTuple


class SseFrame(NamedTuple):
    """One frame of a stream. ``id`` is empty if the frame itself has none."""

    event: str
    data: bytes
    id: str = ""


class FrameTooLarge(ValueError):
    """A frame does not end within the size limit."""


class SseParser:
    """Turns pieces of bytes into frames. ``retry_s`` is the sender's wish for a reconnect delay."""

    def __init__(self, most_bytes: int) -> None:
        self.retry_s: float | None = None
        #: the number of comments, which servers send as signs of life
        self.comments = 0
        self._most_bytes = most_bytes
        self._rest = b""
        self._size = 0
        self._event = self._id = ""
        self._data: list[bytes] = []

    def take(self, piece: bytes) -> list[SseFrame]:
        """Return the frames that this piece completes. Raise FrameTooLarge."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        frames = []
        for line in lines:
            frame = self._take_line(line.removesuffix(b"\r"))
            if frame is not None:
                frames.append(frame)
        if self._size + len(self._rest) > self._most_bytes:
            raise FrameTooLarge(f"a frame is larger than {self._most_bytes} bytes")
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
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
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
        return SseFrame(event, data, id_) if data else None
