"""Idempotency, layer 1: the same key and body get the first answer again.

Where the change is a commit of a run, the answer is written in that commit, so a crash cannot
separate them. On other routes (keys, workflows) and for refusals its record follows it.
Answers that ask to try again are never kept.
"""

import asyncio
import contextlib
import hashlib
import logging

import msgspec

from moot.api.http import error_codes
from moot.api.http.request import Endpoint, Reply, Request, Stream
from moot.api.services import Services
from moot.core.errors import (
    BadRequest,
    KeyMismatch,
    MethodNotAllowed,
    MootError,
    SequenceConflict,
    Unavailable,
)
from moot.store.protocol import Receipt

log = logging.getLogger("moot.api")

HEADER = "idempotency-key"
REPLAYED = "openwop-Idempotent-Replay"
RETRY = "Retry-After"
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
        name = (request.caller.tenant, endpoint.operation, _owned(key, request, endpoint))
        digest = await _digest(request, endpoint)
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
            body=reply.body if reply.remembered is None else reply.remembered,
            created_at=request.services.clock.millis(),
        )

    def receipts(reply: Reply) -> Receipt:
        nonlocal written
        written = True
        return receipt_of(reply)

    request.receipts = receipts
    lasting = True
    try:
        reply = await endpoint.call(request)
    except MootError as refusal:
        written, lasting = False, not refusal.passing
        reply = refused(refusal, request.services)
    unknown = endpoint.public and isinstance(reply, Reply) and reply.status == 404
    if isinstance(reply, Reply) and lasting and _final(reply) and not written and not unknown:
        await _keep(request, receipt_of(reply))
    return reply


def _owned(key: str, request: Request, endpoint: Endpoint) -> str:
    """Who comes by a signed link is nobody else: the key is a matter of this link."""
    if not endpoint.public:
        return key
    about = {**request.params, **request.query} if endpoint.query else request.params
    place = msgspec.json.encode(about, order="sorted")
    return f"{hashlib.sha256(place).hexdigest()} {key}"


def _final(reply: Reply) -> bool:
    """What asks to try again is not the last word."""
    return reply.status in KEPT and RETRY not in reply.headers


async def _keep(request: Request, receipt: Receipt) -> None:
    """What is answered has happened: it is answered even if the answer cannot be kept."""
    try:
        await request.services.host.remember(receipt)
    except SequenceConflict:
        return  # another host was first; its answer is the one that is kept
    except Unavailable as refusal:
        log.warning(
            "An answer could not be kept; the same request would be carried out again",
            extra={"action": "receipt.lost", "code": refusal.code, "operation": receipt.operation},
        )


def _again(kept: Receipt, digest: str) -> Reply:
    if kept.digest != digest:
        raise KeyMismatch(
            "This Idempotency-Key was used with another request; use a new key.",
            operation=kept.operation,
        )
    return Reply(kept.body, kept.status, {**kept.headers, REPLAYED: "true"})


async def _digest(request: Request, endpoint: Endpoint) -> str:
    """The body in canonical form and what it is about; the route's template is in the key.

    Where it matters who says it, the same words of another caller are another request."""
    body = await request.body()
    # What is not JSON the handler will refuse, and a refusal of that kind is not kept.
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = msgspec.json.encode(msgspec.json.decode(body or b"{}"), order="sorted")
    about = {**request.params, **request.query} if endpoint.query else request.params
    place = msgspec.json.encode(about, order="sorted")
    personal = endpoint.personal or endpoint.scope == "approvals:respond"
    who = request.caller.id.encode() if personal else b""
    return hashlib.sha256(place + b"\0" + who + b"\0" + body).hexdigest()


def refused(refusal: MootError, services: Services) -> Reply:
    """The one place where a refusal becomes an answer."""
    body = error_codes.body_of(refusal, services.settings.council_error_codes)
    headers = {}
    if refusal.retry_after is not None:
        headers[RETRY] = str(refusal.retry_after)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(refusal, MethodNotAllowed):
        headers["Allow"] = ", ".join(refusal.details["allowed"])
    return Reply(body, refusal.status, headers)
