"""Programs on this machine that send no key: with ``--trust-local`` they use the thread API.

They are believed who they are, so whoever could speak through them is kept out: callers from
elsewhere, what a proxy passes on, and pages of other sites in a browser of this machine.
"""

from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from moot.api.access.auth import DEFAULT_TENANT
from moot.api.http.request import Endpoint, Request, parse_body
from moot.store.protocol import Key

Shape = TypeVar("Shape", bound=Struct)

#: headers that a proxy adds to what it passes on: how their names begin, and what stands in them,
#: without hyphens, where they say from whom
RELAYS = (
    b"via",
    b"x-real-",
    b"x-client-",
    b"x-original-",
    b"x-envoy-",
    b"x-azure-",
    b"x-amzn-",
    b"cf-",
    b"fly-",
)
FROM = (
    b"forwarded",
    b"clientip",
    b"realip",
    b"userip",
    b"remoteip",
    b"remoteaddr",
    b"connectingip",
)

LOCAL = Key(
    id="local",
    hash="",
    tenant=DEFAULT_TENANT,
    name="local",
    scopes=["runs:create", "runs:read", "approvals:respond"],
    speaks_as=[],
    created_at=0,
)


def is_local(key: Key) -> bool:
    return key is LOCAL


async def read(request: Request, type_: type[Shape]) -> Shape:
    """The body. Programs that send no key were written for another server and may say more than
    this one asks for: what it does not know is left out, and what is null is not there."""
    if not is_local(request.caller):
        return await request.read(type_)
    known = msgspec.structs.fields(type_)
    fields = {each.encode_name: each.type for each in known}
    body = {
        key: value
        for key, value in (await request.read(dict)).items()
        if key in fields and (value is not None or fields[key] is Any)
    }
    return parse_body(msgspec.json.encode(body), type_)


def trusted(request: Request, endpoint: Endpoint | None) -> bool:
    """Whether this caller needs no key here. What there is none of in the thread API is answered
    so, not with a wish for a key."""
    local = f"{request.path}/".startswith("/threads/") if endpoint is None else endpoint.local
    if not local or not request.services.settings.trust_local:
        return False
    client = request.scope.get("client") or ("", 0)
    names = [bytes(name).lower() for name, _ in request.scope["headers"]]
    relayed = any(map(_is_relays, names))
    return _is_loopback(str(client[0])) and not relayed and _is_own_site(request)


def _is_relays(header: bytes) -> bool:
    plain = header.replace(b"-", b"")
    return header.startswith(RELAYS) or any(word in plain for word in FROM)


def _is_own_site(request: Request) -> bool:
    """A page of another site, or one that goes by a name of its own for this machine, is none of
    the programs that are meant."""
    host = request.header("host") or ""
    origin = request.header("origin")
    try:
        named = urlsplit(f"//{host}").hostname or ""
        asks = host if origin is None else urlsplit(origin).netloc
    except ValueError:
        return False
    if "@" in host or (named != "localhost" and not _is_loopback(named)):
        return False
    if request.header("sec-fetch-site") in ("cross-site", "same-site"):
        return False
    return asks == host


def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)
