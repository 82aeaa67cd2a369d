"""Publish committed events to every subscriber of their run, in order.

A group of events is framed once. Every subscriber in the same mode gets the same bytes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable

from msgspec import Struct

from moot.core.catalogue import MESSAGE_TYPES, TERMINAL_TYPES, UPDATE_TYPES

MODES = ("values", "updates", "messages", "debug")
#: bytes that may wait for one reader before it must read the log
MOST_WAITING = 1 << 20


class Published(Struct, frozen=True, gc=False):
    """One committed event on its way to subscribers."""

    sequence: int
    type: str
    body: bytes

    @property
    def terminal(self) -> bool:
        return self.type in TERMINAL_TYPES


class EventGroup:
    """The events of one run in one commit, with their frames per set of modes."""

    __slots__ = ("_frames", "events", "first", "weight")

    def __init__(self, events: list[Published]) -> None:
        self.events = events
        self.first = events[0].sequence
        self.weight = sum(len(event.body) for event in events)
        self._frames: dict[Hashable, bytes] = {}

    def frames(self, modes: frozenset[str]) -> bytes:
        """Return all frames of the group for these modes as one piece, made once."""
        return self.made(modes, lambda events: (sse_frame(event, modes) for event in events))

    def made(self, form: Hashable, make: Callable[[list[Published]], Iterable[bytes]]) -> bytes:
        """Return the events in another form, made once as well."""
        encoded = self._frames.get(form)
        if encoded is None:
            encoded = self._frames[form] = b"".join(make(self.events))
        return encoded


def admitting_mode(modes: frozenset[str], type_: str) -> str | None:
    """Return the narrowest mode that shows the event, or None."""
    if type_ in UPDATE_TYPES and "updates" in modes:
        return "updates"
    if type_ in MESSAGE_TYPES and "messages" in modes:
        return "messages"
    return "debug" if "debug" in modes else None


def event_in_mode(event: Published, mode: str) -> tuple[str, bytes]:
    """Return the event's name and body in a mode. Chunks have their own name in ``messages``."""
    if mode == "messages":
        body = event.body.replace(b'"type":"output.chunk"', b'"type":"ai.message.chunk"', 1)
        return "ai.message.chunk", body
    return event.type, event.body


def sse_frame(event: Published, modes: frozenset[str]) -> bytes:
    mode = admitting_mode(modes, event.type)
    if mode is None:
        return b""
    name, body = event_in_mode(event, mode)
    if len(modes) > 1:
        name = mode
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.sequence, name.encode(), body)


class StreamSubscription:
    """One reader of one run. A slow one loses its queue and reads the log from its cursor."""

    __slots__ = ("_limit", "_wake", "_weight", "closed", "holder", "lagging", "spoken", "waiting")

    def __init__(self, limit: int, spoken: bool = False, holder: str = "") -> None:
        self._limit = limit
        #: bytes queued since the queue was last empty
        self._weight = 0
        self._wake: asyncio.Future[None] | None = None
        #: groups of events, and frames of live speech for readers that want them
        self.waiting: deque[EventGroup | bytes] = deque()
        self.spoken = spoken
        #: the id of the key it was opened with
        self.holder = holder
        self.lagging = False
        self.closed = False

    def put(self, group: EventGroup | bytes) -> None:
        if self.closed:
            return
        weight = len(group) if isinstance(group, bytes) else group.weight
        self._weight = self._weight + weight if self.waiting else weight
        if len(self.waiting) >= self._limit or (self.waiting and self._weight > MOST_WAITING):
            self.waiting.clear()
            self.lagging = True
        else:
            self.waiting.append(group)
        self.wake()

    def end(self) -> None:
        self.closed = True
        self.wake()

    def wake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def wait(self, timeout: float) -> bool:
        """Wait until something arrives or the hub closes. Return False when the time is over."""
        if self.waiting or self.lagging or self.closed:
            return True
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        handle = loop.call_later(timeout, self.wake)
        try:
            await self._wake
        finally:
            handle.cancel()
            self._wake = None
        return bool(self.waiting or self.lagging or self.closed)


def inbox_channel(tenant: str) -> str:
    """Return the name to subscribe to for a tenant's inbox; no run has such a name."""
    return f"inbox {tenant}"


class Hub:
    """The readers of each run and inbox."""

    def __init__(self, backlog: int = 256) -> None:
        self._backlog = backlog
        self._readers: dict[str, set[StreamSubscription]] = {}
        self.closed = False

    def subscribe(self, run_id: str, spoken: bool = False, holder: str = "") -> StreamSubscription:
        reader = StreamSubscription(self._backlog, spoken, holder)
        reader.closed = self.closed
        self._readers.setdefault(run_id, set()).add(reader)
        return reader

    def unsubscribe(self, run_id: str, reader: StreamSubscription) -> None:
        readers = self._readers.get(run_id)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers[run_id]

    def publish(self, run_id: str, events: list[Published]) -> None:
        readers = self._readers.get(run_id)
        if readers and events:
            group = EventGroup(events)
            for reader in readers:
                reader.put(group)

    def has_readers(self, run_id: str) -> bool:
        """Return whether the run has any reader."""
        return run_id in self._readers

    def tell(self, run_id: str, frame: bytes) -> None:
        """Send a frame that is in no log to current readers."""
        for reader in self._readers.get(run_id, ()):
            if reader.spoken:
                reader.put(frame)

    def ring(self, name: str) -> None:
        """Make the readers of this name read the store again."""
        for reader in self._readers.get(name, ()):
            reader.lagging = True
            reader.wake()

    def close(self) -> None:
        """End every stream, because servers wait for open ones."""
        self.closed = True
        for reader in self._everyone():
            reader.end()

    def dismiss(self, holder: str) -> None:
        """End every stream that was opened with this key."""
        for reader in self._everyone():
            if reader.holder == holder:
                reader.waiting.clear()
                reader.end()

    def count(self) -> int:
        return sum(len(readers) for readers in self._readers.values())

    def _everyone(self) -> Iterable[StreamSubscription]:
        return [reader for readers in self._readers.values() for reader in readers]
