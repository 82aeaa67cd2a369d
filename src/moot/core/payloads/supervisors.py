"""Payloads of the events of supervisors and their children."""

from collections.abc import Mapping
from typing import Any, ClassVar

from moot.core.payloads.base import Payload, RecordedError


class SupervisorDecided(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "runOrchestrator.decided"

    agent_id: str
    decision: dict[str, Any]
    iteration: int


class HandoffStepped(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "core.workflowChain.event"

    phase: str
    worker_id: str
    parent_run_id: str
    child_run_id: str | None = None
    harvested_keys: list[str] | None = None
    error: RecordedError | None = None
    attestation: dict[str, str] | None = None
    causation_host_id: str | None = None


class ConfidenceEscalated(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "core.workflowChain.confidence-escalated"

    confidence: int | float
    floor: int | float
    escalation_kind: str
    parent_run_id: str
    original_decision: Mapping[str, object]
    worker_id: str | None = None


class FannedOut(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "core.dispatch.fanOut"

    fan_out_policy: str
    child_count: int
    max_concurrency: int | None = None
    join_mode: str


class WorkersJoined(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "core.dispatch.join"

    join_outcome: str
    completed_count: int
    failed_count: int
    cancelled_count: int
    merge_order: list[str]


class ChildForked(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.child.forked"

    node_id: str
    child_run_id: str
    fork_run_id: str


class PeerAsked(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.peer.asked"

    ask_id: str
    peer: str
    workflow_id: str
    parent_run_id: str
    cause: str


class PeerAskedAnew(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.peer.askedAnew"

    ask_id: str
    former_ask_id: str
    peer: str
    workflow_id: str
    parent_run_id: str
    cause: str


class RemoteChildStopped(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.peer.stopped"

    ask_id: str
    peer: str
    outcome: str
    child_run_id: str | None = None
