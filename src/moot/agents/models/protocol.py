"""What is asked of a model and what comes back: a stream of pieces, folded into one answer."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from moot.core.errors.models import ModelAnswerInvalid, ModelDisconnected
from moot.core.json.schema import problems

Reason = Literal["end", "length", "tool_calls", "refusal"]


class ToolCall(Struct, frozen=True, kw_only=True, rename="camel", tag="toolCall", tag_field="kind"):
    """The model wants a tool used. ``arguments`` is its JSON as it wrote it, checked by nobody."""

    id: str
    name: str
    arguments: str


class Message(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One message; ``content`` is text or the provider's content blocks."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]]
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class Tool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something the model may ask for; ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] = {}


class ResponseFormat(Struct, frozen=True, kw_only=True):
    """The whole answer is one JSON value that fits this schema."""

    schema: dict[str, Any]
    name: str = "answer"


class Said(Struct, frozen=True, kw_only=True):
    """A turn that was heard: by whom, and the words."""

    name: str
    text: str
    kind: Literal["agent", "human", "system"] = "agent"


class Context(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who speaks where. For the demo model; no other is told, and no text is read to find out."""

    agent: str = "agent"
    role: str = ""
    persona: str = ""
    conversation_id: str = ""
    turn_index: int = 0
    question: str = ""
    previous_speaker: str | None = None
    #: whom the last turn was said to; () is everybody
    addressed: tuple[str, ...] = ()
    heard: tuple[Said, ...] = ()
    #: who can be chosen to speak next, by id, and how each is called in what was heard
    called: dict[str, str] = {}
    purpose: Literal["turn", "synthesis", "vote"] = "turn"


class ModelRequest(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything the answer depends on, and nothing about how it is fetched."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    #: "none": they are told because messages speak of them, and none may be used now
    tool_choice: Literal["auto", "none"] = "auto"
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    response_format: ResponseFormat | None = None
    #: what this provider knows and others do not; passed on as it is
    options: dict[str, Any] = {}
    context: Context | None = None


class Begun(Struct, frozen=True, kw_only=True, rename="camel", tag="begun", tag_field="kind"):
    """The provider answers, and says as which model."""

    model: str
    response_id: str | None = None


class Text(Struct, frozen=True, tag="text", tag_field="kind"):
    text: str


class Reasoning(Struct, frozen=True, tag="reasoning", tag_field="kind"):
    text: str


class Refusal(Struct, frozen=True, tag="refusal", tag_field="kind"):
    """Words with which the model says that it will not answer."""

    text: str


class Usage(Struct, frozen=True, kw_only=True, rename="camel", tag="usage", tag_field="kind"):
    """Tokens as the provider counts them; the cached ones are among the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    #: the provider did not count, or not believably: this is reckoned from the length of the texts
    estimated: bool = False


class Restarted(Struct, frozen=True, kw_only=True, tag="restarted", tag_field="kind"):
    """What came before is void: the call broke and is made again."""

    attempt: int
    code: str


class Stop(Struct, frozen=True, tag="stop", tag_field="kind"):
    """The last piece of every whole answer."""

    reason: Reason


Piece = Begun | Text | Reasoning | Refusal | ToolCall | Usage | Restarted | Stop


class Answer(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The whole of a stream. A refusal is an answer, with its words in ``refusal``."""

    model: str
    finish: Reason
    text: str = ""
    reasoning: str = ""
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    response_id: str | None = None
    #: 1 when the first attempt was answered
    attempts: int = 1


class Model(Protocol):
    """Answers one request as a stream of pieces that ends with Stop, or raises a ModelError."""

    #: the word for the provider in keys and prices, lower case
    provider: str

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]: ...

    async def aclose(self) -> None:
        """Release connections. Safe to call twice."""


class Folding:
    """Pieces put together, one after another."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._attempts = 1
        self._clear()

    def _clear(self) -> None:
        self._begun: Begun | None = None
        self._words: dict[type, list[str]] = {Text: [], Reasoning: [], Refusal: []}
        self._calls: list[ToolCall] = []
        self._usage: Usage | None = None
        self._stop: Stop | None = None

    def take(self, piece: Piece) -> None:
        match piece:
            case Text() | Reasoning() | Refusal():
                self._words[type(piece)].append(piece.text)
            case ToolCall():
                self._calls.append(piece)
            case Begun():
                self._begun = piece
            case Usage():
                self._usage = piece
            case Stop():
                self._stop = piece
            case Restarted():
                self._clear()
                self._attempts = piece.attempt

    def answer(self) -> Answer:
        """Raises ModelDisconnected when the stream had no end."""
        if self._stop is None:
            raise ModelDisconnected("The answer ends in the middle.")
        refused = self._stop.reason == "refusal"
        refusal = "".join(self._words[Refusal])
        return Answer(
            model=self._begun.model if self._begun else self._model,
            finish=self._stop.reason,
            text="".join(self._words[Text]),
            reasoning="".join(self._words[Reasoning]),
            refusal=refusal if refused or refusal else None,
            tool_calls=tuple(self._calls),
            usage=self._usage,
            response_id=self._begun.response_id if self._begun else None,
            attempts=self._attempts,
        )


def folded(pieces: Iterable[Piece], model: str = "") -> Answer:
    """The answer that these pieces are."""
    folding = Folding(model)
    for piece in pieces:
        folding.take(piece)
    return folding.answer()


def pieces_of(answer: Answer) -> list[Piece]:
    """A stream that folds to this answer."""
    found: list[Piece] = [Begun(model=answer.model, response_id=answer.response_id)]
    if answer.reasoning:
        found.append(Reasoning(answer.reasoning))
    if answer.text:
        found.append(Text(answer.text))
    if answer.refusal:
        found.append(Refusal(answer.refusal))
    found.extend(answer.tool_calls)
    if answer.usage is not None:
        found.append(answer.usage)
    return [*found, Stop(answer.finish)]


async def ask(model: Model, request: ModelRequest) -> Answer:
    """The whole answer, for who does not want to listen to it being spoken."""
    folding = Folding(request.model)
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            folding.take(piece)
    return folding.answer()


def structured(request: ModelRequest, answer: Answer) -> Any:
    """The JSON value the request asked for. Raises ModelAnswerInvalid when it is not one.

    A refusal has no value; look at ``finish`` first.
    """
    if answer.finish == "refusal":
        raise ModelAnswerInvalid("The model refused; there is no value.", refusal=answer.refusal)
    if answer.finish == "length":
        raise ModelAnswerInvalid(
            "The answer was cut off at its longest; allow more output tokens.", model=answer.model
        )
    try:
        value = msgspec.json.decode(_unfenced(answer.text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelAnswerInvalid(
            f"The answer is not JSON: {error}.", model=answer.model, text=answer.text[:300]
        ) from None
    if request.response_format is not None:
        found = problems(request.response_format.schema, value)
        if found:
            raise ModelAnswerInvalid(
                f"The answer does not fit its schema: {found[0]}.",
                model=answer.model,
                problems=found,
            )
    return value


def _unfenced(text: str) -> str:
    """Models like to put JSON into a Markdown fence, asked or not."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text[3:-3].removeprefix("json").strip()
    return text


def filled(request: ModelRequest, **defaults: Any) -> ModelRequest:
    """The request with what it leaves open taken from the defaults."""
    changes = {
        name: value
        for name, value in defaults.items()
        if value is not None and getattr(request, name) in (None, (), {})
    }
    return msgspec.structs.replace(request, **changes)
