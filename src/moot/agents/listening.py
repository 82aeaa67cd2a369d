"""An answer while it is spoken: words and thoughts go out as they come."""

from contextlib import aclosing

from moot.agents.desk import Desk, Thought
from moot.agents.models.book import Chosen
from moot.agents.models.protocol import (
    Answer,
    Folding,
    ModelRequest,
    Piece,
    Reasoning,
    Restarted,
    Text,
)


class Ear:
    """Listens to one call of a model. A form that is filled in is not read ``aloud``."""

    def __init__(self, desk: Desk, aloud: bool) -> None:
        self._desk, self._aloud = desk, aloud
        self._thought: Thought | None = None

    async def listen(self, model: Chosen, request: ModelRequest) -> Answer:
        folding = Folding(request.model)
        async with aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                folding.take(piece)
                await self._tell(piece)
        answer = folding.answer()
        if self._aloud and not answer.tool_calls:
            await self._desk.said(answer.finish, answer.model)
        return answer

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
