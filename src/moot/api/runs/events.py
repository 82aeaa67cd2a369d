"""Read a run's events: as a stream, as JSON or by long poll."""

import re

from moot.api.http.request import SSE, Endpoint, Reply, Request, Stream, whole_number
from moot.api.runs.event_stream import RunEventStream, fit_rows, seconds_until_expiry
from moot.core.errors import BadRequest, UnsupportedStreamMode
from moot.engine.head import Head
from moot.engine.streams.hub import MODES
from moot.wire.json import stored_object
from moot.wire.runs import RunEventPage

PAGE = 1000
PAGE_BYTES = 1 << 20
MOST_BUFFER_MS = 5000


async def read_events(request: Request) -> Reply | Stream:
    """Stream events, or return them as JSON to a caller that does not accept a stream."""
    modes = _parse_modes(request.query.get("streamMode"))
    buffer_ms = request.integer("bufferMs", 0, 0, MOST_BUFFER_MS)
    tenant, run_id = request.tenant, request.params["run_id"]
    head = await request.host.view(tenant, run_id)
    accept = request.header("accept") or "*/*"
    if "application/json" in accept and SSE not in accept:
        return await _json_page(request, head, -1)
    after = parse_cursor(request.header("last-event-id"))
    return Stream(RunEventStream(request, head, modes, buffer_ms, after).write)


async def poll_events(request: Request) -> Reply:
    """Wait up to ``timeout`` seconds for new events or the end of the run."""
    since = request.query.get("lastSequence", request.query.get("since"))
    after = _parse_sequence(since) if since is not None else -1
    timeout = request.integer("timeout", 30, 0, 60)
    tenant, run_id = request.tenant, request.params["run_id"]
    host = request.host
    reader = host.hub.subscribe(run_id, holder=request.caller.id)
    try:
        head = await host.view(tenant, run_id)
        if head.run.next_sequence - 1 <= after and not head.run.terminal and timeout:
            await reader.wait(min(timeout, seconds_until_expiry(request)))
            head = await host.view(tenant, run_id)
    finally:
        host.hub.unsubscribe(run_id, reader)
    return await _json_page(request, head, after)


async def _json_page(request: Request, head: Head, after: int) -> Reply:
    """Return a page of the log up to the run's current end.

    Large events make the page short, because the host holds all of it until the caller has taken
    it.
    """
    run = head.run
    status, ended, newest = run.status.value, run.terminal, run.next_sequence - 1
    page = min(PAGE, max(0, newest - after))
    rows = await request.store.read(run.tenant, run.run_id, after, page) if page else []
    rows = fit_rows(rows, PAGE_BYTES)
    last = min(after, newest) + len(rows)
    answer = RunEventPage(
        events=[stored_object(row) for row in rows],
        is_complete=ended and last == newest,
        run_id=run.run_id,
        last_event_seq=last,
        run_status=status,
        is_terminal=ended,
    )
    return Reply(answer, 200, {"Cache-Control": "no-store"})


def _parse_modes(text: str | None) -> frozenset[str]:
    """Return one mode or several. ``values`` does not combine with others."""
    if text is None:
        return frozenset({"updates"})
    words = [word.strip() for word in text.split(",")]
    modes = frozenset(words)
    if not modes <= set(MODES) or ("values" in modes and len(modes) > 1):
        raise UnsupportedStreamMode(text[:100], list(MODES))
    return modes


def parse_cursor(text: str | None) -> int:
    """Return the sequence in an event id. An unreadable id means the beginning."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else -1


def _parse_sequence(text: str) -> int:
    if not re.fullmatch(r"-1|[0-9]{1,15}", text):
        raise BadRequest(
            "lastSequence must be a whole number, the highest sequence already seen.",
            field="lastSequence",
            value=text[:64],
        )
    return int(text)


MODE = {"type": "string", "default": "updates"}
EVENT_ENDPOINTS = (
    Endpoint("GET", "/v1/runs/{run_id}/events", read_events, scope="runs:read",
             query={"streamMode": MODE, "bufferMs": whole_number(0, MOST_BUFFER_MS)}, media=SSE,
             answer=RunEventPage),
    Endpoint("GET", "/v1/runs/{run_id}/events/poll", poll_events, scope="runs:read",
             query={"lastSequence": whole_number(-1), "timeout": whole_number(0, 60)},
             answer=RunEventPage),
)  # fmt: skip
