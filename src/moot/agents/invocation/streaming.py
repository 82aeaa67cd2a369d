"""An answer while it is spoken: words and thoughts go out as they come."""

from contextlib import aclosing

from moot.agents.invocation.desk import Desk, Thought
from moot.agents.models.protocol import (
    Answer,
    Folding,
    ModelRequest,
    Piece,
    Reasoning,
    Restarted,
    Text,
    Usage,
)
from moot.agents.models.registry import Chosen

#: letters of a token, about
LETTERS = 4


class Ear:
    """Listens to one call of a model. A form that is filled in is not read ``aloud``."""

    def __init__(self, desk: Desk, aloud: bool) -> None:
        self._desk, self._aloud = desk, aloud
        self._thought: Thought | None = None
        self._usage: Usage | None = None
        self._letters = 0

    async def listen(self, model: Chosen, request: ModelRequest) -> Answer:
        folding = Folding(request.model)
        async with aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                folding.take(piece)
                self._take(piece)
                await self._tell(piece)
        answer = folding.answer()
        if self._aloud and not answer.tool_calls:
            await self._desk.said(answer.finish, answer.model)
        return answer

    def _take(self, piece: Piece) -> None:
        self._desk.stir()
        if isinstance(piece, Usage):
            self._usage = piece
        elif isinstance(piece, Text | Reasoning):
            self._letters += len(piece.text)

    def known(self, request: ModelRequest) -> Usage:
        """What a call that is broken off has used up: as the provider has counted, or about."""
        if self._usage is not None:
            return self._usage
        asked = sum(len(str(message.content)) for message in request.messages)
        return Usage(input_tokens=asked // LETTERS, output_tokens=self._letters // LETTERS)

    async def _tell(self, piece: Piece) -> None:
        match piece:
            case Reasoning():
                await self._think(piece.text)
            case Text() if self._aloud:
                await self._desk.say(piece.text)
            case Restarted() if self._aloud:
                self._desk.take_back()

    async def _think(self, text: str) -> None:
        if self._thought is None:
            self._thought = self._desk.thinking()
        await self._thought.add(text)

    async def heard(self, answer: Answer, always: bool) -> None:
        """The train of thought is over. One that is on record and was not heard now is told as it
        stands there; ``always`` tells also that there was none."""
        if self._thought is None and answer.reasoning:
            await self._think(answer.reasoning)
        if self._thought is None and always:
            self._thought = self._desk.thinking()
        await self.cut_off()

    async def cut_off(self) -> None:
        """Nothing more comes."""
        if self._thought is not None:
            await self._thought.close()
            self._thought = None
