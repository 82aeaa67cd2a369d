"""What agents say of themselves, as it may be recorded: checked, cut to its measure, and without
anything that must not be shown.
"""

from math import isfinite
from typing import Any

from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.json import canonical
from moot.core.secrets import MASK
from moot.core.state.agents import ASKED, CALLED, DECIDED, DELTA, HANDOFF, REASONED, RETURNED

VERBOSITIES = ("summary", "full", "off")
VERBOSITY = "summary"

#: how much of a train of thought is kept, in tokens: of a summary, and of a whole one
TOKEN_LIMIT = 512
FULL_LIMIT = 65_536
#: nobody here knows how a model counts; four characters are a token
CHARACTERS_OF_A_TOKEN = 4


def verbosity_of(configurable: dict[str, Any]) -> str:
    """How much of its reasoning a run wants to be kept."""
    asked = configurable.get("reasoningVerbosity")
    return asked if asked in VERBOSITIES else VERBOSITY


def check_id(agent_id: str) -> str:
    if not 3 <= len(agent_id) <= 256:
        raise BadRequest("An agent's id has 3 to 256 characters.", agentId=agent_id[:256])
    return agent_id


class Block:
    """One train of thought, told in pieces: together they are the whole of it.

    No piece shows a secret, nor a part that could become one with the next piece.
    """

    def __init__(self, verbosity: str, secrets: list[str]) -> None:
        limits = {"summary": TOKEN_LIMIT, "full": FULL_LIMIT, "off": 0}
        self._room = limits[verbosity] * CHARACTERS_OF_A_TOKEN
        self._secrets = [secret for secret in secrets if secret]
        self._held = ""
        self.whole = ""

    def add(self, piece: str) -> str:
        """What of the piece, and of what was held back, may be told now."""
        held = self._held + piece
        spans = _spans(held, self._secrets)
        until = _safe(held, spans, self._secrets)
        self._held = held[until:]
        return self._keep(_masked(held[:until], [span for span in spans if span[1] <= until]))

    def close(self) -> str:
        """The rest. ``whole`` is complete now."""
        held, self._held = self._held, ""
        return self._keep(_masked(held, _spans(held, self._secrets)))

    def _keep(self, text: str) -> str:
        piece = text[: self._room]
        self._room -= len(piece)
        self.whole += piece
        return piece


def _spans(text: str, secrets: list[str]) -> list[tuple[int, int]]:
    """Where secrets stand, those that touch as one, in order."""
    found = []
    for secret in secrets:
        at = text.find(secret)
        while at >= 0:
            found.append((at, at + len(secret)))
            at = text.find(secret, at + 1)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _safe(text: str, spans: list[tuple[int, int]], secrets: list[str]) -> int:
    """How far the text can be told: what follows may be the beginning of a secret."""
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


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, after = [], 0
    for start, end in spans:
        pieces += [text[after:start], MASK]
        after = end
    return "".join([*pieces, text[after:]])


def delta(node_id: str, agent_id: str, piece: str, block: int, number: int, how: str) -> NewEvent:
    payload = {"agentId": agent_id, "delta": piece, "sequence": number, "verbosity": how}
    return NewEvent(DELTA, payload, node_id, hints={"nth": block})


def reasoned(node_id: str, agent_id: str, text: str, block: int, how: str, **more: Any) -> NewEvent:
    payload = {**more, "agentId": agent_id, "reasoning": text, "verbosity": how}
    return NewEvent(REASONED, payload, node_id, hints={"nth": block})


def called(
    node_id: str, agent_id: str, tool: str, call: tuple[int, str], given: list[Any], **more: Any
) -> NewEvent:
    """``given`` holds the arguments, if there are any; what is secret has been taken out."""
    if not tool:
        raise BadRequest("A tool has a name.", agentId=agent_id)
    payload: dict[str, Any] = {
        "agentId": agent_id,
        "toolName": tool,
        "toolId": tool,
        "callId": call[1],
        **more,
    }
    if given:
        payload |= {"inputs": given[0], "argsHash": canonical.digest(given[0])}
    return NewEvent(CALLED, payload, node_id, hints={"nth": call[0]})


def asked(node_id: str, agent_id: str, tool: str, given: dict[str, Any], nth: int) -> NewEvent:
    """A tool that a person has to agree to; what is secret has been taken out of ``given``."""
    payload = {
        "agentId": agent_id,
        "toolName": tool,
        "inputs": given,
        "argsHash": canonical.digest(given),
    }
    return NewEvent(ASKED, payload, node_id, hints={"nth": nth})


def returned(
    node_id: str, agent_id: str, tool: str, call: tuple[int, str], outcome: dict[str, Any]
) -> NewEvent:
    """``outcome`` is {outcome} or {error: {code, message}}, and durationMs where it is known."""
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
    return NewEvent(RETURNED, payload, node_id, hints={"nth": call[0]})


def _status(outcome: dict[str, Any]) -> str:
    if "error" not in outcome:
        return "ok"
    code = outcome["error"].get("code")
    return code if code in ("forbidden", "rate_limited") else "error"


def handoff(node_id: str, from_agent: str, to_agent: str, nth: int, **more: Any) -> NewEvent:
    payload = {**more, "fromAgentId": from_agent, "toAgentId": check_id(to_agent)}
    return NewEvent(HANDOFF, payload, node_id, hints={"nth": nth})


def decided(
    node_id: str, agent_id: str, decision: Any, confidence: float | None, nth: int, **more: Any
) -> NewEvent:
    """A confidence that is no number says nothing; one that is beyond 0 to 1 is refused."""
    payload: dict[str, Any] = {**more, "agentId": agent_id, "decision": decision}
    if confidence is not None and isfinite(confidence):
        if not 0 <= confidence <= 1:
            raise BadRequest("confidence must be 0 to 1.", confidence=confidence)
        payload["confidence"] = confidence
    return NewEvent(DECIDED, payload, node_id, hints={"nth": nth})
