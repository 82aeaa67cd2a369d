"""Events out: server-sent events in four modes, as JSON, and by long poll.

History comes from the log, the rest from the hub; the seam between them loses nothing and repeats
nothing, because both carry the sequence.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from moot.api import snapshot
from moot.api.wire import SSE, Endpoint, Receive, Reply, Request, Send, Stream, encode
from moot.core.errors import BadRequest, UnsupportedStreamMode
from moot.core.events import TERMINAL_TYPES, decode, decode_head, iso
from moot.core.run import apply
from moot.engine.head import Head
from moot.engine.hub import MODES, Published, Subscription, admits, frame, shown

PAGE = 1000
MOST_BUFFER_MS = 5000
MOST_BATCHED = 100
RETRY = b"retry: 2000\n\n"
KEEPALIVE = b":keepalive\n\n"


async def events(request: Request) -> Reply | Stream:
    """SSE, or the same as JSON for who does not ask for a stream."""
    modes = _modes(request.query.get("streamMode"))
    buffer_ms = request.integer("bufferMs", 0, 0, MOST_BUFFER_MS)
    tenant, run_id = request.caller.tenant, request.params["run_id"]
    head = await request.services.host.view(tenant, run_id)
    accept = request.header("accept") or "*/*"
    if "application/json" in accept and SSE not in accept:
        return await _as_json(request, head, -1)
    after = _cursor(request.header("last-event-id"))
    return Stream(_Reader(request, head, modes, buffer_ms, after).write)


async def poll(request: Request) -> Reply:
    """Waits for news up to ``timeout`` seconds; answers at once when there is some, or the end."""
    since = request.query.get("lastSequence", request.query.get("since"))
    after = _sequence(since) if since is not None else -1
    timeout = request.integer("timeout", 30, 0, 60)
    tenant, run_id = request.caller.tenant, request.params["run_id"]
    host = request.services.host
    reader = host.hub.subscribe(run_id)
    try:
        head = await host.view(tenant, run_id)
        if head.run.next_sequence - 1 <= after and not head.run.terminal and timeout:
            await reader.wait(timeout)
            head = await host.view(tenant, run_id)
    finally:
        host.hub.unsubscribe(run_id, reader)
    return await _as_json(request, head, after)


async def _as_json(request: Request, head: Head, after: int) -> Reply:
    """A page of the log up to where the run is now; the run may move while it is read."""
    run = head.run
    status, ended, newest = run.status.value, run.terminal, run.next_sequence - 1
    page = min(PAGE, max(0, newest - after))
    rows = await request.services.store.read(run.tenant, run.run_id, after, page) if page else []
    last = min(after, newest) + len(rows)
    tail = encode(
        {
            "isComplete": ended and last == newest,
            "runId": run.run_id,
            "lastEventSeq": last,
            "runStatus": status,
            "isTerminal": ended,
        }
    )
    body = b'{"events":[' + b",".join(rows) + b"]," + tail[1:]
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _modes(text: str | None) -> frozenset[str]:
    """One mode or a comma list; values stands alone."""
    if text is None:
        return frozenset({"updates"})
    asked = [word.strip() for word in text.split(",")]
    modes = frozenset(asked)
    if not modes <= set(MODES) or ("values" in modes and len(modes) > 1):
        raise UnsupportedStreamMode(text[:100], list(MODES))
    return modes


def _cursor(text: str | None) -> int:
    """An id nobody can read means: from the beginning."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else -1


def _sequence(text: str) -> int:
    if not re.fullmatch(r"-1|[0-9]{1,15}", text):
        raise BadRequest(
            "lastSequence must be a whole number, the highest sequence already seen.",
            field="lastSequence",
            value=text[:64],
        )
    return int(text)


class _Reader:
    """One stream from its cursor to the end of the run."""

    def __init__(
        self, request: Request, head: Head, modes: frozenset[str], buffer_ms: int, after: int
    ) -> None:
        run = head.run
        self._services = request.services
        self._tenant, self._run_id, self._modes = run.tenant, run.run_id, modes
        self._buffer_ms = buffer_ms
        #: an id beyond the log is as good as its end
        self._after = min(after, run.next_sequence - 1)
        self._done = run.terminal and self._after == run.next_sequence - 1
        self._held: list[tuple[int, bytes]] = []
        #: when something must be sent: what is held, or a sign of life
        self._due = 0.0
        #: only in values mode: the run folded up to the cursor
        self._folded: Head | None = None

    async def write(self, receive: Receive, send: Send) -> None:
        hub = self._services.host.hub
        reader = hub.subscribe(self._run_id)
        watch = asyncio.ensure_future(_watch(receive, reader))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._run(reader, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            return  # the reader has gone
        finally:
            watch.cancel()
            hub.unsubscribe(self._run_id, reader)

    async def _run(self, reader: Subscription, send: Send) -> None:
        await self._piece(send, RETRY)
        if "values" in self._modes:
            host = self._services.host
            self._folded = await host.at(self._tenant, self._run_id, self._after)
            if self._after >= 0:
                await self._piece(send, _state_frame((self._after, _state(self._folded))))
        await self._history(send)
        while not self._done and not reader.closed:
            if await reader.wait(self._due - _now()):
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
        while not self._done:
            rows = await self._services.store.read(self._tenant, self._run_id, self._after, PAGE)
            found = []
            for row in rows:
                seen = decode_head(row)
                found.append(Published(seen.sequence, seen.type, row))
            await self._events(found, send)
            if len(rows) < PAGE:
                return

    async def _live(self, reader: Subscription, send: Send) -> None:
        """Everything that waits, in one piece where nobody asked for another form."""
        plain = not self._buffer_ms and "values" not in self._modes
        pieces = []
        while reader.waiting:
            group = reader.waiting.popleft()
            if group.first == self._after + 1 and plain:
                pieces.append(group.frames(self._modes))
                self._after = group.events[-1].sequence
                self._done = group.terminal
            elif group.first > self._after + 1:
                await self._piece(send, b"".join(pieces))
                pieces = []
                await self._history(send)
            else:
                fresh = [event for event in group.events if event.sequence > self._after]
                await self._events(fresh, send)
        await self._piece(send, b"".join(pieces))

    async def _events(self, events: list[Published], send: Send) -> None:
        if not events:
            return
        self._after = events[-1].sequence
        self._done = events[-1].type in TERMINAL_TYPES
        if not self._buffer_ms:
            await self._piece(send, b"".join(self._frames(events)))
            return
        self._hold(list(self._bodies(events)))
        suspended = any(event.type == "node.suspended" for event in events)
        if self._done or suspended or len(self._held) >= PAGE:
            await self._piece(send, self._flush())

    def _hold(self, fresh: list[tuple[int, bytes]]) -> None:
        """The first one held decides when all of them are sent."""
        if fresh and not self._held:
            self._due = min(self._due, _now() + self._buffer_ms / 1000)
        self._held += fresh

    def _flush(self) -> bytes:
        """What is held, in batches small enough to get through a bad line."""
        held, self._held = self._held, []
        starts = range(0, len(held), MOST_BATCHED)
        return b"".join(_batch(held[start : start + MOST_BATCHED]) for start in starts)

    def _frames(self, events: list[Published]) -> Iterator[bytes]:
        if self._folded is None:
            return (frame(event, self._modes) for event in events)
        return map(_state_frame, self._bodies(events))

    def _bodies(self, events: list[Published]) -> Iterator[tuple[int, bytes]]:
        """What the modes show of the events, each with its sequence."""
        for event in events:
            if self._folded is not None:
                apply(self._folded.run, decode(event.body))
                if admits(UPDATES_ONLY, event.type):
                    yield event.sequence, _state(self._folded)
            elif (mode := admits(self._modes, event.type)) is not None:
                yield event.sequence, shown(event, mode)[1]

    async def _piece(self, send: Send, piece: bytes) -> None:
        if piece:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            self._due = _now() + self._services.settings.keepalive_s


def _batch(held: list[tuple[int, bytes]]) -> bytes:
    """One frame, under the highest sequence in it."""
    bodies = b",".join(body for _, body in held)
    return b"id: %d\nevent: batch\ndata: [%b]\n\n" % (held[-1][0], bodies)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _watch(receive: Receive, reader: Subscription) -> None:
    """A reader that has gone is noticed at once, not at the next event."""
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.closed = True
    reader.wake()


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


UPDATES_ONLY = frozenset({"updates"})
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]

MODE = {"type": "string", "default": "updates"}
ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/runs/{run_id}/events", call=events, scope="runs:read", media=SSE,
        summary="Stream a run's events (or read them as JSON)", errors=(404,),
        query={
            "streamMode": (MODE, "values, updates, messages, debug, or a comma list"),
            "bufferMs": ({"type": "integer", "minimum": 0, "maximum": MOST_BUFFER_MS},
                         "gather events for so long into one batch frame"),
        },
    ),
    Endpoint(
        method="GET", path="/v1/runs/{run_id}/events/poll", call=poll, scope="runs:read",
        summary="Read a run's events, waiting for news", errors=(404,),
        query={
            "lastSequence": ({"type": "integer", "minimum": -1}, "highest sequence already seen"),
            "timeout": ({"type": "integer", "minimum": 0, "maximum": 60}, "seconds to wait"),
        },
    ),
)  # fmt: skip
