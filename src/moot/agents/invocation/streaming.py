"""Publish the words and the reasoning of an answer while it streams."""

from contextlib import aclosing

from moot.agents.invocation.context import AgentContext, ReasoningStream
from moot.agents.models.protocol import (
    AnswerFolder,
    AnswerRestart,
    ModelAnswer,
    ModelRequest,
    Piece,
    ReasoningPiece,
    TextPiece,
    TokenUsage,
)
from moot.agents.models.registry import ChosenModel

#: an estimate
CHARACTERS_PER_TOKEN = 4


class AnswerStreamer:
    """Reads one call of a model. With ``aloud`` it publishes the words; a structured answer is not
    published."""

    def __init__(self, context: AgentContext, aloud: bool) -> None:
        self._context, self._aloud = context, aloud
        self._reasoning: ReasoningStream | None = None
        self._usage: TokenUsage | None = None
        self._characters = 0

    async def read(self, model: ChosenModel, request: ModelRequest) -> ModelAnswer:
        folder = AnswerFolder(request.model)
        async with aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                folder.take(piece)
                self._take(piece)
                await self._publish(piece)
        answer = folder.answer()
        if self._aloud and not answer.tool_calls:
            await self._context.said(answer.finish, answer.model)
        return answer

    def _take(self, piece: Piece) -> None:
        self._context.stir()
        if isinstance(piece, TokenUsage):
            self._usage = piece
        elif isinstance(piece, TextPiece | ReasoningPiece):
            self._characters += len(piece.text)

    def usage(self, request: ModelRequest) -> TokenUsage:
        """Return the usage of a cancelled call, as counted by the provider or estimated."""
        if self._usage is not None:
            return self._usage
        input_length = sum(len(str(message.content)) for message in request.messages)
        return TokenUsage(
            input_tokens=input_length // CHARACTERS_PER_TOKEN,
            output_tokens=self._characters // CHARACTERS_PER_TOKEN,
        )

    async def _publish(self, piece: Piece) -> None:
        match piece:
            case ReasoningPiece():
                await self._add_reasoning(piece.text)
            case TextPiece() if self._aloud:
                await self._context.say(piece.text)
            case AnswerRestart() if self._aloud:
                self._context.take_back()

    async def _add_reasoning(self, text: str) -> None:
        if self._reasoning is None:
            self._reasoning = self._context.thinking()
        await self._reasoning.add(text)

    async def finish(self, answer: ModelAnswer, always: bool) -> None:
        """End the reasoning. Publish recorded reasoning that did not stream now; with ``always``
        also publish that there was none."""
        if self._reasoning is None and answer.reasoning:
            await self._add_reasoning(answer.reasoning)
        if self._reasoning is None and always:
            self._reasoning = self._context.thinking()
        await self.close()

    async def close(self) -> None:
        """Close the reasoning, because no more comes."""
        if self._reasoning is not None:
            await self._reasoning.close()
            self._reasoning = None
