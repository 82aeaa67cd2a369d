"""Stream a run's events from a cursor to the end of the run.

Old events come from the log, new ones from the hub. Both carry the sequence, so the change from one
to the other loses and repeats nothing.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate

from msgspec import to_builtins

from moot.api.access.trust_local import is_local
from moot.api.http.request import SSE, Receive, Request, Send, encode
from moot.api.runs import snapshot
from moot.core.errors import Unauthenticated
from moot.core.events import decode, decode_head, iso
from moot.core.payloads.nodes import NodeSuspended
from moot.engine.head import Head
from moot.engine.streams.hub import (
    EventGroup,
    Published,
    StreamSubscription,
    admitting_mode,
    event_in_mode,
    sse_frame,
)

#: Events read at once. Their size decides how many.
PAGE = 1000
FIRST_PAGE = 64
#: Bytes of the log held for a slow reader.
MOST_HELD = 1 << 18
#: Limits of one batch and of one piece.
MOST_BATCHED = 100
LARGEST_PIECE = 65_536
RETRY_FRAME = b"retry: 2000\n\n"
KEEPALIVE_FRAME = b":keepalive\n\n"
UPDATES_ONLY = frozenset({"updates"})
HEADERS = [
    (b"content-type", f"{SSE}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]


class RunEventStream:
    """One stream of events. The application calls ``write``."""

    greeting = RETRY_FRAME

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
        #: A cursor beyond the log means its end.
        self._after = min(after, run.next_sequence - 1)
        self._done = run.terminal and self._after == run.next_sequence - 1
        self._page = FIRST_PAGE
        self._held: list[tuple[int, bytes]] = []
        self._weight = 0
        #: When the next batch or keepalive must be sent.
        self._due = 0.0
        #: When the key expires.
        self._until = _now() + seconds_until_expiry(request)
        self._subscription: StreamSubscription | None = None
        #: The run folded up to the cursor, only in values mode.
        self._folded: Head | None = None

    async def write(self, receive: Receive, send: Send) -> None:
        hub = self._services.host.hub
        holder = self._request.caller.id
        self._subscription = reader = hub.subscribe(self._run_id, self._spoken, holder)
        watch = asyncio.ensure_future(_end_on_disconnect(receive, reader))
        try:
            await self._check_key_again(reader)
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._run(reader, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            return  # the reader has left
        finally:
            watch.cancel()
            hub.unsubscribe(self._run_id, reader)

    async def _check_key_again(self, reader: StreamSubscription) -> None:
        """End the stream of a key that was revoked before the hub knew of this reader."""
        if is_local(self._request.caller):
            return
        try:
            await self._services.keyring.caller(self._request.header("authorization"))
        except Unauthenticated:
            reader.end()

    async def _run(self, reader: StreamSubscription, send: Send) -> None:
        await self._send_piece(send, self.greeting)
        if "values" in self._modes and not self._is_gone:
            host = self._services.host
            self._folded = await host.runs.at(self._tenant, self._run_id, self._after)
            if self._after >= 0:
                await self._send_piece(
                    send, _state_frame((self._after, _state_event(self._folded)))
                )
        await self._send_history(send)
        while not self._done and not self._is_gone:
            if await reader.wait(min(self._due, self._until) - _now()):
                await self._send_news(reader, send)
            if _now() >= self._due:
                await self._send_piece(send, self._flush() or KEEPALIVE_FRAME)
        await self._send_piece(send, self._flush())

    async def _send_news(self, reader: StreamSubscription, send: Send) -> None:
        if reader.lagging:
            reader.lagging = False
            reader.waiting.clear()
            await self._send_history(send)
        else:
            await self._send_live(reader, send)

    async def _send_history(self, send: Send) -> None:
        """Send what is on disk and was not sent yet."""
        while not self._done and not self._is_gone:
            limit = self._page
            rows = await self._services.store.read(self._tenant, self._run_id, self._after, limit)
            last = len(rows) < limit
            fitting = fit_rows(rows, MOST_HELD)
            if len(fitting) < len(rows):
                last, self._page = False, len(fitting)
            elif len(fit_rows(rows, MOST_HELD // 2)) == limit:
                self._page = min(PAGE, limit * 2)
            del rows  # hold no more than this for a slow reader
            await self._send_events([_published_from_row(row) for row in fitting], send)
            if last:
                return

    async def _send_live(self, reader: StreamSubscription, send: Send) -> None:
        """Send all waiting groups, in few pieces where frames can be shared."""
        pieces: list[bytes] = []
        size = 0
        while reader.waiting and not self._is_expired:
            group = reader.waiting.popleft()
            apart = not isinstance(group, bytes) and not self._is_shared(group)
            if apart or size > LARGEST_PIECE:
                await self._send_piece(send, b"".join(pieces))
                pieces, size = [], 0
            if isinstance(group, bytes):
                pieces.append(group)
            elif apart:
                await self._send_apart(group, send)
                continue
            else:
                pieces.append(self._frame_group(group))
                self._after = group.events[-1].sequence
                self._done = self._done or self._is_end(group.events)
            size += len(pieces[-1])
        await self._send_piece(send, b"".join(pieces))

    def _is_end(self, events: Sequence[Published]) -> bool:
        """Return whether no event follows these."""
        return events[-1].terminal

    def _frame_group(self, group: EventGroup) -> bytes:
        return group.frames(self._modes)

    def _is_shared(self, group: EventGroup) -> bool:
        """Return whether the group's frame for all readers fits this reader."""
        plain = not self._buffer_ms and self._folded is None
        return plain and group.first == self._after + 1 and group.weight <= LARGEST_PIECE

    async def _send_apart(self, group: EventGroup, send: Send) -> None:
        if group.first > self._after + 1:
            await self._send_history(send)
        else:
            fresh = [event for event in group.events if event.sequence > self._after]
            await self._send_events(fresh, send)

    async def _send_events(self, events: list[Published], send: Send) -> None:
        if not events:
            return
        self._after = events[-1].sequence
        self._done = self._done or self._is_end(events)
        if self._buffer_ms:
            await self._buffer_events(events, send)
            return
        for piece in _join_frames(self._frames(events)):
            await self._send_piece(send, piece)
            if self._is_gone:
                return

    @property
    def _is_gone(self) -> bool:
        """Return whether the reader has left or may not read any more, or the server stops."""
        return (self._subscription is not None and self._subscription.closed) or self._is_expired

    @property
    def _is_expired(self) -> bool:
        return _now() >= self._until

    async def _buffer_events(self, events: list[Published], send: Send) -> None:
        """Collect events for one batch.

        The first event decides when the batch is sent at the latest.
        """
        for sequence, document in self._bodies(events):
            if not self._held:
                self._due = min(self._due, _now() + self._buffer_ms / 1000)
            self._held.append((sequence, document))
            self._weight += len(document)
            if len(self._held) == MOST_BATCHED or self._weight > LARGEST_PIECE:
                await self._send_piece(send, self._flush())
        if self._done or any(event.type == NodeSuspended.event_type for event in events):
            await self._send_piece(send, self._flush())

    def _flush(self) -> bytes:
        """Return the collected events as one batch frame, under the highest sequence in it."""
        batch, self._held, self._weight = self._held, [], 0
        if not batch:
            return b""
        bodies = b",".join(document for _, document in batch)
        return b"id: %d\nevent: batch\ndata: [%b]\n\n" % (batch[-1][0], bodies)

    def _frames(self, events: list[Published]) -> Iterator[bytes]:
        if self._folded is None:
            return (sse_frame(event, self._modes) for event in events)
        return map(_state_frame, self._bodies(events))

    def _bodies(self, events: list[Published]) -> Iterator[tuple[int, bytes]]:
        """Yield what the modes show of the events, each with its sequence."""
        for event in events:
            if self._folded is not None:
                self._folded.follow(decode(event.body))
                if admitting_mode(UPDATES_ONLY, event.type):
                    yield event.sequence, _state_event(self._folded)
            elif (mode := admitting_mode(self._modes, event.type)) is not None:
                yield event.sequence, event_in_mode(event, mode)[1]

    async def _send_piece(self, send: Send, piece: bytes) -> None:
        if piece:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # let other tasks run during a long log
            self._due = _now() + self._services.settings.keepalive_s


def fit_rows(rows: list[bytes], most: int) -> list[bytes]:
    """Return the first rows that have at most so many bytes together, but at least one row."""
    sizes = accumulate(map(len, rows))
    return rows[: max(1, sum(size <= most for size in sizes))]


def _published_from_row(row: bytes) -> Published:
    head = decode_head(row)
    return Published(head.sequence, head.type, row)


def _join_frames(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Join frames to pieces of some size: few sends, and never a whole long log at once."""
    waiting: list[bytes] = []
    size = 0
    for each in frames:
        waiting.append(each)
        size += len(each)
        if size > LARGEST_PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def seconds_until_expiry(request: Request) -> float:
    """Return the seconds until the caller's key expires."""
    at = request.caller.expires_at
    return math.inf if at is None else (at - request.now()) / 1000


def _now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def watch_disconnect(receive: Receive) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set as soon as the reader disconnects."""
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


async def _end_on_disconnect(receive: Receive, reader: StreamSubscription) -> None:
    """End the subscription as soon as the reader disconnects, not at the next event."""
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.end()


def _state_event(head: Head) -> bytes:
    """Return the run's state right after its newest event as an event."""
    sequence = head.run.next_sequence - 1
    document = {
        "eventId": f"{head.run.run_id}.{sequence}.snapshot",
        "runId": head.run.run_id,
        "type": "state.snapshot",
        "timestamp": iso(head.run.updated_at * 1000),
        "sequence": sequence,
        "payload": {**to_builtins(snapshot.run_snapshot(head)), "atSeq": sequence},
    }
    return encode(document)


def _state_frame(state: tuple[int, bytes]) -> bytes:
    return b"id: %d\nevent: state.snapshot\ndata: %b\n\n" % state
