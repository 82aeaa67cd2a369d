"""Count what an assignment uses up: calls, tokens, money and time."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from moot.agents.invocation.context import Assignment, InvocationUsage
from moot.agents.models.protocol import ModelAnswer, ModelMessage, ModelRequest, TokenUsage
from moot.agents.models.registry import ChosenModel
from moot.core.errors.models import BudgetUsedUp
from moot.core.text.fencing import content_text

#: used when a provider does not count tokens
CHARACTERS_PER_TOKEN = 4


def estimate_tokens(request: ModelRequest, answer: ModelAnswer) -> TokenUsage:
    """Estimate tokens from the length of the texts, so that limits hold when a provider does not
    count."""
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

    def receipt(self, request: ModelRequest, answer: ModelAnswer) -> dict[str, Any]:
        """Return the answer to record, with its attempts, tokens and cost."""
        attempts = max(answer.attempts, self.attempts)
        usage = answer.usage or estimate_tokens(request, answer)
        recorded: dict[str, Any] = msgspec.to_builtins(
            replace(answer, attempts=attempts, usage=usage)
        )
        return {**recorded, **self._priced(usage)}

    def cancelled_record(self, usage: TokenUsage) -> dict[str, Any]:
        """Return the record of a cancelled call."""
        return {"usage": msgspec.to_builtins(usage), "estimated": True, **self._priced(usage)}

    def _priced(self, usage: TokenUsage | None) -> dict[str, Any]:
        cost = self._model.cost(usage)
        if cost is None:
            return {}
        price = {"pattern": cost.pattern, "currency": cost.currency}
        return {
            "cost": float(cost.amount),
            "price": {**price, **msgspec.to_builtins(cost.price)},
        }

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
        if priced := self._priced(usage):
            self._usage.cost = priced["cost"] + (self._usage.cost or 0.0)
            self._usage.price = priced["price"]

    def total(self) -> InvocationUsage:
        self._usage.milliseconds = max(0, self._now() - self._began)
        return self._usage

    def meta(self, answer: ModelAnswer) -> dict[str, Any]:
        """Return the metadata of a turn."""
        usage = self.total()
        meta: dict[str, Any] = {
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
