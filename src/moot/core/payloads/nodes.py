"""Payloads of the events of nodes, variables and channels."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import UNSET

from moot.core.payloads.base import Payload, RecordedError


class NodeStarted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.started"

    node_id: str
    type_id: str
    attempt: int
    due_at: str | None = None
    agent: dict[str, Any] | None = None


class NodeCompleted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.completed"

    node_id: str
    outputs: dict[str, Any]
    duration_ms: int
    agent: dict[str, Any] | None = None


class NodeFailed(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.failed"

    node_id: str
    error: RecordedError
    attempts: int


class NodeRetried(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.retried"

    node_id: str
    attempt: int
    delay_ms: int
    last_error: RecordedError


class NodeSkipped(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.skipped"

    node_id: str
    reason: str


class NodeCancelled(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.cancelled"

    node_id: str
    reason: str


class NodeSuspended(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.suspended"

    node_id: str
    interrupt_id: str
    kind: str
    key: str
    due_at: str | None = None
    profile: str | None = None
    escalation_kind: str | None = None
    reason: str | None = None
    agent_id: str | None = None
    threshold: int | float | None = None
    observed: int | float | None = None


class NodeResumed(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.resumed"

    node_id: str
    interrupt_id: str
    resume_value: Any


class NodeDispatched(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "node.dispatched"

    child_run_id: str
    child_workflow_id: str
    child_status: str


class VariableChanged(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "variable.changed"

    name: str
    previous: Any = UNSET
    next: Any = UNSET
    node_id: str | None = None
    by: str | None = None


class ChannelWritten(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "channel.written"

    channel: str
    value: Any
    reducer: str
    written_at: str
    node_id: str
    schema_version: int | None = None


class ArtifactCreated(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "artifact.created"

    artifact_id: str
    artifact_type: str
    node_id: str
    summary: str | None = None


class OutputChunk(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "output.chunk"

    node_id: str
    run_id: str
    chunk: str
    is_last: bool
    meta: Mapping[str, object] | None = None


class LogAppended(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "log.appended"

    level: str
    message: str
    node_id: str | None = None
    fields: Mapping[str, object] | None = None


class LoopbackLimit(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "workflow.loopback-limit"

    node_id: str
    iterations: int
    limit: int


class CapabilityInsufficient(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "model.capability.insufficient"

    node_id: str
    provider: str
    model: str
    missing_capabilities: list[str]
