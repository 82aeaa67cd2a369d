"""The context of an agent that carries out a node of a workflow."""

from collections.abc import Awaitable, Callable
from typing import Any

from moot.agents.invocation.context import AgentContext, OpenToolCall, ReasoningStream
from moot.core.errors import models
from moot.core.errors.models import ModelError
from moot.core.memory import LARGEST_CONTENT
from moot.core.payloads.base import Payload
from moot.core.trace import Trace, call_trace
from moot.engine.agents.voice import TextBuffer
from moot.engine.effects.ledger import EffectFailed
from moot.engine.nodes.context import NodeContext

#: memory entries in an agent's prompt
MOST_REMEMBERED = 20
FINISHES = {"end": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "stop"}
_MODEL_ERRORS = {
    kind.code: kind
    for kind in vars(models).values()
    if isinstance(kind, type) and issubclass(kind, ModelError)
}


class NodeAgentContext(AgentContext):
    """The context of an agent that carries out a node of a run."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self._words = TextBuffer()

    def now(self) -> int:
        return self._ctx.now()

    async def effect(
        self,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
        idempotent: bool = True,
        key: str | None = None,
    ) -> Any:
        try:
            return await self._ctx.effect(provider_key, call, idempotent, key)
        except EffectFailed as failed:
            raise restore_model_error(failed) from None

    def trace(self, name: str) -> Trace:
        return call_trace(self._ctx.trace, name)

    async def noted(self, payload: Payload) -> None:
        await self._ctx.agent.noted(payload)

    def tell(self, payload: Payload) -> None:
        self._ctx.agent.tell(payload)

    def thinking(self) -> ReasoningStream:
        return self._ctx.agent.open_thought("gathered")

    async def tool_called(self, tool: str, arguments: Any, transport: str) -> OpenToolCall:
        return await self._ctx.agent.tool_called(tool, arguments, transport=transport)

    async def decided(self, decision: Any, confidence: float | None, threshold: float) -> Any:
        if confidence is None:
            return await self._ctx.agent.decided(decision)
        return await self._ctx.agent.decided(decision, confidence, threshold=threshold)

    async def ask_permission(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Ask a person through the node. A run without escalations denies such tools."""
        threshold = self._ctx.configurable.get("escalationThreshold", 1)
        if not isinstance(threshold, (int, float)) or threshold <= 0:
            return False
        return await self._ctx.agent.permission(tool, arguments)

    async def say(self, delta: str) -> None:
        if text := self._words.add(delta):
            await self._piece(text)

    def take_back(self) -> None:
        """Count the pieces from 1 again. Recorded pieces stay on record."""
        self._words = TextBuffer()

    async def said(self, finish: str, model: str) -> None:
        rest = self._words.rest()
        meta = {"finishReason": FINISHES.get(finish, "stop"), "model": model}
        await self._piece(rest, True, **meta)
        self._words = TextBuffer()

    async def _piece(self, text: str, last: bool = False, **meta: Any) -> None:
        """Record a piece. A call repeated after a crash counts its pieces from 1 again."""
        more = {"providerExtensions": {"piece": max(1, self._words.pieces)}}
        await self._ctx.emit_chunk(text, last, {**meta, **more})

    async def recalled(self, memory: str, agent: str) -> list[str]:
        entries = await self._ctx.memory.list(_memory_ref(memory, agent), limit=MOST_REMEMBERED)
        return [entry.content for entry in entries]

    async def remember(self, memory: str, agent: str, text: str) -> None:
        most = LARGEST_CONTENT // 4  # a character has four bytes at most
        await self._ctx.memory.put(
            text[:most], tags=[f"agent:{agent}"], ref=_memory_ref(memory, agent)
        )


def restore_model_error(failed: EffectFailed) -> Exception:
    """Return the recorded failure of a model call as the error it was before the crash."""
    kind = _MODEL_ERRORS.get(failed.failure_code)
    return failed if kind is None else kind(failed.message, **failed.details)


def _memory_ref(memory: str, agent: str) -> str | None:
    """Return the reference of a memory; None means the node's own."""
    if memory == "run":
        return None
    return f"agent:{agent}" if memory == "long-term" else memory
