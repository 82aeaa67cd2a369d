"""The ASGI application: rate limit, key, scope, then the handler; every refusal in one shape.

Routes are raw ASGI: a framework in between costs half the requests a second and a sixth of the
start-up time (bench/README.md).
"""

import logging
import re
from typing import Any

from moot.api.access.auth import keep_to_thread, require
from moot.api.access.trust_local import LOCAL, is_local, trusted
from moot.api.host import unsupported
from moot.api.http.idempotency import HEADER, Idempotency, refused
from moot.api.http.request import SSE, Endpoint, Receive, Reply, Request, Scope, Send, Stream
from moot.api.routes import Router
from moot.api.services import Services
from moot.core.errors import BadRoot, MethodNotAllowed, MootError, NotFound
from moot.core.text.nearest import nearest
from moot.store.protocol import Key

log = logging.getLogger("moot.api")

EVENTS = {"Content-Type": SSE}
ROOTS = ("/v1/", "/.well-known/")
OWN_ROOTS = ("/threads/", "/metrics/")
#: a path keeps it as it is, for read it would part what it stands in; no route has one
ESCAPED_SLASH = re.compile("%(2f|5c)", re.IGNORECASE)


class App:
    """One per server."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._metrics = services.host.metrics
        self.router = Router(services.settings.conformance)
        self._idempotency = Idempotency()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        whole = reply if isinstance(reply, Reply) else reply.head(EVENTS)
        self._metrics.requests[route, whole.status] += 1
        await whole.send(send, head_only)

    async def _answer(self, request: Request) -> tuple[Reply | Stream, Endpoint | None]:
        endpoint: Endpoint | None = None
        try:
            found = self._found(request.path)
            endpoint = _endpoint(found, request)
            header = request.header("authorization")
            key = self._spend(request, header)
            if _guarded(endpoint, request.path):
                request.caller = await self._caller(request, endpoint, key)
                for scope in filter(None, (endpoint.scope, endpoint.beside) if endpoint else ()):
                    require(request.caller, scope)
            if endpoint is None:
                raise _lost(found, request)
            request.params = found[1] if found else {}
            request.largest = endpoint.largest
            if request.caller.thread is not None:
                keep_to_thread(request.caller, endpoint, request.params)
            if endpoint.keyed and request.header(HEADER) is not None:
                return await self._idempotency.answer(request, endpoint), endpoint
            return await self._call(request, endpoint), endpoint
        except MootError as refusal:
            return refused(refusal, self.services), endpoint
        except Exception:
            correlation = self.services.clock.new_id("err_")
            log.exception("A request failed", extra={"action": "http.failed", "id": correlation})
            failure = MootError(
                "The server made a mistake; its log has the details under this id.",
                correlationId=correlation,
            )
            return refused(failure, self.services), endpoint

    def _found(self, path: str) -> tuple[dict[str, Endpoint], dict[str, str]] | None:
        if "%" in path and ESCAPED_SLASH.search(path):
            return None
        return self.router.find(path)

    async def _call(self, request: Request, endpoint: Endpoint) -> Reply | Stream:
        """What was read, perhaps after a long wait, is told to who may still have it."""
        reply = await endpoint.call(request)
        asked = endpoint.public or endpoint.mutating or is_local(request.caller)
        if (isinstance(reply, Reply) or reply.headers is not None) and not asked:
            await self.services.keyring.caller(request.header("authorization"))
        return reply

    async def _caller(self, request: Request, endpoint: Endpoint | None, key: Key | None) -> Key:
        header = request.header("authorization")
        if header is None and trusted(request, endpoint):
            return LOCAL
        keyring = self.services.keyring
        return keyring.good(key) if key else await keyring.caller(header)

    def _spend(self, request: Request, header: str | None) -> Key | None:
        """Only a key that is known has a share of its own: made-up ones share their address'."""
        key = self.services.keyring.known(header) if header else None
        if key is not None:
            self.services.rate.spend(key.hash, "key")
        else:
            client = request.scope.get("client") or ("", 0)
            self.services.rate.spend(str(client[0]), "global")
        return key


def _endpoint(
    found: tuple[dict[str, Endpoint], dict[str, str]] | None, request: Request
) -> Endpoint | None:
    if found is None:
        return None
    method = "GET" if request.method == "HEAD" else request.method
    return found[0].get(method)


def _guarded(endpoint: Endpoint | None, path: str) -> bool:
    """Public routes and unknown roots need no key."""
    return not endpoint.public if endpoint is not None else _rooted(path)


def _rooted(path: str) -> bool:
    """Whether the path belongs to what this host serves, found or not."""
    path = ESCAPED_SLASH.sub("/", path)
    return path.startswith(ROOTS) or f"{path}/".startswith(OWN_ROOTS)


def _lost(found: Any, request: Request) -> MootError:
    missing = unsupported.refusal(request.path)
    if missing is not None:
        return missing
    if found is not None:
        return MethodNotAllowed(request.method, sorted(found[0]))
    if _rooted(request.path):
        return NotFound("There is no such route; see /v1/openapi.json.", path=request.path[:200])
    meant = nearest("/v1" + request.path, ("/v1/runs", "/v1/workflows", "/v1/openapi.json"))
    hint = f" Did you mean {meant}?" if meant else " See /v1/openapi.json."
    return BadRoot(f"This host serves nothing under this path.{hint}", path=request.path[:200])
