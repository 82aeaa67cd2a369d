"""End an interrupt with an answer and resume its node."""

from typing import Any

from msgspec import Struct

from moot.core.events import NewEvent, iso
from moot.core.payloads.interrupts import InterruptResolved
from moot.core.payloads.nodes import NodeCompleted, NodeFailed, NodeResumed
from moot.core.speaker import Speaker
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.workflows.flow import FlowNode
from moot.core.workflows.node_types import NodeError


class GateAnswer(Struct, frozen=True, kw_only=True):
    """A person's or agent's answer to an interrupt. The key names the author, not the value."""

    node_id: str
    value: Any
    who: Speaker
    at: int
    #: set when the answer came with a signed token, which is valid for this interrupt only
    interrupt_id: str | None = None


def end_interrupt(
    node: FlowNode,
    interrupt: Interrupt,
    answer: GateAnswer,
    value: Any,
    events: list[NewEvent],
) -> list[NewEvent]:
    """Resolve the interrupt, add the events of its kind and resume the node."""
    resolved = InterruptResolved(
        node_id=node.id,
        interrupt_id=interrupt.interrupt_id,
        kind=interrupt.kind,
        resume_value=value,
        resolved_at=iso(answer.at * 1000),
        resolved_by=answer.who.principal,
    )
    resumed = NodeResumed(node_id=node.id, interrupt_id=interrupt.interrupt_id, resume_value=value)
    return [
        NewEvent(resolved, node.id, cause=interrupt.seq),
        *events,
        NewEvent(resumed, node.id),
    ]


def gate_completed_event(run: Run, node: FlowNode, outputs: dict[str, Any], at: int) -> NewEvent:
    state = run.nodes[node.id]
    payload = NodeCompleted(
        node_id=node.id, outputs=outputs, duration_ms=max(0, at - state.started_at)
    )
    hints = None
    if node.type.dispatches:  # the supervisor that asked receives the answer
        hints = {"answer": outputs.get("outcome", outputs.get("answer"))}
    return NewEvent(payload, node.id, hints=hints)


def gate_failed_event(run: Run, node: FlowNode, error: NodeError) -> NewEvent:
    payload = NodeFailed(
        node_id=node.id, error=error.as_payload(), attempts=run.nodes[node.id].attempt
    )
    return NewEvent(payload, node.id)
