"""Call models by the messages API of Anthropic and compatible servers."""

import json
from collections.abc import Awaitable
from typing import Any

from moot.agents.models.protocol import (
    AnswerStart,
    AnswerStop,
    ModelMessage,
    ModelRequest,
    ModelTool,
    Piece,
    ReasoningPiece,
    RefusalPiece,
    StopReason,
    TextPiece,
    TokenUsage,
)
from moot.agents.models.sdk import ProviderEndpoint, SdkConnection, SdkModel, wrap_with_speaker
from moot.agents.models.validation import ToolCallParts
from moot.clock import Clock
from moot.core.errors.models import ModelDisconnected

URL = "https://api.anthropic.com"

REASONS: dict[str, StopReason] = {
    "end_turn": "end", "stop_sequence": "end", "pause_turn": "end", "max_tokens": "length",
    "model_context_window_exceeded": "length", "tool_use": "tool_calls", "refusal": "refusal",
}  # fmt: skip
SCHEMA_WORDS = ("output_config", "output_format", "json_schema", "structured output")
#: the API requires a limit; this is the default
OUTPUT_TOKENS = 4096
#: the API requires a first message of the user
BEGIN: dict[str, object] = {"role": "user", "content": "Please begin."}


class _AnthropicReader:
    """Reads events, and joins the parts of tool inputs."""

    def __init__(self) -> None:
        self._calls = ToolCallParts()
        self._reason: str | None = None
        self._explanation = ""
        self._input = self._output = self._cached = 0
        self._over = False

    def take(self, event: Any) -> list[Piece]:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
                return [AnswerStart(model=event.message.model, response_id=event.message.id)]
            case "content_block_start" if event.content_block.type == "tool_use":
                block = event.content_block
                self._calls.add(event.index, block.id, block.name, None)
            case "content_block_delta":
                return self._delta(event.index, event.delta)
            case "message_delta":
                self._reason = event.delta.stop_reason or self._reason
                details = getattr(event.delta, "stop_details", None)
                self._explanation = getattr(details, "explanation", None) or ""
                self._count(event.usage)
            case "message_stop":
                self._over = True
            case _:
                pass
        return []

    def _delta(self, index: int, delta: Any) -> list[Piece]:
        match delta.type:
            case "text_delta":
                return [TextPiece(delta.text)]
            case "thinking_delta":
                return [ReasoningPiece(delta.thinking)]
            case "input_json_delta" if index in self._calls:
                self._calls.add(index, None, None, delta.partial_json)
            case _:
                pass  # signatures and unknown deltas
        return []

    def _count(self, usage: Any) -> None:
        """Take over the newest token counts. Cached tokens are part of the input."""
        if usage is None:
            return
        cached = getattr(usage, "cache_read_input_tokens", None) or 0
        written = getattr(usage, "cache_creation_input_tokens", None) or 0
        uncached = getattr(usage, "input_tokens", None)
        if uncached is not None:
            self._input, self._cached = uncached + cached + written, cached
        self._output = getattr(usage, "output_tokens", None) or self._output

    def end(self) -> list[Piece]:
        if self._reason is None or not self._over:
            raise ModelDisconnected("The answer broke off in the middle.")
        pieces: list[Piece] = [*self._calls.calls()]
        reason = REASONS.get(self._reason, "end")
        if reason == "refusal" and self._explanation:
            pieces.append(RefusalPiece(self._explanation))
        usage = TokenUsage(
            input_tokens=self._input, output_tokens=self._output, cached_input_tokens=self._cached
        )
        return [*pieces, usage, AnswerStop(reason)]


class AnthropicModel(SdkModel):
    provider = "anthropic"
    schema_words = SCHEMA_WORDS
    reader = _AnthropicReader

    def __init__(self, endpoint: ProviderEndpoint, clock: Clock) -> None:
        super().__init__(SdkConnection("anthropic", "AsyncAnthropic", endpoint, clock))

    def open(self, client: Any, request: ModelRequest) -> Awaitable[Any]:
        stream: Awaitable[Any] = client.messages.create(**_body(request))
        return stream


def _body(request: ModelRequest) -> dict[str, object]:
    system = [_plain(message) for message in request.messages if message.role == "system"]
    messages = [_message(message) for message in request.messages if message.role != "system"]
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, BEGIN)
    # the SDK has no parameters for these any more, but some models still accept them
    sampling = {"temperature": request.temperature, "top_p": request.top_p}
    extra = {name: value for name, value in sampling.items() if value is not None}
    tools = _tools(request)
    body: dict[str, object] = {
        "model": request.model,
        "messages": messages,
        "max_tokens": request.max_output_tokens or OUTPUT_TOKENS,
        "stream": True,
        "system": "\n\n".join(system) or None,
        "stop_sequences": list(request.stop) or None,
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": {"type": "none"} if tools and request.tool_choice == "none" else None,
        "extra_body": {**extra, **request.options} or None,
    }
    if request.response_format is not None:
        output_format = {"type": "json_schema", "schema": request.response_format.schema}
        body["output_config"] = {"format": output_format}
    return {name: value for name, value in body.items() if value is not None}


def _tools(request: ModelRequest) -> tuple[ModelTool, ...]:
    """Return all tools that messages mention, as the API requires, even removed ones."""
    listed_names = {tool.name for tool in request.tools}
    mentioned_names = {call.name for message in request.messages for call in message.tool_calls}
    missing = sorted(mentioned_names - listed_names)
    return (*request.tools, *(ModelTool(name=name) for name in missing))


def _plain(message: ModelMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(block.get("text", "")) for block in message.content)


def _message(message: ModelMessage) -> dict[str, object]:
    if message.role == "tool":
        call_id, content = message.tool_call_id, message.content
        result = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return {"role": "user", "content": [result]}
    if message.tool_calls:
        text = [{"type": "text", "text": _plain(message)}] if _plain(message) else []
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": [*text, *calls]}
    if message.name is not None and message.role == "user" and isinstance(message.content, str):
        return {"role": "user", "content": wrap_with_speaker(message)}
    return {"role": message.role, "content": message.content}


def _input(arguments: str) -> Any:
    """Return the parsed arguments, or an empty object when they are invalid."""
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _tool(tool: Any) -> dict[str, object]:
    fields = {"name": tool.name, "input_schema": tool.parameters or {"type": "object"}}
    return fields if tool.description is None else {**fields, "description": tool.description}
