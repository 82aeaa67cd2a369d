"""Payloads of the events of questions and answers."""

from typing import Any, ClassVar

from msgspec import UNSET

from moot.core.payloads.base import Payload


class InterruptRequested(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "interrupt.requested"

    kind: str
    key: str
    data: dict[str, Any]
    resume_schema: Any = None
    timeout_ms: int | float | None = None


class InterruptResolved(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "interrupt.resolved"

    node_id: str
    interrupt_id: str
    kind: str
    resume_value: Any = UNSET
    resolved_at: str
    resolved_by: str | None = None
    outcome: str | None = None
    reason: str | None = None


class ApprovalRequested(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "approval.requested"

    node_id: str
    interrupt_id: str
    artifact_id: str
    artifact_type: str
    title: str
    actions: list[str]
    approvers_list: list[str] | None = None
    required_approvals: int | None = None


class ApprovalReceived(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "approval.received"

    node_id: str
    action: str
    decided_by: str | None = None
    decided_at: str
    comment: Any = UNSET
    feedback: Any = UNSET
    refine_feedback: Any = UNSET
    edited_artifact_data: Any = UNSET


class ApprovalOverridden(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "approval.overridden"

    gate_id: str
    principal: str
    reason: str


class ApprovalGranted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.approval.granted"

    gate_id: str
    principal: str
    via: str
    quorum_progress: dict[str, int]
    comment: Any = UNSET
    edited_artifact_data: Any = UNSET


class ApprovalRejected(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.approval.rejected"

    gate_id: str
    principal: str
    via: str
    reason: str | None = None


class ClarificationRequested(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "clarification.requested"

    node_id: str
    interrupt_id: str
    questions: list[dict[str, Any]]


class ClarificationResolved(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "clarification.resolved"

    node_id: str
    answers: dict[str, Any]
    answered_by: str
