"""How a sensitive value looks in the log, in snapshots and in streams."""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from moot.core.events import NewEvent

MASK = "[REDACTED]"

#: what the host itself says of a run: the fold relies on it, and a secret that happens to look
#: like it (a year, a node's name) must not be looked for there
RECORD = frozenset({
    "agentId", "argsHash", "artifactId", "artifactType", "askId", "attempt", "attempts", "callId",
    "channel", "childRunId", "childStatus", "childWorkflowId", "confidence", "createdAt",
    "delayMs", "drainPolicy", "dueAt", "durationMs", "failedNodeId", "forkRunId", "fromAgentId",
    "invocationId", "isLast", "kind", "level", "limit", "maxSize", "memoryId", "memoryRef",
    "memoryRevision", "name", "nodeId", "observed", "ordinal", "parentRunId", "peer",
    "providerKey", "reducer", "runId", "schemaVersion", "sequence", "threshold", "toAgentId",
    "tokenCount", "toolId", "toolName", "ttlMs", "typeId", "verbosity", "writtenAt",
})  # fmt: skip

#: shorter texts and plain numbers are too common to be looked for
SHORTEST_SECRET = 4
#: beginnings that are looked for in a text one by one, before its every place is looked at
FEW = 64


def masked(mode: str, value: Any) -> Any:
    """The value as it may be recorded; UNSET where it must not appear at all."""
    match mode:
        case "omit":
            return UNSET
        case "hash":
            body = msgspec.json.encode(value, order="sorted")
            return f"sha256:{hashlib.sha256(body).hexdigest()}"
        case "passthrough":
            return value
        case _:
            return MASK


def sealed_event(new: NewEvent, sealed: dict[str, Any], mode: str) -> NewEvent:
    """The event without any value that is sealed, wherever a node has carried it.

    Outputs and variables that held one are sealed too, so that later nodes still see them.
    """
    if mode == "passthrough":
        return new
    secrets = Secrets(sealed.values())
    payload, artifact, hints = (
        _content(part, secrets, mode) for part in (new.payload, new.artifact, new.hints)
    )
    new = msgspec.structs.replace(new, artifact=artifact, hints=hints)
    if payload == new.payload:
        return new
    extra = dict(new.sealed or {})
    if new.type == "node.completed":
        before, after = new.payload["outputs"], payload["outputs"]
        for port, value in before.items():
            if port not in after or after[port] != value:
                extra.setdefault(f"out:{new.node_id}:{port}", value)
    elif new.type == "variable.changed" and payload.get("next") != new.payload.get("next"):
        extra.setdefault(f"var:{new.payload['name']}", new.payload["next"])
    return msgspec.structs.replace(new, payload=payload, sealed=extra or None)


def redacted(value: Any, sealed: dict[str, Any], mode: str) -> Any:
    """The value as an event would show it: without anything that is sealed."""
    return value if mode == "passthrough" else _without(value, Secrets(sealed.values()), mode)


def _content(part: dict[str, Any] | None, secrets: "Secrets", mode: str) -> Any:
    if part is None:
        return None
    return {
        key: value if key in RECORD else _without(value, secrets, mode)
        for key, value in part.items()
    }


def is_secret(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, (str, int, float)):
        return len(str(value)) >= SHORTEST_SECRET
    return isinstance(value, (list, dict)) and bool(value)


def secrets_in(values: Iterable[Any]) -> list[Any]:
    """The sealed values and everything in them that could be told from them, the longest first: of
    a text that holds another one nothing is left."""
    found: list[Any] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if is_secret(value):
            found.append(value)
        if isinstance(value, (int, float)) and is_secret(value):
            found.append(str(value))
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
    return sorted(found, key=lambda each: len(each) if isinstance(each, str) else 0, reverse=True)


class Secrets:
    """Looked for all at once: who seals a long list and sends another one keeps nobody waiting."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._plain: set[Any] = set()
        #: lists and objects, as they would be written
        self._whole: set[bytes] = set()
        #: how texts begin -> their lengths, the longest first
        self._texts: dict[str, dict[int, set[str]]] = {}
        for each in secrets_in(values):
            if isinstance(each, (list, dict)):
                self._whole.add(_sorted(each))
                continue
            self._plain.add(each)
            if isinstance(each, str):
                begun = self._texts.setdefault(each[:SHORTEST_SECRET], {})
                begun.setdefault(len(each), set()).add(each)

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, (list, dict)):
            return bool(self._whole) and bool(value) and _sorted(value) in self._whole
        return isinstance(value, (str, int, float)) and value in self._plain

    def hidden(self, text: str) -> str:
        """The text with a mask in the place of each, and one in that of those that overlap."""
        if len(self._texts) <= FEW and not any(begun in text for begun in self._texts):
            return text
        parts, kept, ends = list[str](), 0, 0
        for at in range(len(text) - SHORTEST_SECRET + 1):
            if (begun := self._texts.get(text[at : at + SHORTEST_SECRET])) is None:
                continue
            size = next((size for size in begun if text[at : at + size] in begun[size]), 0)
            if size and at >= ends:
                parts += [text[kept:at], MASK]
            if size:
                kept = ends = max(ends, at + size)
        return "".join([*parts, text[kept:]])


def _sorted(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _without(value: Any, secrets: Secrets, mode: str) -> Any:
    if value in secrets:
        seen = masked(mode, value)
        return MASK if seen is UNSET else seen
    if isinstance(value, dict):
        return {
            str(_without(key, secrets, mode)): _without(item, secrets, mode)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without(item, secrets, mode) for item in value]
    return secrets.hidden(value) if isinstance(value, str) else value
