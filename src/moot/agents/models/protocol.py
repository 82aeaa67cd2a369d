"""Requests to models, and answers: a stream of pieces folded into one."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from moot.core.agents import model_key
from moot.core.errors.models import ModelAnswerInvalid, ModelDisconnected
from moot.core.json.schema import schema_problems

StopReason = Literal["end", "length", "tool_calls", "refusal"]


class ModelToolCall(
    Struct, frozen=True, kw_only=True, rename="camel", tag="toolCall", tag_field="kind"
):
    """A tool call of the model. ``arguments`` is its JSON as written, unchecked."""

    id: str
    name: str
    arguments: str


class ModelMessage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One message; ``content`` is text or content blocks of the provider."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, object]]
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ModelToolCall, ...] = ()


class ModelTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool the model may call; ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str | None = None
    parameters: dict[str, object] = {}


class AnswerFormat(Struct, frozen=True, kw_only=True):
    """The whole answer is one JSON value that fits this schema."""

    schema: dict[str, object]
    name: str = "answer"


class HeardTurn(Struct, frozen=True, kw_only=True):
    """A turn of another participant, for the demo model."""

    name: str
    text: str
    kind: Literal["agent", "human", "system"] = "agent"


DemoPurpose = Literal["turn", "synthesis", "vote"]


class DemoContext(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The participants and turns of a conversation, for the demo model. No other model gets it."""

    agent: str = "agent"
    role: str = ""
    persona: str = ""
    conversation_id: str = ""
    turn_index: int = 0
    question: str = ""
    previous_speaker: str | None = None
    #: the addressees of the last turn; () means everyone
    addressed: tuple[str, ...] = ()
    heard: tuple[HeardTurn, ...] = ()
    #: candidates to speak next: id -> name in the transcript
    called: dict[str, str] = {}
    purpose: DemoPurpose = "turn"


class ModelRequest(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything that the answer depends on, and nothing about how it is fetched."""

    model: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ModelTool, ...] = ()
    #: "none": tools are listed because messages mention them, but must not be used
    tool_choice: Literal["auto", "none"] = "auto"
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    response_format: AnswerFormat | None = None
    #: options of this provider, passed on unchanged
    options: dict[str, object] = {}
    context: DemoContext | None = None


class AnswerStart(Struct, frozen=True, kw_only=True, rename="camel", tag="begun", tag_field="kind"):
    """The provider starts to answer, and names the model."""

    model: str
    response_id: str | None = None


class TextPiece(Struct, frozen=True, tag="text", tag_field="kind"):
    text: str


class ReasoningPiece(Struct, frozen=True, tag="reasoning", tag_field="kind"):
    text: str


class RefusalPiece(Struct, frozen=True, tag="refusal", tag_field="kind"):
    text: str


class TokenUsage(Struct, frozen=True, kw_only=True, rename="camel", tag="usage", tag_field="kind"):
    """Tokens as counted by the provider. Cached tokens are part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    #: an estimate from the length of the texts, because the provider gave no valid count
    estimated: bool = False


class AnswerRestart(Struct, frozen=True, kw_only=True, tag="restarted", tag_field="kind"):
    """Everything before is void, because the call failed and is repeated."""

    attempt: int
    code: str


class AnswerStop(Struct, frozen=True, tag="stop", tag_field="kind"):
    """The last piece of a complete answer."""

    reason: StopReason


Words = TextPiece | ReasoningPiece | RefusalPiece
Piece = AnswerStart | Words | ModelToolCall | TokenUsage | AnswerRestart | AnswerStop


class ModelAnswer(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A complete stream. A refusal is an answer, with its text in ``refusal``."""

    model: str
    finish: StopReason
    text: str = ""
    reasoning: str = ""
    refusal: str | None = None
    tool_calls: tuple[ModelToolCall, ...] = ()
    usage: TokenUsage | None = None
    response_id: str | None = None
    #: 1 when the first attempt was answered
    attempts: int = 1


class Model(Protocol):
    """Answers a request with a stream that ends with AnswerStop, or raises a ModelError."""

    #: the name of the provider in keys and prices, in lower case
    provider: str

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]: ...

    async def aclose(self) -> None:
        """Release connections. Safe to call twice."""


class AnswerFolder:
    """Folds pieces into an answer, one by one."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._attempts = 1
        self._clear()

    def _clear(self) -> None:
        self._begun: AnswerStart | None = None
        self._words: dict[type, list[str]] = {TextPiece: [], ReasoningPiece: [], RefusalPiece: []}
        self._calls: list[ModelToolCall] = []
        self._usage: TokenUsage | None = None
        self._stop: AnswerStop | None = None

    def take(self, piece: Piece) -> None:
        match piece:
            case TextPiece() | ReasoningPiece() | RefusalPiece():
                self._words[type(piece)].append(piece.text)
            case ModelToolCall():
                self._calls.append(piece)
            case AnswerStart():
                self._begun = piece
            case TokenUsage():
                self._usage = piece
            case AnswerStop():
                self._stop = piece
            case AnswerRestart():
                self._clear()
                self._attempts = piece.attempt

    def answer(self) -> ModelAnswer:
        """Return the answer. Raise ModelDisconnected when the stream had no end."""
        if self._stop is None:
            raise ModelDisconnected("The answer ends in the middle.")
        refused = self._stop.reason == "refusal"
        refusal = "".join(self._words[RefusalPiece])
        return ModelAnswer(
            model=self._begun.model if self._begun else self._model,
            finish=self._stop.reason,
            text="".join(self._words[TextPiece]),
            reasoning="".join(self._words[ReasoningPiece]),
            refusal=refusal if refused or refusal else None,
            tool_calls=tuple(self._calls),
            usage=self._usage,
            response_id=self._begun.response_id if self._begun else None,
            attempts=self._attempts,
        )


def fold_pieces(pieces: Iterable[Piece], model: str = "") -> ModelAnswer:
    folder = AnswerFolder(model)
    for piece in pieces:
        folder.take(piece)
    return folder.answer()


def pieces_from_answer(answer: ModelAnswer) -> list[Piece]:
    """Return a stream that folds to this answer."""
    pieces: list[Piece] = [AnswerStart(model=answer.model, response_id=answer.response_id)]
    if answer.reasoning:
        pieces.append(ReasoningPiece(answer.reasoning))
    if answer.text:
        pieces.append(TextPiece(answer.text))
    if answer.refusal:
        pieces.append(RefusalPiece(answer.refusal))
    pieces.extend(answer.tool_calls)
    if answer.usage is not None:
        pieces.append(answer.usage)
    return [*pieces, AnswerStop(answer.finish)]


async def ask_model(model: Model, request: ModelRequest) -> ModelAnswer:
    folder = AnswerFolder(request.model)
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            folder.take(piece)
    return folder.answer()


def parse_structured_answer(request: ModelRequest, answer: ModelAnswer) -> Any:
    """Return the JSON value that was asked for. Raise ModelAnswerInvalid, also for a refusal."""
    if answer.finish == "refusal":
        raise ModelAnswerInvalid("The model refused; there is no value.", refusal=answer.refusal)
    if answer.finish == "length":
        message = "The answer was cut off at its longest; allow more output tokens."
        raise ModelAnswerInvalid(message, model=answer.model)
    try:
        value = msgspec.json.decode(_strip_markdown(answer.text))
    except (msgspec.DecodeError, RecursionError) as error:
        message, text = f"The answer is not JSON: {error}.", answer.text[:300]
        raise ModelAnswerInvalid(message, model=answer.model, text=text) from None
    if request.response_format is not None:
        issues = schema_problems(request.response_format.schema, value)
        if issues:
            message = f"The answer does not fit its schema: {issues[0]}."
            raise ModelAnswerInvalid(message, model=answer.model, problems=issues)
    return value


def _strip_markdown(text: str) -> str:
    """Remove the Markdown fence that models often put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text[3:-3].removeprefix("json").strip()
    return text


def semantic_request(provider: str, request: ModelRequest) -> model_key.SemanticRequest:
    """Return the parts of a request that its answer depends on, for the cache key."""
    output = request.response_format
    options = {
        f"vendor.{provider}.{name}": value
        for name, value in request.options.items()
        if name not in model_key.TRANSPORT_FIELDS
    }
    if request.tools and request.tool_choice != "auto":
        options[f"vendor.{provider}.toolChoice"] = request.tool_choice
    if provider == "demo" and request.context is not None:
        # as one text, because that makes the key faster
        options["vendor.demo.context"] = msgspec.json.encode(request.context).decode()
    return model_key.parse_semantic_request({
        "provider": provider,
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "tools": [msgspec.to_builtins(tool) for tool in request.tools] or None,
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_output_tokens,
        "stop": list(request.stop) or None,
        "seed": request.seed,
        "responseFormat": {"type": "json", "schema": output.schema} if output else None,
        "providerOptions": options or None,
    })  # fmt: skip


def request_key(provider: str, request: ModelRequest) -> str:
    return model_key.model_key(semantic_request(provider, request))


def _message(message: ModelMessage) -> dict[str, object]:
    fields: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        # the key has no field for tool calls, so they are part of the content
        text = message.content
        blocks = [{"type": "text", "text": text}] if isinstance(text, str) else list(text)
        calls = [{**msgspec.to_builtins(call), "type": "toolCall"} for call in message.tool_calls]
        fields["content"] = [*blocks, *calls]
    if message.name is not None:
        fields["name"] = message.name
    if message.tool_call_id is not None:
        fields["toolCallId"] = message.tool_call_id
    return fields
