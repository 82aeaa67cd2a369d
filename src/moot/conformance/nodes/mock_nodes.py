"""Mock nodes: core.ai.callPrompt and core.conformance.mock-agent.

Mock providers answer as the run's options say. They work only under a test key. The mock agent
follows its config, reports like every agent, and is for workflows of a conformance suite.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.workflows.node_types import Completed, Failed, NodeError, NodeKind, NodeType, Outcome
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import permanent_failure

Delay = Annotated[int, Meta(ge=0, le=5000)]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class _MockAnswerConfig(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    usage: dict[str, Annotated[int, Meta(ge=0)]] | None = None
    model: str | None = None


class StreamTextConfig(_MockAnswerConfig, frozen=True):
    tokens: tuple[str, ...] = ("mock", " response")
    delay_ms_per_token: Delay = 0
    finish_reason: FinishReason = "stop"


class MockToolCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    name: str
    arguments: Any = {}

    def as_meta(self) -> dict[str, str]:
        """Return the call with its arguments as JSON text, as chunks have it."""
        encoded = self.arguments
        if not isinstance(encoded, str):
            encoded = msgspec.json.encode(encoded).decode()
        return {"id": self.id, "name": self.name, "arguments": encoded}


class ToolCallsConfig(_MockAnswerConfig, frozen=True):
    tool_calls: list[MockToolCall] = []


class ErrorConfig(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    code: str = "mock_provider_error"
    message: str = "The mock provider was told to fail."
    retryable: bool = False
    fail_after_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0


class UsageOnlyConfig(_MockAnswerConfig, frozen=True):
    pass


async def _stream_text(ctx: NodeContext, config: StreamTextConfig) -> Outcome:
    model = config.model or "mock-stream-text-v1"
    usage = config.usage or {"promptTokens": 1, "completionTokens": len(config.tokens)}
    *early, last = config.tokens or ("",)  # an empty answer still ends with a chunk
    for token in early:
        await asyncio.sleep(config.delay_ms_per_token / 1000)
        await ctx.emit_chunk(token, False, {"model": model})
    await asyncio.sleep(config.delay_ms_per_token / 1000)
    ending = {"model": model, "finishReason": config.finish_reason, "usage": usage}
    await ctx.emit_chunk(last, True, ending)
    return Completed({"text": "".join(config.tokens), **ending})


async def _tool_calls(ctx: NodeContext, config: ToolCallsConfig) -> Outcome:
    calls = [call.as_meta() for call in config.tool_calls]
    model = config.model or "mock-tool-calls-v1"
    usage = config.usage or {"promptTokens": 1, "completionTokens": len(calls)}
    return await _end(
        ctx, {"model": model, "finishReason": "tool_calls", "toolCalls": calls, "usage": usage}
    )


async def _end(ctx: NodeContext, ending: Mapping[str, object]) -> Outcome:
    await ctx.emit_chunk("", True, dict(ending))
    return Completed({"text": "", **ending})


async def _fail(ctx: NodeContext, config: ErrorConfig) -> Outcome:
    await asyncio.sleep(config.fail_after_ms / 1000)
    return Failed(NodeError(code=config.code, message=config.message, retryable=config.retryable))


async def _usage_only(ctx: NodeContext, config: UsageOnlyConfig) -> Outcome:
    usage = config.usage or {"promptTokens": 1, "completionTokens": 0}
    model = config.model or "mock-usage-only-v1"
    return await _end(ctx, {"model": model, "finishReason": "stop", "usage": usage})


#: Provider id -> (config type, handler).
PROVIDERS: dict[str, tuple[type[Any], Callable[[NodeContext, Any], Awaitable[Outcome]]]] = {
    "stream-text": (StreamTextConfig, _stream_text),
    "tool-calls": (ToolCallsConfig, _tool_calls),
    "error": (ErrorConfig, _fail),
    "usage-only": (UsageOnlyConfig, _usage_only),
}


async def answer_with_mock(ctx: NodeContext, mock: Mapping[str, object]) -> Outcome:
    """Return the outcome of the named mock provider. An invalid config fails the node."""
    provider_row = PROVIDERS.get(str(mock.get("id")))
    if provider_row is None:
        message = f"There is no mock provider '{mock.get('id')}'."
        return permanent_failure("unsupported_mock_provider", message)
    shape, provider = provider_row
    try:
        config = msgspec.convert(mock.get("config") or {}, shape)
    except msgspec.ValidationError as error:
        message = f"The mock provider's config does not fit: {error}"
        return permanent_failure("validation_error", message)
    return await provider(ctx, config)


async def _call_prompt(ctx: NodeContext) -> Outcome:
    mock = ctx.configurable.get("mockProvider")
    if isinstance(mock, dict):
        return await answer_with_mock(ctx, mock)
    message = f"Node '{ctx.node_id}' needs a model, and none is configured here."
    return permanent_failure("model_not_configured", message)


def _check(config: Mapping[str, object]) -> str | None:
    return "config.mcp is not available on this host" if "mcp" in config else None


CALL_PROMPT = NodeType(
    type_id="core.ai.callPrompt", kind=NodeKind.ACTIVITY, activity=_call_prompt, check=_check
)


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


MOCK_AGENT = NodeType(
    type_id="core.conformance.mock-agent",
    kind=NodeKind.ACTIVITY,
    activity=_perform,
    check=check_script,
    only_in="conformance-",
)
