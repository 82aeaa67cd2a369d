"""The end of a wait: who ended it, what the node goes on with."""

from typing import Any

from msgspec import Struct

from moot.core.events import NewEvent, iso
from moot.core.speaker import Speaker
from moot.core.state.conversation import Interrupt
from moot.core.state.run import Run
from moot.core.workflows.graph import FlowNode
from moot.core.workflows.node_types import NodeError


class Answer(Struct, frozen=True, kw_only=True):
    """Somebody answers an interrupt. Who it is comes from the key, never from the value."""

    node_id: str
    value: Any
    who: Speaker
    at: int
    #: set when the answer came with a signed token: it is good for this interrupt only
    interrupt_id: str | None = None


def ended(
    node: FlowNode, found: Interrupt, given: Answer, value: Any, said: list[NewEvent]
) -> list[NewEvent]:
    """The wait is over: who ended it, what the kind says about it, the node goes on."""
    resolved = {
        "nodeId": node.id,
        "interruptId": found.interrupt_id,
        "kind": found.kind,
        "resumeValue": value,
        "resolvedAt": iso(given.at * 1000),
        "resolvedBy": given.who.principal,
    }
    resumed = {"nodeId": node.id, "interruptId": found.interrupt_id, "resumeValue": value}
    return [
        NewEvent("interrupt.resolved", resolved, node.id, cause=found.seq),
        *said,
        NewEvent("node.resumed", resumed, node.id),
    ]


def completed(run: Run, node: FlowNode, outputs: dict[str, Any], at: int) -> NewEvent:
    state = run.nodes[node.id]
    payload = {
        "nodeId": node.id,
        "outputs": outputs,
        "durationMs": max(0, at - state.started_at),
    }
    hints = None
    if node.type.dispatches:  # its supervisor asked, and learns what was said
        hints = {"answer": outputs.get("outcome", outputs.get("answer"))}
    return NewEvent("node.completed", payload, node.id, hints=hints)


def failed(run: Run, node: FlowNode, error: NodeError) -> NewEvent:
    payload = {
        "nodeId": node.id,
        "error": error.as_payload(),
        "attempts": run.nodes[node.id].attempt,
    }
    return NewEvent("node.failed", payload, node.id)
