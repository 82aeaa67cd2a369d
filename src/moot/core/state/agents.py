"""What agents have done in a run, given the log: who has the work in hand, what each attempt has
said already. Counters and references only; what was said stays in the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from moot.core.events import Event

if TYPE_CHECKING:
    from moot.core.state.floor import Wake
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

DELTA = "agent.reasoning.delta"
REASONED = "agent.reasoned"
CALLED = "agent.toolCalled"
RETURNED = "agent.toolReturned"
HANDOFF = "agent.handoff"
DECIDED = "agent.decided"
#: it wants to use a tool that needs a person's word
ASKED = "moot.tool.asked"
#: what an approval is about when it is the use of a tool
TOOL_CALL = "moot.toolCall"
#: characters of its arguments that are shown with the question
LONGEST_BRIEF = 300

INVOKED = "agent.invocation.started"
RESOLVED = "agent.promptResolved"
DONE = "agent.invocation.completed"
#: a call of a model failed and is made again
RETRIED = "moot.model.retried"

#: a model's answer was cut off at its longest, or was none
TRUNCATED, REFUSAL = "envelope.truncated", "envelope.refusal"

#: what else is told of its work with a model
NOTED = frozenset({"envelope.retry.attempted", TRUNCATED, REFUSAL, INVOKED, RESOLVED, DONE})
#: where somebody is asked who takes part in a conversation
MENTIONED = "chat-mention"


def took_over(run: "Run", agent: dict[str, Any] | None) -> None:
    """A node pinned to an agent has begun. Only a handoff puts one agent in another's place."""
    if agent is not None and (run.agent is None or run.agent["agentId"] == agent["agentId"]):
        run.agent = agent


def ruled(node: "NodeState", answer: Any) -> bool:
    """A person has looked at the newest decision of the attempt, if it was that they looked at.
    Whether it was the use of a tool instead: that is asked at once, and nothing goes on before."""
    asked, taken = node.said.get(ASKED, 0), node.said.get(DECIDED, 0)
    if asked and (newest := tool_ruling(asked - 1)) not in node.rulings:
        node.rulings[newest] = answer
        return True
    if taken:
        node.rulings[str(taken - 1)] = answer
    return False


def tool_ruling(nth: int) -> str:
    """The name of what a person has said to the nth use of a tool."""
    return f"tool:{nth}"


def in_brief(arguments: Any) -> str:
    """What a tool is to be given, short enough for a line."""
    text = msgspec.json.encode(arguments).decode(errors="replace")
    return text if len(text) <= LONGEST_BRIEF else f"{text[:LONGEST_BRIEF]} …"


def asked(run: "Run", event: Event) -> None:
    """An agent at a node waits for a person's word."""
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        node.said[ASKED] = node.said.get(ASKED, 0) + 1


def bound(agent_id: str, channel: str | None) -> str:
    """The name under which a run keeps the version that serves it."""
    return f"{agent_id}@{channel or ''}"


def _teller(run: "Run", event: Event) -> "NodeState | Wake | None":
    """Whose words are counted: of somebody who has the floor, else of the attempt of the node."""
    name = event.node_id if event.node_id is not UNSET else ""
    talk = run.conversations.get(name)
    if talk is not None and talk.floor is not None and event.hints is not UNSET:
        return talk.floor.wakes.get(str(event.hints.get("wake")))
    return run.nodes.get(name)


def _said(run: "Run", event: Event, at: int) -> None:
    teller = _teller(run, event)
    if teller is None:
        return
    teller.said[event.type] = teller.said.get(event.type, 0) + 1
    if event.type == REASONED:
        teller.said.pop(DELTA, None)  # the next block is counted from 0
    elif event.type == CALLED:
        teller.calls[event.payload.get("callId", "")] = event.sequence
    elif event.type == RETURNED:
        teller.calls.pop(event.payload.get("callId", ""), None)


def _invoked(run: "Run", event: Event, at: int) -> None:
    """The version an agent was found in serves the whole run."""
    _said(run, event, at)
    said = event.payload
    if said.get("source") == MENTIONED:
        return
    if run.agent is None:
        run.agent = {"agentId": said["agentId"]}
    if "resolvedAgentVersion" in said and "requestedVersion" not in said:
        name = bound(said["agentId"], said.get("resolvedChannel"))
        run.versions.setdefault(name, said["resolvedAgentVersion"])


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
    INVOKED: _invoked,
}
