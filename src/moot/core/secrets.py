"""Mask sensitive values for the log, snapshots and streams."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from moot.core.events import NewEvent, new_event, payload_fields
from moot.core.payloads.nodes import NodeCompleted, VariableChanged

MASK = "[REDACTED]"

#: fields that the host sets: the fold relies on them, so they are never masked, even when a secret
#: has the same value (a year, a node's name)
HOST_FIELDS = frozenset({
    "agentId", "argsHash", "artifactId", "artifactType", "askId", "attempt", "attempts", "callId",
    "channel", "childRunId", "childStatus", "childWorkflowId", "confidence", "createdAt",
    "delayMs", "drainPolicy", "dueAt", "durationMs", "failedNodeId", "forkRunId", "fromAgentId",
    "invocationId", "isLast", "kind", "level", "limit", "maxSize", "memoryId", "memoryRef",
    "memoryRevision", "name", "nodeId", "observed", "ordinal", "parentRunId", "peer",
    "providerKey", "reducer", "runId", "schemaVersion", "sequence", "threshold", "toAgentId",
    "tokenCount", "toolId", "toolName", "ttlMs", "typeId", "verbosity", "writtenAt",
})  # fmt: skip

#: shorter texts and plain numbers are too common to search for
SHORTEST_SECRET = 4
#: number of prefixes up to which a text is first searched for each of them
FEW_PREFIXES = 64


def mask_value(mode: str, value: Any) -> Any:
    """Return the value as it may be recorded; UNSET when it must be left out."""
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


def mask_event(new: NewEvent, sealed: Mapping[str, object], mode: str) -> NewEvent:
    """Return the event with every sealed value masked, wherever a node has copied it.

    Outputs and variables that held one are sealed too, so that later nodes still see them.
    """
    if mode == "passthrough":
        return new
    secrets = Secrets(sealed.values())
    artifact, hints = (_mask_fields(part, secrets, mode) for part in (new.artifact, new.hints))
    new = msgspec.structs.replace(new, artifact=artifact, hints=hints)
    fields = payload_fields(new)
    masked = _mask_fields(fields, secrets, mode)
    if masked == fields:
        return new
    extra = dict(new.sealed or {})
    match new.payload:
        case NodeCompleted(outputs=before):
            after = masked["outputs"]
            for port, value in before.items():
                if port not in after or after[port] != value:
                    extra.setdefault(f"out:{new.node_id}:{port}", value)
        case VariableChanged(name=name, next=value) if masked.get("next") != fields.get("next"):
            extra.setdefault(f"var:{name}", value)
    event = new_event(new.type, masked)
    return msgspec.structs.replace(new, payload=event.payload, raw=event.raw, sealed=extra or None)


def mask_sealed(value: Any, sealed: Mapping[str, object], mode: str) -> Any:
    """Return the value with every sealed value masked, as in an event."""
    return value if mode == "passthrough" else _mask_nested(value, Secrets(sealed.values()), mode)


def _mask_fields(part: Mapping[str, object] | None, secrets: "Secrets", mode: str) -> Any:
    if part is None:
        return None
    return {
        key: value if key in HOST_FIELDS else _mask_nested(value, secrets, mode)
        for key, value in part.items()
    }


def is_secret(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, (str, int, float)):
        return len(str(value)) >= SHORTEST_SECRET
    return isinstance(value, (list, dict)) and bool(value)


def secrets_in(values: Iterable[Any]) -> list[Any]:
    """Return the sealed values and the secrets inside them, the longest first.

    The order matters: a text that contains another secret must be masked as a whole.
    """
    secrets: list[Any] = []
    stack = list(values)
    while stack:
        value = stack.pop()
        if is_secret(value):
            secrets.append(value)
        if isinstance(value, (int, float)) and is_secret(value):
            secrets.append(str(value))
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            stack += value.values()
    return sorted(secrets, key=lambda each: len(each) if isinstance(each, str) else 0, reverse=True)


class Secrets:
    """A set of secrets that is searched in one pass, so that long lists stay fast."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._plain: set[Any] = set()
        #: lists and objects, encoded
        self._whole: set[bytes] = set()
        #: prefix of texts -> their lengths, the longest first -> the texts
        self._texts: dict[str, dict[int, set[str]]] = {}
        for each in secrets_in(values):
            if isinstance(each, (list, dict)):
                self._whole.add(_canonical_bytes(each))
                continue
            self._plain.add(each)
            if isinstance(each, str):
                by_length = self._texts.setdefault(each[:SHORTEST_SECRET], {})
                by_length.setdefault(len(each), set()).add(each)

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, (list, dict)):
            return bool(self._whole) and bool(value) and _canonical_bytes(value) in self._whole
        return isinstance(value, (str, int, float)) and value in self._plain

    def mask_text(self, text: str) -> str:
        """Replace each secret in the text by a mask; overlapping secrets share one."""
        if len(self._texts) <= FEW_PREFIXES and not any(prefix in text for prefix in self._texts):
            return text
        parts, copied, ends = list[str](), 0, 0
        for at in range(len(text) - SHORTEST_SECRET + 1):
            if (by_length := self._texts.get(text[at : at + SHORTEST_SECRET])) is None:
                continue
            size = next((size for size in by_length if text[at : at + size] in by_length[size]), 0)
            if size and at >= ends:
                parts += [text[copied:at], MASK]
            if size:
                copied = ends = max(ends, at + size)
        return "".join([*parts, text[copied:]])


def _canonical_bytes(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _mask_nested(value: Any, secrets: Secrets, mode: str) -> Any:
    if value in secrets:
        masked = mask_value(mode, value)
        return MASK if masked is UNSET else masked
    if isinstance(value, dict):
        return {
            str(_mask_nested(key, secrets, mode)): _mask_nested(item, secrets, mode)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mask_nested(item, secrets, mode) for item in value]
    return secrets.mask_text(value) if isinstance(value, str) else value
