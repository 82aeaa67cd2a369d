"""One HTTP call to an address that others have a say in.

The name is looked up once, every address it stands for is judged, and the call goes to one of
exactly those: nobody can answer a second look-up differently. Redirects are not followed, nothing
is kept open, and what comes back is bounded in size and time.
"""

import asyncio
import importlib
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

from msgspec import Struct

from moot.net.dns import CallFailed, Lookups, NotAsked
from moot.net.targets import Target, TargetRefused, checked, target

#: name, port, whose call it is -> the name's addresses
Resolve = Callable[[str, int, str], Awaitable[list[str]]]

#: addresses of one name that are tried when nobody answers at the first
MOST_TRIES = 3
CONNECT_S = 10.0


class Fetched(Struct, frozen=True):
    status: int
    #: names in lower case
    headers: dict[str, str]
    body: bytes


class Order(Struct, frozen=True, kw_only=True):
    """What is to be sent, and how much may come back in how many seconds."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    seconds: float = 30.0
    most_bytes: int = 262_144
    #: the tenant it is for; names are looked up out of its share
    whose: str = ""


class Outbound:
    """``private``: addresses inside may be called, too. ``verify``: another set of certificates
    that are trusted."""

    def __init__(
        self, private: bool = False, resolve: Resolve | None = None, verify: Any = True
    ) -> None:
        self.private = private
        self._resolve, self._verify = resolve or Lookups().find, verify
        self._client: Any = None

    def judged(self, url: str) -> Target:
        """Raises TargetRefused for what can be refused without a look-up."""
        return target(url, self.private)

    async def addresses(self, found: Target, whose: str = "") -> list[str]:
        """All of them may be called. Raises TargetRefused, or CallFailed when there are none."""
        try:
            return checked([str(ipaddress.ip_address(found.host))], found, self.private)
        except ValueError:
            named = await self._resolve(found.host, found.port, whose)
        return checked(named, found, self.private)

    async def send(self, order: Order) -> Fetched:
        """Raises TargetRefused before anything is sent, CallFailed when it went wrong."""
        sent = False
        try:
            async with asyncio.timeout(order.seconds):
                found = self.judged(order.url)
                places = await self.addresses(found, order.whose)
                sent = True
                return await self._sent(order, found, places)
        except TimeoutError:
            said = f"No answer within {order.seconds:g} seconds."
            raise CallFailed(said, sent) from None

    async def _sent(self, order: Order, found: Target, places: list[str]) -> Fetched:
        http = await asyncio.to_thread(importlib.import_module, "httpx2")
        failure = ""
        for place in places[:MOST_TRIES]:
            try:
                return await self._tried(http, order, found, place)
            except (http.ConnectError, http.ConnectTimeout) as error:
                failure = str(error) or type(error).__name__
            except http.HTTPError as error:
                said = f"The call broke off: {type(error).__name__} {error}".strip()
                raise CallFailed(f"{said}.", sent=True) from None
        raise CallFailed(f"{found.origin} cannot be reached: {failure}.", sent=False)

    async def _tried(self, http: Any, order: Order, found: Target, place: str) -> Fetched:
        """To this very address, under the name it was asked for."""
        host = f"[{place}]" if ":" in place else place
        request = self._opened(http).build_request(
            order.method,
            f"{found.scheme}://{host}:{found.port}{found.rest}",
            headers={"accept-encoding": "identity", **order.headers, "host": found.origin},
            content=order.body,
            extensions={"sni_hostname": found.host},
        )
        answer = await self._opened(http).send(request, stream=True)
        try:
            body = await _read(answer, order.most_bytes)
        finally:
            await answer.aclose()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Fetched(answer.status_code, headers, body)

    def _opened(self, http: Any) -> Any:
        """No connection and no cookie is kept: the next call may be another tenant's, and for
        another name at the same address."""
        if self._client is None:
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


async def _read(answer: Any, most: int) -> bytes:
    """As it came: something small that unpacks to something large is not unpacked."""
    if answer.headers.get("content-encoding", "identity") not in ("", "identity"):
        raise CallFailed("The answer is packed, though it was asked not to be.", sent=True)
    body = b""
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > most:
            raise CallFailed(f"The answer is larger than {most} bytes.", sent=True)
    return body


__all__ = ["CallFailed", "Fetched", "NotAsked", "Order", "Outbound", "TargetRefused"]
