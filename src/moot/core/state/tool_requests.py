"""Requests of agents to use a tool that needs a person's approval."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from moot.core.events import Event
from moot.core.payloads.agents import AgentDecided
from moot.core.payloads.councils import ToolAnswered, ToolAsked, ToolReopened
from moot.core.state.floor import MOST_HELD, NEVER, Floor, ToolRequest

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

#: an agent wants to use a tool that needs a person's approval
#: artifact type of an approval that is about the use of a tool
TOOL_CALL = "moot.toolCall"
#: characters of the tool's arguments in the question
LONGEST_BRIEF = 300


# -- in a council --------------------------------------------------------------------------------


def apply_tool_asked(floor: Floor, payload: ToolAsked, sequence: int, at: int) -> None:
    """Record the request; the member's silence does not count while it waits."""
    invitation_id = payload.wake_id or ""
    invitation = floor.wakes.get(invitation_id)
    arguments = {} if payload.inputs is UNSET else payload.inputs
    if invitation is not None and len(floor.asks) < MOST_HELD:
        floor.asks[payload.ask_id or ""] = ToolRequest(
            agent=invitation.agent, tool=payload.tool_name, wake=invitation_id,
            since=at, seq=sequence, given=abbreviate_arguments(arguments),
        )  # fmt: skip
        invitation.due = NEVER


def apply_tool_reopened(floor: Floor, payload: ToolReopened) -> None:
    """Open requests again that a person allowed on another host."""
    for request_id in payload.ask_ids:
        request = floor.asks.get(str(request_id))
        if request is not None:
            request.allowed = None
            if request.wake in floor.wakes:
                floor.wakes[request.wake].due = NEVER


def apply_tool_answered(floor: Floor, payload: ToolAnswered, at: int) -> None:
    request = floor.asks.get(payload.ask_id)
    if request is not None:
        request.allowed = payload.allowed
        if request.wake in floor.wakes:
            floor.wakes[request.wake].due = at + floor.policy.limits.silence * 1000


# -- at a node -----------------------------------------------------------------------------------


def apply_tool_asked_at_node(run: "Run", event: Event) -> None:
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        type_ = ToolAsked.event_type
        node.said[type_] = node.said.get(type_, 0) + 1


def apply_ruling(node: "NodeState", answer: Any) -> bool:
    """Record a person's answer to the attempt's newest question.

    Return True when the question was about a tool. A tool question is asked at once and comes
    before any decision.
    """
    requests = node.said.get(ToolAsked.event_type, 0)
    decisions = node.said.get(AgentDecided.event_type, 0)
    if requests and (newest := tool_ruling_key(requests - 1)) not in node.rulings:
        node.rulings[newest] = answer
        return True
    if decisions:
        node.rulings[str(decisions - 1)] = answer
    return False


def tool_ruling_key(nth: int) -> str:
    """Return the key in ``NodeState.rulings`` of the answer to the nth tool request."""
    return f"tool:{nth}"


def abbreviate_arguments(arguments: Any) -> str:
    """Return the tool's arguments as one short line."""
    text = msgspec.json.encode(arguments).decode(errors="replace")
    return text if len(text) <= LONGEST_BRIEF else f"{text[:LONGEST_BRIEF]} …"
