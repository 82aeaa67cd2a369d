"""Sentences about agents: invocations, reasoning, tools and models."""

from msgspec import UNSET

from moot.core.payloads import agents, councils
from moot.core.sentences.sentence import (
    Names,
    SentenceRow,
    after_colon,
    brief,
    call_text,
    in_brackets,
)


def _invocation_ended(payload: agents.InvocationCompleted, names: Names) -> str | None:
    """Return None for a normal end; the node that asked reports the answer."""
    if payload.outcome == "completed":
        return None
    return f"{names(payload.agent_id)} gave no answer: {payload.outcome}"


def _reasoned(payload: agents.AgentReasoned, names: Names) -> str | None:
    if not payload.reasoning:
        return None
    return f"{names(payload.agent_id)} thought: {brief(payload.reasoning)}"


def _tool_returned(payload: agents.ToolReturned, names: Names) -> str:
    if payload.status != "ok":
        return f"{payload.tool_name} gave nothing: {payload.status}"
    return (
        f"{payload.tool_name} gave {brief(None if payload.outcome is UNSET else payload.outcome)}"
    )


def _model_retried(payload: agents.ModelRetried, names: Names) -> str:
    attempts = f"attempt {payload.attempt}" + (f" of {payload.of}" if payload.of else "")
    message = str((payload.error or {}).get("message", ""))
    return f"the model of {names(payload.agent_id)} failed{after_colon(message)} ({attempts})"


def _tool_answered(payload: councils.ToolAnswered, names: Names) -> str:
    return f"{names(payload.by)} {'allowed it' if payload.allowed else 'did not allow it'}"


AGENT_SENTENCES: dict[type, SentenceRow] = {
    agents.InvocationStarted: lambda p, names: (
        f"{names(p.agent_id)} is asked{in_brackets(p.resolved_model)}"
    ),
    agents.InvocationCompleted: _invocation_ended,
    agents.AgentReasoned: _reasoned,
    agents.AgentHandedOff: lambda p, names: (
        f"{names(p.from_agent_id)} handed over to {names(p.to_agent_id)}{in_brackets(p.reason)}"
    ),
    agents.ToolCalled: lambda p, names: (
        f"{names(p.agent_id)} used {call_text(p.tool_name, p.inputs)}"
    ),
    agents.ToolReturned: _tool_returned,
    councils.ToolAsked: lambda p, names: (
        f"{names(p.agent_id)} wants to use {call_text(p.tool_name, p.inputs)}"
    ),
    councils.ToolAnswered: _tool_answered,
    councils.ToolReopened: "what was allowed on another host is asked again here",
    agents.ModelRetried: _model_retried,
    agents.ModelAskedAgain: "the model is asked again: {p.reason}",
    agents.ModelGaveUp: "no answer fits after {p.total_attempts} attempts: {p.final_reason}",
    agents.ModelTruncated: "the answer of {p.model} was cut off",
    agents.ModelRefused: lambda p, names: (
        f"{p.model} refused to answer{after_colon(brief(p.refusal_text or ''))}"
    ),
}
