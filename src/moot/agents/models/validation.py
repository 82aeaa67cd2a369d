"""Validate the answer of a provider: form, size, and no key in it."""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from moot.agents.models.protocol import (
    AnswerStart,
    AnswerStop,
    ModelToolCall,
    Piece,
    ReasoningPiece,
    RefusalPiece,
    TextPiece,
    TokenUsage,
    Words,
)
from moot.agents.models.redact import RedactedStream, SecretKeys
from moot.core.errors.models import ModelAnswerInvalid

#: the most characters of one answer: text, reasoning and arguments together
MOST_CHARACTERS = 1_000_000
#: the most tool calls of one answer
MOST_CALLS = 64
#: the deepest nesting of the arguments of a tool
DEEPEST = 64
LONGEST_NAME = 1000
#: the most tokens that one call can use
MOST_TOKENS = 100_000_000

_WORDS = (TextPiece, ReasoningPiece, RefusalPiece)
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


async def validate_pieces(
    pieces: AsyncGenerator[Piece, None], keys: SecretKeys
) -> AsyncGenerator[Piece, None]:
    """Yield valid pieces up to the limit of an answer. Raise ModelAnswerInvalid."""
    validator = _PieceValidator(keys)
    async with aclosing(pieces):
        async for piece in pieces:
            for valid_piece in validator.validate(piece):
                yield valid_piece
            if validator.full:
                for valid_piece in validator.finish("length"):
                    yield valid_piece
                return


class _PieceValidator:
    """Checks and redacts the pieces of one answer."""

    def __init__(self, keys: SecretKeys) -> None:
        self._keys = keys
        self._streams = {kind: RedactedStream(keys) for kind in _WORDS}
        self._room, self._calls = MOST_CHARACTERS, 0

    @property
    def full(self) -> bool:
        return self._room < 0

    def validate(self, piece: Piece) -> Iterator[Piece]:
        match piece:
            case TextPiece() | ReasoningPiece() | RefusalPiece():
                yield from self._text_piece(piece)
            case AnswerStart():
                yield self._start(piece)
            case ModelToolCall():
                yield self._tool_call(piece)
            case TokenUsage():
                if (usage := valid_usage(piece)) is not None:
                    yield usage
            case AnswerStop():
                yield from self.finish(piece.reason)
            case _:
                yield piece

    def finish(self, reason: Any) -> Iterator[Piece]:
        for kind, stream in self._streams.items():
            if rest := stream.rest():
                yield kind(rest)
        yield AnswerStop(reason)

    def _text_piece(self, piece: Words) -> Iterator[Piece]:
        text = _text(piece.text, "words")[: max(0, self._room)]
        self._room -= len(piece.text)
        if released := self._streams[type(piece)].add(text):
            yield type(piece)(released)

    def _start(self, piece: AnswerStart) -> AnswerStart:
        model, response_id = self._keys.redact(_name(piece.model, "model")), piece.response_id
        if response_id is not None:
            response_id = self._keys.redact(_name(response_id, "id"))
        return AnswerStart(model=model, response_id=response_id)

    def _tool_call(self, piece: ModelToolCall) -> ModelToolCall:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise _too_many_calls()
        arguments = _text(piece.arguments, "arguments of a tool")
        self._room -= len(arguments)
        if self._room < 0:
            raise _too_long()
        if nesting_depth(arguments) > DEEPEST:
            message = f"The arguments of a tool have more than {DEEPEST} levels."
            raise ModelAnswerInvalid(message, limit=DEEPEST)
        redact = self._keys.redact
        call_id, name = _name(piece.id, "id of a call"), _name(piece.name, "name of a tool")
        return ModelToolCall(id=redact(call_id), name=redact(name), arguments=redact(arguments))


class ToolCallParts:
    """Tool calls, joined from the parts of a stream, within limits."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[list[str], list[str], list[str]]] = {}
        self._room = MOST_CHARACTERS

    def __contains__(self, index: object) -> bool:
        return index in self._calls

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, index: int, identity: Any, name: Any, arguments: Any) -> None:
        """Add a part to the call at this index; None adds nothing. Raise ModelAnswerInvalid."""
        if index not in self._calls and len(self._calls) >= MOST_CALLS:
            raise _too_many_calls()
        call = self._calls.setdefault(index, ([], [], []))
        for parts, value in zip(call, (identity, name, arguments), strict=True):
            if value is not None and value != "":
                parts.append(_text(value, "call of a tool"))
                self._room -= len(value)
        if self._room < 0:
            raise _too_long()

    def calls(self) -> list[ModelToolCall]:
        """Return the calls in order. The last id counts; names and arguments are joined."""
        return [
            ModelToolCall(
                id=identity[-1] if identity else f"call_{index}",
                name="".join(name),
                arguments="".join(arguments) or "{}",
            )
            for index, (identity, name, arguments) in sorted(self._calls.items())
        ]


def valid_usage(usage: TokenUsage) -> TokenUsage | None:
    """Return plausible counts, or None. Raise ModelAnswerInvalid when they are not numbers."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
    if any(type(count) is not int for count in counts):
        raise ModelAnswerInvalid("The answer counts its tokens in something else than numbers.")
    if any(not 0 <= count <= MOST_TOKENS for count in counts) or not any(counts):
        return None
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    return msgspec.structs.replace(usage, cached_input_tokens=cached)


def nesting_depth(text: str) -> int:
    level = deepest = 0
    for match in _NESTING.finditer(text):
        bracket = text[match.start()]
        if bracket in "[{":
            level += 1
            deepest = max(deepest, level)
        elif bracket in "]}":
            level -= 1
    return deepest


def _too_many_calls() -> ModelAnswerInvalid:
    message = f"The answer asks for more than {MOST_CALLS} tools at once."
    return ModelAnswerInvalid(message, limit=MOST_CALLS)


def _too_long() -> ModelAnswerInvalid:
    message = f"The answer is longer than {MOST_CHARACTERS} characters."
    return ModelAnswerInvalid(message, limit=MOST_CHARACTERS)


def _name(value: Any, what: str) -> str:
    return _text(value, what)[:LONGEST_NAME]


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ModelAnswerInvalid(f"The {what} in the answer: {type(value).__name__}, not text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModelAnswerInvalid(f"The {what} in the answer: half a character.") from None
    return value
