"""Read a thread's stream in the background."""

import os
import queue
import threading
from contextlib import suppress

from moot.cli.shared.client import Api
from moot.cli.shared.errors import CommandError
from moot.cli.shared.streams import StreamFrame, follow_stream
from moot.client.operations import threads

#: seconds that a lost server may take to come back
PATIENCE = 60.0


class StreamFeed:
    """Reads frames in its own thread. ``file`` becomes readable when ``take`` has frames."""

    def __init__(self, api: Api, thread_id: str, after: int) -> None:
        self._frames = follow_stream(api, threads.stream_thread(thread_id), after, PATIENCE)
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
