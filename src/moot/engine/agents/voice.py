"""Record the reports of an agent: thoughts, tools, handoffs, decisions.

Each report is recorded once, even when the attempt is repeated.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from moot.core.agents.events import (
    ReasoningBlock,
    agent_handoff_event,
    check_agent_id,
    decision_event,
    reasoning_delta_event,
    reasoning_event,
    reasoning_verbosity,
    tool_asked_event,
    tool_called_event,
    tool_returned_event,
)
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.interrupts.escalations import DecisionRejected
from moot.core.payloads.base import Payload
from moot.core.state.agents import MODEL_EVENTS
from moot.core.state.status import NodeStatus
from moot.core.state.tool_requests import tool_ruling_key
from moot.core.workflows.node_types import NodeError, copy_json

if TYPE_CHECKING:
    from moot.core.state.node import NodeState


class VoiceContext(Protocol):
    """The place where an agent works, as far as its reports need it."""

    @property
    def run_id(self) -> str: ...

    @property
    def node_id(self) -> str: ...

    @property
    def configurable(self) -> dict[str, Any]: ...

    @property
    def work(self) -> str:
        """Return the name of this piece of work within its node."""

    @property
    def standing(self) -> "NodeState": ...

    @property
    def secrets(self) -> list[str]: ...

    def redacted(self, value: Any) -> Any: ...

    def tell(self, payload: Payload) -> None: ...

    async def report(self, *events: NewEvent) -> None: ...

    async def recorded(self, *events: NewEvent) -> None: ...


class AgentVoice:
    """See ``moot.engine.nodes.context.NodeAgent`` for the promises."""

    def __init__(self, context: VoiceContext, agent_id: str) -> None:
        self._context, self.agent_id = context, agent_id
        self._counts: dict[str, int] = {}

    def speak_as(self, agent_id: str) -> None:
        self.agent_id = check_agent_id(agent_id)

    @property
    def verbosity(self) -> str:
        return reasoning_verbosity(self._context.configurable)

    def thinking(self, **more: Any) -> "VoiceThought":
        block = self._next("reasoned")
        return VoiceThought(self._context, self.agent_id, block, self.verbosity, more)

    async def reasoned(self, text: str, **more: Any) -> None:
        thought = self.thinking(**more)
        thought.hear(text)
        await thought.close()

    async def tool_called(self, tool: str, *arguments: Any, **more: Any) -> "VoiceToolCall":
        nth = self._next("called")
        context = self._context
        name = derived_id("call_", context.run_id, context.node_id, context.work, str(nth))
        redacted_arguments = [context.redacted(value) for value in arguments[:1]]
        await context.recorded(
            tool_called_event(
                context.node_id, self.agent_id, tool, (nth, name), redacted_arguments, **more
            )
        )
        return VoiceToolCall(context, self.agent_id, tool, (nth, name))

    async def handoff(self, to_agent: str, reason: str | None = None, **more: Any) -> None:
        if reason is not None:
            more["reason"] = reason
        nth = self._next("handoff")
        event = agent_handoff_event(
            self._context.node_id, self.agent_id, to_agent, nth, **copy_json(more)
        )
        await self._context.recorded(event)

    async def decided(self, decision: Any, confidence: float | None = None, **more: Any) -> Any:
        nth = self._next("decided")
        context = self._context
        event = decision_event(
            context.node_id, self.agent_id, copy_json(decision), confidence, nth, **copy_json(more)
        )
        await context.recorded(event)
        if context.standing.status is NodeStatus.SUSPENDED:
            # the attempt is cancelled here and repeated after the decision
            await asyncio.get_running_loop().create_future()
        ruling = context.standing.rulings.get(str(nth))
        if ruling is None:
            return decision
        if ruling.get("action") == "reject":
            raise DecisionRejected
        ratified = ruling.get("decision")  # refers to the decision as the log shows it
        return decision if ratified == context.redacted(decision) else copy_json(ratified)

    async def permission(self, tool: str, arguments: dict[str, Any]) -> bool:
        nth = self._next("asked")
        context = self._context
        redacted_arguments = context.redacted(arguments)
        await context.recorded(
            tool_asked_event(context.node_id, self.agent_id, tool, redacted_arguments, nth)
        )
        if context.standing.status is NodeStatus.SUSPENDED:
            # the attempt is cancelled here and repeated after the answer
            await asyncio.get_running_loop().create_future()
        ruling = context.standing.rulings.get(tool_ruling_key(nth))
        return isinstance(ruling, dict) and ruling.get("action") == "accept"

    async def noted(self, payload: Payload) -> None:
        type_ = payload.event_type
        if not isinstance(payload, MODEL_EVENTS):
            raise BadRequest(f"'{type_}' is nothing an agent can note.", type=type_)
        nth = self._next(type_)
        await self._context.report(NewEvent(payload, self._context.node_id, hints={"nth": nth}))

    def tell(self, payload: Payload) -> None:
        self._context.tell(payload)

    def _next(self, what: str) -> int:
        nth = self._counts.get(what, 0)
        self._counts[what] = nth + 1
        return nth


class VoiceThought:
    """One train of thought in progress."""

    def __init__(
        self, context: VoiceContext, agent_id: str, block: int, how: str, more: dict[str, Any]
    ) -> None:
        self._context, self._agent_id, self._number = context, agent_id, block
        self._how, self._more = how, more
        self._block = ReasoningBlock(how, context.secrets)
        self._deltas = 0

    async def add(self, piece: str) -> None:
        """Record one more piece as soon as it may be. An empty piece only shows progress."""
        text = self._block.add(piece)
        if text or (not piece and self._how != "off"):
            await self._delta(text)

    def hear(self, text: str) -> None:
        """Add one more piece that is recorded only with the whole."""
        self._block.add(text)

    async def close(self) -> None:
        rest = self._block.close()
        if rest and self._deltas:
            await self._delta(rest)
        more = copy_json(self._more) if self._how != "off" else {}
        await self._context.report(
            reasoning_event(
                self._context.node_id, self._agent_id, self._block.whole, self._number, self._how,
                **more,
            )
        )  # fmt: skip

    async def _delta(self, piece: str) -> None:
        number, self._deltas = self._deltas, self._deltas + 1
        await self._context.report(
            reasoning_delta_event(
                self._context.node_id, self._agent_id, piece, self._number, number, self._how
            )
        )


class VoiceToolCall:
    """A tool call of an agent, until it returns."""

    def __init__(
        self, context: VoiceContext, agent_id: str, tool: str, call: tuple[int, str]
    ) -> None:
        self._context, self._agent_id, self._tool, self._call = context, agent_id, tool, call

    @property
    def call_id(self) -> str:
        return self._call[1]

    async def returned(
        self, result: Any, duration_ms: int | None = None, flags: Sequence[str] = ()
    ) -> None:
        """Record the result. ``flags`` name the parts that were made harmless for the model."""
        await self._report({"outcome": copy_json(result)}, duration_ms, flags)

    async def failed(
        self,
        code: str,
        message: str,
        duration_ms: int | None = None,
        flags: Sequence[str] = (),
        **details: Any,
    ) -> None:
        error = NodeError(code=code, message=message, details=copy_json(details)).as_payload()
        await self._report({"error": error}, duration_ms, flags)

    async def _report(
        self, outcome: dict[str, Any], duration_ms: int | None, flags: Sequence[str]
    ) -> None:
        if duration_ms is not None:
            outcome["durationMs"] = duration_ms
        if flags:
            outcome["flags"] = list(flags)
        event: NewEvent = tool_returned_event(
            self._context.node_id, self._agent_id, self._tool, self._call, outcome
        )
        await self._context.recorded(event)
