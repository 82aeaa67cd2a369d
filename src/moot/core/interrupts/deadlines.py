"""Expire approvals and other interrupts that no one answered in time.

An interrupt that expires is rejected; waiting never approves anything.
"""

from moot.core.conversations import turns
from moot.core.events import NewEvent, iso
from moot.core.payloads.interrupts import ApprovalReceived, InterruptResolved
from moot.core.payloads.nodes import NodeResumed
from moot.core.runs.answers import gate_completed_event, gate_failed_event
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import permanent_error


def expire_interrupt(
    run: Run, flow: Flow, node: FlowNode, interrupt: Interrupt, at: int
) -> list[NewEvent]:
    """Reject the interrupt and fail its node, or complete it if its config says so."""
    resolved = InterruptResolved(
        node_id=node.id,
        interrupt_id=interrupt.interrupt_id,
        kind=interrupt.kind,
        resolved_at=iso(at * 1000),
        outcome="rejected",
        reason="timeout",
    )
    events = []
    conversation = run.conversations.get(node.id)
    if (
        interrupt.kind.startswith("conversation.")
        and conversation is not None
        and conversation.open
    ):
        turn = turns.system_turn(conversation, "The conversation timed out.", at)
        events.append(turns.closed_event(conversation, turn, None))
        events += turns.try_echo_turn(run, flow, node, turn, at)
    events.append(NewEvent(resolved, node.id, cause=interrupt.seq))
    if interrupt.kind == "approval":
        payload = ApprovalReceived(node_id=node.id, action="timeout", decided_at=iso(at * 1000))
        events.append(NewEvent(payload, node.id))
    # the node continues without the outputs it asked about
    if interrupt.kind == "approval" and node.type.attests:
        resumed = NodeResumed(
            node_id=node.id,
            interrupt_id=interrupt.interrupt_id,
            resume_value={"action": "timeout"},
        )
        return [*events, NewEvent(resumed, node.id)]
    if node.definition.config.get("onTimeout") == "complete" and interrupt.kind != "approval":
        events.append(gate_completed_event(run, node, {"outcome": None, "timedOut": True}, at))
    else:
        error = permanent_error("interrupt_timeout", "Nobody answered in time.")
        events.append(gate_failed_event(run, node, error))
    return events
