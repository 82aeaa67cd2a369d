"""Build the events that agents report: checked, shortened and without secrets."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from moot.core.errors import BadRequest
from moot.core.events import NewEvent, new_event
from moot.core.json import canonical
from moot.core.payloads.agents import (
    AgentDecided,
    AgentHandedOff,
    AgentReasoned,
    ReasoningDelta,
    ToolCalled,
    ToolReturned,
)
from moot.core.payloads.councils import ToolAsked
from moot.core.secrets import MASK

VERBOSITIES = ("summary", "full", "off")
DEFAULT_VERBOSITY = "summary"

#: how much reasoning is recorded, in tokens: in a summary, and in full
TOKEN_LIMIT = 512
FULL_LIMIT = 65_536
#: an estimate, since each model counts tokens differently
CHARACTERS_PER_TOKEN = 4


def reasoning_verbosity(configurable: Mapping[str, object]) -> str:
    """Return how much of its reasoning a run records."""
    verbosity = configurable.get("reasoningVerbosity")
    return verbosity if verbosity in VERBOSITIES else DEFAULT_VERBOSITY


def check_agent_id(agent_id: str) -> str:
    if not 3 <= len(agent_id) <= 256:
        raise BadRequest("An agent's id has 3 to 256 characters.", agentId=agent_id[:256])
    return agent_id


class ReasoningBlock:
    """One train of thought, recorded in pieces that add up to the whole.

    No piece shows a secret, nor a part that could become one with the next piece.
    """

    def __init__(self, verbosity: str, secrets: list[str]) -> None:
        limits = {"summary": TOKEN_LIMIT, "full": FULL_LIMIT, "off": 0}
        self._room = limits[verbosity] * CHARACTERS_PER_TOKEN
        self._secrets = [secret for secret in secrets if secret]
        self._pending = ""
        self.whole = ""

    def add(self, piece: str) -> str:
        """Return what can be recorded now of this piece and the pending text."""
        text = self._pending + piece
        spans = _spans(text, self._secrets)
        until = _safe_length(text, spans, self._secrets)
        self._pending = text[until:]
        return self._keep(_mask_spans(text[:until], [span for span in spans if span[1] <= until]))

    def close(self) -> str:
        """Return the rest. ``whole`` is complete afterwards."""
        rest, self._pending = self._pending, ""
        return self._keep(_mask_spans(rest, _spans(rest, self._secrets)))

    def _keep(self, text: str) -> str:
        piece = text[: self._room]
        self._room -= len(piece)
        self.whole += piece
        return piece


def _spans(text: str, secrets: list[str]) -> list[tuple[int, int]]:
    """Return the positions of secrets in order, with overlapping ones merged."""
    spans = []
    for secret in secrets:
        at = text.find(secret)
        while at >= 0:
            spans.append((at, at + len(secret)))
            at = text.find(secret, at + 1)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _safe_length(text: str, spans: list[tuple[int, int]], secrets: list[str]) -> int:
    """Return how much of the text cannot be the beginning of a secret."""
    longest = max(map(len, secrets), default=0)
    until = len(text)
    for start in range(max(0, len(text) - longest + 1), len(text)):
        if any(secret.startswith(text[start:]) for secret in secrets):
            until = start
            break
    for start, end in reversed(spans):
        if end > until > start:
            until = start
    return until


def _mask_spans(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, after = [], 0
    for start, end in spans:
        pieces += [text[after:start], MASK]
        after = end
    return "".join([*pieces, text[after:]])


def reasoning_delta_event(
    node_id: str, agent_id: str, piece: str, block: int, number: int, how: str
) -> NewEvent:
    payload = ReasoningDelta(agent_id=agent_id, delta=piece, sequence=number, verbosity=how)
    return NewEvent(payload, node_id, nth=block)


def reasoning_event(
    node_id: str, agent_id: str, text: str, block: int, how: str, **more: Any
) -> NewEvent:
    payload = {**more, "agentId": agent_id, "reasoning": text, "verbosity": how}
    return new_event(AgentReasoned.event_type, payload, node_id, nth=block)


def tool_called_event(
    node_id: str, agent_id: str, tool: str, call: tuple[int, str], arguments: list[Any], **more: Any
) -> NewEvent:
    """``arguments`` has the arguments as its only item, if any. The caller has removed secrets."""
    if not tool:
        raise BadRequest("A tool has a name.", agentId=agent_id)
    payload: dict[str, object] = {
        "agentId": agent_id,
        "toolName": tool,
        "toolId": tool,
        "callId": call[1],
        **more,
    }
    if arguments:
        payload |= {"inputs": arguments[0], "argsHash": canonical.canonical_digest(arguments[0])}
    return new_event(ToolCalled.event_type, payload, node_id, nth=call[0])


def tool_asked_event(
    node_id: str, agent_id: str, tool: str, arguments: Mapping[str, object], nth: int
) -> NewEvent:
    """Request a person's approval of a tool. The caller has removed secrets from ``arguments``."""
    payload = ToolAsked(
        agent_id=agent_id,
        tool_name=tool,
        inputs=arguments,
        args_hash=canonical.canonical_digest(arguments),
    )
    return NewEvent(payload, node_id, nth=nth)


def tool_returned_event(
    node_id: str, agent_id: str, tool: str, call: tuple[int, str], outcome: Mapping[str, object]
) -> NewEvent:
    """``outcome`` is {outcome} or {error: {code, message}}, with durationMs where it is known."""
    if ("outcome" in outcome) == ("error" in outcome):
        raise BadRequest("A tool gives an outcome or an error.", callId=call[1])
    payload = {
        "agentId": agent_id,
        "toolName": tool,
        "toolId": tool,
        "callId": call[1],
        "status": _status(outcome),
        **outcome,
    }
    return new_event(ToolReturned.event_type, payload, node_id, nth=call[0])


def _status(outcome: Mapping[str, object]) -> str:
    if "error" not in outcome:
        return "ok"
    error = outcome["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return code if code in ("forbidden", "rate_limited") else "error"


def agent_handoff_event(
    node_id: str, from_agent: str, to_agent: str, nth: int, **more: Any
) -> NewEvent:
    payload = {**more, "fromAgentId": from_agent, "toAgentId": check_agent_id(to_agent)}
    return new_event(AgentHandedOff.event_type, payload, node_id, nth=nth)


def decision_event(
    node_id: str, agent_id: str, decision: Any, confidence: float | None, nth: int, **more: Any
) -> NewEvent:
    """Leave out a confidence that is not finite. Raise BadRequest for one outside 0 to 1."""
    payload: dict[str, object] = {**more, "agentId": agent_id, "decision": decision}
    if confidence is not None and isfinite(confidence):
        if not 0 <= confidence <= 1:
            raise BadRequest("confidence must be 0 to 1.", confidence=confidence)
        payload["confidence"] = confidence
    return new_event(AgentDecided.event_type, payload, node_id, nth=nth)
