"""What is asked of another host, and what its answers are good for."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.core.json.nesting import too_deep
from moot.core.state.remote_children import Abroad
from moot.core.state.status import Status
from moot.core.trace import Trace
from moot.core.workflows import peer_ids
from moot.core.workflows.node_types import NodeError
from moot.core.workflows.peer_ids import RUN_ID, Origin
from moot.engine.peers import http
from moot.engine.peers.http import Answer, Call, NoAnswer, Nonsense

#: answers after which the same may be asked again: too much, or broken, for the moment
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
#: of these, those that say it was not even begun
UNHEARD = frozenset({425, 429})
GONE = frozenset({404, 410})
IN_FLIGHT = "idempotency_in_flight"
LONGEST_WORD = 500


class Trouble(Exception):
    """Why another host did not do what it was asked.

    ``passing``: asking again may help. ``sent``: it may have done it all the same.
    """

    def __init__(
        self, error: NodeError, *, passing: bool = False, sent: bool = False, status: int = 0
    ) -> None:
        super().__init__(error.message)
        self.error, self.passing, self.sent, self.status = error, passing, sent, status

    @property
    def gone(self) -> bool:
        return self.status in GONE


class Peer:
    """Another host: where it is, and the key to it, which is shown to nobody else."""

    def __init__(self, name: str, url: str, key: str | None) -> None:
        self.name, self.url, self._key = name, url.rstrip("/"), key

    def __repr__(self) -> str:
        return f"Peer({self.name!r}, {self.url!r})"

    def call(
        self, method: str, path: str, trace: Trace, headers: dict[str, str], body: bytes = b""
    ) -> Call:
        sent = {"Accept": "application/json", "traceparent": trace.traceparent}
        if trace.state:
            sent["tracestate"] = trace.state
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        return Call(self.url, method, path, sent | headers, body)

    async def ask(self, call: Call) -> Answer:
        try:
            return await http.ask(call)
        except NoAnswer as nothing:
            raise self.silent(nothing) from nothing
        except Nonsense as nonsense:
            raise self.nonsense(str(nonsense)) from nonsense

    def silent(self, nothing: NoAnswer) -> Trouble:
        said = f"Host '{self.name}' cannot be reached: {nothing}."
        return Trouble(self.error("peer_unreachable", said), passing=True, sent=nothing.sent)

    def nonsense(self, what: str) -> Trouble:
        said = f"Host '{self.name}' gives answers that cannot be used: {what}."
        return Trouble(self.error("peer_answer_invalid", said), sent=True)

    def refusal(self, answer: Answer) -> Trouble:
        """A status that is no success, and what was said with it."""
        status = answer.status
        if 300 <= status < 400:
            return self.nonsense(f"it answered {status} and points elsewhere")
        code, message = _said(answer)
        if status in PASSING or code == IN_FLIGHT:
            said = f"Host '{self.name}' cannot do it now: it answered {status}."
            error = self.error("peer_unreachable", said, status=status)
            sent = status not in UNHEARD
            return Trouble(error, passing=True, sent=sent, status=status)
        said = f"Host '{self.name}' refused with {status} {code}: {message}"
        return Trouble(self.error("peer_refused", said, status=status, code=code), status=status)

    def error(self, kind: str, message: str, **details: Any) -> NodeError:
        return NodeError(code=kind, message=message, details={"peer": self.name, **details})


class Known(Struct, frozen=True):
    """What another host says of itself: its id, and how long it remembers answers, in ms."""

    host_id: str = ""
    remembers_ms: int = 86_400_000


async def discovered(peer: Peer, trace: Trace) -> Known:
    """Raises Trouble when nobody is there; a document that says nothing useful is none."""
    answer = await peer.ask(peer.call("GET", peer_ids.WELL_KNOWN, trace, {}))
    if answer.status in PASSING:
        raise peer.refusal(answer)
    try:
        said = _parsed(answer)
        model = said.get("multiAgent", {}).get("executionModel", {})
        host_id = model.get("crossHostCausation", {}).get("hostId", "")
        seconds = said.get("idempotency", {}).get("layer1RetentionSeconds", 86_400)
    except (ValueError, AttributeError):
        return Known()
    known = isinstance(host_id, str) and peer_ids.HOST_ID.fullmatch(host_id)
    lasting = seconds if isinstance(seconds, int) and 0 < seconds < 86_400 else 86_400
    return Known(host_id if known else "", lasting * 1000)


async def create(peer: Peer, entry: Abroad, name: str, origin: Origin, trace: Trace) -> str:
    """The run that was begun for this name; asked again, the same one. Raises Trouble."""
    body = msgspec.json.encode({"workflowId": entry.workflow_id, "inputs": entry.inputs})
    headers = {"Idempotency-Key": name, peer_ids.HEADER: peer_ids.written(origin)}
    call = peer.call("POST", "/v1/runs", trace, headers, body)
    answer = await peer.ask(call)
    if not 200 <= answer.status < 300:
        raise peer.refusal(answer)
    try:
        child = _parsed(answer).get("runId")
    except ValueError as error:
        raise peer.nonsense(str(error)) from None
    if not isinstance(child, str) or not RUN_ID.fullmatch(child):
        raise peer.nonsense("it does not name the run it has begun")
    return child


class Shown(Struct, frozen=True, rename="camel"):
    """What is needed of the snapshot of a run."""

    run_id: str
    status: Status
    variables: dict[str, Any] = {}
    outputs: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    tree_runs: Any = None

    def used(self, lent: int) -> int:
        """How many runs it has led to, itself among them: all it might, unless its host says."""
        most = max(1, lent)
        told = self.tree_runs if type(self.tree_runs) is int else most
        return min(max(1, told), most)

    def failure(self) -> dict[str, Any] | None:
        """The error in the closed form that a log has for it."""
        if self.error is None:
            return None
        return {key: str(self.error.get(key, ""))[:LONGEST_WORD] for key in ("code", "message")}


_shown = msgspec.json.Decoder(Shown)


async def snapshot(peer: Peer, child: str, trace: Trace) -> Shown:
    """The child as it is now. Raises Trouble."""
    answer = await peer.ask(peer.call("GET", f"/v1/runs/{child}", trace, {}))
    if answer.status != 200:
        raise peer.refusal(answer)
    if too_deep(answer.body):
        raise peer.nonsense("it is nested too deeply")
    try:
        found = _shown.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise peer.nonsense(f"the run cannot be read ({str(error)[:200]})") from None
    if found.run_id != child:
        raise peer.nonsense("it shows another run")
    return found


async def cancel(peer: Peer, child: str, name: str, reason: str, trace: Trace) -> None:
    """Raises Trouble; one that has ended already is as good as cancelled."""
    body = msgspec.json.encode({"reason": reason})
    headers = {"Idempotency-Key": f"{name}-stop"}
    call = peer.call("POST", f"/v1/runs/{child}/cancel", trace, headers, body)
    answer = await peer.ask(call)
    if not 200 <= answer.status < 300:
        raise peer.refusal(answer)


def _parsed(answer: Answer) -> dict[str, Any]:
    """Raises ValueError where there is no object."""
    if too_deep(answer.body):
        raise ValueError("it is nested too deeply")
    try:
        found = msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - of the text, not of the caller
    return found


def _said(answer: Answer) -> tuple[str, str]:
    """The code and the sentence of a refusal, cut to what a log may hold."""
    try:
        said = _parsed(answer)
    except ValueError:
        return "", "it does not say why"
    code, message = said.get("error", ""), said.get("message", "")
    if not isinstance(code, str) or not isinstance(message, str):
        return "", "it does not say why"
    return code[:100], message[:LONGEST_WORD]
