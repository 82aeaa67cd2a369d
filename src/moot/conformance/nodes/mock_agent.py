"""core.conformance.mock-agent: an agent that follows its config.

It reports like every agent. Only workflows of a conformance suite may use it.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.workflows.node_types import Completed, NodeKind, NodeType, Outcome
from moot.engine.nodes.context import NodeContext

AgentId = Annotated[str, Meta(min_length=3, max_length=256)]
Whole = Annotated[int, Meta(ge=0)]
Confidence = Annotated[float, Meta(ge=0, le=1)]

DEFAULT_THOUGHT = "The mock agent thought about what it was told to."


class MockScriptPart(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the script. Unknown fields are errors."""


class MockReasoning(MockScriptPart, frozen=True):
    summary: str
    trace: str | UnsetType = UNSET
    token_count: Whole | UnsetType = UNSET
    stream_chunks: list[str] | UnsetType = UNSET


class MockToolError(MockScriptPart, frozen=True):
    error: Annotated[str, Meta(min_length=1)]
    message: Annotated[str, Meta(min_length=1)]
    details: dict[str, object] = {}


class MockToolUse(MockScriptPart, frozen=True):
    tool_id: Annotated[str, Meta(min_length=1)]
    arguments: Any = UNSET
    result: Any = UNSET
    error: MockToolError | UnsetType = UNSET
    duration_ms: Whole | None = None


class MockHandoff(MockScriptPart, frozen=True):
    to_agent_id: AgentId
    reason: str | None = None
    context: Any = UNSET


class MockDecision(MockScriptPart, frozen=True):
    decision: Any
    confidence: Confidence | None = None
    reasoning: str | UnsetType = UNSET


class MockAgentScript(MockScriptPart, frozen=True):
    agent_id: AgentId | UnsetType = UNSET
    mock_reasoning: bool | MockReasoning = False
    mock_tool_calls: list[MockToolUse] = []
    mock_handoff: MockHandoff | UnsetType = UNSET
    mock_decision: MockDecision | UnsetType = UNSET
    mock_confidence: Confidence | None = None


def check_script(config: Mapping[str, object]) -> str | None:
    try:
        script = msgspec.convert(config, MockAgentScript)
    except msgspec.ValidationError as error:
        return str(error)
    for use in script.mock_tool_calls:
        if (use.result is UNSET) == (use.error is UNSET):
            return f"the call of '{use.tool_id}' needs either a result or an error"
    return None


async def _perform(ctx: NodeContext) -> Outcome:
    script = msgspec.convert(ctx.config, MockAgentScript)
    if script.agent_id is not UNSET:
        ctx.agent.speak_as(script.agent_id)
    elif ctx.agent.agent_id == f"host:agent:{ctx.node_id}":
        ctx.agent.speak_as(f"host:mock-agent:{ctx.node_id}")
    if script.mock_reasoning:
        await _think(ctx, script.mock_reasoning)
    for use in script.mock_tool_calls:
        await _use_tool(ctx, use)
    if script.mock_handoff is not UNSET:
        handoff = script.mock_handoff
        more = {} if handoff.context is UNSET else {"context": handoff.context}
        await ctx.agent.handoff(handoff.to_agent_id, handoff.reason, **more)
    return await _decide(ctx, script)


async def _think(ctx: NodeContext, reasoning: bool | MockReasoning) -> None:
    if not isinstance(reasoning, MockReasoning):
        await ctx.agent.reasoned(DEFAULT_THOUGHT)
        return
    more: dict[str, object] = {"summary": reasoning.summary}
    if reasoning.token_count is not UNSET:
        more["tokenCount"] = reasoning.token_count
    if reasoning.stream_chunks is UNSET:
        is_full = reasoning.trace is not UNSET and ctx.agent.verbosity == "full"
        whole = reasoning.trace if is_full else None
        await ctx.agent.reasoned(whole or reasoning.summary, **more)
        return
    thought = ctx.agent.thinking(**more)
    for chunk in reasoning.stream_chunks:
        await thought.add(chunk)
    await thought.close()


async def _use_tool(ctx: NodeContext, use: MockToolUse) -> None:
    arguments = () if use.arguments is UNSET else (use.arguments,)
    call = await ctx.agent.tool_called(use.tool_id, *arguments)
    if use.error is UNSET:
        await call.returned(use.result, use.duration_ms)
    else:
        problem = use.error
        await call.failed(problem.error, problem.message, use.duration_ms, (), **problem.details)


async def _decide(ctx: NodeContext, script: MockAgentScript) -> Outcome:
    if script.mock_decision is not UNSET:
        scripted = script.mock_decision
        more = {} if scripted.reasoning is UNSET else {"reasoning": scripted.reasoning}
        decision, confidence = scripted.decision, scripted.confidence
        return Completed({"decision": await ctx.agent.decided(decision, confidence, **more)})
    if script.mock_confidence is not None:
        decision = await ctx.agent.decided({"kind": "mock"}, script.mock_confidence)
        return Completed({"decision": decision})
    return Completed()


TYPE = NodeType(
    type_id="core.conformance.mock-agent",
    kind=NodeKind.ACTIVITY,
    activity=_perform,
    check=check_script,
    only_in="conformance-",
)
