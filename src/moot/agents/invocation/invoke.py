"""Run one assignment of one agent: prompt, model calls, tools, answer.

Each call of a model or a tool is recorded before its result is used. After a crash the same
assignment continues from the records."""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import AgentContext, Assignment, InvocationResult, ResolvedAgent
from moot.agents.invocation.model_calls import AnswerStreamer, Spending
from moot.agents.models.protocol import (
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    parse_structured_answer,
    request_key,
)
from moot.agents.models.registry import ChosenModel, ModelRegistry
from moot.agents.models.retry import CallAttempt
from moot.agents.prompts import work
from moot.agents.prompts.council import PASS, Prompt, build_council_prompt, synthesis_text
from moot.agents.tools.toolbox import Toolbox
from moot.core.agents.refusals import remove_echo
from moot.core.errors.models import ModelAnswerInvalid, ModelError
from moot.core.interrupts.escalations import DecisionRejected, escalation_threshold
from moot.core.payloads.agents import (
    InvocationCompleted,
    InvocationStarted,
    ModelRefused,
    ModelRetried,
    ModelTruncated,
    PromptResolved,
)
from moot.core.state.floor import SPOKEN_TASKS
from moot.core.text.fencing import content_text

#: the longest text stored in memory for a piece of work
LONGEST_MEMORY = 4000


#: returns None for an unknown name; raises NoActiveDeployment for a channel without a version
ResolveAgent = Callable[[Assignment], Awaitable[ResolvedAgent | None]]


class ToolSource(Protocol):
    async def for_agent(self, agent: Agent) -> Toolbox: ...


class Invoker:
    """Runs assignments for the agents of this host."""

    def __init__(self, models: ModelRegistry, resolve: ResolveAgent, tools: ToolSource) -> None:
        self._models, self._resolve, self._tools = models, resolve, tools

    async def __call__(
        self, assignment: Assignment, context: AgentContext
    ) -> InvocationResult | None:
        """Run the assignment. Return None when no agent has this name."""
        resolved = await self._resolve(assignment)
        if resolved is None:
            return None
        toolbox = (await self._tools.for_agent(resolved.agent)).only(assignment.tools)
        return await _Invocation(self._models, resolved, assignment, context, toolbox).run()


class _Invocation:
    def __init__(
        self,
        registry: ModelRegistry,
        resolved: ResolvedAgent,
        assignment: Assignment,
        context: AgentContext,
        toolbox: Toolbox,
    ) -> None:
        self._resolved_agent, self._agent = resolved, resolved.agent
        self._assignment, self._context, self._toolbox = assignment, context, toolbox
        agent, overrides = resolved.agent, assignment.configurable.get("models")
        models = overrides if isinstance(overrides, dict) else {}
        names = (assignment.agent, agent.name, agent.agent_id)
        reference = next((models[name] for name in names if models.get(name)), agent.model)
        self._models, self._reference = registry, str(reference)
        self._model: ChosenModel = registry.choose(self._reference)
        self._spending = Spending(assignment, self._model, context.now)
        self._threshold = escalation_threshold(assignment.configurable, agent.confidence)
        self._memory = agent.memory if assignment.task == "work" else "none"

    async def run(self) -> InvocationResult:
        """Run the assignment, and record its start and its end whatever happens."""
        prompt = await self._build_prompt()
        await self._context.noted(self._invocation_started(prompt))
        await self._context.noted(self._prompt_resolved())
        try:
            result = await self._settle(await self._answer(prompt))
        except ModelError as error:
            result = self._failed_result(error)
        except DecisionRejected:
            await self._context.noted(self._invocation_completed("escalated"))
            raise
        await self._context.noted(self._invocation_ended(result, prompt))
        return result

    async def _build_prompt(self) -> Prompt:
        if self._assignment.task == "decide":
            return work.build_decision_prompt(self._agent, self._assignment)
        if self._assignment.task != "work":
            return build_council_prompt(self._agent, self._assignment)
        memory = await self._recall()
        return work.build_work_prompt(self._agent, self._assignment, memory)

    async def _recall(self) -> list[str]:
        if self._memory == "none":
            return []
        return await self._context.recalled(self._memory, self._agent.name)

    async def _answer(self, prompt: Prompt) -> InvocationResult:
        messages = list(prompt.messages)
        for number in range(self._agent.tool_rounds + 1):
            last = number == self._agent.tool_rounds or self._spending.calls_left <= 1
            answer = await self._call_model(prompt, messages, without_tools=last)
            if answer.finish == "refusal":
                return await self._refused_result(answer, messages)
            if not answer.tool_calls or last:
                return await self._answer_result(prompt, messages, answer)
            self._spending.refuse_over_budget()
            self._context.take_back()  # words before a tool call are not part of the turn
            text, calls = answer.text, answer.tool_calls
            messages.append(ModelMessage(role="assistant", content=text, tool_calls=calls))
            for call in calls:
                result = await self._toolbox.use(call, self._agent, self._context, prompt.names)
                messages.append(result)
        raise AssertionError("the last round has no tools")

    async def _call_model(
        self, prompt: Prompt, messages: list[ModelMessage], without_tools: bool
    ) -> ModelAnswer:
        # providers need the tools that messages mention, even when none may be used
        mentioned = any(message.tool_calls for message in messages)
        request = ModelRequest(
            model=self._model.reference.model,
            messages=tuple(messages),
            tools=() if without_tools and not mentioned else self._toolbox.tools,
            tool_choice="none" if without_tools and mentioned else "auto",
            temperature=self._agent.temperature,
            max_output_tokens=self._agent.max_output_tokens,
            response_format=prompt.format,
            context=prompt.context,
        )
        streamer = AnswerStreamer(self._context, aloud=prompt.format is None)

        async def call(_: str) -> Any:
            most = self._spending.calls_left
            model = self._models.choose(self._reference, self._on_attempt, most=most)
            try:
                return self._spending.receipt(request, await streamer.read(model, request))
            except CancelledError:
                self._context.given_up(self._spending.cancelled_record(streamer.usage(request)))
                raise

        key = request_key(self._model.provider, self._model.completed(request))
        is_first, self._spending.attempts = self._spending.calls == 0, 0
        try:
            recorded = await self._context.effect(f"model:{self._agent.name}", call, key=key)
        except ModelError:
            self._spending.count_failure()
            await streamer.close()
            raise
        answer = msgspec.convert(recorded, ModelAnswer)
        await streamer.finish(answer, always=is_first)
        self._spending.count(answer)
        if answer.finish == "length":
            cut = ModelTruncated(**self._model_fields(), stop_reason="max_tokens")
            await self._context.noted(cut)
        return answer

    def _on_attempt(self, attempt: CallAttempt) -> None:
        """Publish a failed attempt and the time of the next one."""
        self._spending.attempts = attempt.number
        if attempt.wait_s is None:
            return
        retried = ModelRetried(
            invocation_id=self._assignment.invocation,
            agent_id=self._assignment.agent,
            model=self._model.reference.text,
            attempt=attempt.number,
            of=attempt.of,
            error={"code": attempt.code, "message": attempt.message},
            wait_ms=round(attempt.wait_s * 1000),
        )
        self._context.tell(retried)

    def _failed_result(self, error: ModelError) -> InvocationResult:
        details = {"code": error.code, "message": error.message, "retryable": error.passing}
        return InvocationResult(outcome="failed", error=details, usage=self._spending.total())

    async def _refused_result(
        self, answer: ModelAnswer, messages: list[ModelMessage]
    ) -> InvocationResult:
        sent = [part.content for part in messages if isinstance(part.content, str)]
        text = remove_echo(answer.refusal or "", sent) or None
        await self._context.noted(ModelRefused(**self._model_fields(), refusal_text=text))
        message = "The model declined to answer."
        error = {"code": "model_refused", "message": message, "retryable": False}
        return InvocationResult(outcome="refused", error=error, usage=self._spending.total())

    async def _answer_result(
        self, prompt: Prompt, messages: list[ModelMessage], answer: ModelAnswer
    ) -> InvocationResult:
        task, text = self._assignment.task, answer.text.strip()
        outcome: Literal["spoke", "answered"] = "spoke" if task in SPOKEN_TASKS else "answered"
        value, content = None, None
        if prompt.format is not None:
            value = await self._structured_answer(prompt, messages, answer)
            content = synthesis_text(self._assignment, value) if task in SPOKEN_TASKS else None
        elif task == "work":
            content = text
        elif not text or text.strip("[]. ").upper() == PASS:
            return InvocationResult(outcome="passed", usage=self._spending.total())
        else:
            content = text
        return InvocationResult(
            outcome=outcome,
            content=content,
            answer=value,
            usage=self._spending.total(),
            meta=self._spending.meta(answer),
            agent=self._speaker(),
        )

    async def _structured_answer(
        self, prompt: Prompt, messages: list[ModelMessage], answer: ModelAnswer
    ) -> Any:
        """Parse the answer. Ask the model once more when it does not fit the schema."""
        try:
            return self._parse_answer(prompt, answer)
        except ModelAnswerInvalid as problem:
            if self._spending.used_up is not None:
                raise
            again = f"{problem.message} Answer again."
            retry_messages = [*messages, ModelMessage(role="assistant", content=answer.text)]
            retry_messages.append(ModelMessage(role="user", name="host", content=again))
            second = await self._call_model(prompt, retry_messages, without_tools=True)
            return self._parse_answer(prompt, second)

    def _parse_answer(self, prompt: Prompt, answer: ModelAnswer) -> Any:
        """Raise ModelAnswerInvalid."""
        decides = self._assignment.task == "decide"
        format_ = None if decides else prompt.format
        request = ModelRequest(
            model=answer.model, messages=prompt.messages, response_format=format_
        )
        value = parse_structured_answer(request, answer)
        return work.parse_decision(value, self._assignment.workers) if decides else value

    async def _settle(self, result: InvocationResult) -> InvocationResult:
        """Record the decision of the agent, and return the result with the one a person may have
        made instead. Words are not recorded again."""
        if result.outcome in ("failed", "refused"):
            return result
        match self._assignment.task:
            case "decide":
                return await self._settle_decision(result)
            case "work":
                return await self._settle_work(result)
            case task:
                decision = result.answer or {"task": task, "outcome": result.outcome}
                await self._context.decided(decision, None, self._threshold)
                return result

    async def _settle_work(self, result: InvocationResult) -> InvocationResult:
        is_structured = result.answer is not None
        decision = result.answer if is_structured else {"task": "work", "outcome": "answered"}
        confidence = stated_confidence(result.answer)
        decided = await self._context.decided(decision, confidence, self._threshold)
        if is_structured:
            result = replace(result, answer=decided, confidence=confidence)
        if self._memory != "none":
            answer = result.answer if is_structured else result.content
            task = self._assignment.prompt[:LONGEST_MEMORY]
            text = f"{task}\n{content_text(answer)[:LONGEST_MEMORY]}"
            await self._context.remember(self._memory, self._agent.name, text.strip())
        return result

    async def _settle_decision(self, result: InvocationResult) -> InvocationResult:
        """Record the decision of a supervisor, with a confidence that reaches the threshold."""
        decision, confidence = dict(result.answer["decision"]), stated_confidence(result.answer)
        await self._context.decided(decision, confidence, self._threshold)
        can_carry = decision["kind"] in ("next-worker", "terminate")
        if confidence is not None and confidence >= self._threshold and can_carry:
            decision["confidence"] = confidence
        return replace(result, answer=decision, confidence=confidence, threshold=self._threshold)

    def _model_fields(self) -> dict[str, str]:
        model = {"provider": self._model.provider, "model": self._model.reference.model}
        return {"node_id": self._assignment.node_id, **model}

    def _speaker(self) -> dict[str, object]:
        model = {"provider": self._model.provider, "model": self._model.reference.model}
        member = self._resolved_agent.member
        if member is not None:
            return {"agentId": member.roster_id, "name": member.persona, "model": model}
        return {"agentId": self._agent.agent_id, "model": model}

    def _invocation_started(self, prompt: Prompt) -> InvocationStarted:
        assignment, resolved = self._assignment, self._resolved_agent
        flagged = prompt.flagged.items()
        turns = [{"turn": key, "flags": flags} for key, flags in flagged if isinstance(key, int)]
        data = [{"name": key, "flags": flags} for key, flags in flagged if isinstance(key, str)]
        return InvocationStarted(
            invocation_id=assignment.invocation,
            agent_id=assignment.agent,
            source=assignment.source,
            model_class=self._agent.model_class,
            resolved_model=self._model.reference.model,
            resolved_provider=self._model.provider,
            resolved_agent_version=resolved.version,
            tool_surface_count=len(self._toolbox.tools),
            memory_bound=self._memory != "none",
            task=assignment.task,
            resolved_channel=resolved.channel,
            requested_version=assignment.version,
            flagged_turns=turns or None,
            flagged_data=data or None,
        )

    def _prompt_resolved(self) -> PromptResolved:
        """Return the source of the prompt. The own prompt of the agent always wins."""
        source = f"prompt:{self._agent.manifest_id}@{self._resolved_agent.version}"
        return PromptResolved(
            node_id=self._assignment.node_id,
            kind="system",
            agent_id=self._assignment.agent,
            chain=[{"layer": "agent-intrinsic", "source": source, "applied": True}],
            resolved=source,
        )

    def _invocation_ended(self, result: InvocationResult, prompt: Prompt) -> InvocationCompleted:
        unsure = result.confidence is not None and result.confidence < self._threshold
        if result.outcome in ("refused", "failed"):
            return self._invocation_completed(result.outcome)
        escalated = self._assignment.task == "decide" and unsure
        completed = self._invocation_completed("escalated" if escalated else "completed")
        is_checked = prompt.format is not None
        return replace(completed, schema_validated=is_checked, confidence=result.confidence)

    def _invocation_completed(self, outcome: str) -> InvocationCompleted:
        invocation, agent = self._assignment.invocation, self._assignment.agent
        return InvocationCompleted(invocation_id=invocation, agent_id=agent, outcome=outcome)


def stated_confidence(value: Any) -> float | None:
    """Return the confidence that a structured answer states, if any."""
    confidence = value.get("confidence") if isinstance(value, dict) else None
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        return None
    return float(confidence) if 0 <= confidence <= 1 else None
