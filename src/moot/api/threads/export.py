"""A conversation leaves as one file and comes back elsewhere: minutes for people, a bundle for
another host.

A bundle is lines of JSON: a head with the workflow, every event of the run as it was written, and
a last line with their number and digest. Coming back, each line is checked before anything is kept.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot import __version__
from moot.api.access.trust_local import is_local
from moot.api.http.request import Endpoint, Receive, Reply, Request, Send, Stream, encode
from moot.api.runs.event_stream import MOST_HELD, fitting, left
from moot.api.threads import councils
from moot.api.threads.minutes import Facts, Line, Transcript
from moot.api.threads.minutes_format import PRINTED, Html, Json, Markdown
from moot.core import events
from moot.core.errors import BadRequest, Forbidden, Unauthenticated
from moot.core.events import iso
from moot.core.json.nesting import too_deep
from moot.core.state.conversation import Conversation, only_titled, thread_id
from moot.core.state.run import Run
from moot.engine.replay.import_log import Brought, adopt

#: events that are read at once; how many that may be is found out by their size
FIRST_PAGE, PAGE = 16, 200
#: characters of minutes that are sent at once
PIECE = 65_536
#: how long a piece may wait for who asked for it
PATIENCE_S = 60.0
FORMATS = (*PRINTED, "bundle")
KIND, BUNDLE = "moot.conversation", "application/x-ndjson"
Printed = Markdown | Html | Json
Write = Callable[[Receive, Send], Awaitable[None]]
LARGEST_BUNDLE = 256 * 1024 * 1024


class BundleHead(Struct, frozen=True, kw_only=True, rename="camel"):
    format: str
    version: int
    run_id: str
    thread_id: str
    #: the text as it was registered: its digest is pinned
    definition: str
    exported_at: str = ""
    host: dict[str, Any] = {}


class BundleEnd(Struct, frozen=True, kw_only=True):
    events: int
    sha256: str


async def export(request: Request) -> Reply | Stream:
    format_ = request.query.get("format", "md")
    if format_ not in FORMATS:
        raise BadRequest(f"format must be one of {', '.join(FORMATS)}.", field="format")
    run, talk = await councils.place(request)
    if format_ == "bundle" and request.caller.thread is not None:
        raise Forbidden("The bundle is the whole run; this key is good for one thread only.")
    name = run.run_id
    if format_ == "bundle":
        headers = _headers(BUNDLE, f"{name}.moot.jsonl")
        return Stream(_while_good(await _bundle(request, run, talk, headers)), headers)
    form = PRINTED[format_]
    headers = _headers(form.media, f"{name}.{format_}")
    return Stream(_while_good(await _minutes(request, run, talk, form, headers)), headers)


def _while_good(write: Write) -> Write:
    """Until the key is over, or nobody takes what is sent. What is cut off has no end, by which who
    reads it knows."""

    async def whole(receive: Receive, send: Send) -> None:
        with suppress(Unauthenticated, OSError):
            async with left(receive) as gone:
                await write(receive, _patient(send, gone))

    return whole


def _patient(send: Send, gone: asyncio.Event) -> Send:
    async def patiently(message: dict[str, Any]) -> None:
        if gone.is_set():
            raise ConnectionResetError("The reader has gone.")
        async with asyncio.timeout(PATIENCE_S):
            await send(message)

    return patiently


def _headers(media: str, name: str) -> dict[str, str]:
    """Downloaded, never run: what people said stands in it."""
    return {
        "Content-Type": media,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-store",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }


async def _rows(request: Request, run: Run, until: int) -> AsyncIterator[list[bytes]]:
    """Raises Unauthenticated when the key is over before all is told."""
    after, page = -1, FIRST_PAGE
    while after + 1 < until:
        if not is_local(request.caller):
            await request.services.keyring.caller(request.header("authorization"))
        asked = min(page, until - after - 1)
        rows = await request.services.store.read(run.tenant, run.run_id, after, asked)
        if not rows:
            return
        kept = fitting(rows, MOST_HELD)
        page = len(kept) if len(kept) < len(rows) else min(PAGE, page * 2)
        del rows  # no more than that is held while a slow reader takes its time
        yield kept
        after += len(kept)


async def _minutes(
    request: Request, run: Run, talk: Conversation, form: type[Printed], headers: dict[str, str]
) -> Write:
    """The log is read twice, and never held whole: names stand in the first line of the minutes
    that the last event may have told."""
    until, bare = run.next_sequence, only_titled(run)
    title = talk.title or str(run.inputs.get("title") or "")
    facts = Facts(run.run_id, thread_id(run, talk), talk)
    async for rows in _rows(request, run, until):
        # in a thread: long minutes keep nobody else waiting
        await asyncio.to_thread(_hear, facts, rows)
    found = facts.found()
    found.title = title
    if bare:
        found.question = None
    page, transcript = form(found), Transcript(found, talk)

    async def write(receive: Receive, send: Send) -> None:
        await _begin(send, headers)
        await _send(send, page.head().encode())
        skipped = 1 if bare else 0
        async for rows in _rows(request, run, until):
            lines = await asyncio.to_thread(_lines, transcript, rows)
            told, skipped = lines[skipped:], max(0, skipped - len(lines))
            for piece in await asyncio.to_thread(_pieces, page, told):
                await _send(send, piece)
        await send({"type": "http.response.body", "body": page.end.encode()})

    return write


def _hear(facts: Facts, rows: list[bytes]) -> None:
    for row in rows:
        facts.hear(events.decode(row))


def _lines(transcript: Transcript, rows: list[bytes]) -> list[Line]:
    return [line for row in rows for line in transcript.lines(events.decode(row))]


def _pieces(page: Printed, lines: list[Line]) -> list[bytes]:
    """As few as there can be of a size that is no burden."""
    found, parts, size = list[bytes](), list[str](), 0
    for line in lines:
        parts.append(page.line(line))
        size += len(parts[-1])
        if size >= PIECE:
            found.append("".join(parts).encode())
            parts, size = [], 0
    return [*found, "".join(parts).encode()] if parts else found


async def _bundle(request: Request, run: Run, talk: Conversation, headers: dict[str, str]) -> Write:
    services, until = request.services, run.next_sequence
    kept = await services.store.definition_by_digest(run.tenant, run.definition)
    assert kept is not None
    head = BundleHead(
        format=KIND,
        version=1,
        run_id=run.run_id,
        thread_id=thread_id(run, talk),
        definition=kept.body.decode(),
        exported_at=iso(services.clock.micros()),
        host={"name": "moot", "version": __version__},
    )

    async def write(receive: Receive, send: Send) -> None:
        await _begin(send, headers)
        await _send(send, encode(head) + b"\n")
        digest = hashlib.sha256()
        async for rows in _rows(request, run, until):
            piece = b"\n".join(rows) + b"\n"
            digest.update(piece)
            await _send(send, piece)
        end = BundleEnd(events=until, sha256=digest.hexdigest())
        await send({"type": "http.response.body", "body": encode(end) + b"\n"})

    return write


async def _begin(send: Send, headers: dict[str, str]) -> None:
    pairs = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": pairs})


async def _send(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def import_(request: Request) -> Reply:
    """A scope of its own: whoever brings a log along says who said what in it."""
    brought = await asyncio.to_thread(_opened, await request.body())
    brought = replace(brought, by=request.caller.id)
    if not request.caller.admin:
        brought = replace(brought, rights=frozenset(request.caller.scopes))
    run = await adopt(request.services.host, request.caller.tenant, brought)
    url = f"/v1/host/moot/threads/{quote(brought.thread_id)}"
    body = {
        "runId": run.run_id,
        "threadId": brought.thread_id,
        "status": run.status,
        "url": url,
    }
    return Reply(body, 201, {"Location": url})


def _opened(body: bytes) -> Brought:
    """The bundle taken apart. Raises BadRequest when it is none, or not whole."""
    lines = body.rstrip(b"\n").split(b"\n")
    if too_deep(lines[0]) or too_deep(lines[-1]):
        raise BadRequest("This is no bundle.")
    try:
        head = msgspec.json.decode(lines[0], type=BundleHead)
        end = msgspec.json.decode(lines[-1], type=BundleEnd)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("This is no bundle, or it was cut off.") from None
    if head.format != KIND or head.version != 1:
        raise BadRequest(f"This host reads {KIND} of version 1.", format=head.format[:64])
    rows = lines[1:-1]
    digest = hashlib.sha256(b"".join(row + b"\n" for row in rows)).hexdigest()
    if len(rows) != end.events or digest != end.sha256:
        raise BadRequest("The bundle was changed or cut off: its digest does not fit.")
    return Brought(head.run_id, head.thread_id, head.definition.encode(), rows)


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/export", call=export,
        scope="runs:read", summary="The minutes of a thread, or all of it as one file",
        query={"format": ({"type": "string", "enum": list(FORMATS)}, "md unless told otherwise")},
        errors=(404,), media="text/markdown", joined=True,
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/threads:import", call=import_, scope="runs:import",
        status=201, summary="Take in a thread that was exported elsewhere",
        errors=(409, 422), largest=LARGEST_BUNDLE,
    ),
)  # fmt: skip
