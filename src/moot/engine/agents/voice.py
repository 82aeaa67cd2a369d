"""Record the reports of an agent: thoughts, tools, handoffs, decisions.

Each report is recorded once, even when the attempt is repeated.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

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
from moot.engine.effects.ledger import EffectReporter

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.engine.head import Head
    from moot.engine.host import Host

#: the pieces of a thought that are recorded: each one, longer ones, or only the whole
ReasoningPieces = Literal["each", "gathered", "none"]
#: characters of a piece, at first and as a share of the text so far; pieces of one answer
LEAST_PIECE, SHARE, MOST_PIECES = 64, 32, 256


class ReportContext(EffectReporter):
    """The place where an agent works: one attempt of a node, or one invitation in a council."""

    def __init__(
        self, host: "Host", head: "Head", node_id: str, work: str, attempts: tuple[int, int]
    ) -> None:
        """``work`` names the piece of work within its node, and ``attempts`` are the number of the
        attempt and those in earlier rounds of a loop."""
        self._host, self._head, self._node_id, self._work = host, head, node_id, work
        self._attempts = attempts
        self.payer: str | None = None

    @property
    def run_id(self) -> str:
        return self._head.run.run_id

    @property
    def tenant(self) -> str:
        return self._head.run.tenant

    @property
    def node_id(self) -> str:
        return self._node_id

    @property
    def work(self) -> str:
        return self._work

    @property
    def attempt(self) -> int:
        return self._attempts[0]

    @property
    def earlier(self) -> int:
        return self._attempts[1]

    @property
    def inherited(self) -> int:
        return self._head.run.inherited

    @property
    def standing(self) -> "NodeState":
        """Return the current state of the node."""
        return self._host.runs.current(self._head).run.nodes[self.node_id]

    @property
    def secrets(self) -> list[str]:
        """Return the texts that no report may contain."""
        return self._host.runs.current(self._head).secrets

    def redacted(self, value: Any) -> Any:
        """Return the value as the log will show it."""
        return self._host.runs.current(self._head).redacted(value)

    def now(self) -> int:
        return self._host.clock.millis()

    @property
    @abstractmethod
    def configurable(self) -> dict[str, Any]: ...

    @abstractmethod
    async def report(self, *events: NewEvent) -> None:
        """Record facts without waiting for the disk."""

    @abstractmethod
    def tell(self, payload: Payload) -> None:
        """Record a fact that nothing relies on."""


class TextBuffer:
    """Collects words until they are worth a record. A long answer has longer pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._told = 0
        self.pieces = 0

    def add(self, text: str) -> str:
        """Return the text to record now, if any."""
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


class AgentVoice:
    """The reports of an agent at work.

    An attempt may be repeated after a crash or a person's answer. A report that is on record is
    not recorded again, so the agent must report in the same order.
    """

    def __init__(self, context: ReportContext, agent_id: str) -> None:
        self._context, self.agent_id = context, agent_id
        self._counts: dict[str, int] = {}

    def speak_as(self, agent_id: str) -> None:
        """Use another name than the pinned one."""
        self.agent_id = check_agent_id(agent_id)

    @property
    def verbosity(self) -> str:
        """Return how much reasoning the run keeps: summary, full or off."""
        return reasoning_verbosity(self._context.configurable)

    def thinking(self, **more: Any) -> "AgentReasoning":
        """Start a thought that is recorded piece by piece. ``more`` goes with the whole."""
        return self.open_thought("each", more)

    async def reasoned(self, text: str, **more: Any) -> None:
        """Record a whole thought."""
        thought = self.open_thought("none", more)
        await thought.add(text)
        await thought.close()

    def open_thought(
        self, pieces: ReasoningPieces, more: dict[str, Any] | None = None
    ) -> "AgentReasoning":
        return AgentReasoning(self._context, self, self._next("reasoned"), pieces, more or {})

    async def tool_called(self, tool: str, *arguments: Any, **more: Any) -> "AgentToolCall":
        """Record the call before the tool is used. The argument is the tool's input."""
        nth = self._next("called")
        context = self._context
        name = derived_id("call_", context.run_id, context.node_id, context.work, str(nth))
        redacted_arguments = [context.redacted(value) for value in arguments[:1]]
        await context.recorded(
            tool_called_event(
                context.node_id, self.agent_id, tool, (nth, name), redacted_arguments, **more
            )
        )
        return AgentToolCall(context, self.agent_id, tool, (nth, name))

    async def handoff(self, to_agent: str, reason: str | None = None, **more: Any) -> None:
        """Record that the work passes to another agent."""
        if reason is not None:
            more["reason"] = reason
        nth = self._next("handoff")
        event = agent_handoff_event(
            self._context.node_id, self.agent_id, to_agent, nth, **copy_json(more)
        )
        await self._context.recorded(event)

    async def decided(self, decision: Any, confidence: float | None = None, **more: Any) -> Any:
        """Return the decision to continue with.

        It is the agent's, or a person's when the agent is less sure than the run demands. A
        rejection fails the node.
        """
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
        """Return whether a person allows this use of a dangerous tool. The node waits for the
        answer."""
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
        """Record another protocol event about the work with a model, once like the rest."""
        type_ = payload.event_type
        if not isinstance(payload, MODEL_EVENTS):
            raise BadRequest(f"'{type_}' is nothing an agent can note.", type=type_)
        nth = self._next(type_)
        await self._context.report(NewEvent(payload, self._context.node_id, nth=nth))

    def tell(self, payload: Payload) -> None:
        """Record a fact for people that nothing relies on, each time it happens."""
        self._context.tell(payload)

    def _next(self, what: str) -> int:
        nth = self._counts.get(what, 0)
        self._counts[what] = nth + 1
        return nth


class AgentReasoning:
    """One train of thought in progress, recorded in pieces or only as a whole."""

    def __init__(
        self,
        context: ReportContext,
        voice: AgentVoice,
        number: int,
        pieces: ReasoningPieces,
        more: dict[str, Any],
    ) -> None:
        self._context, self._agent_id, self._number = context, voice.agent_id, number
        self._how, self._more = voice.verbosity, more
        self._block = ReasoningBlock(self._how, context.secrets)
        self._whole_only = pieces == "none"
        self._buffer = TextBuffer() if pieces == "gathered" else None
        self._deltas = 0

    async def add(self, piece: str) -> None:
        """Add one more piece. An empty one only shows progress."""
        if self._whole_only:
            self._block.add(piece)
        elif self._buffer is None:
            await self._record(piece)
        elif text := self._buffer.add(piece):
            await self._record(text)

    async def _record(self, piece: str) -> None:
        text = self._block.add(piece)
        if text or (not piece and self._how != "off"):
            await self._delta(text)

    async def close(self) -> None:
        if self._buffer is not None and (held := self._buffer.rest()):
            await self._record(held)
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


class AgentToolCall:
    """A tool call of an agent, until it returns."""

    def __init__(
        self, context: ReportContext, agent_id: str, tool: str, call: tuple[int, str]
    ) -> None:
        self._context, self._agent_id, self._tool, self._call = context, agent_id, tool, call

    @property
    def call_id(self) -> str:
        return self._call[1]

    async def returned(
        self, result: Any, duration_ms: int | None = None, flags: Sequence[str] = ()
    ) -> None:
        await self._report({"outcome": copy_json(result)}, duration_ms, flags)

    async def failed(
        self,
        code: str,
        message: str,
        duration_ms: int | None = None,
        flags: Sequence[str] = (),
        **details: Any,
    ) -> None:
        error = NodeError(code=code, message=message, details=copy_json(details))
        await self._report({"error": msgspec.to_builtins(error)}, duration_ms, flags)

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
