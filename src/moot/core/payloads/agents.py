"""Payloads of the events of agents and models."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import UNSET

from moot.core.payloads.base import Payload


class AgentReasoned(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.reasoned"

    summary: str | None = None
    token_count: int | None = None
    agent_id: str
    reasoning: str
    verbosity: str


class ReasoningDelta(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.reasoning.delta"

    agent_id: str
    delta: str
    sequence: int
    verbosity: str


class ToolCalled(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.toolCalled"

    agent_id: str
    tool_name: str
    tool_id: str | None = None
    call_id: str
    transport: str | None = None
    inputs: Any = UNSET
    args_hash: str | None = None


class ToolReturned(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.toolReturned"

    agent_id: str
    tool_name: str
    tool_id: str | None = None
    call_id: str
    status: str | None = None
    error: Mapping[str, object] | None = None
    outcome: Any = UNSET
    duration_ms: int | None = None
    flags: list[str] | None = None


class AgentHandedOff(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.handoff"

    reason: str | None = None
    context: Any = UNSET
    from_agent_id: str
    to_agent_id: str


class AgentDecided(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.decided"

    threshold: int | float | None = None
    reasoning: Any = UNSET
    agent_id: str
    decision: Any
    confidence: int | float | None = None


class InvocationStarted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.invocation.started"

    invocation_id: str
    agent_id: str
    source: str | None = None
    model_class: str | None = None
    resolved_model: str | None = None
    resolved_provider: str | None = None
    resolved_agent_version: str | None = None
    tool_surface_count: int | None = None
    memory_bound: bool | None = None
    task: str | None = None
    resolved_channel: str | None = None
    requested_version: str | None = None
    flagged_turns: Sequence[Mapping[str, object]] | None = None
    flagged_data: Sequence[Mapping[str, object]] | None = None


class PromptResolved(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.promptResolved"

    node_id: str
    kind: str
    agent_id: str
    chain: Sequence[Mapping[str, object]]
    resolved: str


class InvocationCompleted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "agent.invocation.completed"

    invocation_id: str
    agent_id: str
    outcome: str
    schema_validated: bool = False
    confidence: int | float | None = None


class ModelRetried(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.model.retried"

    invocation_id: str
    agent_id: str
    model: str | None = None
    attempt: int
    of: int | None = None
    error: Mapping[str, object] | None = None
    wait_ms: int | None = None


class ModelAskedAgain(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "envelope.retry.attempted"

    node_id: str
    attempt: int
    reason: str
    previous_error: str | None = None


class ModelGaveUp(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "envelope.retry.exhausted"

    node_id: str
    total_attempts: int
    final_reason: str
    final_error: str | None = None


class ModelTruncated(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "envelope.truncated"

    node_id: str
    provider: str
    model: str
    stop_reason: str


class ModelRefused(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "envelope.refusal"

    node_id: str
    provider: str
    model: str
    refusal_text: str | None
