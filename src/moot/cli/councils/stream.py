"""A thread's stream, read beside whatever else is waited for; also over a restart of the server."""

import json
import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from moot.cli.runs.follow import RETRY
from moot.cli.shared.client import SECONDS, Answer, Client, Unreachable, path_of, refusal
from moot.cli.shared.errors import Trouble

if TYPE_CHECKING:
    from http.client import HTTPResponse

#: how long a server that went away may take to come back
PATIENCE = 60.0


class Frame(NamedTuple):
    """``event``, ``speech.*``, ``presence``, ``lost`` and ``back``, or ``trouble``."""

    kind: str
    data: Any = None


def frames(client: Client, thread_id: str, after: int, patience: float) -> Iterator[Frame]:
    """Events from a position on, each once, and the words between them. Ends when the run does."""
    lost_at: float | None = None
    while True:
        try:
            for frame in _stream(client, thread_id, after):
                if lost_at is not None:
                    lost_at = None
                    yield Frame("back")
                if frame.kind == "event":
                    after = frame.data["sequence"]
                yield frame
        except Unreachable:
            now = time.monotonic()
            if lost_at is None:
                lost_at = now
                yield Frame("lost")
            if now - lost_at > patience:
                raise
        time.sleep(RETRY)


def _stream(client: Client, thread_id: str, after: int) -> Iterator[Frame]:
    path = path_of("v1", "host", "moot", "threads", thread_id, "stream")
    headers = {"Accept": "text/event-stream"}
    if after >= 0:
        headers["Last-Event-ID"] = str(after)
    with client.opened("GET", path, None, headers, SECONDS) as answer:
        if answer.status == 503:
            return  # it is stopping, or has only just begun
        if answer.status != 200:
            refused = Answer(answer.status, dict(answer.headers), answer.read())
            raise refusal(refused, client.place)
        yield Frame("open")
        yield from _frames(answer)


def _frames(lines: "HTTPResponse") -> Iterator[Frame]:
    kind = ""
    for line in lines:
        if line.startswith(b"event:"):
            kind = line[6:].strip().decode()
        elif line.startswith(b"data:"):
            passing = kind == "presence" or kind.startswith("speech.")
            yield Frame(kind if passing else "event", json.loads(line[5:]))
        elif not line.strip():
            kind = ""


class Feed:
    """Reads in a thread of its own. ``file`` can be waited for; ``take`` gives what has come."""

    def __init__(self, client: Client, thread_id: str, after: int) -> None:
        self._frames = frames(client, thread_id, after, PATIENCE)
        self._come: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self.file, self._bell = os.pipe()
        os.set_blocking(self.file, False)
        os.set_blocking(self._bell, False)
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> list[Frame]:
        with suppress(BlockingIOError):
            os.read(self.file, 65_536)
        found = []
        while not self._come.empty():
            found.append(self._come.get())
        return found

    def _read(self) -> None:
        try:
            for frame in self._frames:
                self._put(frame)
        except Trouble as trouble:
            self._put(Frame("trouble", trouble))
        except Exception as error:  # whatever it is, the other side must not wait for ever
            self._put(Frame("trouble", Trouble(f"the stream cannot be read: {error}")))

    def _put(self, frame: Frame) -> None:
        self._come.put(frame)
        with suppress(BlockingIOError):  # it rings already
            os.write(self._bell, b".")
