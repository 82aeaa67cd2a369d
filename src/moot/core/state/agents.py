"""Fold the work of agents: the current agent, and event counts of each attempt.

The state holds counters and references only. The text of an event stays in the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.core.events import Event

if TYPE_CHECKING:
    from moot.core.state.floor import Invitation
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

REASONING_DELTA = "agent.reasoning.delta"
REASONED = "agent.reasoned"
TOOL_CALLED = "agent.toolCalled"
TOOL_RETURNED = "agent.toolReturned"
HANDOFF = "agent.handoff"
AGENT_DECIDED = "agent.decided"

INVOCATION_STARTED = "agent.invocation.started"
PROMPT_RESOLVED = "agent.promptResolved"
INVOCATION_COMPLETED = "agent.invocation.completed"
#: a call of a model failed and is repeated
MODEL_RETRIED = "moot.model.retried"

#: a model's answer was cut off at its longest; a model refused to answer
TRUNCATED, REFUSAL = "envelope.truncated", "envelope.refusal"

#: events about an agent's work with a model
MODEL_EVENTS = frozenset({
    "envelope.retry.attempted", TRUNCATED, REFUSAL, INVOCATION_STARTED, PROMPT_RESOLVED,
    INVOCATION_COMPLETED,
})  # fmt: skip
#: source of an invocation that answers a conversation
CHAT_MENTION = "chat-mention"


def apply_pinned_agent(run: "Run", agent: dict[str, Any] | None) -> None:
    """Make the agent of a started node the run's agent, unless the run has another one.

    Only a handoff replaces the run's agent.
    """
    if agent is not None and (run.agent is None or run.agent["agentId"] == agent["agentId"]):
        run.agent = agent


def version_key(agent_id: str, channel: str | None) -> str:
    """Return the key in ``Run.versions`` of the version that serves the run."""
    return f"{agent_id}@{channel or ''}"


def _event_counter(run: "Run", event: Event) -> "NodeState | Invitation | None":
    """Return the holder of the event's counters: an invitation in a council, else the node."""
    node_id = event.node_id if event.node_id is not UNSET else ""
    conversation = run.conversations.get(node_id)
    floor = conversation.floor if conversation is not None else None
    if floor is not None and event.hints is not UNSET:
        return floor.wakes.get(str(event.hints.get("wake")))
    return run.nodes.get(node_id)


def _apply_agent_event(run: "Run", event: Event, at: int) -> None:
    counter = _event_counter(run, event)
    if counter is None:
        return
    counter.said[event.type] = counter.said.get(event.type, 0) + 1
    if event.type == REASONED:
        counter.said.pop(REASONING_DELTA, None)  # the deltas of the next block count from 0
    elif event.type == TOOL_CALLED:
        counter.calls[event.payload.get("callId", "")] = event.sequence
    elif event.type == TOOL_RETURNED:
        counter.calls.pop(event.payload.get("callId", ""), None)


def _apply_invocation_started(run: "Run", event: Event, at: int) -> None:
    """Pin the resolved version of the agent for the whole run."""
    _apply_agent_event(run, event, at)
    payload = event.payload
    if payload.get("source") == CHAT_MENTION:
        return
    if run.agent is None:
        run.agent = {"agentId": payload["agentId"]}
    if "resolvedAgentVersion" in payload and "requestedVersion" not in payload:
        name = version_key(payload["agentId"], payload.get("resolvedChannel"))
        run.versions.setdefault(name, payload["resolvedAgentVersion"])


def _apply_handoff(run: "Run", event: Event, at: int) -> None:
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    run.agent = {"agentId": event.payload["toAgentId"]}
    if node is not None and event.node_id in run.active:
        _apply_agent_event(run, event, at)


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    REASONING_DELTA: _apply_agent_event,
    REASONED: _apply_agent_event,
    TOOL_CALLED: _apply_agent_event,
    TOOL_RETURNED: _apply_agent_event,
    HANDOFF: _apply_handoff,
    AGENT_DECIDED: _apply_agent_event,
    **dict.fromkeys(sorted(MODEL_EVENTS), _apply_agent_event),
    INVOCATION_STARTED: _apply_invocation_started,
}
