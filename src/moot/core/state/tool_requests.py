"""Requests of agents to use a tool that needs a person's approval."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from moot.core.events import Event
from moot.core.state.agents import AGENT_DECIDED
from moot.core.state.floor import MOST_HELD, NEVER, Floor, ToolRequest

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

#: an agent wants to use a tool that needs a person's approval
TOOL_ASKED = "moot.tool.asked"
#: artifact type of an approval that is about the use of a tool
TOOL_CALL = "moot.toolCall"
#: characters of the tool's arguments in the question
LONGEST_BRIEF = 300


# -- in a council --------------------------------------------------------------------------------


def apply_tool_asked(floor: Floor, payload: dict[str, Any], sequence: int, at: int) -> None:
    """Record the request; the member's silence does not count while it waits."""
    invitation_id = str(payload.get("wakeId", ""))
    invitation = floor.wakes.get(invitation_id)
    if invitation is not None and len(floor.asks) < MOST_HELD:
        floor.asks[str(payload.get("askId", ""))] = ToolRequest(
            agent=invitation.agent, tool=str(payload.get("toolName", "")), wake=invitation_id,
            since=at, seq=sequence, given=abbreviate_arguments(payload.get("inputs", {})),
        )  # fmt: skip
        invitation.due = NEVER


def apply_tool_reopened(floor: Floor, payload: dict[str, Any]) -> None:
    """Open requests again that a person allowed on another host."""
    for request_id in payload.get("askIds", []):
        request = floor.asks.get(str(request_id))
        if request is not None:
            request.allowed = None
            if request.wake in floor.wakes:
                floor.wakes[request.wake].due = NEVER


def apply_tool_answered(floor: Floor, payload: dict[str, Any], at: int) -> None:
    request = floor.asks.get(str(payload.get("askId", "")))
    if request is not None:
        request.allowed = payload.get("allowed") is True
        if request.wake in floor.wakes:
            floor.wakes[request.wake].due = at + floor.policy.limits.silence * 1000


# -- at a node -----------------------------------------------------------------------------------


def apply_tool_asked_at_node(run: "Run", event: Event) -> None:
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        node.said[TOOL_ASKED] = node.said.get(TOOL_ASKED, 0) + 1


def apply_ruling(node: "NodeState", answer: Any) -> bool:
    """Record a person's answer to the attempt's newest question.

    Return True when the question was about a tool. A tool question is asked at once and comes
    before any decision.
    """
    requests, decisions = node.said.get(TOOL_ASKED, 0), node.said.get(AGENT_DECIDED, 0)
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
