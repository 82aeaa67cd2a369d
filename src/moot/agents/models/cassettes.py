"""Answers kept in a file and given again: tests that need neither a key nor a network.

A cassette has one JSON object in each line, ordered by key: the key, the request it is the key
of, the answer. Nothing about who asked or with which credentials is in it.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.models.protocol import (
    Answer,
    Folding,
    Message,
    Model,
    ModelRequest,
    Piece,
    pieces_of,
)
from moot.core.agents import model_key
from moot.core.errors.models import ModelNotConfigured, ModelNotRecorded
from moot.core.json.canonical import canonical

MOST_DIFFERENCES = 5
LONGEST_VALUE = 80
HIDDEN = "***"


class Take(Struct, frozen=True, kw_only=True):
    """One line of a cassette."""

    key: str
    request: dict[str, Any]
    answer: Answer


def semantic_request(provider: str, request: ModelRequest) -> model_key.ModelRequest:
    """What of a request the answer depends on, as the recipe of the cache key wants it."""
    asked = request.response_format
    options = {
        f"vendor.{provider}.{name}": value
        for name, value in request.options.items()
        if name not in model_key.TRANSPORT
    }
    if request.tools and request.tool_choice != "auto":
        options[f"vendor.{provider}.toolChoice"] = request.tool_choice
    if provider == "demo" and request.context is not None:
        # one text: nobody looks into it, and a key is quicker to make of one than of many parts
        options["vendor.demo.context"] = msgspec.json.encode(request.context).decode()
    return model_key.request_of({
        "provider": provider,
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "tools": [msgspec.to_builtins(tool) for tool in request.tools] or None,
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_output_tokens,
        "stop": list(request.stop) or None,
        "seed": request.seed,
        "responseFormat": {"type": "json", "schema": asked.schema} if asked else None,
        "providerOptions": options or None,
    })  # fmt: skip


def key_of(provider: str, request: ModelRequest) -> str:
    """The key under which the answer to this request is kept."""
    return model_key.model_key(semantic_request(provider, request))


def _message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        # the recipe has no field for them; they are a part of what was said
        text = message.content
        blocks = [{"type": "text", "text": text}] if isinstance(text, str) else list(text)
        calls = [{**msgspec.to_builtins(call), "type": "toolCall"} for call in message.tool_calls]
        found["content"] = [*blocks, *calls]
    if message.name is not None:
        found["name"] = message.name
    if message.tool_call_id is not None:
        found["toolCallId"] = message.tool_call_id
    return found


class Cassette:
    """A file of takes. Read whole, written whole, never half."""

    def __init__(self, file: Path, secrets: Iterable[str] = ()) -> None:
        self.file = file
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._takes = {take.key: take for take in self._read()}

    def __len__(self) -> int:
        return len(self._takes)

    def find(self, provider: str, request: ModelRequest) -> Answer:
        """Raises ModelNotRecorded, which says what comes nearest and how it differs."""
        key = key_of(provider, request)
        take = self._takes.get(key)
        if take is None:
            raise self._miss(key, model_key.semantic(semantic_request(provider, request)))
        return take.answer

    def keep(self, provider: str, request: ModelRequest, answer: Answer) -> None:
        asked = semantic_request(provider, request)
        key = model_key.model_key(asked)
        take = Take(key=key, request=model_key.semantic(asked), answer=answer)
        self._takes[key] = msgspec.json.decode(self._written(take), type=Take)
        self._write()

    def _written(self, take: Take) -> bytes:
        """One line: keys in order, secrets struck out."""
        text = canonical(msgspec.to_builtins(take)).decode()
        for secret in self._secrets:
            text = text.replace(msgspec.json.encode(secret).decode()[1:-1], HIDDEN)
        return text.encode()

    def _write(self) -> None:
        lines = [self._written(self._takes[key]) for key in sorted(self._takes)]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        draft = self.file.with_name(f"{self.file.name}.new")
        draft.write_bytes(b"".join(line + b"\n" for line in lines))
        draft.replace(self.file)

    def _read(self) -> Iterable[Take]:
        if not self.file.exists():
            return
        for number, line in enumerate(self.file.read_bytes().splitlines(), start=1):
            try:
                yield msgspec.json.decode(line, type=Take)
            except msgspec.DecodeError as error:
                raise ModelNotConfigured(
                    f"{self.file}:{number}: this is no recorded answer: {error}."
                ) from None

    def _miss(self, key: str, asked: dict[str, Any]) -> ModelNotRecorded:
        said = f"Nobody recorded an answer to this in {self.file} (key {key[:12]}…)."
        near = min(
            self._takes.values(),
            key=lambda take: (len(differences(take.request, asked)), take.key),
            default=None,
        )
        if near is None:
            return ModelNotRecorded(f"{said} It is empty; record it first.", key=key)
        found = differences(near.request, asked)
        more = (
            f"; and {len(found) - MOST_DIFFERENCES} more" if len(found) > MOST_DIFFERENCES else ""
        )
        listed = "; ".join(found[:MOST_DIFFERENCES])
        return ModelNotRecorded(
            f"{said} The nearest is {near.key[:12]}…, which differs: {listed}{more}."
            " Record it anew, or ask as it was asked then.",
            key=key,
            nearest=near.key,
            differences=found[:MOST_DIFFERENCES],
        )


def differences(recorded: Any, asked: Any) -> list[str]:
    """Every place where two requests are not the same, with what stands there."""
    before, now = dict(_leaves(recorded)), dict(_leaves(asked))
    return [
        f"{place}: recorded {_shown(before, place)}, asked {_shown(now, place)}"
        for place in sorted({*before, *now})
        if (place in before) != (place in now) or before.get(place) != now.get(place)
    ]


def _leaves(value: Any, place: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _leaves(part, f"{place}.{name}" if place else name)
    elif isinstance(value, list | tuple) and value:
        for number, part in enumerate(value):
            yield from _leaves(part, f"{place}[{number}]")
    else:
        yield place, value


def _shown(leaves: dict[str, Any], place: str) -> str:
    if place not in leaves:
        return "nothing"
    text = msgspec.json.encode(leaves[place]).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


class Recording:
    """Asks another model and keeps every whole answer."""

    def __init__(self, model: Model, cassette: Cassette) -> None:
        self.provider = model.provider
        self._model, self._cassette = model, cassette

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        folding = Folding(request.model)
        async with aclosing(self._model.stream(request)) as pieces:
            async for piece in pieces:
                folding.take(piece)
                yield piece
        self._cassette.keep(self.provider, request, folding.answer())

    async def aclose(self) -> None:
        await self._model.aclose()


class Replaying:
    """Gives recorded answers; there is nobody behind it to ask."""

    def __init__(self, provider: str, cassette: Cassette) -> None:
        self.provider = provider
        self._cassette = cassette

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        for piece in pieces_of(self._cassette.find(self.provider, request)):
            yield piece

    async def aclose(self) -> None:
        """There is nothing to release."""
