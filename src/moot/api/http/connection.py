"""HTTP/1.1 on one connection, for uvicorn's server: as little as can be done for a request.

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
from moot.api.http.request import Receive, Reply, Scope, Send, encode
from moot.core.errors import BadRoot

log = logging.getLogger("moot.server")

#: of a request, beside its body
MOST_HEAD_BYTES = 65_536
#: what a chunk of a body needs around it
CHUNK_FRAME = len("ffff\r\n\r\n")
#: for a whole head from its first byte on, and between two pieces of a body
HEAD_SECONDS = 30.0
BODY_SECONDS = 30.0
NEVER = float("inf")
#: of a body that is not wanted: so much is read and dropped before the connection is closed, for a
#: caller that is still sending would lose its answer with the connection
MOST_DROPPED = 33_554_432
ASGI = {"version": "3.0", "spec_version": "2.3"}


class Http(asyncio.Protocol):
    """One connection. Requests may come before the answer to the last one is out; they wait.

    What is not HTTP at all is refused in the same shape as everything else, and so is a head or a
    body that does not come to its end.
    """

    transport: asyncio.Transport
    flow: FlowControl
    _watch: asyncio.TimerHandle

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.app: Any = config.loaded_app
        self.loop = _loop or asyncio.get_running_loop()
        self.tasks = server_state.tasks
        self.lost = False
        self._connections: set[Any] = server_state.connections
        self._parser: Any = httptools.HttpRequestParser(self)
        # else a caller that says close and goes on talking would not get its answer
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._client: tuple[str, int] | None = None
        #: the request that is answered, the one that comes in, and those in between
        self._active: Exchange | None = None
        self._newest: Exchange | None = None
        self._waiting: deque[Exchange] = deque()
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._expects = self._hopeless = False
        self._in_head, self._head_bytes, self._arrived = False, 0, 0
        #: the last answer is out, and so much more of its request is taken
        self._drops: int | None = None
        self._patience = config.timeout_keep_alive
        self._round = min(self._patience, HEAD_SECONDS, BODY_SECONDS)
        #: since when the caller owes what comes next
        self.since = 0.0

    # -- the connection ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.flow = FlowControl(self.transport)
        peer = transport.get_extra_info("peername")
        self._client = (str(peer[0]), int(peer[1])) if peer else None
        self._connections.add(self)
        self.since = self.loop.time()
        self._watch = self.loop.call_later(self._round, self._look)

    def data_received(self, data: bytes) -> None:
        self._arrived = len(data)
        self._head_bytes += self._arrived
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
        """The server stops: what is under way is still answered."""
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
        self._parser = None  # it knows this object: nobody else would part the two

    # -- what the parser finds ---------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.since = self.loop.time()
        self._in_head, self._head_bytes = True, self._arrived
        self._url, self._headers = b"", []
        self._expects = self._hopeless = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: whoever is asked has believed the head already
        name = name.lower()
        if name == b"expect":
            self._expects = value.lower() == b"100-continue"
            self._hopeless = not self._expects
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser = self._parser
        version = parser.get_http_version()
        url = httptools.parse_url(self._url)
        path = url.path.decode("ascii")
        scope = {
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
        if (fault := self._fault(version)) is not None:
            exchange.app, exchange.keep_alive = fault.answer, False
        if before is None or before.complete:
            self._begin(exchange)
        else:
            self.flow.pause_reading()
            self._waiting.append(exchange)

    def _fault(self, version: str) -> "Fault | None":
        """What is wrong with the head, where another reader might take it for something else."""
        names = [name for name, _ in self._headers]
        hosts = names.count(b"host")
        if hosts != 1 and (hosts or version > "1.0"):
            return Fault(400, "A request has one Host header.")
        if names.count(b"authorization") > 1:
            return Fault(400, "A request has one Authorization header.")
        return Fault(417, "Nothing but 100-continue can be expected.") if self._hopeless else None

    def on_chunk_header(self) -> None:
        self._head_bytes -= CHUNK_FRAME

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        if self._drops is not None:
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
        self._head_bytes = self._arrived = 0  # what comes with it belongs to the next one
        if self._drops is not None:
            self.transport.close()
        if self._newest is not None:
            self._newest.more_body = False
            self._newest.wake()

    # -- answers -----------------------------------------------------------------------------

    def drains(self) -> bool:
        """The answer is out, its request is not in, and then the connection is closed: whether the
        rest of it is still taken. ``_look`` sees that it does not take for ever."""
        if self._waiting or self.transport.is_closing():
            return False
        self._drops = MOST_DROPPED
        if self.transport.can_write_eof():
            self.transport.write_eof()  # who reads to the end has all of it now
        return True

    def _drop(self, size: int) -> None:
        assert self._drops is not None
        self._drops -= size
        if self._drops < 0:
            self.transport.close()

    def _begin(self, exchange: Exchange) -> None:
        if self.transport.is_closing():
            return  # nobody hears what comes after the last answer
        self._active = exchange
        exchange.task = self.loop.create_task(exchange.run())
        self.tasks.add(exchange.task)

    def answered(self) -> None:
        if self.transport.is_closing():
            return
        self.since = self.loop.time()
        self.flow.resume_reading()
        if self._waiting:
            self._begin(self._waiting.popleft())

    def _look(self) -> None:
        """One timer for the connection, not one for each request."""
        if self.transport.is_closing():
            return
        left = self._deadline() - self.loop.time()
        if left > 0:
            self._watch = self.loop.call_later(min(left, self._round), self._look)
        elif self._in_head or self._unanswered():
            self._refuse(408, "The request did not come to its end in time.")
        else:
            self.transport.close()

    def _deadline(self) -> float:
        """When the caller has owed something for too long; an answer may take any time."""
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
        """In our shape, unless it would stand in the place or in the middle of another answer."""
        silent = self._active is None or self._active.complete or self._active.incoming
        if silent and self._drops is None:
            self._say(status, message)
        self.transport.close()

    def _say(self, status: int, message: str) -> None:
        body = Fault(status, message).body
        head = f"content-length: {len(body)}\r\ncontent-type: application/json\r\n"
        head += "connection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)


class Fault:
    """A refusal that is no matter of the application's."""

    def __init__(self, status: int, message: str) -> None:
        self.status, self.body = status, encode({"error": BadRoot.code, "message": message})

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Reply(self.body, self.status).send(send, scope["method"] == "HEAD")
