"""Requests to another host, checks of its answers, and the watch over a run there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.catalogue import TERMINAL_TYPES
from moot.core.json.nesting import is_too_deep
from moot.core.payloads.base import RecordedError
from moot.core.payloads.conversations import ConversationEnded, ConversationOpened
from moot.core.payloads.interrupts import (
    ApprovalReceived,
    ApprovalRequested,
    ClarificationRequested,
    ClarificationResolved,
    InterruptRequested,
    InterruptResolved,
)
from moot.core.payloads.nodes import NodeDispatched, NodeResumed, NodeSuspended
from moot.core.payloads.runs import PauseBegan, PeerOrigin, RunResumed
from moot.core.state.remote_children import RemoteChild
from moot.core.state.status import TERMINAL, Status
from moot.core.trace import Trace
from moot.core.workflows import peer_ids
from moot.core.workflows.node_types import NodeError
from moot.core.workflows.peer_ids import RUN_ID
from moot.net.outbound import (
    CallFailed,
    CallTimedOut,
    ConnectFailed,
    IncomingResponse,
    Outbound,
    OutboundRequest,
    OutboundResponse,
    ResponseRefused,
    TargetRefused,
)
from moot.wire.sse import FrameTooLarge, SseFrame, SseParser

#: statuses after which the same request may be sent again
RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
#: statuses of these that say the request was not started
NOT_BEGUN_STATUSES = frozenset({425, 429})
GONE_STATUSES = frozenset({404, 410})
IN_FLIGHT = "idempotency_in_flight"
MOST_ERROR_CHARS = 500
#: for a whole answer, and for the head of a stream
ANSWER_SECONDS = 40.0
MOST_BODY_BYTES = 4 * 1_048_576


class PeerError(Exception):
    """The reason why another host did not do as requested.

    ``passing``: a retry may help. ``sent``: the host may have done it all the same.
    """

    def __init__(
        self, error: NodeError, *, passing: bool = False, sent: bool = False, status: int = 0
    ) -> None:
        super().__init__(error.message)
        self.error, self.passing, self.sent, self.status = error, passing, sent, status

    @property
    def gone(self) -> bool:
        return self.status in GONE_STATUSES


class Peer:
    """Another host: its address, and the key to it, which only this host gets to see."""

    def __init__(self, name: str, url: str, key: str | None) -> None:
        self.name, self.url, self._key = name, url.rstrip("/"), key
        # the operator of this host has chosen the address, so it may be a private one
        self.outbound = Outbound(private=True)

    def __repr__(self) -> str:
        return f"Peer({self.name!r}, {self.url!r})"

    def request(
        self, method: str, path: str, trace: Trace, headers: dict[str, str], body: bytes = b""
    ) -> OutboundRequest:
        sent_headers = {"Accept": "application/json", "traceparent": trace.traceparent}
        if trace.state:
            sent_headers["tracestate"] = trace.state
        if self._key:
            sent_headers["Authorization"] = f"Bearer {self._key}"
        if body:
            sent_headers["Content-Type"] = "application/json"
        return OutboundRequest(
            method=method,
            url=self.url + path,
            headers={"User-Agent": "moot"} | sent_headers | headers,
            body=body,
            seconds=ANSWER_SECONDS,
            most_bytes=MOST_BODY_BYTES,
        )

    async def ask(self, request: OutboundRequest) -> OutboundResponse:
        try:
            return await self.outbound.send(request)
        except (CallFailed, TargetRefused) as failure:
            raise self.call_error(failure) from failure

    async def aclose(self) -> None:
        await self.outbound.aclose()

    def call_error(self, failure: CallFailed | TargetRefused) -> PeerError:
        if isinstance(failure, ResponseRefused):
            return self.invalid_answer_error(str(failure).rstrip("."))
        message = f"Host '{self.name}' cannot be reached: {_failure_reason(failure)}."
        sent = isinstance(failure, CallFailed) and failure.sent
        return PeerError(self.error("peer_unreachable", message), passing=True, sent=sent)

    def invalid_answer_error(self, what: str) -> PeerError:
        problem_text = f"Host '{self.name}' gives answers that cannot be used: {what}."
        return PeerError(self.error("peer_answer_invalid", problem_text), sent=True)

    def refusal_error(self, answer: OutboundResponse) -> PeerError:
        status = answer.status
        if 300 <= status < 400:
            return self.invalid_answer_error(f"it answered {status} and points elsewhere")
        code, message = _refusal_text(answer)
        if status in RETRYABLE_STATUSES or code == IN_FLIGHT:
            text = f"Host '{self.name}' cannot do it now: it answered {status}."
            error = self.error("peer_unreachable", text, status=status)
            sent = status not in NOT_BEGUN_STATUSES
            return PeerError(error, passing=True, sent=sent, status=status)
        text = f"Host '{self.name}' refused with {status} {code}: {message}"
        return PeerError(self.error("peer_refused", text, status=status, code=code), status=status)

    def error(self, kind: str, message: str, **details: Any) -> NodeError:
        return NodeError(code=kind, message=message, details={"peer": self.name, **details})


class PeerInfo(Struct, frozen=True):
    """Facts from a host's discovery document: its id, and how long it keeps answers."""

    host_id: str = ""
    remembers_ms: int = 86_400_000


async def discover_peer(peer: Peer, trace: Trace) -> PeerInfo:
    """Return the host's facts; an unusable document counts as empty.

    Raise PeerError when the host cannot be reached.
    """
    answer = await peer.ask(peer.request("GET", peer_ids.WELL_KNOWN, trace, {}))
    if answer.status in RETRYABLE_STATUSES:
        raise peer.refusal_error(answer)
    try:
        document = _parse_object(answer)
    except ValueError:
        return PeerInfo()
    host_id = _find(document, "multiAgent", "executionModel", "crossHostCausation", "hostId")
    seconds = _find(document, "idempotency", "layer1RetentionSeconds")
    if not isinstance(host_id, str) or not peer_ids.HOST_ID.fullmatch(host_id):
        host_id = ""
    retention = seconds if isinstance(seconds, int) and 0 < seconds < 86_400 else 86_400
    return PeerInfo(host_id, retention * 1000)


async def create_remote_run(
    peer: Peer, entry: RemoteChild, name: str, origin: PeerOrigin, trace: Trace
) -> str:
    """Create the run of this name once and return its id. Raise PeerError."""
    body = msgspec.json.encode({"workflowId": entry.workflow_id, "inputs": entry.inputs})
    headers = {"Idempotency-Key": name, peer_ids.HEADER: peer_ids.format_origin(origin)}
    request = peer.request("POST", "/v1/runs", trace, headers, body)
    answer = await peer.ask(request)
    if not 200 <= answer.status < 300:
        raise peer.refusal_error(answer)
    try:
        child = _parse_object(answer).get("runId")
    except ValueError as error:
        raise peer.invalid_answer_error(str(error)) from None
    if not isinstance(child, str) or not RUN_ID.fullmatch(child):
        raise peer.invalid_answer_error("it does not name the run it has begun")
    return child


class RemoteRun(Struct, frozen=True, rename="camel"):
    """The fields that are needed from the snapshot of a run."""

    run_id: str
    status: Status
    variables: dict[str, object] = {}
    outputs: dict[str, object] | None = None
    error: dict[str, object] | None = None
    tree_runs: Any = None

    def used(self, lent: int) -> int:
        """Return how many runs it has led to, with itself; without a count, all it could."""
        most = max(1, lent)
        count = self.tree_runs if type(self.tree_runs) is int else most
        return min(max(1, count), most)

    def failure(self) -> RecordedError | None:
        """Return the error with only the keys that a log has for it."""
        if self.error is None:
            return None
        code, message = str(self.error.get("code", "")), str(self.error.get("message", ""))
        return RecordedError(code=code[:MOST_ERROR_CHARS], message=message[:MOST_ERROR_CHARS])


_remote_run_decoder = msgspec.json.Decoder(RemoteRun)


async def read_remote_run(peer: Peer, child: str, trace: Trace) -> RemoteRun:
    """Return the child's current snapshot. Raise PeerError."""
    answer = await peer.ask(peer.request("GET", f"/v1/runs/{child}", trace, {}))
    if answer.status != 200:
        raise peer.refusal_error(answer)
    if is_too_deep(answer.body):
        raise peer.invalid_answer_error("it is nested too deeply")
    try:
        remote_run = _remote_run_decoder.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise peer.invalid_answer_error(f"the run cannot be read ({str(error)[:200]})") from None
    if remote_run.run_id != child:
        raise peer.invalid_answer_error("it shows another run")
    return remote_run


async def cancel_remote_run(peer: Peer, child: str, name: str, reason: str, trace: Trace) -> None:
    """Cancel the child. Raise PeerError; an ended child counts as cancelled."""
    body = msgspec.json.encode({"reason": reason})
    headers = {"Idempotency-Key": f"{name}-stop"}
    request = peer.request("POST", f"/v1/runs/{child}/cancel", trace, headers, body)
    answer = await peer.ask(request)
    if not 200 <= answer.status < 300:
        raise peer.refusal_error(answer)


def _parse_object(answer: OutboundResponse) -> dict[str, object]:
    """Return the JSON object of the answer. Raise ValueError when it has none."""
    if is_too_deep(answer.body):
        raise ValueError("it is nested too deeply")
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - of the text, not of the caller
    return value


def _find(document: object, *path: str) -> object:
    """Return the value at this path of keys, or None."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _refusal_text(answer: OutboundResponse) -> tuple[str, str]:
    """Return the code and message of a refusal, cut to the length that a log may hold."""
    try:
        body = _parse_object(answer)
    except ValueError:
        return "", "it does not say why"
    code, message = body.get("error", ""), body.get("message", "")
    if not isinstance(code, str) or not isinstance(message, str):
        return "", "it does not say why"
    return code[:100], message[:MOST_ERROR_CHARS]


def _failure_reason(failure: CallFailed | TargetRefused) -> str:
    match failure:
        case CallTimedOut():
            return "it did not answer in time"
        case ConnectFailed():
            return f"the connection failed ({failure.reason[:200]})"
        case CallFailed() if failure.sent:
            return "the connection was cut"
        case _:
            return str(failure).rstrip(".")


#: events that may change the status of a run
STATUS_EVENTS = TERMINAL_TYPES | {
    PauseBegan.event_type, RunResumed.event_type, NodeSuspended.event_type,
    NodeResumed.event_type, NodeDispatched.event_type, InterruptRequested.event_type,
    InterruptResolved.event_type, ApprovalRequested.event_type, ApprovalReceived.event_type,
    ClarificationRequested.event_type, ClarificationResolved.event_type,
    ConversationOpened.event_type, ConversationEnded.event_type,
}  # fmt: skip
POLL_SECONDS = 2.0
#: between two pieces of a stream; hosts send a comment every 30 s
SILENCE_SECONDS = 75.0
MOST_FRAME_BYTES = 4 * 1_048_576
#: statuses that count as running
AS_RUNNING = frozenset({Status.PENDING, Status.CANCELLING})
#: a callback for each new status
StatusChanged = Callable[[Status], Awaitable[None]]


class WatchedEvent(Struct, frozen=True, rename="camel"):
    """The fields of an event that the watch reads."""

    type: str
    event_id: str = ""


_event_decoder = msgspec.json.Decoder(WatchedEvent)


class RemoteRunWatch:
    """One child. The watch keeps its place in the stream over any number of connections."""

    def __init__(self, peer: Peer, child: str, trace: Trace, changed: StatusChanged) -> None:
        self._peer, self._child, self._trace, self._changed = peer, child, trace, changed
        self._last = ""
        #: the last reported status; the parent may show one from before this watch
        self._status: Status | None = None
        #: the id of the event that ended the run, once it has arrived
        self.ended_by: str | None = None
        #: whether anything has arrived since the caller reset this
        self.moved = False

    async def once(self, streams: asyncio.Semaphore) -> RemoteRun | None:
        """Follow the run until it or its stream ends. Raise PeerError."""
        if streams.locked():
            return await self._poll()
        async with streams:
            streamed = await self._stream()
        if streamed is None:
            return await self._poll()
        return streamed if isinstance(streamed, RemoteRun) else None

    async def _look(self) -> RemoteRun | None:
        """Return the run if it has ended. Otherwise report its status when that is new."""
        remote_run = await read_remote_run(self._peer, self._child, self._trace)
        if remote_run.status in TERMINAL:
            return remote_run
        status = Status.RUNNING if remote_run.status in AS_RUNNING else remote_run.status
        if status is not self._status:
            await self._changed(status)
            self._status = status
        return None

    async def _poll(self) -> RemoteRun | None:
        remote_run = await self._look()
        self.moved = True
        if remote_run is None:
            await asyncio.sleep(POLL_SECONDS)
        return remote_run

    async def _stream(self) -> RemoteRun | bool | None:
        """Read the event stream. Return None when the host has none."""
        path = f"/v1/runs/{self._child}/events?streamMode=updates"
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        request = self._peer.request("GET", path, self._trace, headers)
        try:
            async with self._peer.outbound.open(request) as response:
                kind = response.headers.get("content-type", "")
                if response.status != 200 or "event-stream" not in kind:
                    return None
                return await self._read(response, SseParser(MOST_FRAME_BYTES))
        except (CallFailed, TargetRefused) as failure:
            raise self._peer.call_error(failure) from failure
        except FrameTooLarge as flood:
            raise self._peer.invalid_answer_error("a frame of its stream does not end") from flood

    async def _read(self, response: IncomingResponse, parser: SseParser) -> RemoteRun | bool:
        async for piece in response.pieces(SILENCE_SECONDS):
            status_changes = [self._note(frame) for frame in parser.take(piece)]
            if True in status_changes:
                remote_run = await self._look()
                if remote_run is not None:
                    return remote_run
        return await self._look() or True

    def _note(self, frame: SseFrame) -> bool:
        """Return whether the run may have another status after this frame."""
        self.moved = True
        if _is_printable(frame.id):
            self._last = frame.id
        try:
            event = _event_decoder.decode(frame.data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return True  # an unknown form may mean a new status
        if event.type in TERMINAL_TYPES and _is_printable(event.event_id):
            self.ended_by = event.event_id
        return event.type in STATUS_EVENTS


def _is_printable(text: str) -> bool:
    """Return whether the text may go into a header and a log."""
    return 0 < len(text) <= 128 and text.isascii() and text.isprintable()
