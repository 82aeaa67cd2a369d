"""Payloads of the events of memory and of effects."""

from typing import Any, ClassVar

from msgspec import UNSET

from moot.core.payloads.base import Payload, RecordedError


class MemoryWritten(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "memory.written"

    memory_ref: str
    memory_id: str
    node_id: str
    agent_id: str | None = None
    tags: list[str] | None = None
    deleted: bool = False


class MemoryRead(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.memory.read"

    memory_ref: str
    node_id: str


class EffectStarted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.effect.started"

    invocation_id: str
    ordinal: int
    provider_key: str
    node_id: str
    attempt: int
    cache_key: str | None = None
    charged_to: str | None = None


class EffectFinished(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.effect.finished"

    invocation_id: str
    ordinal: int
    provider_key: str
    node_id: str
    attempt: int
    cache_key: str | None = None
    charged_to: str | None = None
    result: Any = UNSET
    error: RecordedError | None = None


class EffectAbandoned(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.effect.abandoned"

    invocation_id: str
    ordinal: int
    provider_key: str
    node_id: str
    attempt: int
    cache_key: str | None = None
    charged_to: str | None = None
    result: Any = UNSET
