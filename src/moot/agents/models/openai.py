"""Call models by the chat completions API of OpenAI and compatible servers."""

import re
from collections.abc import Awaitable
from typing import Any
from urllib.parse import urlsplit

from moot.agents.models.protocol import (
    AnswerStart,
    AnswerStop,
    ModelMessage,
    ModelRequest,
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

URL = "https://api.openai.com/v1"

REASONS: dict[str, StopReason] = {
    "stop": "end", "length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls",
    "content_filter": "refusal",
}  # fmt: skip
#: words in the error of a server without schemas
SCHEMA_WORDS = ("response_format", "json_schema", "structured output")
UNFIT_IN_NAMES = re.compile(r"[\s<|\\/>]+")
LONGEST_NAME = 64


class _OpenAIReader:
    """Reads chunks, and joins the parts of tool calls."""

    def __init__(self) -> None:
        self._started = False
        self._refused = False
        self._calls = ToolCallParts()
        self._finish: str | None = None
        self._usage: TokenUsage | None = None

    def take(self, chunk: Any) -> list[Piece]:
        pieces: list[Piece] = []
        if not self._started:
            self._started = True
            pieces.append(AnswerStart(model=chunk.model or "", response_id=chunk.id or None))
        if getattr(chunk, "usage", None) is not None:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            pieces.extend(self._delta(choice.delta))
            self._finish = choice.finish_reason or self._finish
        return pieces

    def _delta(self, delta: Any) -> list[Piece]:
        pieces: list[Piece] = []
        if delta is None:
            return pieces
        reasoning = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(reasoning, str):
            pieces.append(ReasoningPiece(reasoning))
        if delta.content:
            pieces.append(TextPiece(delta.content))
        if getattr(delta, "refusal", None):
            self._refused = True
            pieces.append(RefusalPiece(delta.refusal))
        for part in getattr(delta, "tool_calls", None) or ():
            self._add_call_part(part)
        return pieces

    def _add_call_part(self, part: Any) -> None:
        # some servers omit the index and send each call in one part
        index = part.index if isinstance(part.index, int) else len(self._calls)
        function = part.function
        name, arguments = (None, None) if function is None else (function.name, function.arguments)
        self._calls.add(index, part.id, name, arguments)

    def end(self) -> list[Piece]:
        if self._finish is None:
            raise ModelDisconnected("The answer broke off in the middle.")
        pieces: list[Piece] = [*self._calls.calls()]
        reason = REASONS.get(self._finish, "end")
        if reason == "end":
            reason = "refusal" if self._refused else "tool_calls" if self._calls else "end"
        if self._usage is not None:
            pieces.append(self._usage)
        return [*pieces, AnswerStop(reason)]


class OpenAIModel(SdkModel):
    provider = "openai"
    schema_words = SCHEMA_WORDS
    reader = _OpenAIReader

    def __init__(self, endpoint: ProviderEndpoint, clock: Clock) -> None:
        super().__init__(SdkConnection("openai", "AsyncOpenAI", endpoint, clock))
        self._names = endpoint.names
        self._official = urlsplit(endpoint.url).hostname == urlsplit(URL).hostname

    def open(self, client: Any, request: ModelRequest) -> Awaitable[Any]:
        # the SDK takes these from the environment, but they are only for api.openai.com
        client.organization = client.project = None
        stream: Awaitable[Any] = client.chat.completions.create(**self._body(request))
        return stream

    def _body(self, request: ModelRequest) -> dict[str, object]:
        limit_field = "max_completion_tokens" if self._official else "max_tokens"
        body: dict[str, object] = {
            "model": request.model,
            "messages": [self._message(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            "top_p": request.top_p,
            limit_field: request.max_output_tokens,
            "stop": list(request.stop) or None,
            "seed": request.seed,
            "tools": [
                {"type": "function", "function": _function(tool)} for tool in request.tools
            ] or None,
            "tool_choice": "none" if request.tools and request.tool_choice == "none" else None,
            "extra_body": request.options or None,
        }  # fmt: skip
        if request.response_format is not None:
            answer_format = request.response_format
            name, schema = answer_format.name, answer_format.schema
            wanted = {"name": name, "schema": schema, "strict": _is_closed(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return {name: value for name, value in body.items() if value is not None}

    def _message(self, message: ModelMessage) -> dict[str, object]:
        fields: dict[str, object] = {"role": message.role, "content": message.content}
        if message.tool_call_id is not None:
            fields["tool_call_id"] = message.tool_call_id
        if message.tool_calls:
            fields["tool_calls"] = [
                {"id": call.id, "type": "function",
                 "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]  # fmt: skip
        if message.name is not None and message.role == "user":
            if self._names == "field":
                fields["name"] = UNFIT_IN_NAMES.sub("_", message.name)[:LONGEST_NAME]
            elif isinstance(message.content, str):
                fields["content"] = wrap_with_speaker(message)
        return fields


def _usage(usage: Any) -> TokenUsage:
    details = getattr(usage, "prompt_tokens_details", None)
    return TokenUsage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_input_tokens=getattr(details, "cached_tokens", None) or 0,
    )


def _function(tool: Any) -> dict[str, object]:
    function = {"name": tool.name, "parameters": tool.parameters or {"type": "object"}}
    return function if tool.description is None else {**function, "description": tool.description}


def _is_closed(schema: Any) -> bool:
    """Return whether every object in the schema lists and requires all its properties."""
    if isinstance(schema, list):
        return all(_is_closed(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        required = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False:
            return False
        if required != set(schema.get("properties", {})):
            return False
    return all(_is_closed(part) for part in schema.values())
