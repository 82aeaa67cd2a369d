"""Sentences about agents: invocations, reasoning, tools and models."""

from collections.abc import Callable
from typing import Any

from moot.core.payloads.agents import (
    AgentHandedOff,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    ModelAskedAgain,
    ModelGaveUp,
    ModelRefused,
    ModelRetried,
    ModelTruncated,
    ToolCalled,
    ToolReturned,
)
from moot.core.payloads.councils import ToolAnswered, ToolAsked, ToolReopened
from moot.core.sentences.sentence import (
    Names,
    Sentence,
    after_colon,
    brief,
    call_text,
    error_text,
    in_brackets,
)


def _invocation_ended(payload: InvocationCompleted, names: Names) -> str | None:
    """Return None for a normal end; the node that asked reports the answer."""
    if payload.outcome == "completed":
        return None
    return f"{names(payload.agent_id)} gave no answer: {payload.outcome}"


def _reasoned(payload: AgentReasoned, names: Names) -> str | None:
    if not payload.reasoning:
        return None
    return f"{names(payload.agent_id)} thought: {brief(payload.reasoning)}"


def _tool_returned(payload: ToolReturned, names: Names) -> str:
    if payload.status == "ok":
        return f"{payload.tool_name} gave {brief(payload.outcome or None)}"
    return f"{payload.tool_name} gave nothing: {payload.status}"


def _model_retried(payload: ModelRetried, names: Names) -> str:
    attempts = f"attempt {payload.attempt}" + (f" of {payload.of}" if payload.of else "")
    failed = f"the model of {names(payload.agent_id)} failed"
    return f"{failed}{after_colon(error_text(payload.error))} ({attempts})"


def _tool_answered(payload: ToolAnswered, names: Names) -> str:
    return f"{names(payload.by)} {'allowed it' if payload.allowed else 'did not allow it'}"


AGENT_SENTENCES: dict[type, Callable[[Any, Names], Sentence | str | None]] = {
    InvocationStarted: lambda p, names: (
        f"{names(p.agent_id)} is asked{in_brackets(p.resolved_model)}"
    ),
    InvocationCompleted: _invocation_ended,
    AgentReasoned: _reasoned,
    AgentHandedOff: lambda p, names: (
        f"{names(p.from_agent_id)} handed over to {names(p.to_agent_id)}{in_brackets(p.reason)}"
    ),
    ToolCalled: lambda p, names: f"{names(p.agent_id)} used {call_text(p.tool_name, p.inputs)}",
    ToolReturned: _tool_returned,
    ToolAsked: lambda p, names: (
        f"{names(p.agent_id)} wants to use {call_text(p.tool_name, p.inputs)}"
    ),
    ToolAnswered: _tool_answered,
    ToolReopened: lambda p, names: "what was allowed on another host is asked again here",
    ModelRetried: _model_retried,
    ModelAskedAgain: lambda p, names: f"the model is asked again: {p.reason}",
    ModelGaveUp: lambda p, names: (
        f"no answer fits after {p.total_attempts} attempts: {p.final_reason}"
    ),
    ModelTruncated: lambda p, names: f"the answer of {p.model} was cut off",
    ModelRefused: lambda p, names: (
        f"{p.model} refused to answer{after_colon(brief(p.refusal_text or ''))}"
    ),
}
