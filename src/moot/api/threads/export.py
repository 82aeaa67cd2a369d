"""Export a thread as minutes or as a bundle, and import bundles.

A bundle is lines of JSON: a head with the workflow, every event of the run as it was written, and a
last line with their number and digest. An import checks each line before it stores anything.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot import __version__
from moot.api.access.trust_local import is_local
from moot.api.http.request import Endpoint, Receive, Reply, Request, Send, Stream, encode
from moot.api.runs.event_stream import MOST_HELD, fit_rows, watch_disconnect
from moot.api.threads.lookup import find_thread
from moot.api.threads.minutes import MinutesFacts, MinutesTranscript
from moot.api.threads.minutes_format import FORMATTERS, HtmlMinutes, JsonMinutes, MarkdownMinutes
from moot.core import events
from moot.core.errors import BadRequest, Forbidden, Unauthenticated
from moot.core.events import iso
from moot.core.json.nesting import is_too_deep
from moot.core.state.conversation import Conversation, is_opened_by_title, thread_id
from moot.core.state.run import Run
from moot.engine.replay.import_log import ImportedLog, import_run
from moot.wire.json import JsonObject
from moot.wire.minutes import Line, MinutesView
from moot.wire.threads import ImportedThread

#: Events read at once. Their size decides how many.
FIRST_PAGE, PAGE = 16, 200
#: Characters of minutes sent at once.
PIECE = 65_536
#: How long a piece may wait for its reader.
PATIENCE_S = 60.0
FORMATS = (*FORMATTERS, "bundle")
KIND, BUNDLE = "moot.conversation", "application/x-ndjson"
MinutesFormat = MarkdownMinutes | HtmlMinutes | JsonMinutes
Write = Callable[[Receive, Send], Awaitable[None]]
LARGEST_BUNDLE = 256 * 1024 * 1024


class BundleHead(Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line of a bundle."""

    format: str
    version: int
    run_id: str
    thread_id: str
    #: The exact registered text, because its digest is pinned.
    definition: str
    exported_at: str = ""
    host: JsonObject = {}


class BundleEnd(Struct, frozen=True, kw_only=True):
    """The last line of a bundle."""

    events: int
    sha256: str


async def export_thread(request: Request) -> Reply | Stream:
    format_ = request.query.get("format", "md")
    if format_ not in FORMATS:
        raise BadRequest(f"format must be one of {', '.join(FORMATS)}.", field="format")
    run, conversation = await find_thread(request)
    if format_ == "bundle" and request.caller.thread is not None:
        raise Forbidden("The bundle is the whole run; this key is good for one thread only.")
    name = run.run_id
    if format_ == "bundle":
        headers = _download_headers(BUNDLE, f"{name}.moot.jsonl")
        return Stream(
            _guard_stream(await _bundle_writer(request, run, conversation, headers)), headers
        )
    form = FORMATTERS[format_]
    headers = _download_headers(form.media, f"{name}.{format_}")
    return Stream(
        _guard_stream(await _minutes_writer(request, run, conversation, form, headers)), headers
    )


def _guard_stream(write: Write) -> Write:
    """Stop the stream when the key ends or the reader is gone.

    A stream that was cut off has no end mark.
    """

    async def guarded(receive: Receive, send: Send) -> None:
        with suppress(Unauthenticated, OSError):
            async with watch_disconnect(receive) as gone:
                await write(receive, _with_timeout(send, gone))

    return guarded


def _with_timeout(send: Send, gone: asyncio.Event) -> Send:
    async def send_in_time(message: JsonObject) -> None:
        if gone.is_set():
            raise ConnectionResetError("The reader has gone.")
        async with asyncio.timeout(PATIENCE_S):
            await send(message)

    return send_in_time


def _download_headers(media: str, name: str) -> dict[str, str]:
    """Return headers that make browsers download the file and never run it, because it contains
    what people wrote."""
    return {
        "Content-Type": media,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-store",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }


async def _read_rows(request: Request, run: Run, until: int) -> AsyncIterator[list[bytes]]:
    """Yield pages of the log. Raise Unauthenticated when the key ends meanwhile."""
    after, page = -1, FIRST_PAGE
    while after + 1 < until:
        if not is_local(request.caller):
            await request.services.keyring.caller(request.header("authorization"))
        limit = min(page, until - after - 1)
        rows = await request.services.store.read(run.tenant, run.run_id, after, limit)
        if not rows:
            return
        fitting = fit_rows(rows, MOST_HELD)
        page = len(fitting) if len(fitting) < len(rows) else min(PAGE, page * 2)
        del rows  # hold no more than this for a slow reader
        yield fitting
        after += len(fitting)


async def _minutes_writer(
    request: Request,
    run: Run,
    conversation: Conversation,
    form: type[MinutesFormat],
    headers: dict[str, str],
) -> Write:
    """Return the function that writes the minutes.

    It reads the log twice and never holds all of it, because the first line may need names that
    only the last event has.
    """
    until, bare = run.next_sequence, is_opened_by_title(run)
    title = conversation.title or str(run.inputs.get("title") or "")
    facts = MinutesFacts(run.run_id, thread_id(run, conversation), conversation)
    async for rows in _read_rows(request, run, until):
        # in a thread, so that long minutes do not block others
        await asyncio.to_thread(_add_facts, facts, rows)
    minutes = facts.minutes()
    minutes.title = title
    if bare:
        minutes.question = None
    page, transcript = form(minutes), MinutesTranscript(minutes, conversation)

    async def write(receive: Receive, send: Send) -> None:
        await _send_head(send, headers)
        await _send_piece(send, page.head().encode())
        skipped = 1 if bare else 0
        async for rows in _read_rows(request, run, until):
            lines = await asyncio.to_thread(_transcript_lines, transcript, rows)
            fresh, skipped = lines[skipped:], max(0, skipped - len(lines))
            for piece in await asyncio.to_thread(_encode_lines, page, fresh):
                await _send_piece(send, piece)
        await send({"type": "http.response.body", "body": page.end.encode()})

    return write


def _add_facts(facts: MinutesFacts, rows: list[bytes]) -> None:
    for row in rows:
        facts.add(events.decode(row))


def _transcript_lines(transcript: MinutesTranscript, rows: list[bytes]) -> list[Line]:
    return [line for row in rows for line in transcript.lines(events.decode(row))]


def _encode_lines(page: MinutesFormat, lines: list[Line]) -> list[bytes]:
    """Return the lines in as few pieces as a moderate size allows."""
    pieces, parts, size = list[bytes](), list[str](), 0
    for line in lines:
        parts.append(page.line(line))
        size += len(parts[-1])
        if size >= PIECE:
            pieces.append("".join(parts).encode())
            parts, size = [], 0
    return [*pieces, "".join(parts).encode()] if parts else pieces


async def _bundle_writer(
    request: Request, run: Run, conversation: Conversation, headers: dict[str, str]
) -> Write:
    services, until = request.services, run.next_sequence
    definition = await services.store.definition_by_digest(run.tenant, run.definition)
    assert definition is not None
    head = BundleHead(
        format=KIND,
        version=1,
        run_id=run.run_id,
        thread_id=thread_id(run, conversation),
        definition=definition.body.decode(),
        exported_at=iso(services.clock.micros()),
        host={"name": "moot", "version": __version__},
    )

    async def write(receive: Receive, send: Send) -> None:
        await _send_head(send, headers)
        await _send_piece(send, encode(head) + b"\n")
        digest = hashlib.sha256()
        async for rows in _read_rows(request, run, until):
            piece = b"\n".join(rows) + b"\n"
            digest.update(piece)
            await _send_piece(send, piece)
        end = BundleEnd(events=until, sha256=digest.hexdigest())
        await send({"type": "http.response.body", "body": encode(end) + b"\n"})

    return write


async def _send_head(send: Send, headers: dict[str, str]) -> None:
    pairs = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": pairs})


async def _send_piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def import_thread(request: Request) -> Reply:
    """Import a bundle. It needs its own scope, as the bundle names the speaker of each turn."""
    brought = await asyncio.to_thread(_parse_bundle, await request.body())
    brought = replace(brought, by=request.caller.id)
    if not request.caller.admin:
        brought = replace(brought, rights=frozenset(request.caller.scopes))
    run = await import_run(request.services.host, request.caller.tenant, brought)
    url = f"/v1/host/moot/threads/{quote(brought.thread_id)}"
    imported = ImportedThread(
        run_id=run.run_id, thread_id=brought.thread_id, status=run.status, url=url
    )
    return Reply(imported, 201, {"Location": url})


def _parse_bundle(body: bytes) -> ImportedLog:
    """Return the bundle's content. Raise BadRequest when it is invalid or incomplete."""
    lines = body.rstrip(b"\n").split(b"\n")
    if is_too_deep(lines[0]) or is_too_deep(lines[-1]):
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
    return ImportedLog(head.run_id, head.thread_id, head.definition.encode(), rows)


EXPORT_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/threads/{thread_id}/export", call=export_thread,
        scope="runs:read", summary="The minutes of a thread, or all of it as one file",
        query={"format": ({"type": "string", "enum": list(FORMATS)}, "md unless told otherwise")},
        errors=(404,), media="text/markdown", joined=True,
        tag="Threads", operation_id="exportThread", answer=MinutesView,
        description="Returns the minutes of a thread as Markdown, HTML or JSON, or with `bundle` "
        "the whole run as one file that another host can import. A key for one thread gets no "
        "bundle.",
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/threads:import", call=import_thread, scope="runs:import",
        status=201, summary="Take in a thread that was exported elsewhere",
        errors=(409, 422), largest=LARGEST_BUNDLE,
        tag="Threads", operation_id="importThread", answer=ImportedThread,
        description="Imports a thread from a bundle, after a check of every line. The body is the "
        "bundle as exported. Refuses a bundle that was changed or cut off, and a thread that "
        "exists already.",
    ),
)  # fmt: skip
