"""What a node that touches the world is given, and how what it says reaches the log."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from moot.core.commands import Command
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, decode
from moot.core.runs import handles, nodes
from moot.core.runs.nodes import Emit
from moot.core.state.initiation import Member
from moot.core.state.node import NodeState
from moot.core.trace import Trace, of_run
from moot.core.workflows.graph import FlowNode
from moot.core.workflows.node_types import Call, ChannelWrite, copied
from moot.core.workflows.turn_inputs import TurnInputs, inputs
from moot.engine.agents.voice import AgentVoice
from moot.engine.effects.ledger import Effect, Ledger
from moot.engine.head import Head
from moot.engine.memory.node_memory import Memory

if TYPE_CHECKING:
    from moot.engine.host import Host


#: facts a node has reported that are not on disk yet; more than this makes it wait
MOST_UNCONFIRMED = 64


class Context:
    """What a node is given: see ``moot.engine.nodes.context.NodeContext`` for the promises."""

    def __init__(
        self, host: "Host", ledger: Ledger, head: Head, node: FlowNode, call: Call
    ) -> None:
        self._host, self._ledger, self._head, self._node, self._call = (
            host,
            ledger,
            head,
            node,
            call,
        )
        self._variables = dict(call.variables)  # those of the run move on
        self._unconfirmed: deque[asyncio.Task[Any]] = deque()
        self._ordinals = 0
        self.payer: str | None = None
        self.memory = Memory(host, self, head, node)

    @property
    def run_id(self) -> str:
        return self._call.run_id

    @property
    def tenant(self) -> str:
        return self._call.tenant

    @property
    def node_id(self) -> str:
        return self._call.node_id

    @property
    def attempt(self) -> int:
        return self._call.attempt

    @property
    def work(self) -> str:
        return str(self._call.attempt)

    @property
    def earlier(self) -> int:
        return self._call.earlier

    @property
    def workflow_id(self) -> str:
        return self._head.flow.definition.id

    @property
    def parent_run(self) -> str | None:
        return self._head.run.parent_run

    @property
    def trace(self) -> Trace:
        return of_run(self.run_id, self._head.run.trace)

    @property
    def pin(self) -> dict[str, Any]:
        pin = self._node.definition.agent
        return dict(pin) if isinstance(pin, dict) else {}

    @property
    def versions(self) -> dict[str, str]:
        return dict(self._host.runs.current(self._head).run.versions)

    def member(self, name: str) -> Member | None:
        run = self._head.run
        return run.members.get(name) if name else run.member

    @property
    def charged(self) -> tuple[str, ...]:
        return handles.payers(self._head.run, handles.handle_of(self._node))

    async def warn(self, message: str) -> None:
        await self.log("warn", message)

    @property
    def inherited(self) -> int:
        return self._head.run.inherited

    @property
    def agent_id(self) -> str | None:
        return self._call.agent_id

    # Copies: what a node does to them is its own affair.

    @cached_property
    def config(self) -> dict[str, Any]:
        return copied(self._call.config)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        return copied(self._call.inputs)

    @cached_property
    def variables(self) -> dict[str, Any]:
        return copied(self._variables)

    @cached_property
    def configurable(self) -> dict[str, Any]:
        return copied(self._call.configurable)

    @cached_property
    def trigger(self) -> dict[str, Any] | None:
        return copied(self._call.trigger)

    @cached_property
    def agent(self) -> AgentVoice:
        return AgentVoice(self, self._call.agent_id or f"host:agent:{self.node_id}")

    @property
    def standing(self) -> NodeState:
        """How the attempt stands now."""
        return self._host.runs.current(self._head).run.nodes[self.node_id]

    @property
    def secrets(self) -> list[str]:
        """Texts that nothing the node says may show."""
        return self._host.runs.current(self._head).secrets

    def redacted(self, value: Any) -> Any:
        """The value as the log will show it."""
        return self._host.runs.current(self._head).redacted(value)

    def now(self) -> int:
        return self._host.clock.millis()

    async def turn_inputs(self) -> TurnInputs:
        if self._call.turn is None:
            raise BadRequest("Only a supervisor has turns.", nodeId=self.node_id)
        turn, store = self._call.turn, self._host.store
        rows = await store.read(self.tenant, self.run_id, turn.first - 1, turn.until - turn.first)
        return inputs(turn, map(decode, rows))

    async def effect(
        self,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
        idempotent: bool = True,
        key: str | None = None,
    ) -> Any:
        self._ordinals += 1
        effect = Effect(self._ordinals, provider_key, call, idempotent, key)
        return await self._ledger.once(self, effect)

    async def emit_chunk(
        self, chunk: str, is_last: bool = False, meta: dict[str, Any] | None = None
    ) -> None:
        payload: dict[str, Any] = {
            "nodeId": self.node_id,
            "runId": self.run_id,
            "chunk": chunk,
            "isLast": is_last,
        }
        if meta:
            payload["meta"] = meta
        await self.report(NewEvent("output.chunk", payload, self.node_id))

    async def log(self, level: str, message: str, **fields: Any) -> None:
        payload: dict[str, Any] = {"level": level, "message": message, "nodeId": self.node_id}
        if fields:
            payload["fields"] = fields
        await self.report(NewEvent("log.appended", payload, self.node_id))

    async def write(self, channel: str, value: Any, reducer: str | None = None) -> None:
        writes = (ChannelWrite(channel=channel, value=copied(value), reducer=reducer),)
        head = self._host.runs.current(self._head)
        nodes.write_events(head.run, head.flow, self._node, writes, self.now())  # or refuse now
        await self._report(Emit(self.node_id, self.attempt, (), self.now(), writes=writes))

    def read(self, channel: str) -> Any:
        nodes.check_reader(self._node, channel)
        head = self._host.runs.current(self._head)
        return copied(head.messages.get(channel, head.run.channels.get(channel)))

    async def set_variable(self, name: str, value: Any) -> None:
        new = {name: copied(value)}
        head = self._head
        nodes.variable_events(head.run, head.flow, new, self.node_id, None)  # or refuse now
        await self._report(Emit(self.node_id, self.attempt, (), self.now(), variables=new))

    async def report(self, *events: NewEvent) -> None:
        """Facts on the way to disk; waits only when too many are."""
        for event in events:
            event.payload = copied(event.payload)
        await self._report(Emit(self.node_id, self.attempt, events, self.now()))

    def tell(self, type_: str, payload: dict[str, Any]) -> None:
        """On its way to disk, with nobody waiting for it before the attempt is over."""
        fact = NewEvent(type_, copied(payload), self.node_id)
        emit = Emit(self.node_id, self.attempt, (fact,), self.now())
        self._unconfirmed.append(self._send(emit))

    async def _report(self, command: Emit) -> None:
        self._unconfirmed.append(self._send(command))
        if len(self._unconfirmed) > MOST_UNCONFIRMED:
            await asyncio.shield(self._unconfirmed.popleft())
        else:
            await asyncio.sleep(0)

    async def recorded(self, *events: NewEvent) -> None:
        """Facts on disk: the caller relies on them. Raises Conflict when the attempt is over."""
        command = Emit(self.node_id, self.attempt, events, self.now(), required=True)
        await asyncio.shield(self._send(command))

    async def confirmed(self) -> None:
        """Everything reported is on disk."""
        while self._unconfirmed:
            await asyncio.shield(self._unconfirmed.popleft())

    def _send(self, command: Command) -> asyncio.Task[Any]:
        return self._host.tasks.start(self._host.handle(self.tenant, self.run_id, command))
