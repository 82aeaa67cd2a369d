"""What of a provider's answer is believed: pieces of the right form, of bounded size, without the
key it was asked with."""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from moot.agents.models.protocol import (
    Begun,
    Piece,
    Reasoning,
    Refusal,
    Stop,
    Text,
    ToolCall,
    Usage,
)
from moot.agents.models.redact import Keys, Spoken
from moot.core.errors.models import ModelAnswerInvalid

#: of one answer: characters, words and thoughts and arguments together
MOST_CHARACTERS = 1_000_000
#: of one answer: tools it may ask for
MOST_CALLS = 64
#: levels of the arguments of a tool
DEEPEST = 64
LONGEST_NAME = 1000
#: tokens that one call can have used
MOST_TOKENS = 100_000_000

_WORDS = (Text, Reasoning, Refusal)
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


async def believed(pieces: AsyncGenerator[Piece, None], keys: Keys) -> AsyncGenerator[Piece, None]:
    """The pieces. An answer that is too long ends where it is; one that is none raises
    ModelAnswerInvalid."""
    reader = _Reader(keys)
    async with aclosing(pieces):
        async for piece in pieces:
            for each in reader.read(piece):
                yield each
            if reader.full:
                for each in reader.ended("length"):
                    yield each
                return


class _Reader:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._streams = {kind: Spoken(keys) for kind in _WORDS}
        self._room, self._calls = MOST_CHARACTERS, 0

    @property
    def full(self) -> bool:
        return self._room < 0

    def read(self, piece: Piece) -> Iterator[Piece]:
        match piece:
            case Text() | Reasoning() | Refusal():
                yield from self._words(piece)
            case Begun():
                yield self._begun(piece)
            case ToolCall():
                yield self._call(piece)
            case Usage():
                if (usage := counted(piece)) is not None:
                    yield usage
            case Stop():
                yield from self.ended(piece.reason)
            case _:
                yield piece

    def ended(self, reason: Any) -> Iterator[Piece]:
        for kind, stream in self._streams.items():
            if rest := stream.rest():
                yield kind(rest)
        yield Stop(reason)

    def _words(self, piece: Text | Reasoning | Refusal) -> Iterator[Piece]:
        text = _text(piece.text, "words")[: max(0, self._room)]
        self._room -= len(piece.text)
        if said := self._streams[type(piece)].add(text):
            yield type(piece)(said)

    def _begun(self, piece: Begun) -> Begun:
        model = _name(piece.model, "model")
        identity = None if piece.response_id is None else _name(piece.response_id, "id")
        struck = self._keys.struck
        return Begun(
            model=struck(model), response_id=struck(identity) if identity is not None else None
        )

    def _call(self, piece: ToolCall) -> ToolCall:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise ModelAnswerInvalid(
                f"The answer asks for more than {MOST_CALLS} tools at once.", limit=MOST_CALLS
            )
        arguments = _text(piece.arguments, "arguments of a tool")
        self._room -= len(arguments)
        if self._room < 0:
            raise ModelAnswerInvalid(
                f"The answer is longer than {MOST_CHARACTERS} characters.", limit=MOST_CHARACTERS
            )
        if depth(arguments) > DEEPEST:
            raise ModelAnswerInvalid(
                f"The arguments of a tool have more than {DEEPEST} levels.", limit=DEEPEST
            )
        struck = self._keys.struck
        return ToolCall(
            id=struck(_name(piece.id, "id of a call")),
            name=struck(_name(piece.name, "name of a tool")),
            arguments=struck(arguments),
        )


class Splinters:
    """Calls of tools, put together from what a stream says of them, within bounds."""

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
        """Some more of the call at this place; what is None says nothing. Raises
        ModelAnswerInvalid."""
        if index not in self._calls and len(self._calls) >= MOST_CALLS:
            raise ModelAnswerInvalid(
                f"The answer asks for more than {MOST_CALLS} tools at once.", limit=MOST_CALLS
            )
        call = self._calls.setdefault(index, ([], [], []))
        for known, said in zip(call, (identity, name, arguments), strict=True):
            if said is not None and said != "":
                known.append(_text(said, "call of a tool"))
                self._room -= len(said)
        if self._room < 0:
            raise ModelAnswerInvalid(
                f"The answer is longer than {MOST_CHARACTERS} characters.", limit=MOST_CHARACTERS
            )

    def calls(self) -> list[ToolCall]:
        """In their order. The last id counts, names and arguments are sewn together."""
        return [
            ToolCall(
                id=identity[-1] if identity else f"call_{index}",
                name="".join(name),
                arguments="".join(arguments) or "{}",
            )
            for index, (identity, name, arguments) in sorted(self._calls.items())
        ]


def counted(usage: Usage) -> Usage | None:
    """As far as it can be true; None where it says nothing. Raises ModelAnswerInvalid for what is
    no count at all."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
    if any(type(count) is not int for count in counts):
        raise ModelAnswerInvalid("The answer counts its tokens in something else than numbers.")
    if any(not 0 <= count <= MOST_TOKENS for count in counts) or not any(counts):
        return None
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    return msgspec.structs.replace(usage, cached_input_tokens=cached)


def depth(text: str) -> int:
    """How deep its brackets are nested, by a look at them alone."""
    level = deepest = 0
    for found in _NESTING.finditer(text):
        mark = text[found.start()]
        if mark in "[{":
            level += 1
            deepest = max(deepest, level)
        elif mark in "]}":
            level -= 1
    return deepest


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
