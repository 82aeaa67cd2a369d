"""Answer a repeated request with the first answer (idempotency, layer 1).

When the change is a commit of a run, the same commit holds the answer, so a crash cannot separate
them. Other routes (keys, workflows) and refusals store their answer afterwards. An answer that asks
the caller to retry is never stored.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from moot.api.http import error_codes
from moot.api.http.request import Endpoint, Reply, Request, Stream
from moot.core.errors import (
    BadRequest,
    KeyMismatch,
    MethodNotAllowed,
    MootError,
    SequenceConflict,
    Unavailable,
)
from moot.store.protocol import Receipt

if TYPE_CHECKING:
    from moot.api.services import Services

log = logging.getLogger("moot.api")

KEY_HEADER = "idempotency-key"
REPLAY_HEADER = "openwop-Idempotent-Replay"
RETRY_AFTER = "Retry-After"
LONGEST_KEY = 255

#: Statuses of changes and of lasting refusals.
KEPT_STATUSES = frozenset({200, 201, 202, 204, 404, 409, 410, 422})

LockName = tuple[str, str, str]


class Idempotency:
    """Idempotent requests under way. Finished ones are in the store."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, str, str], asyncio.Future[None]] = {}

    async def answer(self, request: Request, endpoint: Endpoint) -> Reply | Stream:
        key = request.header(KEY_HEADER)
        if key is None:
            return await endpoint.call(request)
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise BadRequest(f"Idempotency-Key must have 1 to {LONGEST_KEY} printable characters.")
        name = (request.caller.tenant, endpoint.operation, _scoped_key(key, request, endpoint))
        digest = await _request_digest(request, endpoint)
        while name in self._under_way:
            await asyncio.shield(self._under_way[name])
        done = self._under_way[name] = asyncio.get_running_loop().create_future()
        try:
            receipt = await request.services.store.receipt(*name)
            if receipt is not None:
                return _answer_again(receipt, digest)
            return await _answer_first(request, endpoint, name, digest)
        finally:
            del self._under_way[name]
            done.set_result(None)


async def _answer_first(
    request: Request, endpoint: Endpoint, name: tuple[str, str, str], digest: str
) -> Reply | Stream:
    written = False

    def make_receipt(reply: Reply) -> Receipt:
        return Receipt(
            tenant=name[0],
            operation=name[1],
            key=name[2],
            digest=digest,
            status=reply.status,
            headers={k: v for k, v in reply.headers.items() if k.lower() != "set-cookie"},
            body=reply.body if reply.remembered is None else reply.remembered,
            created_at=request.services.clock.millis(),
        )

    def make_and_note(reply: Reply) -> Receipt:
        nonlocal written
        written = True
        return make_receipt(reply)

    request.receipts = make_and_note
    lasting = True
    try:
        reply = await endpoint.call(request)
    except MootError as refusal:
        written, lasting = False, not refusal.passing
        reply = reply_from_refusal(refusal, request.services)
    unknown = endpoint.public and isinstance(reply, Reply) and reply.status == 404
    if isinstance(reply, Reply) and lasting and _is_final(reply) and not written and not unknown:
        await _store_receipt(request, make_receipt(reply))
    return reply


def _scoped_key(key: str, request: Request, endpoint: Endpoint) -> str:
    """Return the key, scoped to the link on public routes.

    Callers of different links cannot share a key.
    """
    if not endpoint.public:
        return key
    about = {**request.params, **request.query} if endpoint.query else request.params
    place = msgspec.json.encode(about, order="sorted")
    return f"{hashlib.sha256(place).hexdigest()} {key}"


def _is_final(reply: Reply) -> bool:
    """Return whether the answer may be repeated. One that asks the caller to retry may not."""
    return reply.status in KEPT_STATUSES and RETRY_AFTER not in reply.headers


async def _store_receipt(request: Request, receipt: Receipt) -> None:
    """Store the answer. A failure is only logged, because the change has already happened."""
    try:
        await request.services.host.remember(receipt)
    except SequenceConflict:
        return  # another host stored its answer first
    except Unavailable as refusal:
        log.warning(
            "An answer could not be kept; the same request would be carried out again",
            extra={"action": "receipt.lost", "code": refusal.code, "operation": receipt.operation},
        )


def _answer_again(receipt: Receipt, digest: str) -> Reply:
    if receipt.digest != digest:
        raise KeyMismatch(
            "This Idempotency-Key was used with another request; use a new key.",
            operation=receipt.operation,
        )
    return Reply(receipt.body, receipt.status, {**receipt.headers, REPLAY_HEADER: "true"})


async def _request_digest(request: Request, endpoint: Endpoint) -> str:
    """Return a digest of the body in canonical form and of the parameters.

    The route's template is part of the key. On personal routes the digest includes the caller.
    """
    body = await request.body()
    # The handler refuses a body that is not JSON, and such a refusal is not stored.
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = msgspec.json.encode(msgspec.json.decode(body or b"{}"), order="sorted")
    about = {**request.params, **request.query} if endpoint.query else request.params
    place = msgspec.json.encode(about, order="sorted")
    personal = endpoint.personal or endpoint.scope == "approvals:respond"
    who = request.caller.id.encode() if personal else b""
    return hashlib.sha256(place + b"\0" + who + b"\0" + body).hexdigest()


def reply_from_refusal(refusal: MootError, services: "Services") -> Reply:
    """Turn a refusal into a reply. No other function does this."""
    body = error_codes.refusal_body(refusal, services.settings.council_error_codes)
    headers = {}
    if refusal.retry_after is not None:
        headers[RETRY_AFTER] = str(refusal.retry_after)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(refusal, MethodNotAllowed):
        headers["Allow"] = ", ".join(refusal.details["allowed"])
    return Reply(body, refusal.status, headers)


class RequestLocks:
    """Locks by name: a repeated request waits for the first one and finds its answer."""

    def __init__(self) -> None:
        self._under_way: dict[LockName, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def lock(self, name: LockName) -> AsyncIterator[None]:
        while name in self._under_way:
            await asyncio.shield(self._under_way[name])
        done = self._under_way[name] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._under_way[name]
            done.set_result(None)
