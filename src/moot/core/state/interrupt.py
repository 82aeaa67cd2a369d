"""Fold interrupts: open questions of nodes, their votes and their answers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event, millis
from moot.core.payloads.base import Payload
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalRejected,
    InterruptRequested,
    InterruptResolved,
)
from moot.core.payloads.nodes import NodeResumed, NodeSuspended
from moot.core.state import supervisor
from moot.core.state.node import due_time, node_id_of
from moot.core.state.tool_requests import apply_ruling

if TYPE_CHECKING:
    from moot.core.state.run import Run


class Interrupt(Struct, omit_defaults=True):
    """An open question of a node."""

    kind: str
    key: str
    data: dict[str, Any]
    requested_at: int
    seq: int
    interrupt_id: str = ""
    due: int | None = None
    resume_schema: dict[str, Any] | None = None
    profile: str | None = None
    #: principal -> its vote, in a quorum
    votes: dict[str, str] = {}
    #: principal that accepted with an edit -> its version of the artifact, the newest last
    edits: dict[str, Any] = {}


class InterruptAnswer(Struct, omit_defaults=True):
    """The answer that ended an interrupt; the host refuses later answers with it."""

    interrupt_id: str
    by: str
    at: int
    action: str | None = None
    kind: str = ""


def _apply_interrupt_requested(
    run: "Run", payload: InterruptRequested, event: Event, at: int
) -> None:
    run.interrupts[node_id_of(event)] = Interrupt(
        kind=payload.kind,
        key=payload.key,
        data=payload.data,
        requested_at=at,
        seq=event.sequence,
        resume_schema=payload.resume_schema,
    )


def _apply_node_suspended(run: "Run", payload: NodeSuspended, event: Event, at: int) -> None:
    interrupt = run.interrupts.get(node_id_of(event))
    if interrupt is not None:
        due = due_time(event)
        interrupt.interrupt_id = payload.interrupt_id
        interrupt.due = millis(due) if due else None
        interrupt.profile = payload.profile
    run.suspend(node_id_of(event))


def _apply_approval_vote(
    run: "Run", payload: ApprovalGranted | ApprovalRejected, event: Event, at: int
) -> None:
    interrupt = run.interrupts.get(payload.gate_id)
    if interrupt is not None:
        principal = payload.principal
        is_granted = isinstance(payload, ApprovalGranted)
        action = "accept" if is_granted else "reject"
        interrupt.votes[principal] = action
        interrupt.edits.pop(principal, None)
        if isinstance(payload, ApprovalGranted) and payload.edited_artifact_data is not UNSET:
            interrupt.edits[principal] = payload.edited_artifact_data


def _apply_interrupt_resolved(
    run: "Run", payload: InterruptResolved, event: Event, at: int
) -> None:
    node_id = node_id_of(event)
    interrupt = run.interrupts.pop(node_id, None)
    if interrupt is not None and node_id in run.nodes:
        until = run.paused_at or at  # the end of a pause counts the rest
        run.nodes[node_id].paused_ms += max(0, until - interrupt.requested_at)
    value = None if payload.resume_value is UNSET else payload.resume_value
    action = value.get("action") if isinstance(value, dict) else None
    if interrupt is not None and interrupt.data.get("artifactType") == supervisor.DECISION:
        supervisor.apply_ratification(run, action)
    run.answered[node_id] = InterruptAnswer(
        payload.interrupt_id,
        payload.resolved_by or "",
        at,
        action or payload.outcome,
        payload.kind,
    )


def _apply_node_resumed(run: "Run", payload: NodeResumed, event: Event, at: int) -> None:
    run.unsuspend(node_id_of(event))
    node = run.nodes.get(node_id_of(event))
    if node is not None:
        value = payload.resume_value
        if not apply_ruling(node, value):
            node.answer = [value]


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    InterruptRequested: _apply_interrupt_requested,
    NodeSuspended: _apply_node_suspended,
    ApprovalGranted: _apply_approval_vote,
    ApprovalRejected: _apply_approval_vote,
    InterruptResolved: _apply_interrupt_resolved,
    NodeResumed: _apply_node_resumed,
}
