"""Turn the reports of agents into events.

Each report is recorded once. A decision below the confidence threshold waits for a person.
"""

from collections.abc import Mapping

from msgspec import UNSET
from msgspec.structs import replace

from moot.core.errors import BadRequest
from moot.core.events import NewEvent, new_event
from moot.core.ids import derived_id
from moot.core.interrupts import decide, escalations
from moot.core.payloads.agents import (
    AgentDecided,
    AgentHandedOff,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    ReasoningDelta,
    ToolCalled,
    ToolReturned,
)
from moot.core.payloads.councils import ToolAsked
from moot.core.payloads.nodes import NodeCompleted, NodeStarted
from moot.core.runs import nodes
from moot.core.runs.nodes import Emit
from moot.core.runs.standing_agents import node_agent
from moot.core.state.agents import (
    AGENT_EVENTS,
    version_key,
)
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.tool_requests import TOOL_CALL, abbreviate_arguments
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import GateSpec

#: limits of one attempt: open tool calls, and decisions
MOST_CALLS = 256
MOST_DECISIONS = 256

#: events that an attempt records once
ONCE_EVENTS = (*AGENT_EVENTS, ToolAsked)
#: numbers of questions about tools begin here, those of questions about decisions at 0
TOOL_QUESTIONS_FROM = 1000


def emit_agent_events(run: Run, flow: Flow, command: Emit) -> list[NewEvent]:
    """Return the facts that a node reports while it works.

    What the agent reported in this attempt before a crash or a question is not recorded again.
    """
    state = nodes.running_attempt(run, command.node_id, command.attempt)
    if state is None or not any(isinstance(event.payload, ONCE_EVENTS) for event in command.events):
        return nodes.emit_events(run, flow, command)
    fresh = tuple(new for event in command.events if (new := _new_event(state, event)) is not None)
    events = nodes.emit_events(run, flow, replace(command, events=fresh))
    for event in fresh:
        if isinstance(event.payload, ToolAsked):
            return [*events, *_ask_about_tool(run, flow, command, event.payload)]
    if flow.nodes[command.node_id].type.type_id == SUPERVISOR:
        return events  # an unsure decision is held back with its turn
    for event in fresh:
        payload = event.payload
        if isinstance(payload, AgentDecided) and escalations.is_unsure(
            run, payload.confidence, payload.threshold
        ):
            return [*events, *_ask_about_decision(run, flow, command, payload)]
    return events


def _new_event(state: NodeState, event: NewEvent) -> NewEvent | None:
    """Return the event to record, or None when it is already recorded.

    A command may be decided again, so the event itself is not changed. Raise BadRequest for an
    event that cannot come now.
    """
    if not isinstance(event.payload, ONCE_EVENTS):
        return event
    nth, payload = event.nth, event.payload
    if isinstance(payload, ReasoningDelta):
        recorded = nth != state.said.get(AgentReasoned.event_type, 0)
        recorded = recorded or payload.sequence < state.said.get(payload.event_type, 0)
        return None if recorded else event
    if isinstance(payload, ToolReturned):
        return _tool_result(state, event, payload.call_id, nth)
    if isinstance(payload, ToolCalled) and len(state.calls) >= MOST_CALLS:
        raise BadRequest(f"No more than {MOST_CALLS} tool calls can be open.")
    if isinstance(payload, AgentDecided | ToolAsked) and nth >= MOST_DECISIONS:
        raise BadRequest(f"An attempt may decide or ask {MOST_DECISIONS} times.")
    return None if nth < state.said.get(event.type, 0) else event


def _tool_result(state: NodeState, event: NewEvent, call_id: str, nth: int) -> NewEvent | None:
    """Return a tool's result with its call as the cause."""
    call = state.calls.get(call_id)
    if call is not None:
        return replace(event, cause=call)
    if nth >= state.said.get(ToolCalled.event_type, 0):
        raise BadRequest("No such tool was called.", callId=call_id)
    return None


def _ask_about_decision(
    run: Run, flow: Flow, command: Emit, decided: AgentDecided
) -> list[NewEvent]:
    assert decided.confidence is not None
    spec = escalations.low_confidence_gate(
        run, decided.agent_id, decided.confidence, decided.decision, decided.threshold
    )
    number = run.nodes[command.node_id].said.get(AgentDecided.event_type, 0)
    events = decide.request_interrupt(
        run, flow, flow.nodes[command.node_id], spec, command.at, number
    )
    events[0].cause = None  # caused by the decision just before
    return events


def _ask_about_tool(run: Run, flow: Flow, command: Emit, asked: ToolAsked) -> list[NewEvent]:
    """Ask a person whether the agent may use a tool with these inputs."""
    number = TOOL_QUESTIONS_FROM + run.nodes[command.node_id].said.get(ToolAsked.event_type, 0)
    spec = tool_approval_gate(run, command.node_id, asked, number)
    events = decide.request_interrupt(
        run, flow, flow.nodes[command.node_id], spec, command.at, number
    )
    events[0].cause = None  # caused by the request just before
    return events


def attribute_agents(run: Run, flow: Flow, events: list[NewEvent]) -> list[NewEvent]:
    """Name the agent in starts and ends of its nodes.

    When the work passes to another agent, a handoff event comes first.
    """
    attributed: list[NewEvent] = []
    holder = run.agent
    for event in events:
        payload, agent = event.payload, None
        if isinstance(payload, NodeStarted | NodeCompleted):
            agent = node_agent(run, flow, event.node_id or "")
            event.payload = replace(payload, agent=agent)
        is_start = isinstance(payload, NodeStarted) and _is_new_turn(run, event)
        if agent is not None and is_start:
            if holder is not None and holder["agentId"] != agent["agentId"]:
                attributed.append(_handoff_event(event, holder["agentId"], agent["agentId"]))
            holder = agent
        attributed += _with_invocation(run, flow, event, agent)
    return attributed


def _with_invocation(
    run: Run, flow: Flow, event: NewEvent, agent: Mapping[str, object] | None
) -> list[NewEvent]:
    """Add the invocation events of a pure node whose agent is bound by channel."""
    agent_id, channel = str((agent or {}).get("agentId")), (agent or {}).get("channel")
    version = _version(run, agent_id, str(channel)) if agent and channel else None
    if agent is None or version is None or flow.nodes[str(event.node_id)].type.instant is None:
        return [event]
    payload = event.payload
    started = payload.attempt if isinstance(payload, NodeStarted) else 0
    attempt = started or run.nodes[str(event.node_id)].attempt
    invocation_id = f"{event.node_id}:{attempt}"  # the same in every replay
    if isinstance(payload, NodeCompleted):
        done = InvocationCompleted(
            invocation_id=invocation_id, agent_id=agent_id, outcome="completed"
        )
        return [NewEvent(done, event.node_id, cause=event.cause), event]
    began = {
        "invocationId": invocation_id,
        "agentId": agent_id,
        "source": "workflow-node",
        "resolvedAgentVersion": version,
        "resolvedChannel": channel,
        "toolSurfaceCount": 0,
        "memoryBound": False,
    }
    return [event, new_event(InvocationStarted.event_type, began, event.node_id)]


def _version(run: Run, agent_id: str, channel: str) -> str | None:
    member = run.members.get(agent_id)
    return (
        member.version if member is not None else run.versions.get(version_key(agent_id, channel))
    )


def _is_new_turn(run: Run, event: NewEvent) -> bool:
    """Return whether the node starts for the first time, or again in a loop's next round."""
    return event.node_id not in run.nodes or "again" in (event.hints or {})


def _handoff_event(start: NewEvent, holder: str, taker: str) -> NewEvent:
    payload = AgentHandedOff(from_agent_id=holder, to_agent_id=taker)
    return NewEvent(payload, start.node_id, cause=start.cause)


def tool_approval_gate(run: Run, node_id: str, asked: ToolAsked, number: int) -> GateSpec:
    """Return the approval that a node waits for."""
    inputs = {} if asked.inputs is UNSET else asked.inputs
    data = {
        "artifactId": derived_id("art_", run.run_id, node_id, str(number)),
        "artifactType": TOOL_CALL,
        "artifactData": {"toolName": asked.tool_name, "inputs": inputs},
        "title": f"Let {asked.agent_id} use {asked.tool_name}?",
        "description": abbreviate_arguments(inputs),
        "actions": ["accept", "reject"],
    }
    return GateSpec(kind="approval", data=data)
