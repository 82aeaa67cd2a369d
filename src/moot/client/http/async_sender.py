"""Send calls for asyncio.

The standard library has no HTTP client for asyncio, and one of our own would need pools, time
limits and streams, so this sender has httpx2 as its only transport.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeVar

from moot.client.errors import Forbidden
from moot.client.http.attempts import (
    BoundedBody,
    CallAttempts,
    HttpRequest,
    ServerAccess,
    StreamPosition,
)
from moot.client.http.frames import Event, Spoken
from moot.client.http.httpx_transport import client_options, connection_lost, request_options
from moot.client.http.operation import PreparedCall
from moot.client.http.sender import EndCheck
from moot.wire.runs import RunEventPage

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")


class AsyncSender:
    """Sends calls for asyncio."""

    def __init__(
        self, server: ServerAccess, transport: "httpx2.AsyncBaseTransport | None" = None
    ) -> None:
        import httpx2

        self.server = server
        self._http = httpx2.AsyncClient(transport=transport, **client_options(server))
        self._error = httpx2.TransportError

    async def send(self, call: PreparedCall[T]) -> T:
        attempts = CallAttempts(self.server, call)
        while True:
            try:
                status, headers, body = await self._answer(call, attempts.request)
            except self._error as error:
                wait: float | None = attempts.after_loss(connection_lost(error))
            else:
                wait = attempts.after_answer(status, headers, body)
            if wait is None:
                return call.read(body)
            await asyncio.sleep(wait)

    async def _answer(
        self, call: PreparedCall[Any], request: HttpRequest
    ) -> tuple[int, Any, bytes]:
        bounded = BoundedBody(call)
        async with self._http.stream(**request_options(request)) as answer:
            async for piece in answer.aiter_bytes():
                bounded.take(piece)
            return answer.status_code, answer.headers, bounded.body

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
                async with self._http.stream(**request_options(position.request())) as answer:
                    if answer.status_code == 200:
                        async for piece in answer.aiter_bytes():
                            for frame in position.take(piece):
                                yield frame
                        wait = position.after_end()
                    else:
                        wait = position.after_refusal(answer.status_code, await answer.aread())
            except self._error as error:
                wait = position.after_loss(connection_lost(error))
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
