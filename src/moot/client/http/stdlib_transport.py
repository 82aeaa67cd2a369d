"""Carry requests with the standard library, one connection each.

It costs a quarter of the import time of httpx2, and the command line must start at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moot.client.http.attempts import ConnectionLost, HttpRequest
from moot.config.server_location import ServerLocation

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

READ_BYTES = 65_536


class StdlibTransport:
    """Sends each request over a connection of its own."""

    def __init__(self, place: ServerLocation) -> None:
        self._place, self._parts = place, urlsplit(place.url)

    @contextmanager
    def open(self, request: HttpRequest) -> "Iterator[StdlibAnswer]":
        if self._place.alone:
            raise ConnectionLost(ConnectionError("it has left no address"), unsent=True)
        connection = self._connect(request.seconds)
        try:
            yield StdlibAnswer(self._send(connection, request))
        finally:
            connection.close()

    def _send(self, connection: "HTTPConnection", request: HttpRequest) -> "HTTPResponse":
        from http.client import HTTPException

        connected = False
        try:
            connection.connect()
            connected = True
            target = self._parts.path.rstrip("/") + request.target
            connection.request(request.method, target, request.body, request.headers)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            raise ConnectionLost(error, unsent=not connected) from error

    def _connect(self, seconds: float) -> "HTTPConnection":
        from http.client import HTTPConnection, HTTPSConnection

        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "https":
            return HTTPSConnection(host, port, timeout=seconds)
        return HTTPConnection(host, port, timeout=seconds)

    def close(self) -> None:
        """Do nothing, because no connection is kept."""


class StdlibAnswer:
    """An answer of http.client."""

    def __init__(self, response: "HTTPResponse") -> None:
        self._response, self.status = response, response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    @property
    def head(self) -> str:
        """Return the status line and the headers as text."""
        response = self._response
        return f"HTTP/1.1 {response.status} {response.reason}\n{response.headers}"

    def pieces(self) -> Iterator[bytes]:
        from http.client import HTTPException

        while True:
            try:
                piece = self._response.read1(READ_BYTES)
            except (OSError, HTTPException) as error:
                raise ConnectionLost(error, unsent=False) from error
            if not piece:
                return
            yield piece
