"""Read a thread's stream in the background, across restarts of the server."""

import json
import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from moot.cli.runs.follow import RETRY_SECONDS
from moot.cli.shared.client import (
    TIMEOUT_SECONDS,
    HttpAnswer,
    HttpClient,
    ServerUnreachable,
    api_path,
    error_from_answer,
)
from moot.cli.shared.errors import CommandError

if TYPE_CHECKING:
    from http.client import HTTPResponse

#: seconds that a lost server may take to come back
PATIENCE = 60.0


class StreamFrame(NamedTuple):
    """A frame: ``event``, ``speech.*``, ``presence``, ``open``, ``lost``, ``back``, ``trouble``."""

    kind: str
    data: Any = None


def read_frames(
    client: HttpClient, thread_id: str, after: int, patience: float
) -> Iterator[StreamFrame]:
    """Yield each event after a sequence once, and the frames between them. End with the run."""
    lost_at: float | None = None
    while True:
        try:
            for frame in _read_stream(client, thread_id, after):
                if lost_at is not None:
                    lost_at = None
                    yield StreamFrame("back")
                if frame.kind == "event":
                    after = frame.data["sequence"]
                yield frame
        except ServerUnreachable:
            now = time.monotonic()
            if lost_at is None:
                lost_at = now
                yield StreamFrame("lost")
            if now - lost_at > patience:
                raise
        time.sleep(RETRY_SECONDS)


def _read_stream(client: HttpClient, thread_id: str, after: int) -> Iterator[StreamFrame]:
    path = api_path("v1", "host", "moot", "threads", thread_id, "stream")
    headers = {"Accept": "text/event-stream"}
    if after >= 0:
        headers["Last-Event-ID"] = str(after)
    with client.open_response("GET", path, None, headers, TIMEOUT_SECONDS) as answer:
        if answer.status == 503:
            return  # the server is stopping or starting
        if answer.status != 200:
            refused = HttpAnswer(answer.status, dict(answer.headers), answer.read())
            raise error_from_answer(refused, client.place)
        yield StreamFrame("open")
        yield from _parse_frames(answer)


def _parse_frames(lines: "HTTPResponse") -> Iterator[StreamFrame]:
    kind = ""
    for line in lines:
        if line.startswith(b"event:"):
            kind = line[6:].strip().decode()
        elif line.startswith(b"data:"):
            is_live = kind == "presence" or kind.startswith("speech.")
            yield StreamFrame(kind if is_live else "event", json.loads(line[5:]))
        elif not line.strip():
            kind = ""


class StreamFeed:
    """Reads frames in its own thread. ``file`` becomes readable when ``take`` has frames."""

    def __init__(self, client: HttpClient, thread_id: str, after: int) -> None:
        self._frames = read_frames(client, thread_id, after, PATIENCE)
        self._queue: queue.SimpleQueue[StreamFrame] = queue.SimpleQueue()
        self.file, self._bell = os.pipe()
        os.set_blocking(self.file, False)
        os.set_blocking(self._bell, False)
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> list[StreamFrame]:
        with suppress(BlockingIOError):
            os.read(self.file, 65_536)
        frames = []
        while not self._queue.empty():
            frames.append(self._queue.get())
        return frames

    def _read(self) -> None:
        try:
            for frame in self._frames:
                self._put(frame)
        except CommandError as error:
            self._put(StreamFrame("trouble", error))
        except Exception as error:  # the reader must not wait for ever
            self._put(StreamFrame("trouble", CommandError(f"the stream cannot be read: {error}")))

    def _put(self, frame: StreamFrame) -> None:
        self._queue.put(frame)
        with suppress(BlockingIOError):  # the pipe is full, so the reader wakes anyway
            os.write(self._bell, b".")
