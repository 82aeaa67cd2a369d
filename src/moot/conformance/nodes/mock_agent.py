"""core.conformance.mock-agent: says what its config tells it to, through the same doors as every
agent. For workflows of a test suite only.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.workflows.node_types import Completed, Kind, NodeType, Outcome
from moot.engine.nodes.context import NodeContext

AgentId = Annotated[str, Meta(min_length=3, max_length=256)]
Whole = Annotated[int, Meta(ge=0)]
Confidence = Annotated[float, Meta(ge=0, le=1)]

STUB = "The mock agent thought about what it was told to."


class Closed(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A field nobody knows is a mistake."""


class Reasoning(Closed, frozen=True):
    summary: str
    trace: str | UnsetType = UNSET
    token_count: Whole | UnsetType = UNSET
    stream_chunks: list[str] | UnsetType = UNSET


class Problem(Closed, frozen=True):
    error: Annotated[str, Meta(min_length=1)]
    message: Annotated[str, Meta(min_length=1)]
    details: dict[str, Any] = {}


class ToolUse(Closed, frozen=True):
    tool_id: Annotated[str, Meta(min_length=1)]
    arguments: Any = UNSET
    result: Any = UNSET
    error: Problem | UnsetType = UNSET
    duration_ms: Whole | None = None


class Handoff(Closed, frozen=True):
    to_agent_id: AgentId
    reason: str | None = None
    context: Any = UNSET


class Decision(Closed, frozen=True):
    decision: Any
    confidence: Confidence | None = None
    reasoning: str | UnsetType = UNSET


class Script(Closed, frozen=True):
    agent_id: AgentId | UnsetType = UNSET
    mock_reasoning: bool | Reasoning = False
    mock_tool_calls: list[ToolUse] = []
    mock_handoff: Handoff | UnsetType = UNSET
    mock_decision: Decision | UnsetType = UNSET
    mock_confidence: Confidence | None = None


def check(config: dict[str, Any]) -> str | None:
    try:
        script = msgspec.convert(config, Script)
    except msgspec.ValidationError as error:
        return str(error)
    for use in script.mock_tool_calls:
        if (use.result is UNSET) == (use.error is UNSET):
            return f"the call of '{use.tool_id}' needs either a result or an error"
    return None


async def _perform(ctx: NodeContext) -> Outcome:
    script = msgspec.convert(ctx.config, Script)
    if script.agent_id is not UNSET:
        ctx.agent.speak_as(script.agent_id)
    elif ctx.agent.agent_id == f"host:agent:{ctx.node_id}":
        ctx.agent.speak_as(f"host:mock-agent:{ctx.node_id}")
    if script.mock_reasoning:
        await _think(ctx, script.mock_reasoning)
    for use in script.mock_tool_calls:
        await _use(ctx, use)
    if script.mock_handoff is not UNSET:
        given = script.mock_handoff
        more = {} if given.context is UNSET else {"context": given.context}
        await ctx.agent.handoff(given.to_agent_id, given.reason, **more)
    return await _decide(ctx, script)


async def _think(ctx: NodeContext, told: bool | Reasoning) -> None:
    if not isinstance(told, Reasoning):
        await ctx.agent.reasoned(STUB)
        return
    more: dict[str, Any] = {"summary": told.summary}
    if told.token_count is not UNSET:
        more["tokenCount"] = told.token_count
    if told.stream_chunks is UNSET:
        whole = told.trace if told.trace is not UNSET and ctx.agent.verbosity == "full" else None
        await ctx.agent.reasoned(whole or told.summary, **more)
        return
    thought = ctx.agent.thinking(**more)
    for chunk in told.stream_chunks:
        await thought.add(chunk)
    await thought.close()


async def _use(ctx: NodeContext, use: ToolUse) -> None:
    given = () if use.arguments is UNSET else (use.arguments,)
    call = await ctx.agent.tool_called(use.tool_id, *given)
    if use.error is UNSET:
        await call.returned(use.result, use.duration_ms)
    else:
        problem = use.error
        await call.failed(problem.error, problem.message, use.duration_ms, **problem.details)


async def _decide(ctx: NodeContext, script: Script) -> Outcome:
    if script.mock_decision is not UNSET:
        told = script.mock_decision
        more = {} if told.reasoning is UNSET else {"reasoning": told.reasoning}
        return Completed(
            {"decision": await ctx.agent.decided(told.decision, told.confidence, **more)}
        )
    if script.mock_confidence is not None:
        found = await ctx.agent.decided({"kind": "mock"}, script.mock_confidence)
        return Completed({"decision": found})
    return Completed()


TYPE = NodeType(
    type_id="core.conformance.mock-agent",
    kind=Kind.ACTIVITY,
    activity=_perform,
    check=check,
    only_in="conformance-",
)
