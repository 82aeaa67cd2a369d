"""core.ai.callPrompt: a model call that a mock provider answers.

Mock providers answer as the run's options say. They work only under a test key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

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


TYPE = NodeType(
    type_id="core.ai.callPrompt", kind=NodeKind.ACTIVITY, activity=_call_prompt, check=_check
)
