"""Send one HTTP request to an address that a caller has chosen.

The name is looked up once, every address is checked, and the call goes to one of exactly those, so
a second look-up cannot change the target. Redirects are not followed, no connection is kept, and
the response is limited in size and time."""

import asyncio
import importlib
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from moot.net.dns import CallFailed, DnsLookups
from moot.net.targets import Target, TargetRefused, check_addresses, parse_target

#: name, port, tenant -> the addresses of the name
Resolve = Callable[[str, int, str], Awaitable[list[str]]]

#: addresses of one name that are tried when a connection fails
MOST_TRIES = 3
CONNECT_S = 10.0


class ConnectFailed(CallFailed):
    """No connection came about, so the receiver has nothing."""

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(f"{origin} cannot be reached: {reason}.", sent=False)
        self.reason = reason


class CallTimedOut(CallFailed):
    """The response did not come in time."""

    def __init__(self, seconds: float, sent: bool) -> None:
        super().__init__(f"No answer within {seconds:g} seconds.", sent)


class CallBroken(CallFailed):
    """The connection broke off while the response was awaited or arrived."""

    def __init__(self, error: Exception) -> None:
        super().__init__(_broken_text(error), sent=True)


def _broken_text(error: Exception) -> str:
    return f"{f'The call broke off: {type(error).__name__} {error}'.strip()}."


class ResponseRefused(CallFailed):
    """The response is too large, packed or not HTTP."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


class OutboundResponse(Struct, frozen=True):
    """The response to an outbound request."""

    status: int
    #: names in lower case
    headers: dict[str, str]
    body: bytes


class OutboundRequest(Struct, frozen=True, kw_only=True):
    """A request, and the limits on its response."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    seconds: float = 30.0
    most_bytes: int = 262_144
    #: the tenant whose share of look-ups it uses
    whose: str = ""


class Outbound:
    """The HTTP client for outbound requests. ``private`` allows private addresses; ``verify``
    replaces the trusted certificates."""

    def __init__(
        self, private: bool = False, resolve: Resolve | None = None, verify: Any = True
    ) -> None:
        self.private = private
        self._resolve, self._verify = resolve or DnsLookups().find, verify
        self._client: Any = None

    def check_url(self, url: str) -> Target:
        """Parse a URL. Raise TargetRefused for what can be refused without a look-up."""
        return parse_target(url, self.private)

    async def addresses(self, target: Target, whose: str = "") -> list[str]:
        """Return the addresses of a target, all of which may be called. Raise TargetRefused, or
        CallFailed when there are none."""
        try:
            return check_addresses([str(ipaddress.ip_address(target.host))], target, self.private)
        except ValueError:
            addresses = await self._resolve(target.host, target.port, whose)
        return check_addresses(addresses, target, self.private)

    async def send(self, request: OutboundRequest) -> OutboundResponse:
        """Send a request. Raise TargetRefused before anything is sent, CallFailed when the call
        fails."""
        deadline = asyncio.get_running_loop().time() + request.seconds
        response = await self._open_response(request, deadline)
        try:
            async with asyncio.timeout_at(deadline):
                body = await response.read(request.most_bytes)
        except TimeoutError:
            raise CallTimedOut(request.seconds, sent=True) from None
        finally:
            await response.aclose()
        return OutboundResponse(response.status, response.headers, body)

    @asynccontextmanager
    async def open(self, request: OutboundRequest) -> "AsyncIterator[IncomingResponse]":
        """Yield the response while its body still arrives. Raise as ``send`` does."""
        deadline = asyncio.get_running_loop().time() + request.seconds
        response = await self._open_response(request, deadline)
        try:
            yield response
        finally:
            await response.aclose()

    async def _open_response(self, request: OutboundRequest, deadline: float) -> "IncomingResponse":
        sent = False
        try:
            async with asyncio.timeout_at(deadline):
                target = self.check_url(request.url)
                addresses = await self.addresses(target, request.whose)
                http = await asyncio.to_thread(importlib.import_module, "httpx2")
                sent = True
                return await self._send_to_any(http, request, target, addresses)
        except TimeoutError:
            raise CallTimedOut(request.seconds, sent) from None

    async def _send_to_any(
        self, http: Any, request: OutboundRequest, target: Target, addresses: list[str]
    ) -> "IncomingResponse":
        reason, received = "", ReceivedStart()
        for address in addresses[:MOST_TRIES]:
            try:
                response = await self._send_to(http, request, target, address, received)
                return IncomingResponse(http, response)
            except (http.ConnectError, http.ConnectTimeout) as error:
                reason = str(error) or type(error).__name__
            except AttributeError:  # anyio reads the address of a socket that was closed at once
                if received.is_asked:
                    raise _call_error(http, http.ReadError("The connection broke.")) from None
                reason = "the connection was closed at once"
            except http.HTTPError as error:
                if received.is_foreign:
                    raise ResponseRefused(_broken_text(error)) from None
                raise _call_error(http, error) from None
        raise ConnectFailed(target.origin, reason)

    async def _send_to(
        self,
        http: Any,
        outbound: OutboundRequest,
        target: Target,
        address: str,
        received: "ReceivedStart",
    ) -> Any:
        """Send to exactly this address, with the name of the target as its host."""
        host = f"[{address}]" if ":" in address else address
        request = self._open_client(http).build_request(
            outbound.method,
            f"{target.scheme}://{host}:{target.port}{target.rest}",
            headers={"accept-encoding": "identity", **outbound.headers, "host": target.origin},
            content=outbound.body,
            extensions={"sni_hostname": target.host, "trace": received.trace},
        )
        return await self._open_client(http).send(request, stream=True)

    def _open_client(self, http: Any) -> Any:
        """Return a client that keeps no connection and no cookie, because the next call may be of
        another tenant and for another name at the same address."""
        if self._client is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            self._client = http.AsyncClient(
                verify=self._verify,
                trust_env=False,
                follow_redirects=False,
                timeout=http.Timeout(None, connect=CONNECT_S),
                limits=http.Limits(max_keepalive_connections=0),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        return self._client

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


class IncomingResponse:
    """A response whose body is read piece by piece."""

    def __init__(self, http: Any, response: Any) -> None:
        self._http, self._response = http, response
        self.status: int = response.status_code
        #: names in lower case
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def pieces(self, silence: float | None = None) -> AsyncIterator[bytes]:
        """Yield the body as it came. Raise CallTimedOut after ``silence`` seconds without a piece.

        A packed body is refused, because it may unpack to something large.
        """
        if self.headers.get("content-encoding", "identity") not in ("", "identity"):
            raise ResponseRefused("The answer is packed, though it was asked not to be.")
        body = self._response.aiter_raw()
        while True:
            try:
                async with asyncio.timeout(silence):
                    piece = await anext(body, None)
            except TimeoutError:
                raise CallTimedOut(silence or 0, sent=True) from None
            except self._http.HTTPError as error:
                raise _call_error(self._http, error) from None
            if piece is None:
                return
            yield piece

    async def read(self, most_bytes: int) -> bytes:
        body = b""
        async for piece in self.pieces():
            body += piece
            if len(body) > most_bytes:
                raise ResponseRefused(f"The answer is larger than {most_bytes} bytes.")
        return body

    async def aclose(self) -> None:
        await self._response.aclose()


#: events of a connection that return the stream to read from
_STREAM_OPENED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class ReceivedStart:
    """Records the first bytes from a receiver. Without them, an answer that is not HTTP and then
    ends looks like a connection that was closed without an answer."""

    def __init__(self) -> None:
        self._start = b""
        #: the receiver may have got a part of the request
        self.is_asked = False

    @property
    def is_foreign(self) -> bool:
        return not b"HTTP/".startswith(self._start)

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        if event in _STREAM_OPENED:
            self._watch(info["return_value"])
        self.is_asked |= event.endswith("send_request_headers.started")

    def _watch(self, stream: Any) -> None:
        read = stream.read

        async def read_and_record(*args: Any, **kwargs: Any) -> bytes:
            data: bytes = await read(*args, **kwargs)
            self._start = (self._start + data)[:5]
            return data

        stream.read = read_and_record


#: the beginnings of protocol errors that mean a closed connection
_CLOSED = ("Server disconnected", "peer closed connection")


def _call_error(http: Any, error: Exception) -> CallFailed:
    if isinstance(error, http.RemoteProtocolError) and not str(error).startswith(_CLOSED):
        return ResponseRefused(_broken_text(error))
    return CallBroken(error)


__all__ = [
    "CallBroken",
    "CallFailed",
    "CallTimedOut",
    "ConnectFailed",
    "IncomingResponse",
    "Outbound",
    "OutboundRequest",
    "OutboundResponse",
    "ResponseRefused",
    "TargetRefused",
]
