"""Model providers that answer what the run told them to. Only for runs under a test key."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.core.workflows.node_types import Completed, Failed, NodeError, Outcome
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import refused

Delay = Annotated[int, Meta(ge=0, le=5000)]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class _Answer(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    usage: dict[str, Annotated[int, Meta(ge=0)]] | None = None
    model: str | None = None


class StreamText(_Answer, frozen=True):
    tokens: tuple[str, ...] = ("mock", " response")
    delay_ms_per_token: Delay = 0
    finish_reason: FinishReason = "stop"


class ToolCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    name: str
    arguments: Any = {}

    def as_meta(self) -> dict[str, str]:
        """In a chunk the arguments are a JSON text, whatever form they were given in."""
        encoded = self.arguments
        if not isinstance(encoded, str):
            encoded = msgspec.json.encode(encoded).decode()
        return {"id": self.id, "name": self.name, "arguments": encoded}


class ToolCalls(_Answer, frozen=True):
    tool_calls: list[ToolCall] = []


class Error(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    code: str = "mock_provider_error"
    message: str = "The mock provider was told to fail."
    retryable: bool = False
    fail_after_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0


class UsageOnly(_Answer, frozen=True):
    pass


async def _stream_text(ctx: NodeContext, said: StreamText) -> Outcome:
    model = said.model or "mock-stream-text-v1"
    usage = said.usage or {"promptTokens": 1, "completionTokens": len(said.tokens)}
    *early, last = said.tokens or ("",)  # an empty answer still has an end
    for token in early:
        await asyncio.sleep(said.delay_ms_per_token / 1000)
        await ctx.emit_chunk(token, False, {"model": model})
    await asyncio.sleep(said.delay_ms_per_token / 1000)
    ending = {"model": model, "finishReason": said.finish_reason, "usage": usage}
    await ctx.emit_chunk(last, True, ending)
    return Completed({"text": "".join(said.tokens), **ending})


async def _tool_calls(ctx: NodeContext, said: ToolCalls) -> Outcome:
    calls = [call.as_meta() for call in said.tool_calls]
    ending = {
        "model": said.model or "mock-tool-calls-v1",
        "finishReason": "tool_calls",
        "toolCalls": calls,
        "usage": said.usage or {"promptTokens": 1, "completionTokens": len(calls)},
    }
    await ctx.emit_chunk("", True, ending)
    return Completed({"text": "", **ending})


async def _error(ctx: NodeContext, said: Error) -> Outcome:
    await asyncio.sleep(said.fail_after_ms / 1000)
    return Failed(NodeError(code=said.code, message=said.message, retryable=said.retryable))


async def _usage_only(ctx: NodeContext, said: UsageOnly) -> Outcome:
    ending = {
        "model": said.model or "mock-usage-only-v1",
        "finishReason": "stop",
        "usage": said.usage or {"promptTokens": 1, "completionTokens": 0},
    }
    await ctx.emit_chunk("", True, ending)
    return Completed({"text": "", **ending})


#: provider id -> (what it may be told, what it does)
PROVIDERS: dict[str, tuple[type[Any], Callable[[NodeContext, Any], Awaitable[Outcome]]]] = {
    "stream-text": (StreamText, _stream_text),
    "tool-calls": (ToolCalls, _tool_calls),
    "error": (Error, _error),
    "usage-only": (UsageOnly, _usage_only),
}


async def answer(ctx: NodeContext, mock: dict[str, Any]) -> Outcome:
    """What the named mock provider says; a config it does not understand fails the node."""
    found = PROVIDERS.get(str(mock.get("id")))
    if found is None:
        return refused(
            "unsupported_mock_provider", f"There is no mock provider '{mock.get('id')}'."
        )
    shape, provider = found
    try:
        said = msgspec.convert(mock.get("config") or {}, shape)
    except msgspec.ValidationError as error:
        return refused("validation_error", f"The mock provider's config does not fit: {error}")
    return await provider(ctx, said)
