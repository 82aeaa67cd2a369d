"""Send one HTTP request to an address that a caller has chosen.

The name is looked up once, every address is checked, and the call goes to one of exactly those, so
a second look-up cannot change the target. Redirects are not followed, no connection is kept, and
the response is limited in size and time."""

import asyncio
import importlib
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from moot.net.dns import CallFailed, DnsLookups
from moot.net.targets import Target, TargetRefused, check_addresses, parse_target

#: name, port, tenant -> the addresses of the name
Resolve = Callable[[str, int, str], Awaitable[list[str]]]

#: addresses of one name that are tried when a connection fails
MOST_TRIES = 3
CONNECT_S = 10.0


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
        sent = False
        try:
            async with asyncio.timeout(request.seconds):
                target = self.check_url(request.url)
                addresses = await self.addresses(target, request.whose)
                sent = True
                return await self._send_to_any(request, target, addresses)
        except TimeoutError:
            message = f"No answer within {request.seconds:g} seconds."
            raise CallFailed(message, sent) from None

    async def _send_to_any(
        self, request: OutboundRequest, target: Target, addresses: list[str]
    ) -> OutboundResponse:
        http = await asyncio.to_thread(importlib.import_module, "httpx2")
        failure = ""
        for address in addresses[:MOST_TRIES]:
            try:
                return await self._send_to(http, request, target, address)
            except (http.ConnectError, http.ConnectTimeout) as error:
                failure = str(error) or type(error).__name__
            except http.HTTPError as error:
                message = f"The call broke off: {type(error).__name__} {error}".strip()
                raise CallFailed(f"{message}.", sent=True) from None
        raise CallFailed(f"{target.origin} cannot be reached: {failure}.", sent=False)

    async def _send_to(
        self, http: Any, outbound: OutboundRequest, target: Target, address: str
    ) -> OutboundResponse:
        """Send to exactly this address, with the name of the target as its host."""
        host = f"[{address}]" if ":" in address else address
        request = self._open_client(http).build_request(
            outbound.method,
            f"{target.scheme}://{host}:{target.port}{target.rest}",
            headers={"accept-encoding": "identity", **outbound.headers, "host": target.origin},
            content=outbound.body,
            extensions={"sni_hostname": target.host},
        )
        response = await self._open_client(http).send(request, stream=True)
        try:
            body = await _read_body(response, outbound.most_bytes)
        finally:
            await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return OutboundResponse(response.status_code, headers, body)

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


async def _read_body(response: Any, most: int) -> bytes:
    """Read the body as it came. A compressed body is refused, because it may unpack to something
    large."""
    if response.headers.get("content-encoding", "identity") not in ("", "identity"):
        raise CallFailed("The answer is packed, though it was asked not to be.", sent=True)
    body = b""
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            raise CallFailed(f"The answer is larger than {most} bytes.", sent=True)
    return body


__all__ = [
    "CallFailed",
    "Outbound",
    "OutboundRequest",
    "OutboundResponse",
    "TargetRefused",
]
