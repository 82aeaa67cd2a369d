"""Let local programs use the thread API without a key (``--trust-local``).

The host believes the name that such a program gives. So it refuses requests from other machines,
through a proxy, and from web pages of other sites.
"""

from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from moot.api.access.auth import DEFAULT_TENANT
from moot.api.http.request import Endpoint, Request, parse_body
from moot.store.protocol import Key

LenientBody = TypeVar("LenientBody", bound=Struct)

#: Headers that a proxy adds: prefixes of their names, and words in their names without hyphens.
PROXY_PREFIXES = (
    b"via", b"x-real-", b"x-client-", b"x-original-", b"x-envoy-", b"x-azure-", b"x-amzn-", b"cf-",
    b"fly-",
)  # fmt: skip
FORWARDED_WORDS = (
    b"forwarded", b"clientip", b"realip", b"userip", b"remoteip", b"remoteaddr", b"connectingip",
)  # fmt: skip

LOCAL_KEY = Key(
    id="local",
    hash="",
    tenant=DEFAULT_TENANT,
    name="local",
    scopes=["runs:create", "runs:read", "approvals:respond"],
    speaks_as=[],
    created_at=0,
)


def is_local(key: Key) -> bool:
    return key is LOCAL_KEY


async def read_lenient_body(request: Request, type_: type[LenientBody]) -> LenientBody:
    """Return the request body as this type.

    Local programs were written for another server and may send more fields. The host ignores
    unknown fields and nulls of a caller without a key.
    """
    if not is_local(request.caller):
        return await request.read(type_)
    fields_of_type = msgspec.structs.fields(type_)
    fields = {each.encode_name: each.type for each in fields_of_type}
    known_fields = {
        key: value
        for key, value in (await request.read(dict)).items()
        if key in fields and (value is not None or fields[key] is Any)
    }
    return parse_body(msgspec.json.encode(known_fields), type_)


def is_trusted(request: Request, endpoint: Endpoint | None) -> bool:
    """Return whether this caller needs no key.

    An unknown path below ``/threads`` counts as local, so that it gets a 404 and not a 401.
    """
    local = f"{request.path}/".startswith("/threads/") if endpoint is None else endpoint.local
    if not local or not request.services.settings.trust_local:
        return False
    client = request.scope.get("client") or ("", 0)
    names = [bytes(name).lower() for name, _ in request.scope["headers"]]
    relayed = any(map(_is_proxy_header, names))
    return _is_loopback(str(client[0])) and not relayed and _is_own_site(request)


def _is_proxy_header(header: bytes) -> bool:
    plain = header.replace(b"-", b"")
    return header.startswith(PROXY_PREFIXES) or any(word in plain for word in FORWARDED_WORDS)


def _is_own_site(request: Request) -> bool:
    """Return whether the request comes from a program or a page of this very host.

    Another site's page fails, and so does one that uses its own name for this machine.
    """
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
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)
