"""Follow a child run on another host, by its event stream or else by polling."""

import asyncio
from collections.abc import Awaitable
from typing import Protocol

import msgspec
from msgspec import Struct

from moot.core.catalogue import TERMINAL_TYPES
from moot.core.payloads.conversations import ConversationEnded, ConversationOpened
from moot.core.payloads.interrupts import (
    ApprovalReceived,
    ApprovalRequested,
    ClarificationRequested,
    ClarificationResolved,
    InterruptRequested,
    InterruptResolved,
)
from moot.core.payloads.nodes import NodeDispatched, NodeResumed, NodeSuspended
from moot.core.payloads.runs import PauseBegan, RunResumed
from moot.core.state.status import TERMINAL, Status
from moot.core.trace import Trace
from moot.engine.peers import calls
from moot.engine.peers.calls import Peer, RemoteRun
from moot.net.outbound import CallFailed, IncomingResponse, TargetRefused
from moot.wire.sse import FrameTooLarge, SseFrame, SseParser

#: events that may change the status of a run
STATUS_EVENTS = TERMINAL_TYPES | {
    PauseBegan.event_type, RunResumed.event_type, NodeSuspended.event_type,
    NodeResumed.event_type, NodeDispatched.event_type, InterruptRequested.event_type,
    InterruptResolved.event_type, ApprovalRequested.event_type, ApprovalReceived.event_type,
    ClarificationRequested.event_type, ClarificationResolved.event_type,
    ConversationOpened.event_type, ConversationEnded.event_type,
}  # fmt: skip
POLL_SECONDS = 2.0
#: between two pieces of a stream; hosts send a comment every 30 s
SILENCE_SECONDS = 75.0
MOST_FRAME_BYTES = 4 * 1_048_576
#: statuses that count as running
AS_RUNNING = frozenset({Status.PENDING, Status.CANCELLING})


class WatchedEvent(Struct, frozen=True, rename="camel"):
    """The fields of an event that the watch reads."""

    type: str
    event_id: str = ""


class StatusChanged(Protocol):
    def __call__(self, status: Status) -> Awaitable[None]: ...


_event_decoder = msgspec.json.Decoder(WatchedEvent)


class RemoteRunWatch:
    """One child. The watch keeps its place in the stream over any number of connections."""

    def __init__(self, peer: Peer, child: str, trace: Trace, changed: StatusChanged) -> None:
        self._peer, self._child, self._trace, self._changed = peer, child, trace, changed
        self._last = ""
        #: the last reported status; the parent may show one from before this watch
        self._status: Status | None = None
        #: the id of the event that ended the run, once it has arrived
        self.ended_by: str | None = None
        #: whether anything has arrived since the caller reset this
        self.moved = False

    async def once(self, streams: asyncio.Semaphore) -> RemoteRun | None:
        """Follow the run until it or its stream ends. Raise PeerError."""
        if streams.locked():
            return await self._poll()
        async with streams:
            streamed = await self._stream()
        if streamed is None:
            return await self._poll()
        return streamed if isinstance(streamed, RemoteRun) else None

    async def _look(self) -> RemoteRun | None:
        """Return the run if it has ended. Otherwise report its status when that is new."""
        remote_run = await calls.read_remote_run(self._peer, self._child, self._trace)
        if remote_run.status in TERMINAL:
            return remote_run
        status = Status.RUNNING if remote_run.status in AS_RUNNING else remote_run.status
        if status is not self._status:
            await self._changed(status)
            self._status = status
        return None

    async def _poll(self) -> RemoteRun | None:
        remote_run = await self._look()
        self.moved = True
        if remote_run is None:
            await asyncio.sleep(POLL_SECONDS)
        return remote_run

    async def _stream(self) -> RemoteRun | bool | None:
        """Read the event stream. Return None when the host has none."""
        path = f"/v1/runs/{self._child}/events?streamMode=updates"
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        request = self._peer.request("GET", path, self._trace, headers)
        try:
            async with self._peer.outbound.open(request) as response:
                kind = response.headers.get("content-type", "")
                if response.status != 200 or "event-stream" not in kind:
                    return None
                return await self._read(response, SseParser(MOST_FRAME_BYTES))
        except (CallFailed, TargetRefused) as failure:
            raise self._peer.call_error(failure) from failure
        except FrameTooLarge as flood:
            raise self._peer.invalid_answer_error("a frame of its stream does not end") from flood

    async def _read(self, response: IncomingResponse, parser: SseParser) -> RemoteRun | bool:
        async for piece in response.pieces(SILENCE_SECONDS):
            status_changes = [self._note(frame) for frame in parser.take(piece)]
            if True in status_changes:
                remote_run = await self._look()
                if remote_run is not None:
                    return remote_run
        return await self._look() or True

    def _note(self, frame: SseFrame) -> bool:
        """Return whether the run may have another status after this frame."""
        self.moved = True
        if _is_printable(frame.id):
            self._last = frame.id
        try:
            event = _event_decoder.decode(frame.data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return True  # an unknown form may mean a new status
        if event.type in TERMINAL_TYPES and _is_printable(event.event_id):
            self.ended_by = event.event_id
        return event.type in STATUS_EVENTS


def _is_printable(text: str) -> bool:
    """Return whether the text may go into a header and a log."""
    return 0 < len(text) <= 128 and text.isascii() and text.isprintable()
