"""One stream of events, from its cursor to the end of the run.

History comes from the log, the rest from the hub; the seam between them loses nothing and repeats
nothing, because both carry the sequence.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Any

from moot.api.access.trust_local import is_local
from moot.api.http.request import SSE, Receive, Request, Send, encode
from moot.api.runs import snapshot
from moot.core.errors import Unauthenticated
from moot.core.events import decode, decode_head, iso
from moot.engine.head import Head
from moot.engine.streams.hub import Group, Published, Subscription, admits, frame, shown

#: events read at once; how many that may be is found out by their size
PAGE = 1000
FIRST_PAGE = 64
#: bytes of the log that are held while a slow reader takes its time
MOST_HELD = 1 << 18
#: a batch gets through a bad line, and a piece waits for a slow reader, only when it is small
MOST_BATCHED = 100
LARGEST_PIECE = 65_536
RETRY = b"retry: 2000\n\n"
KEEPALIVE = b":keepalive\n\n"
UPDATES_ONLY = frozenset({"updates"})
HEADERS = [
    (b"content-type", f"{SSE}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]


class Reader:
    """Writes one stream; ``write`` is what the application calls."""

    greeting = RETRY

    def __init__(
        self,
        request: Request,
        head: Head,
        modes: frozenset[str],
        buffer_ms: int,
        after: int,
        spoken: bool = False,
    ) -> None:
        run = head.run
        self._request, self._services = request, request.services
        self._tenant, self._run_id, self._modes = run.tenant, run.run_id, modes
        self._buffer_ms = buffer_ms
        self._spoken = spoken
        #: an id beyond the log is as good as its end
        self._after = min(after, run.next_sequence - 1)
        self._done = run.terminal and self._after == run.next_sequence - 1
        self._page = FIRST_PAGE
        self._held: list[tuple[int, bytes]] = []
        self._weight = 0
        #: when something must be sent: what is held, or a sign of life
        self._due = 0.0
        #: when the key is over
        self._until = _now() + seconds_left(request)
        self._reader: Subscription | None = None
        #: only in values mode: the run folded up to the cursor
        self._folded: Head | None = None

    async def write(self, receive: Receive, send: Send) -> None:
        hub = self._services.host.hub
        holder = self._request.caller.id
        self._reader = reader = hub.subscribe(self._run_id, self._spoken, holder)
        watch = asyncio.ensure_future(_watch(receive, reader))
        try:
            await self._ask_again(reader)
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._run(reader, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            return  # the reader has gone
        finally:
            watch.cancel()
            hub.unsubscribe(self._run_id, reader)

    async def _ask_again(self, reader: Subscription) -> None:
        """A key revoked before the hub knew of this reader is not one it could dismiss."""
        if is_local(self._request.caller):
            return
        try:
            await self._services.keyring.caller(self._request.header("authorization"))
        except Unauthenticated:
            reader.end()

    async def _run(self, reader: Subscription, send: Send) -> None:
        await self._piece(send, self.greeting)
        if "values" in self._modes and not self._gone:
            host = self._services.host
            self._folded = await host.at(self._tenant, self._run_id, self._after)
            if self._after >= 0:
                await self._piece(send, _state_frame((self._after, _state(self._folded))))
        await self._history(send)
        while not self._done and not self._gone:
            if await reader.wait(min(self._due, self._until) - _now()):
                await self._news(reader, send)
            if _now() >= self._due:
                await self._piece(send, self._flush() or KEEPALIVE)
        await self._piece(send, self._flush())

    async def _news(self, reader: Subscription, send: Send) -> None:
        if reader.lagging:
            reader.lagging = False
            reader.waiting.clear()
            await self._history(send)
        else:
            await self._live(reader, send)

    async def _history(self, send: Send) -> None:
        """What is on disk and has not been sent."""
        while not self._done and not self._gone:
            asked = self._page
            rows = await self._services.store.read(self._tenant, self._run_id, self._after, asked)
            last = len(rows) < asked
            kept = fitting(rows, MOST_HELD)
            if len(kept) < len(rows):
                last, self._page = False, len(kept)
            elif len(fitting(rows, MOST_HELD // 2)) == asked:
                self._page = min(PAGE, asked * 2)
            del rows  # no more than that is held while a slow reader takes its time
            await self._events([_published(row) for row in kept], send)
            if last:
                return

    async def _live(self, reader: Subscription, send: Send) -> None:
        """Everything that waits, in few pieces where nobody asked for another form."""
        pieces: list[bytes] = []
        size = 0
        while reader.waiting and not self._over:
            group = reader.waiting.popleft()
            apart = not isinstance(group, bytes) and not self._fits(group)
            if apart or size > LARGEST_PIECE:
                await self._piece(send, b"".join(pieces))
                pieces, size = [], 0
            if isinstance(group, bytes):
                pieces.append(group)
            elif apart:
                await self._apart(group, send)
                continue
            else:
                pieces.append(self._framed(group))
                self._after = group.events[-1].sequence
                self._done = self._done or self._ends(group.events)
            size += len(pieces[-1])
        await self._piece(send, b"".join(pieces))

    def _ends(self, events: Sequence[Published]) -> bool:
        """Whether nothing will come after these."""
        return events[-1].terminal

    def _framed(self, group: Group) -> bytes:
        return group.frames(self._modes)

    def _fits(self, group: Group) -> bool:
        """Whether it can go out as it is framed for everybody."""
        plain = not self._buffer_ms and self._folded is None
        return plain and group.first == self._after + 1 and group.weight <= LARGEST_PIECE

    async def _apart(self, group: Group, send: Send) -> None:
        if group.first > self._after + 1:
            await self._history(send)
        else:
            fresh = [event for event in group.events if event.sequence > self._after]
            await self._events(fresh, send)

    async def _events(self, events: list[Published], send: Send) -> None:
        if not events:
            return
        self._after = events[-1].sequence
        self._done = self._done or self._ends(events)
        if self._buffer_ms:
            await self._hold(events, send)
            return
        for piece in _gathered(self._frames(events)):
            await self._piece(send, piece)
            if self._gone:
                return

    @property
    def _gone(self) -> bool:
        """Nobody reads any more, or may; or the server stops."""
        return (self._reader is not None and self._reader.closed) or self._over

    @property
    def _over(self) -> bool:
        return _now() >= self._until

    async def _hold(self, events: list[Published], send: Send) -> None:
        """The first one held decides when all of them are sent, at the latest."""
        for sequence, document in self._bodies(events):
            if not self._held:
                self._due = min(self._due, _now() + self._buffer_ms / 1000)
            self._held.append((sequence, document))
            self._weight += len(document)
            if len(self._held) == MOST_BATCHED or self._weight > LARGEST_PIECE:
                await self._piece(send, self._flush())
        if self._done or any(event.type == "node.suspended" for event in events):
            await self._piece(send, self._flush())

    def _flush(self) -> bytes:
        """What is held as one batch frame, under the highest sequence in it."""
        held, self._held, self._weight = self._held, [], 0
        if not held:
            return b""
        bodies = b",".join(document for _, document in held)
        return b"id: %d\nevent: batch\ndata: [%b]\n\n" % (held[-1][0], bodies)

    def _frames(self, events: list[Published]) -> Iterator[bytes]:
        if self._folded is None:
            return (frame(event, self._modes) for event in events)
        return map(_state_frame, self._bodies(events))

    def _bodies(self, events: list[Published]) -> Iterator[tuple[int, bytes]]:
        """What the modes show of the events, each with its sequence."""
        for event in events:
            if self._folded is not None:
                self._folded.follow(decode(event.body))
                if admits(UPDATES_ONLY, event.type):
                    yield event.sequence, _state(self._folded)
            elif (mode := admits(self._modes, event.type)) is not None:
                yield event.sequence, shown(event, mode)[1]

    async def _piece(self, send: Send, piece: bytes) -> None:
        if piece:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # a quick reader of a long log must not keep the others waiting
            self._due = _now() + self._services.settings.keepalive_s


def fitting(rows: list[bytes], most: int) -> list[bytes]:
    """As many of the rows, from the first one on, as have so many bytes; one at least."""
    sizes = accumulate(map(len, rows))
    return rows[: max(1, sum(size <= most for size in sizes))]


def _published(row: bytes) -> Published:
    seen = decode_head(row)
    return Published(seen.sequence, seen.type, row)


def _gathered(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Frames in pieces of some size: few sends, and never a whole long log at once."""
    waiting: list[bytes] = []
    size = 0
    for made in frames:
        waiting.append(made)
        size += len(made)
        if size > LARGEST_PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def seconds_left(request: Request) -> float:
    """Until the caller's key is over."""
    at = request.caller.expires_at
    return math.inf if at is None else (at - request.services.clock.millis()) / 1000


def _now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def left(receive: Receive) -> AsyncIterator[asyncio.Event]:
    """Set as soon as the reader has gone."""
    gone = asyncio.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    watching = asyncio.ensure_future(watch())
    try:
        yield gone
    finally:
        watching.cancel()


async def _watch(receive: Receive, reader: Subscription) -> None:
    """A reader that has gone is noticed at once, not at the next event."""
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.end()


def _state(head: Head) -> bytes:
    """The run as it was right after its newest event."""
    sequence = head.run.next_sequence - 1
    document: dict[str, Any] = {
        "eventId": f"{head.run.run_id}.{sequence}.snapshot",
        "runId": head.run.run_id,
        "type": "state.snapshot",
        "timestamp": iso(head.run.updated_at * 1000),
        "sequence": sequence,
        "payload": {**snapshot.snapshot(head), "atSeq": sequence},
    }
    return encode(document)


def _state_frame(state: tuple[int, bytes]) -> bytes:
    return b"id: %d\nevent: state.snapshot\ndata: %b\n\n" % state
