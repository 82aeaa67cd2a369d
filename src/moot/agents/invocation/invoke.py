"""One agent, one assignment: context, model, tools, answer.

Each call of a model and of a tool is recorded before it is used, so that after a crash the same
assignment finds what was already said and goes on from there.
"""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.budget import Spending
from moot.agents.invocation.desk import Assignment, Desk, Done
from moot.agents.invocation.streaming import Ear
from moot.agents.models.cassettes import key_of
from moot.agents.models.protocol import Answer, Message, ModelRequest, structured
from moot.agents.models.registry import Book, Chosen
from moot.agents.models.retry import Attempt
from moot.agents.prompts import work
from moot.agents.prompts.council import PASS, Prompt, prompt_of, told
from moot.agents.prompts.fencing import words
from moot.agents.tools.toolbox import Toolbox
from moot.core.agents.refusals import without_echo
from moot.core.errors.models import ModelAnswerInvalid, ModelError
from moot.core.interrupts.escalations import DecisionRejected, threshold_of
from moot.core.state.agents import DONE, INVOKED, REFUSAL, RESOLVED, RETRIED, TRUNCATED
from moot.core.state.floor import SPOKEN
from moot.core.state.initiation import Member

#: what is kept of a piece of work, for the next one
LONGEST_MEMORY = 4000


class Found(Struct, frozen=True, kw_only=True):
    """An agent in the version that does the work."""

    agent: Agent
    version: str
    channel: str | None = None
    #: under whose name it works, where that is a standing agent
    member: Member | None = None


#: None: nobody of this name is here. Raises NoActiveDeployment for a channel that leads to nobody
Resolve = Callable[[Assignment], Awaitable[Found | None]]


class Tools(Protocol):
    async def for_agent(self, agent: Agent) -> Toolbox: ...


class Invoker:
    """Speaks and works for the agents it knows."""

    def __init__(self, book: Book, resolve: Resolve, tools: Tools) -> None:
        self._book, self._resolve, self._tools = book, resolve, tools

    async def __call__(self, assignment: Assignment, desk: Desk) -> Done | None:
        """None when no agent has this name: somebody else may answer."""
        found = await self._resolve(assignment)
        if found is None:
            return None
        toolbox = (await self._tools.for_agent(found.agent)).only(assignment.tools)
        return await _Work(self._book, found, assignment, desk, toolbox).done()


class _Work:
    """One assignment under way."""

    def __init__(
        self, book: Book, found: Found, assignment: Assignment, desk: Desk, toolbox: Toolbox
    ) -> None:
        self._found, self._agent = found, found.agent
        self._assignment, self._desk, self._toolbox = assignment, desk, toolbox
        agent, others = found.agent, assignment.configurable.get("models")
        models = others if isinstance(others, dict) else {}
        names = (assignment.agent, agent.name, agent.agent_id)
        reference = next((models[name] for name in names if models.get(name)), agent.model)
        self._book, self._reference = book, str(reference)
        self._model: Chosen = book.choose(self._reference)
        self._spending = Spending(assignment, self._model, desk.now)
        self._threshold = threshold_of(assignment.configurable, agent.confidence)
        self._memory = agent.memory if assignment.task == "work" else "none"

    async def done(self) -> Done:
        """The work between its two brackets; both are recorded whatever comes of it."""
        prompt = await self._prompt()
        await self._desk.noted(INVOKED, self._started(prompt))
        await self._desk.noted(RESOLVED, self._resolved())
        try:
            found = await self._settled(await self._answered(prompt))
        except ModelError as error:
            found = self._failure(error)
        except DecisionRejected:
            await self._desk.noted(DONE, self._ended("escalated"))
            raise
        await self._desk.noted(DONE, self._completed(found, prompt))
        return found

    async def _prompt(self) -> Prompt:
        if self._assignment.task == "decide":
            return work.decision(self._agent, self._assignment)
        if self._assignment.task != "work":
            return prompt_of(self._agent, self._assignment)
        known = await self._recalled()
        return work.work(self._agent, self._assignment, known)

    async def _recalled(self) -> list[str]:
        if self._memory == "none":
            return []
        return await self._desk.recalled(self._memory, self._agent.name)

    async def _answered(self, prompt: Prompt) -> Done:
        messages = list(prompt.messages)
        for number in range(self._agent.tool_rounds + 1):
            last = number == self._agent.tool_rounds or self._spending.calls_left <= 1
            answer = await self._ask(prompt, messages, without_tools=last)
            if answer.finish == "refusal":
                return await self._refused(answer, messages)
            if not answer.tool_calls or last:
                return await self._said(prompt, messages, answer)
            self._spending.refuse_over_budget()
            self._desk.take_back()  # what is said before a tool is used is not the turn
            messages.append(
                Message(role="assistant", content=answer.text, tool_calls=answer.tool_calls)
            )
            messages += [
                await self._toolbox.use(call, self._agent, self._desk, prompt.names)
                for call in answer.tool_calls
            ]
        raise AssertionError("the last round has no tools")

    async def _ask(self, prompt: Prompt, messages: list[Message], without_tools: bool) -> Answer:
        # providers want to know of tools that messages speak of, also when none may be used
        spoken_of = any(message.tool_calls for message in messages)
        request = ModelRequest(
            model=self._model.reference.model,
            messages=tuple(messages),
            tools=() if without_tools and not spoken_of else self._toolbox.tools,
            tool_choice="none" if without_tools and spoken_of else "auto",
            temperature=self._agent.temperature,
            max_output_tokens=self._agent.max_output_tokens,
            response_format=prompt.format,
            context=prompt.context,
        )
        ear = Ear(self._desk, aloud=prompt.format is None)

        async def call(_: str) -> Any:
            most = self._spending.calls_left
            model = self._book.choose(self._reference, self._tried, most=most)
            try:
                return self._spending.receipt(request, await ear.listen(model, request))
            except CancelledError:
                self._desk.given_up(self._spending.broken_off(ear.known(request)))
                raise

        key = key_of(self._model.provider, self._model.completed(request))
        first, self._spending.attempts = self._spending.calls == 0, 0
        try:
            found = await self._desk.effect(f"model:{self._agent.name}", call, key=key)
        except ModelError:
            self._spending.count_failure()
            await ear.cut_off()
            raise
        answer = msgspec.convert(found, Answer)
        await ear.heard(answer, always=first)
        self._spending.count(answer)
        if answer.finish == "length":
            await self._desk.noted(TRUNCATED, {**self._asked(), "stopReason": "max_tokens"})
        return answer

    def _tried(self, attempt: Attempt) -> None:
        """Calls are made again in the open: what failed, and when it is tried once more."""
        self._spending.attempts = attempt.number
        if attempt.wait_s is None:
            return
        payload = {
            **self._names(),
            "model": self._model.reference.text,
            "attempt": attempt.number,
            "of": attempt.of,
            "error": {"code": attempt.code, "message": attempt.message},
            "waitMs": round(attempt.wait_s * 1000),
        }
        self._desk.tell(RETRIED, payload)

    def _failure(self, error: ModelError) -> Done:
        details = {"code": error.code, "message": error.message, "retryable": error.passing}
        return Done(outcome="failed", error=details, usage=self._spending.total())

    async def _refused(self, answer: Answer, messages: list[Message]) -> Done:
        """Refusals are said to be refusals; nothing is put in their place."""
        asked = [part.content for part in messages if isinstance(part.content, str)]
        text = without_echo(answer.refusal or "", asked) or None
        await self._desk.noted(REFUSAL, {**self._asked(), "refusalText": text})
        return Done(
            outcome="refused",
            error={
                "code": "model_refused",
                "message": "The model declined to answer.",
                "retryable": False,
            },
            usage=self._spending.total(),
        )

    async def _said(self, prompt: Prompt, messages: list[Message], answer: Answer) -> Done:
        task, text = self._assignment.task, answer.text.strip()
        outcome: Literal["spoke", "answered"] = "spoke" if task in SPOKEN else "answered"
        value, content = None, None
        if prompt.format is not None:
            value = await self._form(prompt, messages, answer)
            content = told(self._assignment, value) if task in SPOKEN else None
        elif task == "work":
            content = text
        elif not text or text.strip("[]. ").upper() == PASS:
            return Done(outcome="passed", usage=self._spending.total())
        else:
            content = text
        return Done(
            outcome=outcome,
            content=content,
            answer=value,
            usage=self._spending.total(),
            meta=self._spending.meta(answer),
            agent=self._speaker(),
        )

    async def _form(self, prompt: Prompt, messages: list[Message], answer: Answer) -> Any:
        """The form that was asked for. One that is not filled in right is sent back once."""
        try:
            return self._filled_in(prompt, answer)
        except ModelAnswerInvalid as problem:
            if self._spending.used_up is not None:
                raise
            again = [
                *messages,
                Message(role="assistant", content=answer.text),
                Message(role="user", name="host", content=f"{problem.message} Answer again."),
            ]
            return self._filled_in(prompt, await self._ask(prompt, again, without_tools=True))

    def _filled_in(self, prompt: Prompt, answer: Answer) -> Any:
        """Raises ModelAnswerInvalid."""
        decides = self._assignment.task == "decide"
        request = ModelRequest(
            model=answer.model,
            messages=prompt.messages,
            response_format=None if decides else prompt.format,
        )
        value = structured(request, answer)
        return work.order(value, self._assignment.workers) if decides else value

    async def _settled(self, found: Done) -> Done:
        """What was decided is said; where a person had to look, it is what the person made of it.
        Of words it is not said again what they were."""
        if found.outcome in ("failed", "refused"):
            return found
        match self._assignment.task:
            case "decide":
                return await self._order(found)
            case "work":
                return await self._worked(found)
            case task:
                said = found.answer or {"task": task, "outcome": found.outcome}
                await self._desk.decided(said, None, self._threshold)
                return found

    async def _worked(self, found: Done) -> Done:
        formed = found.answer is not None
        said = found.answer if formed else {"task": "work", "outcome": "answered"}
        sure = sure_of(found.answer)
        decided = await self._desk.decided(said, sure, self._threshold)
        if formed:
            found = replace(found, answer=decided, confidence=sure)
        if self._memory != "none":
            answer = found.answer if formed else found.content
            text = f"{self._assignment.prompt[:LONGEST_MEMORY]}\n{words(answer)[:LONGEST_MEMORY]}"
            await self._desk.remember(self._memory, self._agent.name, text.strip())
        return found

    async def _order(self, found: Done) -> Done:
        """A supervisor's decision; one it is sure enough of says how sure."""
        decision, sure = dict(found.answer["decision"]), sure_of(found.answer)
        await self._desk.decided(decision, sure, self._threshold)
        able = decision["kind"] in ("next-worker", "terminate")
        if sure is not None and sure >= self._threshold and able:
            decision["confidence"] = sure
        return replace(found, answer=decision, confidence=sure, threshold=self._threshold)

    def _asked(self) -> dict[str, Any]:
        model = {"provider": self._model.provider, "model": self._model.reference.model}
        return {"nodeId": self._assignment.node_id, **model}

    def _speaker(self) -> dict[str, Any]:
        model = {"provider": self._model.provider, "model": self._model.reference.model}
        member = self._found.member
        if member is not None:
            return {"agentId": member.roster_id, "name": member.persona, "model": model}
        return {"agentId": self._agent.agent_id, "model": model}

    def _started(self, prompt: Prompt) -> dict[str, Any]:
        asked, found = self._assignment, self._found
        payload: dict[str, Any] = {
            **self._names(),
            "source": asked.source,
            "modelClass": self._agent.model_class,
            "resolvedModel": self._model.reference.model,
            "resolvedProvider": self._model.provider,
            "resolvedAgentVersion": found.version,
            "toolSurfaceCount": len(self._toolbox.tools),
            "memoryBound": self._memory != "none",
            "task": asked.task,
        }
        if found.channel is not None:
            payload["resolvedChannel"] = found.channel
        if asked.version is not None:
            payload["requestedVersion"] = asked.version
        for what, word, kind in (("flaggedTurns", "turn", int), ("flaggedData", "name", str)):
            marks = [
                {word: place, "flags": flags}
                for place, flags in prompt.flagged.items()
                if isinstance(place, kind)
            ]
            if marks:
                payload[what] = marks
        return payload

    def _resolved(self) -> dict[str, Any]:
        """An agent's own prompt wins; there is no library of prompts here."""
        source = f"prompt:{self._agent.manifest_id}@{self._found.version}"
        return {
            "nodeId": self._assignment.node_id,
            "kind": "system",
            "agentId": self._assignment.agent,
            "chain": [{"layer": "agent-intrinsic", "source": source, "applied": True}],
            "resolved": source,
        }

    def _completed(self, found: Done, prompt: Prompt) -> dict[str, Any]:
        unsure = found.confidence is not None and found.confidence < self._threshold
        if found.outcome in ("refused", "failed"):
            return self._ended(found.outcome)
        held = self._assignment.task == "decide" and unsure
        payload = self._ended("escalated" if held else "completed")
        if prompt.format is not None:
            payload["schemaValidated"] = True
        if found.confidence is not None:
            payload["confidence"] = found.confidence
        return payload

    def _ended(self, outcome: str) -> dict[str, Any]:
        return {**self._names(), "outcome": outcome}

    def _names(self) -> dict[str, Any]:
        return {"invocationId": self._assignment.invocation, "agentId": self._assignment.agent}


def sure_of(value: Any) -> float | None:
    """How sure an answer says it is, if its form has a place for that."""
    found = value.get("confidence") if isinstance(value, dict) else None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found) if 0 <= found <= 1 else None
