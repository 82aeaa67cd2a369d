"""Render events of agents as lines: invocations, reasoning, tool calls, the floor."""

from typing import Any

from moot.cli.shared import output
from moot.core.payloads.agents import (
    AgentDecided,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    PromptResolved,
    ReasoningDelta,
    ToolCalled,
    ToolReturned,
)
from moot.core.payloads.councils import (
    CouncilStopped,
    InvitationAnswered,
    MembersInvited,
    PolicySet,
    ToolAnswered,
    ToolAsked,
)

Event = dict[str, Any]
#: start of the provider key of a model call; the events of the invocation report such a call
MODEL_EFFECT = "model:"


def invocation_started_line(event: Event, _: object) -> str:
    payload = event["payload"]
    model = f" ({payload['resolvedModel']})" if payload.get("resolvedModel") else ""
    return output.one_line(f"{payload.get('agentId')} is asked{model}")


def invocation_ended_line(event: Event, _: object) -> str | None:
    """Return None for a normal end; the node that asked reports the answer."""
    payload = event["payload"]
    if payload.get("outcome") in (None, "completed"):
        return None
    return output.one_line(f"{payload.get('agentId')} gave no answer: {payload['outcome']}")


def reasoning_line(event: Event, _: object) -> str | None:
    payload = event["payload"]
    if not payload.get("reasoning"):
        return None
    agent_id = output.one_line(str(payload.get("agentId")))
    return f"{agent_id} thought: {output.shorten(payload['reasoning'])}"


def tool_called_line(event: Event, _: object) -> str:
    payload = event["payload"]
    return output.one_line(f"{payload.get('agentId')} used {tool_call_text(payload)}")


def tool_returned_line(event: Event, _: object) -> str:
    payload = event["payload"]
    if payload.get("status") == "ok":
        tool_name = output.one_line(str(payload.get("toolName")))
        return f"{tool_name} gave {output.shorten(payload.get('outcome'))}"
    return output.one_line(f"{payload.get('toolName')} gave nothing: {payload.get('status')}")


def tool_call_text(payload: Event) -> str:
    """Return ``price_history({"sku": "lamp"})``."""
    return f"{payload.get('toolName')}({output.shorten(payload.get('inputs', {}), 100)})"


def floor_line(event: Event, _: object) -> str | None:
    """Return the members that get the floor in a council."""
    wakes = event["payload"].get("wakes")
    names = [str(wake.get("agentId")) for wake in wakes or [] if isinstance(wake, dict)]
    return output.one_line(f"the floor is {', '.join(names)}'s") if names else None


def stopped_line(event: Event, _: object) -> str:
    return output.one_line(f"the council stops: {event['payload'].get('reason')}")


def tool_asked_line(event: Event, _: object) -> str:
    payload = event["payload"]
    return output.one_line(
        f"{payload.get('agentId')} wants to use {tool_call_text(payload)}: a person must agree"
    )


def tool_answered_line(event: Event, _: object) -> str:
    payload = event["payload"]
    word = "allowed it" if payload.get("allowed") else "did not allow it"
    return output.one_line(f"{payload.get('by')} {word}")


def no_line(event: Event, _: object) -> None:
    """Return None, because the event is internal to an answer."""


AGENT_RENDERERS = {
    InvocationStarted.event_type: invocation_started_line,
    InvocationCompleted.event_type: invocation_ended_line,
    PromptResolved.event_type: no_line,
    AgentReasoned.event_type: reasoning_line,
    ReasoningDelta.event_type: no_line,
    AgentDecided.event_type: no_line,
    ToolCalled.event_type: tool_called_line,
    ToolReturned.event_type: tool_returned_line,
    PolicySet.event_type: no_line,
    MembersInvited.event_type: floor_line,
    InvitationAnswered.event_type: no_line,
    CouncilStopped.event_type: stopped_line,
    ToolAsked.event_type: tool_asked_line,
    ToolAnswered.event_type: tool_answered_line,
}
