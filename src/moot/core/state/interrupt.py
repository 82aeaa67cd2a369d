"""Fold interrupts: open questions of nodes, their votes and their answers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moot.core.events import Event, millis
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


def _apply_interrupt_requested(run: "Run", event: Event, at: int) -> None:
    payload = event.payload
    run.interrupts[node_id_of(event)] = Interrupt(
        kind=payload.get("kind", "custom"),
        key=payload.get("key", ""),
        data=payload.get("data", {}),
        requested_at=at,
        seq=event.sequence,
        resume_schema=payload.get("resumeSchema"),
    )


def _apply_node_suspended(run: "Run", event: Event, at: int) -> None:
    payload = event.payload
    interrupt = run.interrupts.get(node_id_of(event))
    if interrupt is not None:
        due = due_time(event)
        interrupt.interrupt_id = payload.get("interruptId", "")
        interrupt.due = millis(due) if due else None
        interrupt.profile = payload.get("profile")
    run.suspend(node_id_of(event))


def _apply_approval_vote(run: "Run", event: Event, at: int) -> None:
    payload = event.payload
    interrupt = run.interrupts.get(payload.get("gateId", ""))
    if interrupt is not None:
        principal = payload.get("principal", "")
        action = "accept" if event.type == "moot.approval.granted" else "reject"
        interrupt.votes[principal] = action
        interrupt.edits.pop(principal, None)
        if "editedArtifactData" in payload:
            interrupt.edits[principal] = payload["editedArtifactData"]


def _apply_interrupt_resolved(run: "Run", event: Event, at: int) -> None:
    payload = event.payload
    node_id = node_id_of(event)
    interrupt = run.interrupts.pop(node_id, None)
    if interrupt is not None and node_id in run.nodes:
        until = run.paused_at or at  # the end of a pause counts the rest
        run.nodes[node_id].paused_ms += max(0, until - interrupt.requested_at)
    value = payload.get("resumeValue")
    action = value.get("action") if isinstance(value, dict) else None
    if interrupt is not None and interrupt.data.get("artifactType") == supervisor.DECISION:
        supervisor.apply_ratification(run, action)
    run.answered[node_id] = InterruptAnswer(
        payload.get("interruptId", ""),
        payload.get("resolvedBy", ""),
        at,
        action or payload.get("outcome"),
        payload.get("kind", ""),
    )


def _apply_node_resumed(run: "Run", event: Event, at: int) -> None:
    run.unsuspend(node_id_of(event))
    node = run.nodes.get(node_id_of(event))
    if node is not None:
        value = event.payload.get("resumeValue")
        if not apply_ruling(node, value):
            node.answer = [value]


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "interrupt.requested": _apply_interrupt_requested,
    "node.suspended": _apply_node_suspended,
    "moot.approval.granted": _apply_approval_vote,
    "moot.approval.rejected": _apply_approval_vote,
    "interrupt.resolved": _apply_interrupt_resolved,
    "node.resumed": _apply_node_resumed,
}
