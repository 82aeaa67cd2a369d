"""Chat completions as OpenAI has them, and Ollama, vLLM, OpenRouter and many others."""

import re
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

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
    Usage,
)
from moot.agents.models.sdk import Connection, Endpoint, SdkModel, enveloped, read
from moot.agents.models.validation import Splinters
from moot.clock import Clock
from moot.core.errors.models import ModelDisconnected

URL = "https://api.openai.com/v1"

REASONS: dict[str, Reason] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}
#: what a server calls the thing it does not know
SCHEMA_WORDS = ("response_format", "json_schema", "structured output")
UNFIT_IN_NAMES = re.compile(r"[\s<|\\/>]+")
LONGEST_NAME = 64


class OpenAIModel(SdkModel):
    """A model behind any address that speaks chat completions."""

    provider = "openai"
    schema_words = SCHEMA_WORDS

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        super().__init__(Connection("openai", "AsyncOpenAI", endpoint, clock))
        self._names = endpoint.names
        self._official = urlsplit(endpoint.url).hostname == urlsplit(URL).hostname

    async def pieces(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        client = await self.connection.client()
        # the SDK takes these from the environment; they are for one host, and this is any host
        client.organization = client.project = None
        reading = _Reading()
        async with await client.chat.completions.create(**self._body(request)) as chunks:
            async for chunk in chunks:
                for piece in read(reading.take, chunk):
                    yield piece
        for piece in read(reading.end):
            yield piece

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        longest = "max_completion_tokens" if self._official else "max_tokens"
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [self._message(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            "top_p": request.top_p,
            longest: request.max_output_tokens,
            "stop": list(request.stop) or None,
            "seed": request.seed,
            "tools": [
                {"type": "function", "function": _function(tool)} for tool in request.tools
            ] or None,
            "tool_choice": "none" if request.tools and request.tool_choice == "none" else None,
            "extra_body": request.options or None,
        }  # fmt: skip
        if request.response_format is not None:
            asked = request.response_format
            schema = {"name": asked.name, "schema": asked.schema, "strict": _closed(asked.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {name: value for name, value in body.items() if value is not None}

    def _message(self, message: Message) -> dict[str, Any]:
        found: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.tool_call_id is not None:
            found["tool_call_id"] = message.tool_call_id
        if message.tool_calls:
            found["tool_calls"] = [
                {"id": call.id, "type": "function",
                 "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]  # fmt: skip
        if message.name is not None and message.role == "user":
            if self._names == "field":
                found["name"] = UNFIT_IN_NAMES.sub("_", message.name)[:LONGEST_NAME]
            elif isinstance(message.content, str):
                found["content"] = enveloped(message)
        return found


class _Reading:
    """Chunks as they come; calls of tools come in splinters and are put together."""

    def __init__(self) -> None:
        self._begun = False
        self._refused = False
        self._calls = Splinters()
        self._finish: str | None = None
        self._usage: Usage | None = None

    def take(self, chunk: Any) -> list[Piece]:
        pieces: list[Piece] = []
        if not self._begun:
            self._begun = True
            pieces.append(Begun(model=chunk.model or "", response_id=chunk.id or None))
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
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str):
            pieces.append(Reasoning(thought))
        if delta.content:
            pieces.append(Text(delta.content))
        if getattr(delta, "refusal", None):
            self._refused = True
            pieces.append(Refusal(delta.refusal))
        for splinter in getattr(delta, "tool_calls", None) or ():
            self._splinter(splinter)
        return pieces

    def _splinter(self, splinter: Any) -> None:
        # some servers leave the index out and send each call whole
        index = splinter.index if isinstance(splinter.index, int) else len(self._calls)
        said = splinter.function
        name, arguments = (None, None) if said is None else (said.name, said.arguments)
        self._calls.add(index, splinter.id, name, arguments)

    def end(self) -> list[Piece]:
        """Raises ModelDisconnected when the last chunk never came."""
        if self._finish is None:
            raise ModelDisconnected("The answer broke off in the middle.")
        pieces: list[Piece] = [*self._calls.calls()]
        reason = REASONS.get(self._finish, "end")
        if reason == "end":
            reason = "refusal" if self._refused else "tool_calls" if self._calls else "end"
        if self._usage is not None:
            pieces.append(self._usage)
        return [*pieces, Stop(reason)]


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_input_tokens=getattr(details, "cached_tokens", None) or 0,
    )


def _function(tool: Any) -> dict[str, Any]:
    found = {"name": tool.name, "parameters": tool.parameters or {"type": "object"}}
    return found if tool.description is None else {**found, "description": tool.description}


def _closed(schema: Any) -> bool:
    """Whether every object in the schema names all it may have and requires all of it."""
    if isinstance(schema, list):
        return all(_closed(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        needed = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False:
            return False
        if needed != set(schema.get("properties", {})):
            return False
    return all(_closed(part) for part in schema.values())
