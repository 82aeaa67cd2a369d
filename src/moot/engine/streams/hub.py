"""Publishing: what has been committed reaches every subscriber of its run, in order.

A group of events is framed once; every subscriber in the same mode gets the same bytes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable

from msgspec import Struct

from moot.core.events import MESSAGES, TERMINAL_TYPES, UPDATES

MODES = ("values", "updates", "messages", "debug")
#: bytes that wait for one reader before it is sent back to the log
MOST_WAITING = 1 << 20


class Published(Struct, frozen=True, gc=False):
    """One committed event on its way out."""

    sequence: int
    type: str
    body: bytes

    @property
    def terminal(self) -> bool:
        return self.type in TERMINAL_TYPES


class Group:
    """The events of one run in one commit, with their frames per set of modes."""

    __slots__ = ("_frames", "events", "first", "weight")

    def __init__(self, events: list[Published]) -> None:
        self.events = events
        self.first = events[0].sequence
        self.weight = sum(len(event.body) for event in events)
        self._frames: dict[Hashable, bytes] = {}

    def frames(self, modes: frozenset[str]) -> bytes:
        """All frames of the group for these modes in one piece, made once."""
        return self.made(modes, lambda events: (frame(event, modes) for event in events))

    def made(self, form: Hashable, make: Callable[[list[Published]], Iterable[bytes]]) -> bytes:
        """The same in any other form, which is made once as well."""
        made = self._frames.get(form)
        if made is None:
            made = self._frames[form] = b"".join(make(self.events))
        return made


def admits(modes: frozenset[str], type_: str) -> str | None:
    """The mode that lets an event through, the narrowest first."""
    if type_ in UPDATES and "updates" in modes:
        return "updates"
    if type_ in MESSAGES and "messages" in modes:
        return "messages"
    return "debug" if "debug" in modes else None


def shown(event: Published, mode: str) -> tuple[str, bytes]:
    """The event's name and body as a mode shows it: chunks have a name of their own there."""
    if mode == "messages":
        body = event.body.replace(b'"type":"output.chunk"', b'"type":"ai.message.chunk"', 1)
        return "ai.message.chunk", body
    return event.type, event.body


def frame(event: Published, modes: frozenset[str]) -> bytes:
    mode = admits(modes, event.type)
    if mode is None:
        return b""
    name, body = shown(event, mode)
    if len(modes) > 1:
        name = mode
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.sequence, name.encode(), body)


class Subscription:
    """One reader of one run. A slow one is dropped back to its cursor and reads the log again."""

    __slots__ = ("_limit", "_wake", "_weight", "closed", "holder", "lagging", "spoken", "waiting")

    def __init__(self, limit: int, spoken: bool = False, holder: str = "") -> None:
        self._limit = limit
        #: of what waits, and of what was taken since nothing did
        self._weight = 0
        self._wake: asyncio.Future[None] | None = None
        #: groups of events, and frames of what is being spoken for who wants them
        self.waiting: deque[Group | bytes] = deque()
        self.spoken = spoken
        #: the id of the key it was opened with
        self.holder = holder
        self.lagging = False
        self.closed = False

    def put(self, group: Group | bytes) -> None:
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
        """Until something arrives or the hub closes; False when the time is over."""
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


def inbox_of(tenant: str) -> str:
    """The name under which to listen to a tenant's inbox; no run is called so."""
    return f"inbox {tenant}"


class Hub:
    """Who listens to which run, or to an inbox."""

    def __init__(self, backlog: int = 256) -> None:
        self._backlog = backlog
        self._readers: dict[str, set[Subscription]] = {}
        self.closed = False

    def subscribe(self, run_id: str, spoken: bool = False, holder: str = "") -> Subscription:
        reader = Subscription(self._backlog, spoken, holder)
        reader.closed = self.closed
        self._readers.setdefault(run_id, set()).add(reader)
        return reader

    def unsubscribe(self, run_id: str, reader: Subscription) -> None:
        readers = self._readers.get(run_id)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers[run_id]

    def publish(self, run_id: str, events: list[Published]) -> None:
        readers = self._readers.get(run_id)
        if readers and events:
            group = Group(events)
            for reader in readers:
                reader.put(group)

    def listens(self, run_id: str) -> bool:
        """Whether anybody does, to the run or what is spoken in it."""
        return run_id in self._readers

    def tell(self, run_id: str, frame: bytes) -> None:
        """A frame that is in no log, for those who listen now."""
        for reader in self._readers.get(run_id, ()):
            if reader.spoken:
                reader.put(frame)

    def ring(self, name: str) -> None:
        """Something changed that is read from the store: whoever waits for it looks again."""
        for reader in self._readers.get(name, ()):
            reader.lagging = True
            reader.wake()

    def close(self) -> None:
        """End every stream: servers hang on open ones otherwise."""
        self.closed = True
        for reader in self._everyone():
            reader.end()

    def dismiss(self, holder: str) -> None:
        """The key is not good any more: whatever it has opened ends."""
        for reader in self._everyone():
            if reader.holder == holder:
                reader.waiting.clear()
                reader.end()

    def count(self) -> int:
        return sum(len(readers) for readers in self._readers.values())

    def _everyone(self) -> Iterable[Subscription]:
        return [reader for readers in self._readers.values() for reader in readers]
