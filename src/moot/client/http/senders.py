"""Send calls with retries, and follow streams over several connections.

The rules are written once, without I/O. The two senders at the end differ only in how they wait.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from moot.client.errors import BadAnswer, Forbidden, TimedOut, Unreachable, error_from_response
from moot.client.http.operation import PreparedCall, Retry
from moot.client.http.sse import Event, Spoken, SseParser
from moot.clock import SystemClock
from moot.config.server_location import ServerLocation
from moot.wire.runs import RunEventPage

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
#: maps the last received sequence to a call that tells whether the run has more events
EndCheck = Callable[[int], PreparedCall[RunEventPage]]

#: statuses after which a retry may help; after the first two the server has done nothing
RETRY_STATUSES = (429, 503)
GATEWAY_STATUSES = (502, 504)
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 10.0
#: the longest silence on a stream; by default the server sends a comment every 15 seconds
STREAM_SILENCE_S = 60.0
#: the most connections in a row without a new event
MOST_EMPTY_CONNECTIONS = 12


class CallSettings(Struct, frozen=True, kw_only=True):
    """Time limits and retries of a client."""

    #: seconds for one attempt, and for its connection
    timeout: float = 30.0
    connect: float = 5.0
    #: attempts after the first one
    retries: int = 4


class ServerAccess:
    """The address of the server, the key for it, and the settings of calls."""

    def __init__(self, place: ServerLocation, settings: CallSettings) -> None:
        parts = urlsplit(place.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{place.url!r} is not an http address.")
        self.place, self.settings = place, settings
        self.clock = SystemClock()
        self.local = parts.hostname in ("127.0.0.1", "::1", "localhost")

    def options(self) -> dict[str, Any]:
        """Return options for the HTTP client. Proxies are not used for this machine."""
        headers = {"User-Agent": "moot-client"}
        if self.place.key is not None:
            headers["Authorization"] = f"Bearer {self.place.key}"
        return {
            "base_url": self.place.url,
            "headers": headers,
            "trust_env": not self.local,
            "follow_redirects": False,
        }

    def request(self, call: PreparedCall[Any], seconds: float | None = None) -> dict[str, Any]:
        import httpx2

        sent = call.sent
        headers = {"Accept": sent.accept, **sent.headers}
        if sent.body is not None:
            headers["Content-Type"] = "application/json"
        limit = self.settings.timeout + sent.seconds if seconds is None else seconds
        return {
            "method": call.method,
            "url": call.path,
            "params": sent.query or None,
            "content": sent.body,
            "headers": headers,
            "timeout": httpx2.Timeout(limit, connect=min(limit, self.settings.connect)),
        }


class CallAttempts:
    """The attempts of one call. Each outcome yields the delay before the next attempt."""

    def __init__(self, server: ServerAccess, call: PreparedCall[Any]) -> None:
        self.request = server.request(call)
        self._call, self._server, self._failed = call, server, 0
        retry = call.operation.retry
        self._repeatable = retry is not Retry.ONCE
        if retry is Retry.KEYED:
            key = server.clock.new_id("sdk_")
            self.request["headers"].setdefault("Idempotency-Key", key)

    def after_loss(self, error: Exception) -> float:
        """Return the delay after a lost attempt. Raise Unreachable when none may follow."""
        import httpx2

        unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        wait = self._wait() if unsent or self._repeatable else None
        if wait is None:
            raise unreachable_error(self._server.place, error) from error
        return wait

    def after_answer(self, status: int, headers: Any, body: bytes) -> float | None:
        """Return None for a good answer, or the delay before a retry. Raise the error else."""
        if status < 300:
            return None
        wait = None
        if status in RETRY_STATUSES or (status in GATEWAY_STATUSES and self._repeatable):
            wait = self._wait(headers.get("Retry-After"))
        if wait is None:
            raise error_from_response(status, body)
        return wait

    def _wait(self, retry_after: str | None = None) -> float | None:
        self._failed += 1
        if self._failed > self._server.settings.retries:
            return None
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self._failed - 1))
        if retry_after is not None and retry_after.isdigit():
            if int(retry_after) > LONGEST_WAIT_S:
                return None
            wait = max(wait, float(retry_after))
        return wait


class StreamPosition:
    """The position in one stream over all its connections."""

    def __init__(
        self, server: ServerAccess, call: PreparedCall[Any], after: int, timeout: float | None
    ):
        self.over = False
        #: the server closed it twice without data, so the run may have ended
        self.doubtful = False
        self.after = after
        self._server, self._call = server, call
        self._until = None if timeout is None else time.monotonic() + timeout
        self._parser = SseParser()
        self._empty_connections = self._silent_ends = 0

    def request(self) -> dict[str, Any]:
        """Return the request of the next connection, from the last event on."""
        self._parser, self._got_data = SseParser(), False
        self.doubtful = False
        left = STREAM_SILENCE_S
        if self._until is not None:
            left = min(left, max(0.001, self._until - time.monotonic()))
        request = self._server.request(self._call, left)
        if self.after >= 0:
            request["headers"]["Last-Event-ID"] = str(self.after)
        return request

    def take(self, piece: bytes) -> list[Event | Spoken]:
        self._check_deadline()
        frames: list[Event | Spoken] = []
        for frame in self._parser.take(piece):
            if frame.id is not None:
                if frame.id <= self.after:
                    continue  # the server repeats a state after a reconnect
                self.after = frame.id
            content = frame.read()
            self.over = self.over or (isinstance(content, Event) and content.terminal)
            frames.append(content)
        if frames or self._parser.comments:
            self._got_data, self._empty_connections = True, 0
        return frames

    def after_end(self) -> float:
        """Return the delay after the server closed the connection."""
        self._silent_ends = 0 if self._got_data else self._silent_ends + 1
        self.doubtful = self._silent_ends > 1
        return self._wait(ConnectionError("the stream is closed again and again"))

    def after_loss(self, error: Exception) -> float:
        self._silent_ends = 0
        return self._wait(error)

    def after_refusal(self, status: int, body: bytes) -> float:
        if status not in (*RETRY_STATUSES, *GATEWAY_STATUSES):
            raise error_from_response(status, body)
        return self._wait(error_from_response(status, body))

    def _wait(self, error: Exception) -> float:
        if self.over:
            return 0.0
        self._check_deadline()
        self._empty_connections += 1
        if self._empty_connections > MOST_EMPTY_CONNECTIONS:
            raise unreachable_error(self._server.place, error) from error
        delay = FIRST_WAIT_S * 2.0 ** (self._empty_connections - 1)
        return min(delay, self._parser.retry_s or LONGEST_WAIT_S, LONGEST_WAIT_S)

    def _check_deadline(self) -> None:
        if self._until is not None and time.monotonic() >= self._until:
            raise TimedOut("The stream has not come to its end in time; it goes on.")


def unreachable_error(place: ServerLocation, error: Exception) -> Unreachable:
    reason = str(error) or type(error).__name__
    return Unreachable(f"No server answers at {place.url}: {reason}. Start one with: moot serve")


class _BoundedBody:
    """The body of an answer, up to its size limit."""

    def __init__(self, call: PreparedCall[Any]) -> None:
        self._most, self._size = call.operation.largest, 0
        self._pieces: list[bytes] = []

    def take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most:
            raise BadAnswer(f"The answer is larger than {self._most} bytes.")
        self._pieces.append(piece)

    @property
    def body(self) -> bytes:
        return b"".join(self._pieces)


# Both senders use httpx2. The standard library has no HTTP client for asyncio, and two transports
# of our own would each need pools, time limits and streams. The first client loads httpx2. The
# command line must start at once and only blocks, so it uses http.client instead.


class Sender:
    """Sends calls and blocks until their answers come."""

    def __init__(
        self, server: ServerAccess, transport: "httpx2.BaseTransport | None" = None
    ) -> None:
        import httpx2

        self.server = server
        self._http = httpx2.Client(transport=transport, **server.options())

    def send(self, call: PreparedCall[T]) -> T:
        attempts = CallAttempts(self.server, call)
        while True:
            try:
                status, headers, body = self._answer(call, attempts.request)
            except self._transport_error as error:
                wait: float | None = attempts.after_loss(error)
            else:
                wait = attempts.after_answer(status, headers, body)
            if wait is None:
                return call.read(body)
            time.sleep(wait)

    @property
    def _transport_error(self) -> type[Exception]:
        import httpx2

        return httpx2.TransportError

    def _answer(self, call: PreparedCall[Any], request: dict[str, Any]) -> tuple[int, Any, bytes]:
        bounded = _BoundedBody(call)
        with self._open(request) as answer:
            for piece in answer.iter_bytes():
                bounded.take(piece)
            return answer.status_code, answer.headers, bounded.body

    @contextmanager
    def _open(self, request: dict[str, Any]) -> "Iterator[httpx2.Response]":
        with self._http.stream(**request) as answer:
            yield answer

    def follow(
        self,
        call: PreparedCall[Any],
        end_check: EndCheck,
        after: int = -1,
        timeout: float | None = None,
    ) -> Iterator[Event | Spoken]:
        """Yield every frame once, over any number of connections, until the run has ended.

        ``end_check`` returns the call that tells whether the run ended with the last frame.
        """
        position = StreamPosition(self.server, call, after, timeout)
        while not position.over:
            try:
                with self._open(position.request()) as answer:
                    if answer.status_code == 200:
                        for piece in answer.iter_bytes():
                            yield from position.take(piece)
                        wait = position.after_end()
                    else:
                        wait = position.after_refusal(answer.status_code, answer.read())
            except self._transport_error as error:
                wait = position.after_loss(error)
            if position.doubtful:
                position.over = self._is_complete(end_check(position.after))
            if not position.over:
                time.sleep(wait)

    def _is_complete(self, call: PreparedCall[RunEventPage]) -> bool:
        try:
            return self.send(call).is_complete
        except Forbidden:  # a key for one thread may not poll the run
            return True

    def close(self) -> None:
        self._http.close()


class AsyncSender:
    """Sends calls for asyncio."""

    def __init__(
        self, server: ServerAccess, transport: "httpx2.AsyncBaseTransport | None" = None
    ) -> None:
        import httpx2

        self.server = server
        self._http = httpx2.AsyncClient(transport=transport, **server.options())

    async def send(self, call: PreparedCall[T]) -> T:
        attempts = CallAttempts(self.server, call)
        while True:
            try:
                status, headers, body = await self._answer(call, attempts.request)
            except self._transport_error as error:
                wait: float | None = attempts.after_loss(error)
            else:
                wait = attempts.after_answer(status, headers, body)
            if wait is None:
                return call.read(body)
            await asyncio.sleep(wait)

    @property
    def _transport_error(self) -> type[Exception]:
        import httpx2

        return httpx2.TransportError

    async def _answer(
        self, call: PreparedCall[Any], request: dict[str, Any]
    ) -> tuple[int, Any, bytes]:
        bounded = _BoundedBody(call)
        async with self._open(request) as answer:
            async for piece in answer.aiter_bytes():
                bounded.take(piece)
            return answer.status_code, answer.headers, bounded.body

    @asynccontextmanager
    async def _open(self, request: dict[str, Any]) -> "AsyncIterator[httpx2.Response]":
        async with self._http.stream(**request) as answer:
            yield answer

    async def follow(
        self,
        call: PreparedCall[Any],
        end_check: EndCheck,
        after: int = -1,
        timeout: float | None = None,
    ) -> AsyncIterator[Event | Spoken]:
        """Yield every frame once, over any number of connections, until the run has ended.

        ``end_check`` returns the call that tells whether the run ended with the last frame.
        """
        position = StreamPosition(self.server, call, after, timeout)
        while not position.over:
            try:
                async with self._open(position.request()) as answer:
                    if answer.status_code == 200:
                        async for piece in answer.aiter_bytes():
                            for frame in position.take(piece):
                                yield frame
                        wait = position.after_end()
                    else:
                        wait = position.after_refusal(answer.status_code, await answer.aread())
            except self._transport_error as error:
                wait = position.after_loss(error)
            if position.doubtful:
                position.over = await self._is_complete(end_check(position.after))
            if not position.over:
                await asyncio.sleep(wait)

    async def _is_complete(self, call: PreparedCall[RunEventPage]) -> bool:
        try:
            return (await self.send(call)).is_complete
        except Forbidden:  # a key for one thread may not poll the run
            return True

    async def aclose(self) -> None:
        await self._http.aclose()
