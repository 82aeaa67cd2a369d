"""Following a child run on another host: by its stream of events, else by looking now and then."""

import asyncio
from collections.abc import Awaitable
from typing import Protocol

import msgspec
from msgspec import Struct

from moot.core.events import TERMINAL_TYPES
from moot.core.state.status import TERMINAL, Status
from moot.core.trace import Trace
from moot.engine.peers import calls, http
from moot.engine.peers.calls import Peer, Shown
from moot.engine.peers.http import NoAnswer, Nonsense
from moot.engine.peers.sse import Frame, Frames

#: events after which a run may have another status
TURNS = TERMINAL_TYPES | {
    "run.paused", "run.resumed", "node.suspended", "node.resumed", "node.dispatched",
    "interrupt.requested", "interrupt.resolved", "approval.requested", "approval.received",
    "clarification.requested", "clarification.resolved", "conversation.opened",
    "conversation.closed",
}  # fmt: skip
POLL_SECONDS = 2.0
#: statuses that say no more than that the run goes on
AS_RUNNING = frozenset({Status.PENDING, Status.CANCELLING})


class Told(Struct, frozen=True, rename="camel"):
    """The little that is read of an event."""

    type: str
    event_id: str = ""


class Changed(Protocol):
    """Told each status that is new."""

    def __call__(self, status: Status) -> Awaitable[None]: ...


_told = msgspec.json.Decoder(Told)


class Watch:
    """One child. It remembers how far it has read, over any number of connections."""

    def __init__(self, peer: Peer, child: str, trace: Trace, changed: Changed) -> None:
        self._peer, self._child, self._trace, self._changed = peer, child, trace, changed
        self._last = ""
        #: as it was last told; what the parent shows may be older than this watch
        self._status: Status | None = None
        #: the event there that ended the run, once it has been seen
        self.ended_by: str | None = None
        #: whether anything has come since this was last set to False
        self.moved = False

    async def once(self, streams: asyncio.Semaphore) -> Shown | None:
        """Until the run has ended, or its stream has. Raises Trouble."""
        if streams.locked():
            return await self._polled()
        async with streams:
            streamed = await self._streamed()
        if streamed is None:
            return await self._polled()
        return streamed if isinstance(streamed, Shown) else None

    async def _look(self) -> Shown | None:
        """The run, if it has ended; its status is told when it is another one."""
        shown = await calls.snapshot(self._peer, self._child, self._trace)
        if shown.status in TERMINAL:
            return shown
        status = Status.RUNNING if shown.status in AS_RUNNING else shown.status
        if status is not self._status:
            await self._changed(status)
            self._status = status
        return None

    async def _polled(self) -> Shown | None:
        found = await self._look()
        self.moved = True
        if found is None:
            await asyncio.sleep(POLL_SECONDS)
        return found

    async def _streamed(self) -> Shown | bool | None:
        """None where there is no stream to be had."""
        path = f"/v1/runs/{self._child}/events?streamMode=updates"
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        call = self._peer.call("GET", path, self._trace, headers)
        try:
            async with http.listening(call) as coming:
                if coming.status != 200 or "event-stream" not in coming.headers.get(
                    "content-type", ""
                ):
                    return None
                return await self._read(coming, Frames())
        except NoAnswer as nothing:
            raise self._peer.silent(nothing) from nothing
        except (Nonsense, ValueError) as nonsense:
            raise self._peer.nonsense(str(nonsense)) from nonsense

    async def _read(self, coming: http.Coming, frames: Frames) -> Shown | bool:
        async for piece in coming.body():
            turns = [self._note(frame) for frame in frames.feed(piece)]
            if True in turns:
                found = await self._look()
                if found is not None:
                    return found
        return await self._look() or True

    def _note(self, frame: Frame) -> bool:
        """Whether the run may have another status after it."""
        self.moved = True
        if _plain(frame.id):
            self._last = frame.id
        try:
            told = _told.decode(frame.data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return True  # of no known form: look
        if told.type in TERMINAL_TYPES and _plain(told.event_id):
            self.ended_by = told.event_id
        return told.type in TURNS


def _plain(text: str) -> bool:
    """Whether it may stand in a header and in a log."""
    return 0 < len(text) <= 128 and text.isascii() and text.isprintable()
