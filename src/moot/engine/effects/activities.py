"""Attempts of nodes with side effects: their context, and their bounded number."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from moot.agents.invocation.context import EffectCall
from moot.core.commands import Command, FinishNode
from moot.core.errors import BadRequest, MootError, Unavailable
from moot.core.events import NewEvent, copy_payload, decode
from moot.core.interrupts.escalations import DecisionRejected
from moot.core.payloads.base import Payload
from moot.core.payloads.nodes import LogAppended, OutputChunk
from moot.core.replay import replay
from moot.core.runs import nodes, standing_agents
from moot.core.runs.nodes import Emit
from moot.core.runs.readiness import PortProblem, build_node_call
from moot.core.state.initiation import RunMember
from moot.core.trace import Trace, run_trace
from moot.core.workflows.flow import FlowNode
from moot.core.workflows.node_types import (
    ChannelWrite,
    Completed,
    Decided,
    Failed,
    NodeCall,
    NodeError,
    Outcome,
    copy_json,
    error_from_exception,
    recordable_outcome,
)
from moot.core.workflows.turn_inputs import TurnInputs, build_turn_inputs
from moot.engine.agents.voice import AgentVoice, ReportContext
from moot.engine.effects.ledger import Effect, EffectLedger
from moot.engine.head import Head
from moot.engine.memory import NodeMemory
from moot.engine.nodes import supervisor
from moot.engine.nodes.context import AgentPin

if TYPE_CHECKING:
    from moot.engine.host import Host

log = logging.getLogger("moot.engine")

#: reported facts that may be on their way to disk; the node waits when there are more
MOST_UNCONFIRMED = 64


class ActivityContext(ReportContext):
    """One attempt of a node; see ``moot.engine.nodes.context.NodeContext`` for the promises."""

    def __init__(
        self, host: "Host", ledger: EffectLedger, head: Head, node: FlowNode, call: NodeCall
    ) -> None:
        attempts = call.attempt, call.earlier
        super().__init__(host, head, call.node_id, str(call.attempt), attempts)
        self._ledger, self._node, self._call = ledger, node, call
        self._variables = dict(call.variables)  # the run's own variables change meanwhile
        self._unconfirmed: deque[asyncio.Task[Any]] = deque()
        self._ordinals = 0
        self.memory = NodeMemory(host, self, head, node)

    @property
    def workflow_id(self) -> str:
        return self._head.flow.definition.id

    @property
    def parent_run(self) -> str | None:
        return self._head.run.parent_run

    @property
    def trace(self) -> Trace:
        return run_trace(self.run_id, self._head.run.trace)

    @property
    def pin(self) -> AgentPin:
        pin = self._node.definition.agent
        return msgspec.convert(pin, AgentPin) if isinstance(pin, dict) else AgentPin()

    @property
    def versions(self) -> dict[str, str]:
        return dict(self._host.runs.current(self._head).run.versions)

    def member(self, name: str) -> RunMember | None:
        run = self._head.run
        return run.members.get(name) if name else run.member

    @property
    def charged(self) -> tuple[str, ...]:
        handle = standing_agents.node_handle(self._node)
        return standing_agents.budget_owners(self._head.run, handle)

    async def warn(self, message: str) -> None:
        await self.log("warn", message)

    @property
    def agent_id(self) -> str | None:
        return self._call.agent_id

    # Copies, which the node may change.

    @cached_property
    def config(self) -> dict[str, Any]:
        return copy_json(self._call.config)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        return copy_json(self._call.inputs)

    @cached_property
    def variables(self) -> dict[str, Any]:
        return copy_json(self._variables)

    @cached_property
    def configurable(self) -> dict[str, Any]:
        return copy_json(self._call.configurable)

    @cached_property
    def trigger(self) -> dict[str, Any] | None:
        return copy_json(self._call.trigger)

    @cached_property
    def agent(self) -> AgentVoice:
        return AgentVoice(self, self._call.agent_id or f"host:agent:{self.node_id}")

    async def turn_inputs(self) -> TurnInputs:
        if self._call.turn is None:
            raise BadRequest("Only a supervisor has turns.", nodeId=self.node_id)
        turn, store = self._call.turn, self._host.store
        rows = await store.read(self.tenant, self.run_id, turn.first - 1, turn.until - turn.first)
        return build_turn_inputs(turn, map(decode, rows))

    async def effect(
        self, provider_key: str, call: EffectCall, idempotent: bool = True, key: str | None = None
    ) -> Any:
        self._ordinals += 1
        effect = Effect(self._ordinals, provider_key, call, idempotent, key)
        return await self._ledger.once(self, effect)

    async def emit_chunk(
        self, chunk: str, is_last: bool = False, meta: Mapping[str, object] | None = None
    ) -> None:
        node_id, run_id, more = self.node_id, self.run_id, dict(meta) if meta else None
        payload = OutputChunk(
            node_id=node_id, run_id=run_id, chunk=chunk, is_last=is_last, meta=more
        )
        await self.report(NewEvent(payload, self.node_id))

    async def log(self, level: str, message: str, **fields: Any) -> None:
        place, more = self.node_id, fields or None
        payload = LogAppended(level=level, message=message, node_id=place, fields=more)
        await self.report(NewEvent(payload, self.node_id))

    async def write(self, channel: str, value: Any, reducer: str | None = None) -> None:
        writes = (ChannelWrite(channel=channel, value=copy_json(value), reducer=reducer),)
        head = self._host.runs.current(self._head)
        nodes.write_events(head.run, head.flow, self._node, writes, self.now())  # may refuse
        await self._report(Emit(self.node_id, self.attempt, (), self.now(), writes=writes))

    def read(self, channel: str) -> Any:
        nodes.check_reader(self._node, channel)
        head = self._host.runs.current(self._head)
        return copy_json(head.messages.get(channel, head.run.channels.get(channel)))

    async def set_variable(self, name: str, value: Any) -> None:
        new = {name: copy_json(value)}
        head = self._head
        nodes.variable_events(head.run, head.flow, new, self.node_id, None)  # may refuse
        await self._report(Emit(self.node_id, self.attempt, (), self.now(), variables=new))

    async def report(self, *events: NewEvent) -> None:
        """Send facts to disk without waiting, unless too many are on their way."""
        for event in events:
            copy_payload(event)
        await self._report(Emit(self.node_id, self.attempt, events, self.now()))

    def tell(self, payload: Payload) -> None:
        """Send a fact to disk; only the end of the attempt waits for it."""
        fact = NewEvent(payload, self.node_id)
        copy_payload(fact)
        emit = Emit(self.node_id, self.attempt, (fact,), self.now())
        self._unconfirmed.append(self._send(emit))

    async def _report(self, command: Emit) -> None:
        self._unconfirmed.append(self._send(command))
        if len(self._unconfirmed) > MOST_UNCONFIRMED:
            await asyncio.shield(self._unconfirmed.popleft())
        else:
            await asyncio.sleep(0)

    async def recorded(self, *events: NewEvent) -> None:
        """Return when the facts are on disk. Raise Conflict when the attempt is over."""
        command = Emit(self.node_id, self.attempt, events, self.now(), required=True)
        await asyncio.shield(self._send(command))

    async def confirmed(self) -> None:
        while self._unconfirmed:
            await asyncio.shield(self._unconfirmed.popleft())

    def _send(self, command: Command) -> asyncio.Task[Any]:
        return self._host.tasks.start(self._host.handle(self.tenant, self.run_id, command))


class Activities:
    """The attempts under way. An attempt that its run no longer wants is cancelled."""

    def __init__(self, host: "Host", limit: int) -> None:
        self._host = host
        self._slots = asyncio.Semaphore(limit)
        self._running: dict[str, dict[tuple[str, int], asyncio.Task[None]]] = {}
        self.ledger = EffectLedger(host.store)

    def start(self, head: Head, node_id: str, attempt: int) -> None:
        """Start an attempt unless it is already under way."""
        mine = self._running.setdefault(head.run.run_id, {})
        if (node_id, attempt) not in mine:
            work = self._attempt(head, head.flow.nodes[node_id], attempt)
            mine[node_id, attempt] = task = self._host.tasks.start(work)
            head.pins += 1  # the node reads the run through this head until the attempt ends
            task.add_done_callback(lambda _: head.unpin())

    def keep(self, run_id: str, wanted: list[tuple[str, int]]) -> None:
        """Cancel every attempt of the run that is no longer wanted."""
        mine = self._running.get(run_id)
        if mine:
            for key in [key for key in mine if key not in wanted]:
                mine.pop(key).cancel()
            if not mine:
                del self._running[run_id]

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._running.values())

    async def aclose(self) -> None:
        for run_id in list(self._running):
            self.keep(run_id, [])

    async def _attempt(self, head: Head, node: FlowNode, attempt: int) -> None:
        run = head.run
        key = (node.id, attempt)
        if node.type.activity is None:
            about = {"action": "node.missing", "run_id": run.run_id}
            type_id = node.type.type_id
            log.error("Node type %s is not installed; the run waits for it", type_id, extra=about)
            return
        try:
            async with self._slots:
                await self._carry_out(head, node, attempt)
        except MootError as refusal:
            about = {"action": "node.waits", "run_id": run.run_id, "code": refusal.code}
            log.warning("The outcome of a node could not be kept yet", extra=about)
            self._forget(run.run_id, key)
            self._host.look_again(run.tenant, run.run_id)
        finally:
            self._forget(run.run_id, key)

    def _forget(self, run_id: str, key: tuple[str, int]) -> None:
        mine = self._running.get(run_id)
        if mine and mine.get(key) is asyncio.current_task():
            del mine[key]
            if not mine:
                del self._running[run_id]

    async def _carry_out(self, head: Head, node: FlowNode, attempt: int) -> None:
        run = head.run
        if run.replayed:
            lost = Failed(replay.NO_RECORD)
            await self._post(run.tenant, run.run_id, node.id, attempt, lost)
            return
        await self._host.runs.track_messages(head)
        try:
            call = build_node_call(run, node, self._host.clock.millis(), head.sealed, attempt)
        except PortProblem as problem:
            outcome: Outcome = Failed(problem.error)
        else:
            context = ActivityContext(self._host, self.ledger, head, node, call)
            if call.turn is not None and call.answer:
                outcome = supervisor.ratified_outcome(call)  # a person has decided
            else:
                outcome = await self._outcome(node, context)
            outcome = await _confirm_reports(context) or outcome
        await self._post(run.tenant, run.run_id, node.id, attempt, outcome)

    async def _outcome(self, node: FlowNode, context: ActivityContext) -> Outcome:
        assert node.type.activity is not None
        try:
            result = await node.type.activity(context)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Failed(error_from_exception(error))  # the node has cancelled itself
        except Unavailable:
            raise
        except MootError as refusal:
            return _failure_from_refusal(refusal)
        except DecisionRejected as rejection:
            return Failed(rejection.error)
        except (Exception, SystemExit) as error:
            about, type_id = {"action": "node.raised", "run_id": context.run_id}, node.type.type_id
            log.warning("Node %s (%s) raised", node.id, type_id, exc_info=error, extra=about)
            return Failed(error_from_exception(error))
        if isinstance(result, (Completed, Failed, Decided)):
            return result
        return Completed(result if isinstance(result, dict) else {"output": result})

    async def _post(
        self, tenant: str, run_id: str, node_id: str, attempt: int, outcome: Outcome
    ) -> None:
        """Send the outcome from its own task: a cancel of the attempt cannot tear a commit."""
        at = self._host.clock.millis()
        command = FinishNode(node_id, attempt, recordable_outcome(outcome), at)
        await asyncio.shield(self._host.tasks.start(self._host.handle(tenant, run_id, command)))


async def _confirm_reports(context: ActivityContext) -> Failed | None:
    """Wait until the node's reports are on disk. Return a failure when they never will be."""
    try:
        await context.confirmed()
    except Unavailable:
        raise
    except MootError as refusal:
        return _failure_from_refusal(refusal)
    except Exception as error:
        return Failed(error_from_exception(error))
    return None


def _failure_from_refusal(refusal: MootError) -> Failed:
    return Failed(NodeError(code=refusal.code, message=refusal.message, details=refusal.details))
