"""What an agent at work says of itself, told through its node: thoughts, tools, handoffs,
decisions. Everything is recorded once, though the attempt may have to be lived again.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from moot.core.agents import events as agent_events
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.interrupts.escalations import DecisionRejected
from moot.core.state.agents import NOTED, tool_ruling
from moot.core.state.status import NodeStatus
from moot.core.workflows.node_types import NodeError, copied

if TYPE_CHECKING:
    from moot.core.state.node import NodeState


class Telling(Protocol):
    """Where an agent works, as far as its voice needs to know."""

    @property
    def run_id(self) -> str: ...

    @property
    def node_id(self) -> str: ...

    @property
    def configurable(self) -> dict[str, Any]: ...

    @property
    def work(self) -> str:
        """Which piece of work of its node this is."""

    @property
    def standing(self) -> "NodeState": ...

    @property
    def secrets(self) -> list[str]: ...

    def redacted(self, value: Any) -> Any: ...

    def tell(self, type_: str, payload: dict[str, Any]) -> None: ...

    async def report(self, *events: NewEvent) -> None: ...

    async def recorded(self, *events: NewEvent) -> None: ...


class AgentVoice:
    """See ``moot.engine.nodes.context.Agent`` for the promises."""

    def __init__(self, context: Telling, agent_id: str) -> None:
        self._context, self.agent_id = context, agent_id
        self._counts: dict[str, int] = {}

    def speak_as(self, agent_id: str) -> None:
        self.agent_id = agent_events.check_id(agent_id)

    @property
    def verbosity(self) -> str:
        return agent_events.verbosity_of(self._context.configurable)

    def thinking(self, **more: Any) -> "Thought":
        block = self._next("reasoned")
        return Thought(self._context, self.agent_id, block, self.verbosity, more)

    async def reasoned(self, text: str, **more: Any) -> None:
        thought = self.thinking(**more)
        thought.hear(text)
        await thought.close()

    async def tool_called(self, tool: str, *arguments: Any, **more: Any) -> "ToolCall":
        nth = self._next("called")
        context = self._context
        name = derived_id("call_", context.run_id, context.node_id, context.work, str(nth))
        given = [context.redacted(value) for value in arguments[:1]]
        await context.recorded(
            agent_events.called(context.node_id, self.agent_id, tool, (nth, name), given, **more)
        )
        return ToolCall(context, self.agent_id, tool, (nth, name))

    async def handoff(self, to_agent: str, reason: str | None = None, **more: Any) -> None:
        if reason is not None:
            more["reason"] = reason
        nth = self._next("handoff")
        event = agent_events.handoff(
            self._context.node_id, self.agent_id, to_agent, nth, **copied(more)
        )
        await self._context.recorded(event)

    async def decided(self, decision: Any, confidence: float | None = None, **more: Any) -> Any:
        nth = self._next("decided")
        context = self._context
        event = agent_events.decided(
            context.node_id, self.agent_id, copied(decision), confidence, nth, **copied(more)
        )
        await context.recorded(event)
        if context.standing.status is NodeStatus.SUSPENDED:
            await asyncio.get_running_loop().create_future()  # lived again when a person has looked
        ruling = context.standing.rulings.get(str(nth))
        if ruling is None:
            return decision
        if ruling.get("action") == "reject":
            raise DecisionRejected
        ratified = ruling.get("decision")  # of the decision as the log shows it
        return decision if ratified == context.redacted(decision) else copied(ratified)

    async def permission(self, tool: str, arguments: dict[str, Any]) -> bool:
        nth = self._next("asked")
        context = self._context
        given = context.redacted(arguments)
        await context.recorded(agent_events.asked(context.node_id, self.agent_id, tool, given, nth))
        if context.standing.status is NodeStatus.SUSPENDED:
            await asyncio.get_running_loop().create_future()  # lived again when a person has spoken
        ruling = context.standing.rulings.get(tool_ruling(nth))
        return isinstance(ruling, dict) and ruling.get("action") == "accept"

    async def noted(self, type_: str, payload: dict[str, Any]) -> None:
        if type_ not in NOTED:
            raise BadRequest(f"'{type_}' is nothing an agent can note.", type=type_)
        nth = self._next(type_)
        await self._context.report(
            NewEvent(type_, payload, self._context.node_id, hints={"nth": nth})
        )

    def tell(self, type_: str, payload: dict[str, Any]) -> None:
        self._context.tell(type_, payload)

    def _next(self, what: str) -> int:
        nth = self._counts.get(what, 0)
        self._counts[what] = nth + 1
        return nth


class Thought:
    """One train of thought while it lasts."""

    def __init__(
        self, context: Telling, agent_id: str, block: int, how: str, more: dict[str, Any]
    ) -> None:
        self._context, self._agent_id, self._number = context, agent_id, block
        self._how, self._more = how, more
        self._block = agent_events.Block(how, context.secrets)
        self._deltas = 0

    async def add(self, piece: str) -> None:
        """One more piece, told as soon as it may be; an empty one only shows that it goes on."""
        told = self._block.add(piece)
        if told or (not piece and self._how != "off"):
            await self._delta(told)

    def hear(self, text: str) -> None:
        """One more piece that is told only with the whole."""
        self._block.add(text)

    async def close(self) -> None:
        rest = self._block.close()
        if rest and self._deltas:
            await self._delta(rest)
        more = copied(self._more) if self._how != "off" else {}
        await self._context.report(
            agent_events.reasoned(
                self._context.node_id, self._agent_id, self._block.whole, self._number, self._how,
                **more,
            )
        )  # fmt: skip

    async def _delta(self, piece: str) -> None:
        number, self._deltas = self._deltas, self._deltas + 1
        await self._context.report(
            agent_events.delta(
                self._context.node_id, self._agent_id, piece, self._number, number, self._how
            )
        )


class ToolCall:
    """A tool an agent has called, until it has come back."""

    def __init__(self, context: Telling, agent_id: str, tool: str, call: tuple[int, str]) -> None:
        self._context, self._agent_id, self._tool, self._call = context, agent_id, tool, call

    @property
    def call_id(self) -> str:
        return self._call[1]

    async def returned(
        self, result: Any, duration_ms: int | None = None, flags: Sequence[str] = ()
    ) -> None:
        """``flags``: what in it had to be made harmless before a model was shown it."""
        await self._report({"outcome": copied(result)}, duration_ms, flags)

    async def failed(
        self,
        code: str,
        message: str,
        duration_ms: int | None = None,
        flags: Sequence[str] = (),
        **details: Any,
    ) -> None:
        error = NodeError(code=code, message=message, details=copied(details)).as_payload()
        await self._report({"error": error}, duration_ms, flags)

    async def _report(
        self, outcome: dict[str, Any], duration_ms: int | None, flags: Sequence[str]
    ) -> None:
        if duration_ms is not None:
            outcome["durationMs"] = duration_ms
        if flags:
            outcome["flags"] = list(flags)
        event: NewEvent = agent_events.returned(
            self._context.node_id, self._agent_id, self._tool, self._call, outcome
        )
        await self._context.recorded(event)
