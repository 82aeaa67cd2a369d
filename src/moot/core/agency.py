"""What agents have done in a run, given the log: who has the work in hand, what each attempt has
said already. Counters and references only; what was said stays in the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.core.events import Event

if TYPE_CHECKING:
    from moot.core.node_state import NodeState
    from moot.core.run import Run

DELTA = "agent.reasoning.delta"
REASONED = "agent.reasoned"
CALLED = "agent.toolCalled"
RETURNED = "agent.toolReturned"
HANDOFF = "agent.handoff"
DECIDED = "agent.decided"

#: what else is told of its work with a model
NOTED = frozenset({"envelope.retry.attempted", "envelope.truncated"})


def took_over(run: "Run", agent: dict[str, Any] | None) -> None:
    """A node pinned to an agent has begun. Only a handoff puts one agent in another's place."""
    if agent is not None and (run.agent is None or run.agent["agentId"] == agent["agentId"]):
        run.agent = agent


def ruled(node: "NodeState", answer: Any) -> None:
    """A person has looked at the newest decision of the attempt, if it was that they looked at."""
    taken = node.said.get(DECIDED, 0)
    if taken:
        node.rulings[str(taken - 1)] = answer


def _said(run: "Run", event: Event, at: int) -> None:
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is None:
        return
    node.said[event.type] = node.said.get(event.type, 0) + 1
    if event.type == REASONED:
        node.said.pop(DELTA, None)  # the next block is counted from 0
    elif event.type == CALLED:
        node.calls[event.payload.get("callId", "")] = event.sequence
    elif event.type == RETURNED:
        node.calls.pop(event.payload.get("callId", ""), None)


def _handed_over(run: "Run", event: Event, at: int) -> None:
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    run.agent = {"agentId": event.payload["toAgentId"]}
    if node is not None and event.node_id in run.active:
        _said(run, event, at)


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    DELTA: _said,
    REASONED: _said,
    CALLED: _said,
    RETURNED: _said,
    HANDOFF: _handed_over,
    DECIDED: _said,
    **dict.fromkeys(sorted(NOTED), _said),
}
