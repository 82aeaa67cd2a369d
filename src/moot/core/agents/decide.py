"""What the doings of agents cause: each is said once, the work passes from one to the next, and a
decision that its agent is not sure of waits for a person.
"""

from typing import Any

from msgspec.structs import replace

from moot.core.agents import tool_approval
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.interrupts import decide, escalations
from moot.core.runs import nodes
from moot.core.runs.handles import worker
from moot.core.runs.nodes import Emit
from moot.core.state.agents import (
    ASKED,
    CALLED,
    DECIDED,
    DELTA,
    DONE,
    HANDLERS,
    HANDOFF,
    INVOKED,
    REASONED,
    RETURNED,
    bound,
)
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow

#: of one attempt: calls that have not come back, and decisions
MOST_CALLS = 256
MOST_DECISIONS = 256

#: what an attempt says once
TOLD = frozenset({*HANDLERS, ASKED})
#: questions about tools are counted from here, those about decisions from 0
TOOLS_FROM = 1000

PINNED = frozenset({"node.started", "node.completed"})


def emit(run: Run, flow: Flow, said: Emit) -> list[NewEvent]:
    """Facts a node reports while it works. What the agent of the attempt has said before, ahead of
    a crash or of a question, is not said again."""
    state = nodes.at_work(run, said.node_id, said.attempt)
    if state is None or not any(event.type in TOLD for event in said.events):
        return nodes.emit(run, flow, said)
    fresh = tuple(new for event in said.events if (new := _fresh(state, event)) is not None)
    found = nodes.emit(run, flow, replace(said, events=fresh))
    for event in fresh:
        if event.type == ASKED:
            return [*found, *_permission(run, flow, said, event)]
    if flow.nodes[said.node_id].type.type_id == SUPERVISOR:
        return found  # what it is not sure of is held back with its turn
    for event in fresh:
        told = event.payload
        if event.type == DECIDED and escalations.is_unsure(
            run, told.get("confidence"), told.get("threshold")
        ):
            return [*found, *_question(run, flow, said, event)]
    return found


def _fresh(state: NodeState, event: NewEvent) -> NewEvent | None:
    """The event as it is recorded, or None when it has been. A command may be decided again, so
    the event itself stays as it is. Raises BadRequest for what cannot come now."""
    if event.type not in TOLD:
        return event
    nth: int = (event.hints or {}).get("nth", 0)
    if event.type == DELTA:
        told = nth != state.said.get(REASONED, 0)
        told = told or event.payload["sequence"] < state.said.get(DELTA, 0)
        return None if told else replace(event, hints=None)
    if event.type == RETURNED:
        return _come_back(state, event, nth)
    if event.type == CALLED and len(state.calls) >= MOST_CALLS:
        raise BadRequest(f"No more than {MOST_CALLS} tool calls can be open.")
    if event.type in (DECIDED, ASKED) and nth >= MOST_DECISIONS:
        raise BadRequest(f"An attempt may decide or ask {MOST_DECISIONS} times.")
    return None if nth < state.said.get(event.type, 0) else replace(event, hints=None)


def _come_back(state: NodeState, event: NewEvent, nth: int) -> NewEvent | None:
    """What a tool gives is caused by its call."""
    call = state.calls.get(event.payload["callId"])
    if call is not None:
        return replace(event, hints=None, cause=call)
    if nth >= state.said.get(CALLED, 0):
        raise BadRequest("No such tool was called.", callId=event.payload["callId"])
    return None


def _question(run: Run, flow: Flow, said: Emit, event: NewEvent) -> list[NewEvent]:
    told = event.payload
    spec = escalations.held(
        run, told["agentId"], told["confidence"], told["decision"], told.get("threshold")
    )
    number = run.nodes[said.node_id].said.get(DECIDED, 0)
    asked = decide.request(run, flow, flow.nodes[said.node_id], spec, said.at, number)
    asked[0].cause = None  # the decision, just before
    return asked


def _permission(run: Run, flow: Flow, said: Emit, event: NewEvent) -> list[NewEvent]:
    """The question whether a tool may be used so."""
    number = TOOLS_FROM + run.nodes[said.node_id].said.get(ASKED, 0)
    spec = tool_approval.wanted(run, said.node_id, event.payload, number)
    asked = decide.request(run, flow, flow.nodes[said.node_id], spec, said.at, number)
    asked[0].cause = None  # the wish, just before
    return asked


def attributed(run: Run, flow: Flow, events: list[NewEvent]) -> list[NewEvent]:
    """Starts and ends of pinned nodes name their agent; when the work passes to another agent, that
    is said first."""
    found: list[NewEvent] = []
    holder = run.agent
    for event in events:
        agent = worker(run, flow, event.node_id or "") if event.type in PINNED else None
        if agent is not None:
            event.payload["agent"] = agent
            if event.type == "node.started" and _takes_over(run, event):
                if holder is not None and holder["agentId"] != agent["agentId"]:
                    found.append(_passed(event, holder["agentId"], agent["agentId"]))
                holder = agent
        found += _bracketed(run, flow, event, agent)
    return found


def _bracketed(
    run: Run, flow: Flow, event: NewEvent, agent: dict[str, Any] | None
) -> list[NewEvent]:
    """A pure node whose agent is bound by channel says which version serves; nobody is asked."""
    channel = (agent or {}).get("channel")
    version = _version(run, agent["agentId"], channel) if agent and channel else None
    if agent is None or version is None or flow.nodes[str(event.node_id)].type.instant is None:
        return [event]
    attempt = event.payload.get("attempt") or run.nodes[str(event.node_id)].attempt
    named = {
        "invocationId": f"{event.node_id}:{attempt}",  # the same in every replay
        "agentId": agent["agentId"],
    }
    if event.type == "node.completed":
        done = {**named, "outcome": "completed"}
        return [NewEvent(DONE, done, event.node_id, cause=event.cause), event]
    began = {
        **named,
        "source": "workflow-node",
        "resolvedAgentVersion": version,
        "resolvedChannel": channel,
        "toolSurfaceCount": 0,
        "memoryBound": False,
    }
    return [event, NewEvent(INVOKED, began, event.node_id)]


def _version(run: Run, agent_id: str, channel: str) -> str | None:
    member = run.members.get(agent_id)
    return member.version if member is not None else run.versions.get(bound(agent_id, channel))


def _takes_over(run: Run, event: NewEvent) -> bool:
    """An attempt that is made again is nobody's turn; a loop that comes round is."""
    return event.node_id not in run.nodes or "again" in (event.hints or {})


def _passed(start: NewEvent, holder: str, taker: str) -> NewEvent:
    payload = {"fromAgentId": holder, "toAgentId": taker}
    return NewEvent(HANDOFF, payload, start.node_id, cause=start.cause)
