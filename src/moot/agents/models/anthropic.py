"""The messages API of Anthropic, and of whoever speaks it."""

import json
from collections.abc import AsyncGenerator
from typing import Any

from moot.agents.models.protocol import (
    Begun,
    Message,
    ModelRequest,
    Piece,
    Reason,
    Reasoning,
    Refusal,
    Stop,
    Text,
    Tool,
    Usage,
)
from moot.agents.models.sdk import Connection, Endpoint, SdkModel, enveloped, read
from moot.agents.models.validation import Splinters
from moot.clock import Clock
from moot.core.errors.models import ModelDisconnected

URL = "https://api.anthropic.com"

REASONS: dict[str, Reason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
SCHEMA_WORDS = ("output_config", "output_format", "json_schema", "structured output")
#: the API wants a bound; this one is used when nobody set another
OUTPUT_TOKENS = 4096
#: the API wants a person to have begun
BEGIN = {"role": "user", "content": "Please begin."}


class AnthropicModel(SdkModel):
    """A model behind any address that speaks the messages API."""

    provider = "anthropic"
    schema_words = SCHEMA_WORDS

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        super().__init__(Connection("anthropic", "AsyncAnthropic", endpoint, clock))

    async def pieces(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        client = await self.connection.client()
        reading = _Reading()
        async with await client.messages.create(**_body(request)) as events:
            async for event in events:
                for piece in read(reading.take, event):
                    yield piece
        for piece in read(reading.end):
            yield piece


def _body(request: ModelRequest) -> dict[str, Any]:
    system = [_plain(message) for message in request.messages if message.role == "system"]
    said = [_message(message) for message in request.messages if message.role != "system"]
    if not said or said[0]["role"] != "user":
        said.insert(0, BEGIN)
    # the SDK has no words for these any more, the API has them for the models that take them
    sampling = {"temperature": request.temperature, "top_p": request.top_p}
    more = {name: value for name, value in sampling.items() if value is not None}
    tools = _tools(request)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": said,
        "max_tokens": request.max_output_tokens or OUTPUT_TOKENS,
        "stream": True,
        "system": "\n\n".join(system) or None,
        "stop_sequences": list(request.stop) or None,
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": {"type": "none"} if tools and request.tool_choice == "none" else None,
        "extra_body": {**more, **request.options} or None,
    }
    if request.response_format is not None:
        asked = {"type": "json_schema", "schema": request.response_format.schema}
        body["output_config"] = {"format": asked}
    return {name: value for name, value in body.items() if value is not None}


def _tools(request: ModelRequest) -> tuple[Tool, ...]:
    """The API wants to know of every tool that messages speak of, also of one that has gone."""
    known = {tool.name for tool in request.tools}
    used = {call.name for message in request.messages for call in message.tool_calls}
    return (*request.tools, *(Tool(name=name) for name in sorted(used - known)))


def _plain(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(str(block.get("text", "")) for block in message.content)


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": message.content,
        }
        return {"role": "user", "content": [result]}
    if message.tool_calls:
        text = [{"type": "text", "text": _plain(message)}] if _plain(message) else []
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": [*text, *calls]}
    if message.name is not None and message.role == "user" and isinstance(message.content, str):
        return {"role": "user", "content": enveloped(message)}
    return {"role": message.role, "content": message.content}


def _input(arguments: str) -> Any:
    """What the model wrote, or an empty object where it wrote something else."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _tool(tool: Any) -> dict[str, Any]:
    found = {"name": tool.name, "input_schema": tool.parameters or {"type": "object"}}
    return found if tool.description is None else {**found, "description": tool.description}


class _Reading:
    """Events as they come; the input of a tool comes in splinters of JSON."""

    def __init__(self) -> None:
        self._calls = Splinters()
        self._reason: str | None = None
        self._explanation = ""
        self._input = self._output = self._cached = 0
        self._over = False

    def take(self, event: Any) -> list[Piece]:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
                return [Begun(model=event.message.model, response_id=event.message.id)]
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
                return [Text(delta.text)]
            case "thinking_delta":
                return [Reasoning(delta.thinking)]
            case "input_json_delta" if index in self._calls:
                self._calls.add(index, None, None, delta.partial_json)
            case _:
                pass  # signatures and whatever else may come one day
        return []

    def _count(self, usage: Any) -> None:
        """Later counts replace earlier ones; what was read from a cache is input, too."""
        if usage is None:
            return
        cached = getattr(usage, "cache_read_input_tokens", None) or 0
        written = getattr(usage, "cache_creation_input_tokens", None) or 0
        fresh = getattr(usage, "input_tokens", None)
        if fresh is not None:
            self._input, self._cached = fresh + cached + written, cached
        self._output = getattr(usage, "output_tokens", None) or self._output

    def end(self) -> list[Piece]:
        """Raises ModelDisconnected when the last event never came."""
        if self._reason is None or not self._over:
            raise ModelDisconnected("The answer broke off in the middle.")
        pieces: list[Piece] = [*self._calls.calls()]
        reason = REASONS.get(self._reason, "end")
        if reason == "refusal" and self._explanation:
            pieces.append(Refusal(self._explanation))
        usage = Usage(
            input_tokens=self._input,
            output_tokens=self._output,
            cached_input_tokens=self._cached,
        )
        return [*pieces, usage, Stop(reason)]
