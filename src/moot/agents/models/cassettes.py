"""Record answers of models in a file and replay them, without key or network.

A cassette has one JSON object per line, ordered by key: the key, its request and the answer. It
holds neither the caller nor credentials."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.models.protocol import (
    AnswerFolder,
    Model,
    ModelAnswer,
    ModelRequest,
    Piece,
    pieces_from_answer,
    request_key,
    semantic_request,
)
from moot.core.agents import model_key
from moot.core.errors.models import ModelNotConfigured, ModelNotRecorded
from moot.core.json.canonical import canonical_bytes

MOST_DIFFERENCES = 5
LONGEST_VALUE = 80
HIDDEN = "***"


class RecordedAnswer(Struct, frozen=True, kw_only=True):
    """One line of a cassette."""

    key: str
    request: dict[str, object]
    answer: ModelAnswer


class Cassette:
    """A file of recorded answers, read and written as a whole."""

    def __init__(self, file: Path, secrets: Iterable[str] = ()) -> None:
        self.file = file
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._answers = {recorded.key: recorded for recorded in self._read()}

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, provider: str, request: ModelRequest) -> ModelAnswer:
        """Return the recorded answer. Raise ModelNotRecorded with the nearest request."""
        key = request_key(provider, request)
        recorded = self._answers.get(key)
        if recorded is None:
            asked = model_key.arrange_request(semantic_request(provider, request))
            raise self._not_recorded_error(key, asked)
        return recorded.answer

    def record(self, provider: str, request: ModelRequest, answer: ModelAnswer) -> None:
        semantic = semantic_request(provider, request)
        key = model_key.model_key(semantic)
        asked = model_key.arrange_request(semantic)
        recorded = RecordedAnswer(key=key, request=asked, answer=answer)
        self._answers[key] = msgspec.json.decode(self._encode_line(recorded), type=RecordedAnswer)
        self._write()

    def _encode_line(self, recorded: RecordedAnswer) -> bytes:
        """Return one line, with keys in order and secrets masked."""
        text = canonical_bytes(msgspec.to_builtins(recorded)).decode()
        for secret in self._secrets:
            text = text.replace(msgspec.json.encode(secret).decode()[1:-1], HIDDEN)
        return text.encode()

    def _write(self) -> None:
        lines = [self._encode_line(self._answers[key]) for key in sorted(self._answers)]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        draft = self.file.with_name(f"{self.file.name}.new")
        draft.write_bytes(b"".join(line + b"\n" for line in lines))
        draft.replace(self.file)

    def _read(self) -> Iterable[RecordedAnswer]:
        if not self.file.exists():
            return
        for number, line in enumerate(self.file.read_bytes().splitlines(), start=1):
            try:
                yield msgspec.json.decode(line, type=RecordedAnswer)
            except msgspec.DecodeError as error:
                problem = f"{self.file}:{number}: this is no recorded answer: {error}."
                raise ModelNotConfigured(problem) from None

    def _not_recorded_error(self, key: str, request: Mapping[str, object]) -> ModelNotRecorded:
        message = f"Nobody recorded an answer to this in {self.file} (key {key[:12]}…)."
        nearest = min(
            self._answers.values(),
            key=lambda recorded: (len(list_differences(recorded.request, request)), recorded.key),
            default=None,
        )
        if nearest is None:
            return ModelNotRecorded(f"{message} It is empty; record it first.", key=key)
        differences = list_differences(nearest.request, request)
        rest = len(differences) - MOST_DIFFERENCES
        more = f"; and {rest} more" if rest > 0 else ""
        summary = "; ".join(differences[:MOST_DIFFERENCES])
        return ModelNotRecorded(
            f"{message} The nearest is {nearest.key[:12]}…, which differs: {summary}{more}."
            " Record it anew, or ask as it was asked then.",
            key=key,
            nearest=nearest.key,
            differences=differences[:MOST_DIFFERENCES],
        )


def list_differences(recorded: Any, asked: Any) -> list[str]:
    """Return every place where two requests differ, with both values."""
    old_leaves, new_leaves = dict(_leaves(recorded)), dict(_leaves(asked))
    return [
        f"{place}: recorded {_format_leaf(old_leaves, place)},"
        f" asked {_format_leaf(new_leaves, place)}"
        for place in sorted({*old_leaves, *new_leaves})
        if (place in old_leaves) != (place in new_leaves)
        or old_leaves.get(place) != new_leaves.get(place)
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


def _format_leaf(leaves: Mapping[str, object], place: str) -> str:
    if place not in leaves:
        return "nothing"
    text = msgspec.json.encode(leaves[place]).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


class RecordingModel:
    """Calls another model and records every complete answer."""

    def __init__(self, model: Model, cassette: Cassette) -> None:
        self.provider = model.provider
        self._model, self._cassette = model, cassette

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        folder = AnswerFolder(request.model)
        async with aclosing(self._model.stream(request)) as pieces:
            async for piece in pieces:
                folder.take(piece)
                yield piece
        self._cassette.record(self.provider, request, folder.answer())

    async def aclose(self) -> None:
        await self._model.aclose()


class ReplayingModel:
    """Returns recorded answers and calls no model."""

    def __init__(self, provider: str, cassette: Cassette) -> None:
        self.provider = provider
        self._cassette = cassette

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        for piece in pieces_from_answer(self._cassette.find(self.provider, request)):
            yield piece

    async def aclose(self) -> None:
        """Do nothing."""
