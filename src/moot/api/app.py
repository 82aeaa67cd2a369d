"""The ASGI application: rate limit, key, scope, handler, refusals.

Routes are raw ASGI. A framework would cost half the requests per second and a sixth of the start-up
time (bench/README.md).
"""

import logging
import re
from collections.abc import Awaitable
from typing import Any

from moot.api.access.auth import check_thread_key, require_scope
from moot.api.access.trust_local import LOCAL_KEY, is_local, is_trusted
from moot.api.http.idempotency import KEY_HEADER, Idempotency, reply_from_refusal
from moot.api.http.request import (
    SSE,
    Endpoint,
    HttpScope,
    Receive,
    Reply,
    Request,
    Send,
    Stream,
    path_pattern,
)
from moot.api.routes import ENDPOINTS, unsupported_route
from moot.api.services import Services
from moot.core.errors import BadRoot, MethodNotAllowed, MootError, NotFound
from moot.core.text.nearest import nearest_word
from moot.store.protocol import Key

log = logging.getLogger("moot.api")

EVENT_STREAM_HEADERS = {"Content-Type": SSE}
ROOTS = ("/v1/", "/.well-known/")
OWN_ROOTS = ("/threads/", "/metrics/")
#: Escaped slashes stay escaped, because unescaped they would split the path. No route has one.
ESCAPED_SLASH = re.compile("%(2f|5c)", re.IGNORECASE)


Row = tuple[re.Pattern[str], dict[str, Endpoint]]


class App:
    """The ASGI application of one server."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._metrics = services.host.metrics
        self.router = Router(services.seams.endpoints)
        self._idempotency = Idempotency()

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, self.services)
        reply, endpoint = await self._answer(request)
        route = endpoint.path if endpoint is not None else "unknown"
        head_only = scope["method"] == "HEAD"
        if isinstance(reply, Stream) and not head_only:
            self._metrics.requests[route, 200] += 1
            await reply.write(receive, send)
            return
        whole = reply if isinstance(reply, Reply) else reply.head(EVENT_STREAM_HEADERS)
        self._metrics.requests[route, whole.status] += 1
        await whole.send(send, head_only)

    async def _answer(self, request: Request) -> tuple[Reply | Stream, Endpoint | None]:
        endpoint: Endpoint | None = None
        try:
            match = self._match(request.path)
            endpoint = _endpoint_for(match, request)
            header = request.header("authorization")
            key = self._spend_rate(request, header)
            if _needs_key(endpoint, request.path):
                request.caller = await self._caller(request, endpoint, header, key)
                if endpoint is not None:
                    _require_scopes(request.caller, endpoint)
            if endpoint is None:
                raise _route_error(match, request)
            request.params = match[1] if match else {}
            request.largest = endpoint.largest
            if request.caller.thread is not None:
                check_thread_key(request.caller, endpoint, request.params)
            if request.header(KEY_HEADER) is not None and endpoint.keyed:
                return await self._idempotency.answer(request, endpoint), endpoint
            return await self._call(request, endpoint), endpoint
        except MootError as refusal:
            return reply_from_refusal(refusal, self.services), endpoint
        except Exception:
            correlation = self.services.clock.new_id("err_")
            log.exception("A request failed", extra={"action": "http.failed", "id": correlation})
            failure = MootError(
                "The server made a mistake; its log has the details under this id.",
                correlationId=correlation,
            )
            return reply_from_refusal(failure, self.services), endpoint

    def _match(self, path: str) -> tuple[dict[str, Endpoint], dict[str, str]] | None:
        if "%" in path and ESCAPED_SLASH.search(path):
            return None
        return self.router.find(path)

    def _call(self, request: Request, endpoint: Endpoint) -> Awaitable[Reply | Stream]:
        if endpoint.public or endpoint.mutating or is_local(request.caller):
            return endpoint.call(request)
        return self._read(request, endpoint)

    async def _read(self, request: Request, endpoint: Endpoint) -> Reply | Stream:
        """Call the handler, then check the key again: it may have ended during a long wait."""
        reply = await endpoint.call(request)
        if isinstance(reply, Reply) or reply.headers is not None:
            await self.services.keyring.caller(request.header("authorization"))
        return reply

    async def _caller(
        self, request: Request, endpoint: Endpoint | None, header: str | None, key: Key | None
    ) -> Key:
        if header is None and is_trusted(request, endpoint):
            return LOCAL_KEY
        keyring = self.services.keyring
        return keyring.check_usable(key) if key else await keyring.caller(header)

    def _spend_rate(self, request: Request, header: str | None) -> Key | None:
        """Spend one request of the caller's rate limit.

        Only a known key has its own bucket; unknown keys share the bucket of their address.
        """
        key = self.services.keyring.known(header) if header else None
        if key is not None:
            self.services.rate.spend(key.hash, "key")
        else:
            client = request.scope.get("client") or ("", 0)
            self.services.rate.spend(str(client[0]), "global")
        return key


def _endpoint_for(
    match: tuple[dict[str, Endpoint], dict[str, str]] | None, request: Request
) -> Endpoint | None:
    if match is None:
        return None
    method = "GET" if request.method == "HEAD" else request.method
    return match[0].get(method)


def _require_scopes(caller: Key, endpoint: Endpoint) -> None:
    if endpoint.scope:
        require_scope(caller, endpoint.scope)
    if endpoint.beside:
        require_scope(caller, endpoint.beside)


def _needs_key(endpoint: Endpoint | None, path: str) -> bool:
    """Return whether the request needs a key. Public routes and unknown roots need none."""
    return not endpoint.public if endpoint is not None else _is_served_root(path)


def _is_served_root(path: str) -> bool:
    """Return whether the path is below a root that this host serves."""
    path = ESCAPED_SLASH.sub("/", path)
    return path.startswith(ROOTS) or f"{path}/".startswith(OWN_ROOTS)


def _route_error(match: Any, request: Request) -> MootError:
    unsupported = unsupported_route(request.path)
    if unsupported is not None:
        return unsupported
    if match is not None:
        return MethodNotAllowed(request.method, sorted(match[0]))
    if _is_served_root(request.path):
        return NotFound("There is no such route; see /v1/openapi.json.", path=request.path[:200])
    suggestion = nearest_word(
        "/v1" + request.path, ("/v1/runs", "/v1/workflows", "/v1/openapi.json")
    )
    hint = f" Did you mean {suggestion}?" if suggestion else " See /v1/openapi.json."
    return BadRoot(f"This host serves nothing under this path.{hint}", path=request.path[:200])


class Router:
    """Finds the endpoints of a path: exact paths by look-up, the others by pattern.

    A verb such as ``:pause`` wins over a plain id.
    """

    def __init__(self, extra: tuple[Endpoint, ...] = ()) -> None:
        self.endpoints = endpoints = (*ENDPOINTS, *extra)
        self._exact: dict[str, dict[str, Endpoint]] = {}
        patterns: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            table = patterns if "{" in endpoint.path else self._exact
            table.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        #: (slashes, has a colon) -> candidate patterns. A parameter holds no slash, and a path
        #: without a colon has no verb.
        self._patterns: dict[tuple[int, bool], list[Row]] = {}
        for path in sorted(patterns, key=_rank):
            for colon in {":" in path, True}:
                rows = self._patterns.setdefault((path.count("/"), colon), [])
                rows.append((path_pattern(path), patterns[path]))

    def find(self, path: str) -> tuple[dict[str, Endpoint], dict[str, str]] | None:
        """Return the methods of a path and its parameters, or None."""
        exact = self._exact.get(path)
        if exact is not None:
            return exact, {}
        for pattern, methods in self._patterns.get((path.count("/"), ":" in path), ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return methods, match.groupdict()
        return None


def _rank(path: str) -> tuple[int, int]:
    """Sort ``{run_id}:pause`` before ``{run_id}``."""
    return (0 if re.search(r"\}:\w", path) else 1, -len(path))
