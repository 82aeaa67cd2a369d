"""HTTP calls to other hosts: one connection each, everything bounded and checked.

The other side may be slow, send too much or not speak HTTP. Redirects are not followed, and
certificates are checked.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httptools

CONNECT_SECONDS = 10.0
#: for a whole answer, and between two pieces of a stream; hosts send a comment every 30 s
ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 75.0
MOST_HEAD_BYTES = 65_536
MOST_BODY_BYTES = 4 * 1_048_576
READ_BYTES = 65_536


class NoAnswer(Exception):
    """No answer came back. ``sent``: the other side may have received the request."""

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class InvalidAnswer(Exception):
    """The other side sent something that is not a valid answer."""


class PeerAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class PeerCall(NamedTuple):
    """One request; ``path`` is below the address of the host."""

    url: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


async def send_call(call: PeerCall) -> PeerAnswer:
    """Return the whole answer. Raise NoAnswer or InvalidAnswer."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS + ANSWER_SECONDS), _open_call(call) as answer:
            pieces, size = [], 0
            async for piece in answer.body():
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BODY_BYTES:
                    raise InvalidAnswer(f"it answered with more than {MOST_BODY_BYTES} bytes")
            return PeerAnswer(answer.status, answer.headers, b"".join(pieces))
    except TimeoutError:
        raise NoAnswer("it did not answer in time", True) from None


@asynccontextmanager
async def open_answer(call: PeerCall) -> AsyncIterator["IncomingAnswer"]:
    """Yield the answer while it is still arriving. Raise NoAnswer or InvalidAnswer, also later."""
    async with _open_call(call) as answer:
        yield answer


@asynccontextmanager
async def _open_call(call: PeerCall) -> AsyncIterator["IncomingAnswer"]:
    """Yield the answer once its head is there. The connection lasts as long as the block."""
    reader, writer = await _connect(call.url)
    try:
        writer.write(_request_head(call) + call.body)
        answer = IncomingAnswer(reader)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await writer.drain()
                await answer.head()
        except TimeoutError:
            raise NoAnswer("it did not answer in time", True) from None
        except OSError as error:
            raise NoAnswer(_connection_error(error), True) from error
        yield answer
    finally:
        writer.transport.abort()


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(
                parts.hostname,
                parts.port or (443 if secure else 80),
                ssl=_tls_context() if secure else None,
            )
    except TimeoutError:
        raise NoAnswer("it could not be reached in time", False) from None
    except (OSError, UnicodeError) as error:  # an untrusted certificate is an OSError
        raise NoAnswer(_connection_error(error), False) from error


@cache
def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _connection_error(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return f"the connection failed ({str(reason)[:200] or type(error).__name__})"


def _request_head(call: PeerCall) -> bytes:
    parts = urlsplit(call.url)
    headers = {
        "Host": parts.netloc,
        "User-Agent": "moot",
        "Connection": "close",
        **call.headers,
    }
    if call.body:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(call.body))}
    elif call.method != "GET":
        headers["Content-Length"] = "0"
    lines = [f"{call.method} {parts.path.rstrip('/')}{call.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


class IncomingAnswer:
    """An answer that is read piece by piece."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser: Any = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._headed = self._complete = False
        self._size = 0
        self.status = 0
        self.headers: dict[str, str] = {}

    async def head(self) -> None:
        while not self._headed:
            self._size += await self._more()
            if self._size > MOST_HEAD_BYTES and not self._headed:
                raise InvalidAnswer("the head of its answer does not end")

    async def body(self, silence: float = SILENCE_SECONDS) -> AsyncIterator[bytes]:
        """Yield the pieces. Raise NoAnswer after ``silence`` seconds without one."""
        while True:
            while self._pieces:
                yield self._pieces.pop(0)
            if self._complete:
                return
            try:
                async with asyncio.timeout(silence):
                    ended = not await self._more()
            except TimeoutError:
                raise NoAnswer("it fell silent", True) from None
            except OSError as error:
                raise NoAnswer(_connection_error(error), True) from error
            if ended and not self._complete and self._bounded():
                raise NoAnswer("the connection was cut", True)
            if ended:
                return

    def _bounded(self) -> bool:
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    async def _more(self) -> int:
        data = await self._reader.read(READ_BYTES)
        if not data:
            if not self._headed:
                raise NoAnswer("the connection was cut", True)
            return 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self._complete:
                raise InvalidAnswer("what it says is not HTTP") from error
        return len(data)

    # -- callbacks of the parser -------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:  # an interim status precedes the real one
            self._headed = True
        else:
            self.headers = {}

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._complete = self._headed
