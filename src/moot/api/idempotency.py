"""Idempotency, layer 1: the same key and body get the first answer again.

A finished answer is written in the same commit as the change it reports, so a crash cannot
separate them. Answers that ask to try again are never kept.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from moot.api import dialect
from moot.api.wire import Endpoint, Reply, Request, Stream
from moot.core.errors import (
    BadRequest,
    KeyMismatch,
    MethodNotAllowed,
    MootError,
    SequenceConflict,
)
from moot.store.protocol import Receipt

if TYPE_CHECKING:
    from moot.core.run import Run

HEADER = "idempotency-key"
REPLAYED = "openwop-Idempotent-Replay"
LONGEST_KEY = 255

#: a change, or a refusal that stays one
KEPT = frozenset({200, 201, 202, 204, 404, 409, 410, 422})


class Idempotency:
    """Answers under way; finished ones are in the store."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, str, str], asyncio.Future[None]] = {}

    async def answer(self, request: Request, endpoint: Endpoint) -> Reply | Stream:
        key = request.header(HEADER)
        if key is None:
            return await endpoint.call(request)
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise BadRequest(f"Idempotency-Key must have 1 to {LONGEST_KEY} printable characters.")
        name = (request.caller.tenant, endpoint.operation, key)
        digest = await _digest(request)
        while name in self._under_way:
            await asyncio.shield(self._under_way[name])
        done = self._under_way[name] = asyncio.get_running_loop().create_future()
        try:
            kept = await request.services.store.receipt(*name)
            if kept is not None:
                return _again(kept, digest)
            return await _first(request, endpoint, name, digest)
        finally:
            del self._under_way[name]
            done.set_result(None)


async def _first(
    request: Request, endpoint: Endpoint, name: tuple[str, str, str], digest: str
) -> Reply | Stream:
    written = False

    def receipt_of(reply: Reply) -> Receipt:
        return Receipt(
            tenant=name[0],
            operation=name[1],
            key=name[2],
            digest=digest,
            status=reply.status,
            headers={k: v for k, v in reply.headers.items() if k.lower() != "set-cookie"},
            body=reply.body,
            created_at=request.services.clock.millis(),
        )

    def receipts(answer: Callable[["Run"], Reply]) -> Callable[["Run"], Receipt]:
        def make(run: "Run") -> Receipt:
            nonlocal written
            written = True
            return receipt_of(answer(run))

        return make

    request.receipts = receipts
    try:
        reply = await endpoint.call(request)
    except MootError as refusal:
        written = False
        reply = refused(refusal)
    if isinstance(reply, Reply) and not written and reply.status in KEPT:
        await _keep(request, receipt_of(reply))
    return reply


async def _keep(request: Request, receipt: Receipt) -> None:
    try:
        await request.services.host.remember(receipt)
    except SequenceConflict:
        return  # another host was first; its answer is the one that is kept


def _again(kept: Receipt, digest: str) -> Reply:
    if kept.digest != digest:
        raise KeyMismatch(
            "This Idempotency-Key was used with another request; use a new key.",
            operation=kept.operation,
        )
    return Reply(kept.body, kept.status, {**kept.headers, REPLAYED: "true"})


async def _digest(request: Request) -> str:
    """The body in canonical form and the run it is about; the route's template is in the key."""
    body = await request.body()
    # What is not JSON the handler will refuse, and a refusal of that kind is not kept.
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = msgspec.json.encode(msgspec.json.decode(body or b"{}"), order="sorted")
    place = msgspec.json.encode(request.params, order="sorted")
    return hashlib.sha256(place + b"\0" + body).hexdigest()


def refused(refusal: MootError) -> Reply:
    """The one place where a refusal becomes an answer."""
    code, details = dialect.spoken(refusal)
    body: dict[str, object] = {"error": code, "message": refusal.message}
    if details:
        body["details"] = details
    headers = {}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(refusal, MethodNotAllowed):
        headers["Allow"] = ", ".join(refusal.details["allowed"])
    return Reply(body, refusal.status, headers)
