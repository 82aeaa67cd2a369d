"""Calls to other hosts: one connection for each, everything bounded, nothing believed.

What comes back may be slow, huge or no HTTP at all. A redirect is an answer like any other and is
not followed; certificates are checked.
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
#: for a whole answer, and between two pieces of a stream: hosts comment at least every 30 s
ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 75.0
MOST_HEAD_BYTES = 65_536
MOST_BODY_BYTES = 4 * 1_048_576
PIECE = 65_536


class NoAnswer(Exception):
    """Nothing came back. ``sent``: the other side may have got the request."""

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Nonsense(Exception):
    """Something came back that is no answer."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Call(NamedTuple):
    """One request; ``path`` is below the address of the host."""

    url: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


async def ask(call: Call) -> Answer:
    """The whole answer. Raises NoAnswer or Nonsense."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS + ANSWER_SECONDS), _sent(call) as coming:
            pieces, size = [], 0
            async for piece in coming.body():
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BODY_BYTES:
                    raise Nonsense(f"it answered with more than {MOST_BODY_BYTES} bytes")
            return Answer(coming.status, coming.headers, b"".join(pieces))
    except TimeoutError:
        raise NoAnswer("it did not answer in time", True) from None


@asynccontextmanager
async def listening(call: Call) -> AsyncIterator["Coming"]:
    """An answer while it still comes. Raises NoAnswer or Nonsense, also later on."""
    async with _sent(call) as coming:
        yield coming


@asynccontextmanager
async def _sent(call: Call) -> AsyncIterator["Coming"]:
    """The head of the answer is there; the connection lasts as long as the block."""
    reader, writer = await _connected(call.url)
    try:
        writer.write(_head(call) + call.body)
        coming = Coming(reader)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await writer.drain()
                await coming.head()
        except TimeoutError:
            raise NoAnswer("it did not answer in time", True) from None
        except OSError as error:
            raise NoAnswer(_why(error), True) from error
        yield coming
    finally:
        writer.transport.abort()


async def _connected(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(
                parts.hostname,
                parts.port or (443 if secure else 80),
                ssl=_trust() if secure else None,
            )
    except TimeoutError:
        raise NoAnswer("it could not be reached in time", False) from None
    except (OSError, UnicodeError) as error:  # a certificate that is not trusted is an OSError
        raise NoAnswer(_why(error), False) from error


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _why(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return f"the connection failed ({str(reason)[:200] or type(error).__name__})"


def _head(call: Call) -> bytes:
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


class Coming:
    """An answer on its way, read piece by piece."""

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
                raise Nonsense("the head of its answer does not end")

    async def body(self, silence: float = SILENCE_SECONDS) -> AsyncIterator[bytes]:
        """Its pieces; after so many seconds without one there is no answer any more."""
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
                raise NoAnswer(_why(error), True) from error
            if ended and not self._complete and self._bounded():
                raise NoAnswer("the connection was cut", True)
            if ended:
                return

    def _bounded(self) -> bool:
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    async def _more(self) -> int:
        data = await self._reader.read(PIECE)
        if not data:
            if not self._headed:
                raise NoAnswer("the connection was cut", True)
            return 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self._complete:
                raise Nonsense("what it says is not HTTP") from error
        return len(data)

    # -- what the parser finds -------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:  # else the real one is still to come
            self._headed = True
        else:
            self.headers = {}

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._complete = self._headed
