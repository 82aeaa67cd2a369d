"""Requests to another host, and checks of its answers."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.core.json.nesting import is_too_deep
from moot.core.payloads.base import RecordedError
from moot.core.payloads.runs import PeerOrigin
from moot.core.state.remote_children import RemoteChild
from moot.core.state.status import Status
from moot.core.trace import Trace
from moot.core.workflows import peer_ids
from moot.core.workflows.node_types import NodeError
from moot.core.workflows.peer_ids import RUN_ID
from moot.net.outbound import (
    CallFailed,
    CallTimedOut,
    ConnectFailed,
    Outbound,
    OutboundRequest,
    OutboundResponse,
    ResponseRefused,
    TargetRefused,
)

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
        """Return the error for a call without a usable answer."""
        if isinstance(failure, ResponseRefused):
            return self.invalid_answer_error(str(failure).rstrip("."))
        message = f"Host '{self.name}' cannot be reached: {_failure_reason(failure)}."
        sent = isinstance(failure, CallFailed) and failure.sent
        return PeerError(self.error("peer_unreachable", message), passing=True, sent=sent)

    def invalid_answer_error(self, what: str) -> PeerError:
        problem_text = f"Host '{self.name}' gives answers that cannot be used: {what}."
        return PeerError(self.error("peer_answer_invalid", problem_text), sent=True)

    def refusal_error(self, answer: OutboundResponse) -> PeerError:
        """Return the error for a status that is not a success."""
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
        model = document.get("multiAgent", {}).get("executionModel", {})
        host_id = model.get("crossHostCausation", {}).get("hostId", "")
        seconds = document.get("idempotency", {}).get("layer1RetentionSeconds", 86_400)
    except (ValueError, AttributeError):
        return PeerInfo()
    is_host_id = isinstance(host_id, str) and peer_ids.HOST_ID.fullmatch(host_id)
    retention = seconds if isinstance(seconds, int) and 0 < seconds < 86_400 else 86_400
    return PeerInfo(host_id if is_host_id else "", retention * 1000)


async def create_remote_run(
    peer: Peer, entry: RemoteChild, name: str, origin: PeerOrigin, trace: Trace
) -> str:
    """Create the run of this name and return its id; a repeat returns the same one. Raise
    PeerError."""
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
    variables: dict[str, Any] = {}
    outputs: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    tree_runs: Any = None

    def used(self, lent: int) -> int:
        """Return how many runs it has led to, itself included. Without a valid count, all it
        could."""
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


def _parse_object(answer: OutboundResponse) -> dict[str, Any]:
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
