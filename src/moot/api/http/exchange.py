"""One request and its answer on an HTTP connection, as ASGI sees them."""

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from moot.api.http.request import BODILESS, HttpScope, ReceivedMessage

if TYPE_CHECKING:
    from moot.api.http.connection import HttpConnection

log = logging.getLogger("moot.server")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
MISTAKE = (
    STATUS_LINE[500] + b"content-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
    b"connection: close\r\n\r\nInternal Server Error"
)
#: Bytes that would end a header line or are invalid in one.
CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Exchange:
    """One request and its answer.

    Nothing is sent before the first piece of the body, so a whole answer leaves in one write.
    """

    __slots__ = (
        "_chunked", "_expects", "_has_news", "_http", "_scope", "_start", "_started", "_waiter",
        "app", "body", "complete", "keep_alive", "more_body", "task",
    )  # fmt: skip

    def __init__(
        self, http: "HttpConnection", scope: HttpScope, keep_alive: bool, expects: bool
    ) -> None:
        self._http, self._scope, self.app = http, scope, http.app
        self.keep_alive = keep_alive
        #: The caller waits for "100 Continue" before it sends the body.
        self._expects = expects
        #: Received bytes of the body that were not read yet.
        self.body = b""
        self.more_body = True
        self.complete = False
        self.task: asyncio.Task[None]
        self._has_news = False
        self._waiter: asyncio.Future[None] | None = None
        self._start: Any = None
        self._started = self._chunked = False

    async def run(self) -> None:
        http = self._http
        try:
            await self.app(self._scope, self.receive, self.send)
        except BaseException:  # also a cancellation at the end of a shutdown
            log.exception("An answer failed", extra={"action": "http.failed"})
        finally:
            http.tasks.discard(self.task)
        if not self.complete and not http.lost:
            if not self._started:
                http.transport.write(MISTAKE)
            if http.flow.write_paused:  # the caller does not read
                http.transport.abort()
            else:
                http.transport.close()

    def wake(self) -> None:
        """Report that more of the body has come, or that nothing more will."""
        self._has_news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def incoming(self) -> bool:
        """Return whether the request is incomplete and has no answer yet."""
        return self.more_body and not self._started

    @property
    def starved(self) -> bool:
        """Return whether the application waits for the caller's bytes."""
        return self.incoming and self._waiter is not None and not self._waiter.done()

    async def receive(self) -> ReceivedMessage:
        http = self._http
        if self._expects and not http.transport.is_closing():
            http.transport.write(CONTINUE)
        self._expects = False
        while not self._has_news:
            http.flow.resume_reading()
            http.since = http.loop.time()
            self._waiter = http.loop.create_future()
            await self._waiter
        if self.complete or http.lost:
            return {"type": "http.disconnect"}
        body, self.body, self._has_news = self.body, b"", False
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Any) -> None:
        http = self._http
        if http.flow.write_paused and not http.lost:
            await http.flow.drain()
        if http.lost or self.complete:
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        pieces: list[bytes] = []
        if self._start is not None:
            pieces = self._head(self._start)
            self._start, self._started, self._expects = None, True, False
        more = message.get("more_body", False)
        if self._scope["method"] != "HEAD":
            self._add(pieces, message.get("body", b""), more)
        if pieces:
            http.transport.write(b"".join(pieces))
        if not more:
            self._finish()

    def _head(self, start: Any) -> list[bytes]:
        status = start["status"]
        self._chunked = status not in BODILESS and self._scope["method"] != "HEAD"
        pieces = [STATUS_LINE[status]]
        for name, value in start["headers"]:
            if CONTROLS.search(value):
                raise ValueError(f"The header {name!r} cannot be sent.")
            if name == b"content-length":
                self._chunked = False
            pieces += (name, b": ", value, b"\r\n")
        if not self.keep_alive:
            pieces.append(b"connection: close\r\n")
        pieces.append(b"transfer-encoding: chunked\r\n\r\n" if self._chunked else b"\r\n")
        return pieces

    def _add(self, pieces: list[bytes], body: bytes, more: bool) -> None:
        if not self._chunked:
            pieces.append(body)
            return
        if body:
            pieces += (b"%x\r\n" % len(body), body, b"\r\n")
        if not more:
            pieces.append(b"0\r\n\r\n")

    def _finish(self) -> None:
        self.complete = True
        self.wake()
        if not self.keep_alive and not (self.more_body and self._http.drain_request()):
            self._http.transport.close()
        self._http.after_answer()
