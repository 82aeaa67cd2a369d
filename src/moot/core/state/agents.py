"""Fold the work of agents: the current agent, and event counts of each attempt.

The state holds counters and references only. The text of an event stays in the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.core.events import Event
from moot.core.payloads.agents import (
    AgentDecided,
    AgentHandedOff,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    ModelAskedAgain,
    ModelRefused,
    ModelTruncated,
    PromptResolved,
    ReasoningDelta,
    ToolCalled,
    ToolReturned,
)
from moot.core.payloads.base import Payload

if TYPE_CHECKING:
    from moot.core.state.floor import Invitation
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run


#: events about an agent's work with a model
MODEL_EVENTS = (
    ModelAskedAgain, ModelTruncated, ModelRefused, InvocationStarted, PromptResolved,
    InvocationCompleted,
)  # fmt: skip
#: events that an attempt or a member of a council counts, so that none is recorded twice
AGENT_EVENTS = (
    ReasoningDelta, AgentReasoned, ToolCalled, ToolReturned, AgentHandedOff, AgentDecided,
    *MODEL_EVENTS,
)  # fmt: skip
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
        return floor.wakes.get(event.known_hints.wake or "")
    return run.nodes.get(node_id)


def _apply_agent_event(run: "Run", payload: Payload, event: Event, at: int) -> None:
    counter = _event_counter(run, event)
    if counter is None:
        return
    counter.said[event.type] = counter.said.get(event.type, 0) + 1
    if isinstance(payload, AgentReasoned):
        # the deltas of the next block count from 0
        counter.said.pop(ReasoningDelta.event_type, None)
    elif isinstance(payload, ToolCalled):
        counter.calls[payload.call_id] = event.sequence
    elif isinstance(payload, ToolReturned):
        counter.calls.pop(payload.call_id, None)


def _apply_invocation_started(
    run: "Run", payload: InvocationStarted, event: Event, at: int
) -> None:
    """Pin the resolved version of the agent for the whole run."""
    _apply_agent_event(run, payload, event, at)
    if payload.source == CHAT_MENTION:
        return
    if run.agent is None:
        run.agent = {"agentId": payload.agent_id}
    if payload.resolved_agent_version is not None and payload.requested_version is None:
        name = version_key(payload.agent_id, payload.resolved_channel)
        run.versions.setdefault(name, payload.resolved_agent_version)


def _apply_handoff(run: "Run", payload: AgentHandedOff, event: Event, at: int) -> None:
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    run.agent = {"agentId": payload.to_agent_id}
    if node is not None and event.node_id in run.active:
        _apply_agent_event(run, payload, event, at)


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    **dict.fromkeys(AGENT_EVENTS, _apply_agent_event),
    AgentHandedOff: _apply_handoff,
    InvocationStarted: _apply_invocation_started,
}
