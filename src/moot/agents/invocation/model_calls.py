"""Model calls of an assignment: publish the words as they come, count the usage."""

from collections.abc import Callable
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from moot.agents.invocation.context import (
    AgentContext,
    Assignment,
    InvocationUsage,
    ReasoningStream,
)
from moot.agents.models.protocol import (
    AnswerFolder,
    AnswerRestart,
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    Piece,
    ReasoningPiece,
    TextPiece,
    TokenUsage,
)
from moot.agents.models.registry import ChosenModel, Cost
from moot.core.errors.models import BudgetUsedUp
from moot.core.text.fencing import content_text

#: used when a provider does not count tokens
CHARACTERS_PER_TOKEN = 4


def estimate_tokens(request: ModelRequest, answer: ModelAnswer) -> TokenUsage:
    """Estimate tokens from the length of the texts, for a provider that does not count them."""
    input_length = sum(map(_length, request.messages)) + sum(
        len(tool.name) + len(msgspec.json.encode(tool.parameters)) for tool in request.tools
    )
    texts = [answer.text, answer.reasoning, answer.refusal or ""]
    texts += [part for call in answer.tool_calls for part in (call.name, call.arguments)]
    output_length = sum(map(len, texts))
    return TokenUsage(
        input_tokens=-(-input_length // CHARACTERS_PER_TOKEN),
        output_tokens=-(-output_length // CHARACTERS_PER_TOKEN),
        estimated=True,
    )


def _length(message: ModelMessage) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(content_text(message.content)) + calls


def _price_fields(cost: Cost) -> dict[str, object]:
    price: dict[str, object] = msgspec.to_builtins(cost.price)
    return {"pattern": cost.pattern, "currency": cost.currency, **price}


class Spending:
    """The calls, tokens and money of one assignment."""

    def __init__(self, assignment: Assignment, model: ChosenModel, now: Callable[[], int]) -> None:
        self._assignment, self._model, self._now = assignment, model, now
        self._usage = InvocationUsage(model=model.reference.text)
        self._began = now()
        #: attempts of the current call
        self.attempts = 0

    @property
    def calls(self) -> int:
        return self._usage.calls

    @property
    def calls_left(self) -> int:
        return self._assignment.calls_left - self._usage.calls

    @property
    def used_up(self) -> str | None:
        """Return the limit that another call would exceed."""
        tokens, money = self._assignment.tokens_left, self._assignment.money_left
        spent = self._usage.input_tokens + self._usage.output_tokens
        over = {
            "calls": self.calls_left < 1,
            "tokens": tokens is not None and spent >= tokens,
            "money": money is not None and (self._usage.cost or 0.0) >= money,
        }
        return next((name for name, reached in over.items() if reached), None)

    def refuse_over_budget(self) -> None:
        """Raise BudgetUsedUp before a call that would exceed a limit."""
        if (name := self.used_up) is not None:
            raise BudgetUsedUp(f"Nothing is left of the limit of {name}.", limit=name)

    def receipt(self, request: ModelRequest, answer: ModelAnswer) -> dict[str, object]:
        """Return the answer to record, with its attempts, tokens and cost."""
        attempts = max(answer.attempts, self.attempts)
        usage = answer.usage or estimate_tokens(request, answer)
        recorded: dict[str, object] = msgspec.to_builtins(
            replace(answer, attempts=attempts, usage=usage)
        )
        return {**recorded, **self._priced(usage)}

    def cancelled_record(self, usage: TokenUsage) -> dict[str, object]:
        return {"usage": msgspec.to_builtins(usage), "estimated": True, **self._priced(usage)}

    def _priced(self, usage: TokenUsage | None) -> dict[str, object]:
        cost = self._model.cost(usage)
        return {} if cost is None else {"cost": float(cost.amount), "price": _price_fields(cost)}

    def count_failure(self) -> None:
        self._usage.calls += max(1, self.attempts)

    def count(self, answer: ModelAnswer) -> None:
        self._usage.calls += answer.attempts
        usage = answer.usage
        if usage is None:
            return
        self._usage.input_tokens += usage.input_tokens
        self._usage.output_tokens += usage.output_tokens
        self._usage.estimated = self._usage.estimated or usage.estimated
        if (cost := self._model.cost(usage)) is not None:
            self._usage.cost = float(cost.amount) + (self._usage.cost or 0.0)
            self._usage.price = _price_fields(cost)

    def total(self) -> InvocationUsage:
        self._usage.milliseconds = max(0, self._now() - self._began)
        return self._usage

    def meta(self, answer: ModelAnswer) -> dict[str, object]:
        usage = self.total()
        meta: dict[str, object] = {
            "model": usage.model,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "milliseconds": usage.milliseconds,
        }
        if usage.cost is not None:
            meta["cost"] = usage.cost
        if usage.estimated:
            meta["estimated"] = True
        if answer.finish == "length":
            meta["truncated"] = True
        if self._model.provider == "demo":
            meta["demo"] = True
        return meta


class AnswerStreamer:
    """Reads one call of a model. With ``aloud`` it publishes the words."""

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
        """Publish reasoning that did not stream; with ``always`` also that there was none."""
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
