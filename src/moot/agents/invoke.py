"""One agent, one assignment: context, model, tools, answer.

Each call of a model and of a tool is recorded before it is used, so that after a crash the same
assignment finds what was already said and goes on from there.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from moot.agents.desk import Assignment, Desk, Done, Usage
from moot.agents.manifest import Agent
from moot.agents.models.book import Book, Chosen
from moot.agents.models.protocol import (
    Answer,
    Folding,
    Message,
    ModelRequest,
    Restarted,
    Text,
    structured,
)
from moot.agents.models.retrying import Attempt
from moot.agents.prompting import PASS, Prompt, prompt_of, told
from moot.agents.tools import Toolbox
from moot.core.events import NewEvent
from moot.core.model_errors import BudgetUsedUp, ModelAnswerInvalid, ModelError
from moot.core.participation import SPOKEN

#: tenant, handle -> the agent, or None
Find = Callable[[str, str], Awaitable[Agent | None]]


class Tools(Protocol):
    def for_agent(self, agent: Agent) -> Toolbox: ...


class Invoker:
    """Speaks for the agents it knows."""

    def __init__(self, book: Book, find: Find, tools: Tools) -> None:
        self._book, self._find, self._tools = book, find, tools

    async def __call__(self, assignment: Assignment, desk: Desk) -> Done | None:
        """None when no agent has this name: somebody else may answer."""
        if not assignment.agent.startswith("host:"):
            return None
        agent = await self._find(assignment.tenant, assignment.agent.removeprefix("host:"))
        if agent is None:
            return None
        work = _Work(self._book, agent, assignment, desk, self._tools.for_agent(agent))
        return await work.done()


class _Work:
    """One assignment under way."""

    def __init__(
        self, book: Book, agent: Agent, assignment: Assignment, desk: Desk, toolbox: Toolbox
    ) -> None:
        self._agent, self._assignment, self._desk, self._toolbox = agent, assignment, desk, toolbox
        others = assignment.configurable.get("models")
        models = others if isinstance(others, dict) else {}
        reference = models.get(agent.name) or models.get(agent.agent_id) or agent.model
        self._book, self._reference = book, str(reference)
        self._model: Chosen = book.choose(self._reference)
        #: how often the call under way has been tried
        self._attempts = 0
        self._usage = Usage(model=self._model.reference.text)
        self._began = desk.now()
        self._invocation = assignment.invocation

    async def done(self) -> Done:
        prompt = prompt_of(self._agent, self._assignment)
        await self._desk.report(self._started(prompt))
        try:
            found = await self._answered(prompt)
        except ModelError as error:
            details = {"code": error.code, "message": error.message}
            found = Done(outcome="failed", error=details, usage=self._spent())
        return msgspec.structs.replace(found, facts=(self._completed(found),))

    async def _answered(self, prompt: Prompt) -> Done:
        messages = list(prompt.messages)
        for number in range(self._agent.tool_rounds + 1):
            last = number == self._agent.tool_rounds or self._calls_left <= 1
            answer = await self._ask(prompt, messages, without_tools=last)
            if answer.finish == "refusal":
                return self._refused(answer)
            if not answer.tool_calls or last:
                return await self._said(prompt, messages, answer)
            self._refuse_over_budget()
            self._desk.take_back()  # what is said before a tool is used is not the turn
            messages.append(
                Message(role="assistant", content=answer.text, tool_calls=answer.tool_calls)
            )
            messages += [
                await self._toolbox.use(call, self._agent, self._desk) for call in answer.tool_calls
            ]
        raise AssertionError("the last round has no tools")

    @property
    def _calls_left(self) -> int:
        return self._assignment.calls_left - self._usage.calls

    def _refuse_over_budget(self) -> None:
        """Before another call: what is used up stays used up."""
        tokens, money = self._assignment.tokens_left, self._assignment.money_left
        spent = self._usage.input_tokens + self._usage.output_tokens
        over = {
            "calls": self._calls_left < 1,
            "tokens": tokens is not None and spent >= tokens,
            "money": money is not None and (self._usage.cost or 0.0) >= money,
        }
        for name, used_up in over.items():
            if used_up:
                raise BudgetUsedUp(f"No {name} are left for this conversation.", limit=name)

    async def _ask(self, prompt: Prompt, messages: list[Message], without_tools: bool) -> Answer:
        request = ModelRequest(
            model=self._model.reference.model,
            messages=tuple(messages),
            tools=() if without_tools else self._toolbox.tools,
            temperature=self._agent.temperature,
            max_output_tokens=self._agent.max_output_tokens,
            response_format=prompt.format,
            context=prompt.context,
        )

        async def call(_: str) -> Any:
            answer = await self._listen(request)
            often = max(answer.attempts, self._attempts)
            said = msgspec.to_builtins(msgspec.structs.replace(answer, attempts=often))
            cost = self._model.cost(answer.usage)
            return said if cost is None else {**said, "cost": float(cost.amount)}

        self._attempts = 0
        try:
            found = await self._desk.effect(f"model:{self._agent.name}", call)
        except ModelError:
            self._usage.calls += max(1, self._attempts)
            raise
        answer = msgspec.convert(found, Answer)
        self._usage.calls += answer.attempts
        self._count(answer)
        return answer

    async def _listen(self, request: ModelRequest) -> Answer:
        """Words go out as they come; a form that is filled in is not read aloud."""
        folding = Folding(request.model)
        aloud = request.response_format is None
        model = self._book.choose(self._reference, self._tried, most=self._calls_left)
        async with aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                folding.take(piece)
                if aloud and isinstance(piece, Text):
                    self._desk.say(piece.text)
                elif aloud and isinstance(piece, Restarted):
                    self._desk.take_back()
        return folding.answer()

    def _tried(self, attempt: Attempt) -> None:
        """Calls are made again in the open: what failed, and when it is tried once more."""
        self._attempts = attempt.number
        if attempt.wait_s is None:
            return
        payload = {
            "invocationId": self._invocation,
            "agentId": self._assignment.agent,
            "model": self._model.reference.text,
            "attempt": attempt.number,
            "of": attempt.of,
            "error": {"code": attempt.code, "message": attempt.message},
            "waitMs": round(attempt.wait_s * 1000),
        }
        self._desk.tell(NewEvent("moot.model.retried", payload))

    def _count(self, answer: Answer) -> None:
        usage = answer.usage
        if usage is None:
            return
        self._usage.input_tokens += usage.input_tokens
        self._usage.output_tokens += usage.output_tokens
        cost = self._model.cost(usage)
        if cost is not None:
            self._usage.cost = float(cost.amount) + (self._usage.cost or 0.0)
            self._usage.price = {
                "pattern": cost.pattern,
                "currency": cost.currency,
                **msgspec.to_builtins(cost.price),
            }

    def _spent(self) -> Usage:
        self._usage.milliseconds = max(0, self._desk.now() - self._began)
        return self._usage

    def _refused(self, answer: Answer) -> Done:
        """Refusals are said to be refusals; nothing is put in their place."""
        return Done(
            outcome="refused",
            error={"code": "model_refused", "message": "The model declined to answer."},
            usage=self._spent(),
        )

    async def _said(self, prompt: Prompt, messages: list[Message], answer: Answer) -> Done:
        if prompt.format is not None:
            value = await self._form(prompt, messages, answer)
            spoken = self._assignment.task in SPOKEN
            return Done(
                outcome="spoke" if spoken else "answered",
                content=told(self._assignment, value) if spoken else None,
                answer=value,
                usage=self._spent(),
                meta=self._meta(answer),
                agent=self._speaker(),
            )
        text = answer.text.strip()
        if not text or text.strip("[]. ").upper() == PASS:
            return Done(outcome="passed", usage=self._spent())
        return Done(
            outcome="spoke",
            content=text,
            usage=self._spent(),
            meta=self._meta(answer),
            agent=self._speaker(),
        )

    async def _form(
        self, prompt: Prompt, messages: list[Message], answer: Answer
    ) -> dict[str, Any]:
        """The form that was asked for. One that is not filled in right is sent back once."""
        request = ModelRequest(
            model=answer.model, messages=prompt.messages, response_format=prompt.format
        )
        try:
            return dict(structured(request, answer))
        except ModelAnswerInvalid as problem:
            if self._calls_left < 1:
                raise
            again = [
                *messages,
                Message(role="assistant", content=answer.text),
                Message(role="user", name="host", content=f"{problem.message} Answer again."),
            ]
            second = await self._ask(prompt, again, without_tools=True)
            return dict(structured(request, second))

    def _meta(self, answer: Answer) -> dict[str, Any]:
        usage = self._spent()
        meta: dict[str, Any] = {
            "model": usage.model,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "milliseconds": usage.milliseconds,
        }
        if usage.cost is not None:
            meta["cost"] = usage.cost
        if answer.finish == "length":
            meta["truncated"] = True
        if self._model.provider == "demo":
            meta["demo"] = True
        return meta

    def _speaker(self) -> dict[str, Any]:
        model = {"provider": self._model.provider, "model": self._model.reference.model}
        return {"agentId": self._agent.agent_id, "model": model}

    def _started(self, prompt: Prompt) -> NewEvent:
        payload: dict[str, Any] = {
            "invocationId": self._invocation,
            "agentId": self._assignment.agent,
            "source": "chat-mention",
            "resolvedModel": self._model.reference.model,
            "resolvedProvider": self._model.provider,
            "resolvedAgentVersion": self._agent.version,
            "toolSurfaceCount": len(self._toolbox.tools),
            "memoryBound": False,
            "task": self._assignment.task,
        }
        if prompt.flagged:
            payload["flaggedTurns"] = [
                {"turn": turn, "flags": flags} for turn, flags in prompt.flagged.items()
            ]
        return NewEvent("agent.invocation.started", payload)

    def _completed(self, done: Done) -> NewEvent:
        outcomes = {"refused": "refused", "failed": "failed"}
        payload = {
            "invocationId": self._invocation,
            "agentId": self._assignment.agent,
            "outcome": outcomes.get(done.outcome, "completed"),
        }
        return NewEvent("agent.invocation.completed", payload)
