"""Decide what a call sends, when it is repeated and when a stream is over."""

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from moot.client.errors import BadAnswer, TimedOut, Unreachable, error_from_response
from moot.client.http.frames import Event, Spoken, frame_sequence, read_frame
from moot.client.http.operation import PreparedCall, Retry
from moot.clock import SystemClock
from moot.config.server_location import ServerLocation
from moot.wire.sse import FrameTooLarge, SseFrame, SseParser

#: statuses after which a retry may help; after the first two the server has done nothing
RETRY_STATUSES = (429, 503)
GATEWAY_STATUSES = (502, 504)
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 10.0
#: the longest silence on a stream; by default the server sends a comment every 15 seconds
STREAM_SILENCE_S = 60.0
#: the most connections in a row without a new event
MOST_EMPTY_CONNECTIONS = 12
#: the most bytes of one frame
LARGEST_FRAME = 16 * 1024 * 1024


class ConnectionLost(Exception):
    """No whole answer came. ``unsent``: no server can have received the request."""

    def __init__(self, error: Exception, unsent: bool) -> None:
        super().__init__(getattr(error, "strerror", None) or str(error) or type(error).__name__)
        self.unsent = unsent


class CallSettings(Struct, frozen=True, kw_only=True):
    """Time limits and retries of a client."""

    #: seconds for one attempt, and for its connection
    timeout: float = 30.0
    connect: float = 5.0
    #: attempts after the first one
    retries: int = 4


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One attempt of a call, in the form that every transport sends."""

    method: str
    #: path and query, below the address of the server
    target: str
    headers: dict[str, str]
    body: bytes | None
    #: seconds without a byte, and for the connection
    seconds: float
    connect_seconds: float


class ServerAccess:
    """The address of the server, the key for it, and the settings of calls."""

    def __init__(self, place: ServerLocation, settings: CallSettings) -> None:
        parts = urlsplit(place.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{place.url!r} is not an http address.")
        self.place, self.settings = place, settings
        self.clock = SystemClock()
        self.local = parts.hostname in ("127.0.0.1", "::1", "localhost")

    def request(self, call: PreparedCall[Any], seconds: float | None = None) -> HttpRequest:
        sent = call.sent
        headers = {"Accept": sent.accept, "User-Agent": "moot-client", **sent.headers}
        if self.place.key is not None:
            headers["Authorization"] = f"Bearer {self.place.key}"
        if sent.body is not None:
            headers["Content-Type"] = "application/json"
        limit = self.settings.timeout + sent.seconds if seconds is None else seconds
        return HttpRequest(
            method=call.method,
            target=f"{call.path}?{urlencode(sent.query)}" if sent.query else call.path,
            headers=headers,
            body=sent.body,
            seconds=limit,
            connect_seconds=min(limit, self.settings.connect),
        )


class CallAttempts:
    """The attempts of one call. Each outcome yields the delay before the next attempt."""

    def __init__(self, server: ServerAccess, call: PreparedCall[Any]) -> None:
        self.request = server.request(call)
        self._call, self._server, self._failed = call, server, 0
        retry = call.operation.retry
        self._repeatable = retry is not Retry.ONCE
        if retry is Retry.KEYED and server.settings.retries:
            self.request.headers.setdefault("Idempotency-Key", server.clock.new_id("sdk_"))

    def after_loss(self, lost: ConnectionLost) -> float:
        """Return the delay after a lost attempt. Raise Unreachable when none may follow."""
        wait = self._wait() if lost.unsent or self._repeatable else None
        if wait is None:
            raise unreachable_error(self._server.place, lost) from lost
        return wait

    def after_answer(self, status: int, headers: Mapping[str, str], body: bytes) -> float | None:
        """Return None for a good answer, or the delay before a retry. Raise the error else."""
        if status < 300:
            return None
        wait = None
        if status in RETRY_STATUSES or (status in GATEWAY_STATUSES and self._repeatable):
            wait = self._wait(headers.get("retry-after"))
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
        self._parser = SseParser(LARGEST_FRAME)
        self._empty_connections = self._silent_ends = 0

    def request(self) -> HttpRequest:
        """Return the request of the next connection, from the last event on."""
        self._parser, self._got_data = SseParser(LARGEST_FRAME), False
        self.doubtful = False
        left = STREAM_SILENCE_S
        if self._until is not None:
            left = min(left, max(0.001, self._until - time.monotonic()))
        return stream_request(self._server, self._call, self.after, left)

    def take(self, piece: bytes) -> list[Event | Spoken]:
        self._check_deadline()
        frames: list[Event | Spoken] = []
        for frame in self._parse(piece):
            sequence = frame_sequence(frame)
            if sequence is not None:
                if sequence <= self.after:
                    continue  # the server repeats a state after a reconnect
                self.after = sequence
            content = read_frame(frame)
            self.over = self.over or (isinstance(content, Event) and content.terminal)
            frames.append(content)
        if frames or self._parser.comments:
            self._got_data, self._empty_connections = True, 0
        return frames

    def _parse(self, piece: bytes) -> list[SseFrame]:
        try:
            return self._parser.take(piece)
        except FrameTooLarge:
            raise BadAnswer(
                f"A frame of the stream is larger than {LARGEST_FRAME} bytes."
            ) from None

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


def stream_request(
    server: ServerAccess, call: PreparedCall[Any], after: int, seconds: float
) -> HttpRequest:
    """Return the request for a stream after a sequence."""
    request = server.request(call, seconds)
    if after >= 0:
        request.headers["Last-Event-ID"] = str(after)
    return request


def unreachable_error(place: ServerLocation, error: Exception) -> Unreachable:
    reason = str(error) or type(error).__name__
    return Unreachable(f"No server answers at {place.url}: {reason}. Start one with: moot serve")


class BoundedBody:
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
