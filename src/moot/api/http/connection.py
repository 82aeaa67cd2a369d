"""An HTTP/1.1 connection for uvicorn's server, with little work per request.

Uvicorn's own protocol takes 1.7 times the instructions.
"""

import asyncio
import logging
from collections import deque
from typing import Any, cast
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

from moot.api.app import ESCAPED_SLASH
from moot.api.http.exchange import Exchange
from moot.api.http.request import HttpScope, Receive, Reply, Send, encode
from moot.core.errors import BadRoot

log = logging.getLogger("moot.server")

#: Bytes of a request outside its body.
MOST_HEAD_BYTES = 65_536
#: Bytes around one chunk of a body.
CHUNK_FRAME = len("ffff\r\n\r\n")
#: Time for a whole head, and between two pieces of a body.
HEAD_SECONDS = 30.0
BODY_SECONDS = 30.0
NEVER = float("inf")
#: Bytes of an unwanted body that are read and dropped before the connection closes. A caller that
#: is still sending would otherwise lose its answer.
MOST_DROPPED = 33_554_432
ASGI = {"version": "3.0", "spec_version": "2.3"}


class HttpConnection(asyncio.Protocol):
    """One connection. Pipelined requests wait for their turn.

    The connection refuses bytes that are not HTTP, and a head or body that stays incomplete, in the
    same shape as every other refusal.
    """

    transport: asyncio.Transport
    flow: FlowControl
    _watch: asyncio.TimerHandle

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.app: Any = config.loaded_app
        self.loop = _loop or asyncio.get_running_loop()
        self.tasks = server_state.tasks
        self.lost = False
        self._connections: set[Any] = server_state.connections
        self._parser: Any = httptools.HttpRequestParser(self)
        # a caller that sends more after "close" still gets its answer
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._client: tuple[str, int] | None = None
        #: The request being answered, the newest one, and those in between.
        self._active: Exchange | None = None
        self._newest: Exchange | None = None
        self._waiting: deque[Exchange] = deque()
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._expects = self._bad_expectation = False
        self._in_head, self._head_bytes, self._last_size = False, 0, 0
        #: Bytes still to drop after the last answer, or None.
        self._drop_limit: int | None = None
        self._patience = config.timeout_keep_alive
        self._round = min(self._patience, HEAD_SECONDS, BODY_SECONDS)
        #: When the host began to wait for the caller.
        self.since = 0.0

    # -- the connection ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.flow = FlowControl(self.transport)
        peer = transport.get_extra_info("peername")
        self._client = (str(peer[0]), int(peer[1])) if peer else None
        self._connections.add(self)
        self.since = self.loop.time()
        self._watch = self.loop.call_later(self._round, self._check_deadline)

    def data_received(self, data: bytes) -> None:
        self._last_size = len(data)
        self._head_bytes += self._last_size
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            log.warning("A caller asked for another protocol; it is answered in HTTP.")
        except httptools.HttpParserError:
            log.warning("What came in is not HTTP.")
            self._refuse(400, "Invalid HTTP request received.")
        if self._head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, f"A request may have {MOST_HEAD_BYTES} bytes beside its body.")

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()

    def shutdown(self) -> None:
        """Close the connection, after the answer that is under way."""
        if self._newest is None or self._newest.complete:
            self.transport.close()
        else:
            self._newest.keep_alive = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._connections.discard(self)
        if self._active is not None:
            self._active.wake()
        self.flow.resume_writing()
        self._watch.cancel()
        self._parser = None  # break the reference cycle

    # -- what the parser finds ---------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.since = self.loop.time()
        self._in_head, self._head_bytes = True, self._last_size
        self._url, self._headers = b"", []
        self._expects = self._bad_expectation = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer comes after the decision about the head
        name = name.lower()
        if name == b"expect":
            self._expects = value.lower() == b"100-continue"
            self._bad_expectation = not self._expects
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser = self._parser
        version = parser.get_http_version()
        url = httptools.parse_url(self._url)
        path = url.path.decode("ascii")
        scope: HttpScope = {
            "type": "http",
            "asgi": ASGI,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(ESCAPED_SLASH.sub(r"%25\1", path)) if "%" in path else path,
            "query_string": url.query or b"",
            "headers": self._headers,
            "client": self._client,
        }
        keep_alive = version != "1.0" and parser.should_keep_alive()
        before = self._newest
        self._newest = exchange = Exchange(self, scope, keep_alive, self._expects)
        if (fault := self._head_fault(version)) is not None:
            exchange.app, exchange.keep_alive = fault.answer, False
        if before is None or before.complete:
            self._begin(exchange)
        else:
            self.flow.pause_reading()
            self._waiting.append(exchange)

    def _head_fault(self, version: str) -> "HttpFault | None":
        """Return the fault of a head that another HTTP reader might understand differently."""
        names = [name for name, _ in self._headers]
        hosts = names.count(b"host")
        if hosts != 1 and (hosts or version > "1.0"):
            return HttpFault(400, "A request has one Host header.")
        if names.count(b"authorization") > 1:
            return HttpFault(400, "A request has one Authorization header.")
        return (
            HttpFault(417, "Nothing but 100-continue can be expected.")
            if self._bad_expectation
            else None
        )

    def on_chunk_header(self) -> None:
        self._head_bytes -= CHUNK_FRAME

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        if self._drop_limit is not None:
            self._drop(len(body))
            return
        exchange = self._newest
        if exchange is not None and not exchange.complete:
            self.since = self.loop.time()
            exchange.body += body
            if len(exchange.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            exchange.wake()

    def on_message_complete(self) -> None:
        self._head_bytes = self._last_size = 0  # the rest belongs to the next request
        if self._drop_limit is not None:
            self.transport.close()
        if self._newest is not None:
            self._newest.more_body = False
            self._newest.wake()

    # -- answers -----------------------------------------------------------------------------

    def drain_request(self) -> bool:
        """Start to read and drop the rest of a request whose answer is already out.

        Return whether the connection does so; otherwise the caller closes it. ``_check_deadline``
        ends it.
        """
        if self._waiting or self.transport.is_closing():
            return False
        self._drop_limit = MOST_DROPPED
        if self.transport.can_write_eof():
            self.transport.write_eof()  # tell the caller that the answer is complete
        return True

    def _drop(self, size: int) -> None:
        assert self._drop_limit is not None
        self._drop_limit -= size
        if self._drop_limit < 0:
            self.transport.close()

    def _begin(self, exchange: Exchange) -> None:
        if self.transport.is_closing():
            return  # the caller gets nothing after the last answer
        self._active = exchange
        exchange.task = self.loop.create_task(exchange.run())
        self.tasks.add(exchange.task)

    def after_answer(self) -> None:
        if self.transport.is_closing():
            return
        self.since = self.loop.time()
        self.flow.resume_reading()
        if self._waiting:
            self._begin(self._waiting.popleft())

    def _check_deadline(self) -> None:
        """Enforce the deadline. One timer serves the connection, not one for each request."""
        if self.transport.is_closing():
            return
        left = self._deadline() - self.loop.time()
        if left > 0:
            self._watch = self.loop.call_later(min(left, self._round), self._check_deadline)
        elif self._in_head or self._unanswered():
            self._refuse(408, "The request did not come to its end in time.")
        else:
            self.transport.close()

    def _deadline(self) -> float:
        """Return when the caller's silence is too long. The host's own answer may take any time."""
        if self._unanswered():
            starved = self._active is not None and self._active.starved
            return self.since + BODY_SECONDS if starved else NEVER
        if self._in_head:
            return self.since + HEAD_SECONDS
        draining = self._newest is not None and self._newest.more_body
        return self.since + (BODY_SECONDS if draining else self._patience)

    def _unanswered(self) -> bool:
        return self._active is not None and not self._active.complete

    def _refuse(self, status: int, message: str) -> None:
        """Refuse and close. The refusal is written only when it cannot mix with another answer."""
        silent = self._active is None or self._active.complete or self._active.incoming
        if silent and self._drop_limit is None:
            self._write_fault(status, message)
        self.transport.close()

    def _write_fault(self, status: int, message: str) -> None:
        body = HttpFault(status, message).body
        head = f"content-length: {len(body)}\r\ncontent-type: application/json\r\n"
        head += "connection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)


class HttpFault:
    """A refusal that the connection gives without asking the application."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.body = status, encode({"error": BadRoot.code, "message": message})

    async def answer(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        await Reply(self.body, self.status).send(send, scope["method"] == "HEAD")
