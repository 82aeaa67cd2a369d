"""Send requests with httpx2, for blocking programs; imported by the first one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moot.client.http.attempts import ConnectionLost, HttpRequest, ServerAccess

if TYPE_CHECKING:
    import httpx2


def client_options(server: ServerAccess) -> dict[str, Any]:
    """Return options for a client of httpx2. Proxies are not used for this machine."""
    return {"base_url": server.place.url, "trust_env": not server.local, "follow_redirects": False}


def request_options(request: HttpRequest) -> dict[str, Any]:
    import httpx2

    return {
        "method": request.method,
        "url": request.target,
        "content": request.body,
        "headers": request.headers,
        "timeout": httpx2.Timeout(request.seconds, connect=request.connect_seconds),
    }


def connection_lost(error: Exception) -> ConnectionLost:
    import httpx2

    unsent = httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout
    return ConnectionLost(error, isinstance(error, unsent))


class HttpxTransport:
    """Keeps its connections. Several threads may use it."""

    def __init__(
        self, server: ServerAccess, transport: "httpx2.BaseTransport | None" = None
    ) -> None:
        import httpx2

        self._http = httpx2.Client(transport=transport, **client_options(server))
        self._error = httpx2.TransportError

    @contextmanager
    def open(self, request: HttpRequest) -> "Iterator[HttpxAnswer]":
        options = request_options(request)
        sent = self._http.build_request(**options)
        try:
            response = self._http.send(sent, stream=True)
        except self._error as error:
            raise connection_lost(error) from error
        try:
            yield HttpxAnswer(response, self._error)
        finally:
            response.close()

    def close(self) -> None:
        self._http.close()


class HttpxAnswer:
    """An answer of httpx2."""

    def __init__(self, response: "httpx2.Response", error: type[Exception]) -> None:
        self._response, self._error = response, error
        self.status, self.headers = response.status_code, response.headers

    def pieces(self) -> Iterator[bytes]:
        body = self._response.iter_bytes()
        while True:
            try:
                piece = next(body, None)
            except self._error as error:
                raise connection_lost(error) from error
            if piece is None:
                return
            yield piece
