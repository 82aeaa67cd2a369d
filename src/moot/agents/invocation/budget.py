"""What one assignment uses up: calls with every attempt, tokens, money, time; and what is left."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from moot.agents.invocation.desk import Assignment, Usage
from moot.agents.models.protocol import Answer, Message, ModelRequest
from moot.agents.models.protocol import Usage as Tokens
from moot.agents.models.registry import Chosen
from moot.agents.prompts.fencing import words
from moot.core.errors.models import BudgetUsedUp

#: of a token, where nobody has counted them
CHARACTERS = 4


def estimated(request: ModelRequest, answer: Answer) -> Tokens:
    """Tokens by the length of what was asked and answered: a limit holds also where a provider
    does not count."""
    asked = sum(map(_length, request.messages)) + sum(
        len(tool.name) + len(msgspec.json.encode(tool.parameters)) for tool in request.tools
    )
    said = [answer.text, answer.reasoning, answer.refusal or ""]
    said += [part for call in answer.tool_calls for part in (call.name, call.arguments)]
    given = sum(map(len, said))
    return Tokens(
        input_tokens=-(-asked // CHARACTERS),
        output_tokens=-(-given // CHARACTERS),
        estimated=True,
    )


def _length(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(words(message.content)) + calls


class Spending:
    def __init__(self, assignment: Assignment, model: Chosen, now: Callable[[], int]) -> None:
        self._assignment, self._model, self._now = assignment, model, now
        self._usage = Usage(model=model.reference.text)
        self._began = now()
        #: how often the call under way has been tried
        self.attempts = 0

    @property
    def calls(self) -> int:
        return self._usage.calls

    @property
    def calls_left(self) -> int:
        return self._assignment.calls_left - self._usage.calls

    @property
    def used_up(self) -> str | None:
        """The limit that another call would go beyond."""
        tokens, money = self._assignment.tokens_left, self._assignment.money_left
        spent = self._usage.input_tokens + self._usage.output_tokens
        over = {
            "calls": self.calls_left < 1,
            "tokens": tokens is not None and spent >= tokens,
            "money": money is not None and (self._usage.cost or 0.0) >= money,
        }
        return next((name for name, reached in over.items() if reached), None)

    def refuse_over_budget(self) -> None:
        """Before another call: what is used up stays used up. Raises BudgetUsedUp."""
        if (name := self.used_up) is not None:
            raise BudgetUsedUp(f"Nothing is left of the limit of {name}.", limit=name)

    def receipt(self, request: ModelRequest, answer: Answer) -> dict[str, Any]:
        """The answer as it is recorded: with its attempts, its tokens, what it cost, the price."""
        often = max(answer.attempts, self.attempts)
        usage = answer.usage or estimated(request, answer)
        said: dict[str, Any] = msgspec.to_builtins(replace(answer, attempts=often, usage=usage))
        return {**said, **self._priced(usage)}

    def broken_off(self, usage: Tokens) -> dict[str, Any]:
        """What is recorded of a call whose answer nobody waits for."""
        return {"usage": msgspec.to_builtins(usage), "estimated": True, **self._priced(usage)}

    def _priced(self, usage: Tokens | None) -> dict[str, Any]:
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

    def count(self, answer: Answer) -> None:
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

    def total(self) -> Usage:
        self._usage.milliseconds = max(0, self._now() - self._began)
        return self._usage

    def meta(self, answer: Answer) -> dict[str, Any]:
        """What a turn says of how it came about."""
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
