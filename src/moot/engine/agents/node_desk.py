"""Desks of agents: at a node of a workflow, and with the floor in a conversation."""

from collections.abc import Awaitable, Callable
from typing import Any

from moot.agents.invocation.desk import Thought, ToolCall
from moot.core.errors import models
from moot.core.errors.models import ModelError
from moot.core.memory import LARGEST
from moot.core.trace import Trace, within
from moot.engine.effects.ledger import EffectFailed
from moot.engine.nodes.context import NodeContext

#: entries an agent is reminded of
MOST_REMEMBERED = 20
#: characters of a piece, at first and as a share of what has been said; pieces of one answer
LEAST_PIECE, SHARE, MOST_PIECES = 64, 32, 256

FINISHES = {"end": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "stop"}
_KINDS = {
    kind.code: kind
    for kind in vars(models).values()
    if isinstance(kind, type) and issubclass(kind, ModelError)
}


class Gathering:
    """Words until they are worth a record of their own: a long answer has longer pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._told = 0
        self.pieces = 0

    def add(self, text: str) -> str:
        """What is told now, if anything."""
        self._held += text
        enough = len(self._held) >= max(LEAST_PIECE, self._told // SHARE)
        if not enough or self.pieces >= MOST_PIECES - 1:
            return ""
        return self.rest()

    def rest(self) -> str:
        held, self._held = self._held, ""
        self._told += len(held)
        self.pieces += bool(held)
        return held


class Musing:
    """A train of thought told in pieces that are worth it."""

    def __init__(self, thought: Thought) -> None:
        self._thought, self._gathering = thought, Gathering()

    async def add(self, piece: str) -> None:
        if told := self._gathering.add(piece):
            await self._thought.add(told)

    async def close(self) -> None:
        if rest := self._gathering.rest():
            await self._thought.add(rest)
        await self._thought.close()


class NodeDesk:
    """The desk of an agent that carries out a node; see ``moot.agents.invocation.desk.Desk``."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self._words = Gathering()

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
            raise as_it_was(failed) from None

    def trace(self, name: str) -> Trace:
        return within(self._ctx.trace, name)

    async def noted(self, type_: str, payload: dict[str, Any]) -> None:
        await self._ctx.agent.noted(type_, payload)

    def tell(self, type_: str, payload: dict[str, Any]) -> None:
        self._ctx.agent.tell(type_, payload)

    def thinking(self) -> Thought:
        return Musing(self._ctx.agent.thinking())

    async def tool_called(self, tool: str, arguments: Any, transport: str) -> ToolCall:
        return await self._ctx.agent.tool_called(tool, arguments, transport=transport)

    async def decided(self, decision: Any, confidence: float | None, threshold: float) -> Any:
        if confidence is None:
            return await self._ctx.agent.decided(decision)
        return await self._ctx.agent.decided(decision, confidence, threshold=threshold)

    async def agreed(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        """The node waits for a person. A run that wants no questions gets no such tools."""
        asked = self._ctx.configurable.get("escalationThreshold", 1)
        if not isinstance(asked, (int, float)) or asked <= 0:
            return False
        return await self._ctx.agent.permission(tool, arguments)

    def stir(self) -> None:
        """A node has its time limit."""

    def given_up(self, known: dict[str, Any]) -> None:
        """A node that is cancelled takes its calls with it."""

    async def say(self, delta: str) -> None:
        if told := self._words.add(delta):
            await self._piece(told)

    def take_back(self) -> None:
        """What is on record stays there; the pieces that count begin with 1 again."""
        self._words = Gathering()

    async def said(self, finish: str, model: str) -> None:
        rest = self._words.rest()
        meta = {"finishReason": FINISHES.get(finish, "stop"), "model": model}
        await self._piece(rest, True, **meta)
        self._words = Gathering()

    async def _piece(self, text: str, last: bool = False, **meta: Any) -> None:
        """A call that a crash cut short is made again: its pieces are counted from 1 anew."""
        more = {"providerExtensions": {"piece": max(1, self._words.pieces)}}
        await self._ctx.emit_chunk(text, last, {**meta, **more})

    async def recalled(self, memory: str, agent: str) -> list[str]:
        found = await self._ctx.memory.list(_ref(memory, agent), limit=MOST_REMEMBERED)
        return [entry.content for entry in found]

    async def remember(self, memory: str, agent: str, text: str) -> None:
        most = LARGEST // 4  # a character has four bytes at most
        await self._ctx.memory.put(text[:most], tags=[f"agent:{agent}"], ref=_ref(memory, agent))


def as_it_was(failed: EffectFailed) -> Exception:
    """A call of a model that failed before a crash fails with the same code after it."""
    kind = _KINDS.get(str(failed.failure.get("code")))
    return failed if kind is None else kind(failed.message, **failed.details)


def _ref(memory: str, agent: str) -> str | None:
    """The run's is the node's own."""
    if memory == "run":
        return None
    return f"agent:{agent}" if memory == "long-term" else memory
