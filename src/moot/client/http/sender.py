"""Send calls and block until their answers come.

Two transports carry the requests: ``httpx_transport`` for programs, which keeps connections, and
``stdlib_transport`` for the command line, which must start at once.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from moot.client.errors import Forbidden, error_from_response
from moot.client.http.attempts import (
    BoundedBody,
    CallAttempts,
    ConnectionLost,
    HttpRequest,
    ServerAccess,
    StreamPosition,
    stream_request,
    unreachable_error,
)
from moot.client.http.frames import Event, Spoken
from moot.client.http.operation import PreparedCall
from moot.wire.runs import RunEventPage

T = TypeVar("T")
#: maps the last received sequence to a call that tells whether the run has more events
EndCheck = Callable[[int], PreparedCall[RunEventPage]]


class IncomingAnswer(Protocol):
    """An answer whose body is read piece by piece."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives. Raise ConnectionLost."""


class Transport(Protocol):
    """Carries requests to a server."""

    def open(self, request: HttpRequest) -> AbstractContextManager[IncomingAnswer]:
        """Return the answer while it still arrives. Raise ConnectionLost."""

    def close(self) -> None: ...


class WholeAnswer(NamedTuple):
    """An answer that has arrived completely. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def pieces(self) -> Iterator[bytes]:
        yield self.body


class Sender:
    """Sends calls over a transport."""

    def __init__(self, server: ServerAccess, transport: Transport) -> None:
        self.server, self._transport = server, transport

    def send(self, call: PreparedCall[T]) -> T:
        return call.read(self.exchange(call).body)

    def exchange(self, call: PreparedCall[Any]) -> "WholeAnswer":
        """Return a good answer that is not decoded yet."""
        attempts = CallAttempts(self.server, call)
        while True:
            try:
                answer = self._read_answer(call, attempts.request)
            except ConnectionLost as lost:
                wait: float | None = attempts.after_loss(lost)
            else:
                wait = attempts.after_answer(*answer)
            if wait is None:
                return answer
            time.sleep(wait)

    def _read_answer(self, call: PreparedCall[Any], request: HttpRequest) -> "WholeAnswer":
        bounded = BoundedBody(call)
        with self._transport.open(request) as answer:
            for piece in answer.pieces():
                bounded.take(piece)
            return WholeAnswer(answer.status, answer.headers, bounded.body)

    @contextmanager
    def open_stream(
        self, call: PreparedCall[Any], after: int, seconds: float
    ) -> Iterator[Iterator[bytes]]:
        """Yield the pieces of one connection. Raise ApiError or Unreachable."""
        try:
            with self._transport.open(stream_request(self.server, call, after, seconds)) as answer:
                if answer.status != 200:
                    raise error_from_response(answer.status, b"".join(answer.pieces()))
                yield answer.pieces()
        except ConnectionLost as lost:
            raise unreachable_error(self.server.place, lost) from lost

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
                with self._transport.open(position.request()) as answer:
                    if answer.status == 200:
                        for piece in answer.pieces():
                            yield from position.take(piece)
                        wait = position.after_end()
                    else:
                        wait = position.after_refusal(answer.status, b"".join(answer.pieces()))
            except ConnectionLost as lost:
                wait = position.after_loss(lost)
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
        self._transport.close()
