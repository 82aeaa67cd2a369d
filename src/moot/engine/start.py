"""Start runs: the one way from a request to the first events on disk."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from moot.agents.definitions.manifest import Agent
from moot.agents.roster.members import MemberResolver, MemberVersion
from moot.clock import Clock
from moot.core.conversations.participants import check_roster
from moot.core.errors import BadRequest, MootError, NoActiveDeployment, NotFound, Unprocessable
from moot.core.errors.triggers import MemberOffDuty, NotInPortfolio
from moot.core.events import ENGINE_VERSION
from moot.core.payloads.runs import PeerOrigin
from moot.core.runs import standing_agents
from moot.core.runs.start import StartRun, check_inputs
from moot.core.state.agents import version_key
from moot.core.state.initiation import Initiation, RunMember, TriggerDelivery
from moot.core.state.run import Run
from moot.core.trace import Trace
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeKind
from moot.engine.host import Host
from moot.engine.nodes.agent import TYPE_ID, agent_reference
from moot.engine.nodes.context import AgentPin
from moot.engine.nodes.gates import CONVERSATION_GATE
from moot.engine.transaction import BatchHook, ReceiptFor
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch
from moot.store.records import Guard

#: standing agents that one run may name
MOST_MEMBERS = 64


class PinnedAgents(Struct):
    """The agents of one run: versions by agent@channel, and standing agents by handle.

    The run's first commit relies on the guards: its agents are unchanged.
    """

    versions: dict[str, str] = {}
    members: dict[str, RunMember] = {}
    guards: list[Guard] = []
    #: standing agents of its nodes -> the workflows each of them owns
    portfolios: dict[str, tuple[str, ...]] = {}

    def take(self, seat: MemberVersion, member: RunMember) -> None:
        self.members[member.roster_id] = member
        self.portfolios[member.roster_id] = seat.entry.workflows
        self.guards.append(seat.guard)


class AgentPins:
    """Resolves the agents that a workflow names."""

    def __init__(self, instances: MemberResolver, clock: Clock) -> None:
        self._agents, self._deployments = instances.agents, instances.deployments
        self._instances, self._clock = instances, clock

    async def drawn(
        self, tenant: str, flow: Flow, flows: WorkflowRegistry, whose: MemberVersion | None = None
    ) -> PinnedAgents:
        """Resolve all agents of a run. ``whose`` is the standing agent that owns the run.

        Raise BadRequest when a channel has no active version, Unprocessable when a node needs an
        unknown agent, and MemberOffDuty.
        """
        pinned = PinnedAgents()
        if whose is None and not _names_agents(flow):
            return pinned
        if whose is not None:
            pinned.take(whose, await self._resolve_member(tenant, whose))
        await self._add_members(tenant, flow, pinned)
        await self._add_workers(tenant, flow, flows, pinned)
        for node in flow.nodes.values():
            ref = _agent_reference(node)
            if ref is None or standing_agents.node_handle(node) in pinned.members:
                continue
            name, channel = ref.agent_id, ref.channel
            agent = await self._find_agent(tenant, node, name)
            if channel is None or version_key(name, channel) in pinned.versions:
                continue
            version = await self._choose_version(tenant, agent, channel, node)
            pinned.versions[version_key(name, channel)] = version
        return pinned

    async def _add_members(self, tenant: str, flow: Flow, pinned: PinnedAgents) -> None:
        """Add the standing agents of the flow's own nodes. The run cannot start without them."""
        for handle in standing_agents.node_handles(flow)[:MOST_MEMBERS]:
            if handle in pinned.members:
                continue
            seat = await self._instances.seat(tenant, handle)
            if seat is None:
                continue
            if reason := seat.hired.off_duty(self._clock.millis()):
                raise MemberOffDuty(handle, reason)
            pinned.take(seat, await self._resolve_member(tenant, seat))

    async def _add_workers(
        self, tenant: str, flow: Flow, flows: WorkflowRegistry, pinned: PinnedAgents
    ) -> None:
        """Add the standing agents that may get work from the flow or a workflow it calls.

        An agent that is off duty is left out, and refused when work is handed to it.
        """
        now = self._clock.millis()
        for handle in _reachable_handles(tenant, flow, flows)[:MOST_MEMBERS]:
            if handle in pinned.members:
                continue
            seat = await self._instances.seat(tenant, handle)
            if seat is None or seat.hired.off_duty(now):
                continue
            try:
                pinned.members[handle] = await self._instances.resolved(tenant, seat)
            except MootError:
                continue  # a missing agent is refused when work is handed to it

    async def _resolve_member(self, tenant: str, seat: MemberVersion) -> RunMember:
        try:
            return await self._instances.resolved(tenant, seat)
        except (NotFound, NoActiveDeployment) as refusal:
            roster_id = seat.entry.roster_id
            message = f"{roster_id}: {refusal.message}"
            raise Unprocessable(message, code=refusal.code, rosterId=roster_id) from None

    async def _choose_version(self, tenant: str, agent: Agent, channel: str, node: FlowNode) -> str:
        lot = self._clock.new_id("lot_")
        try:
            return await self._deployments.chosen(tenant, agent, channel, lot)
        except NoActiveDeployment as refusal:
            message = f"Node '{node.id}': {refusal.message}"
            raise BadRequest(message, code=refusal.code, nodeId=node.id) from None

    async def _find_agent(self, tenant: str, node: FlowNode, name: str) -> Agent:
        try:
            return await self._agents.must_find_by_id(tenant, name)
        except NotFound as refusal:
            message = f"Node '{node.id}': {refusal.message}"
            raise Unprocessable(message, nodeId=node.id, agentId=name) from None


class RemoteCause(Struct, frozen=True, kw_only=True):
    """The caller's trace, the run on another host that it acts for, and the share of that run."""

    trace: Trace | None = None
    origin: PeerOrigin | None = None
    cause: str | None = None
    cause_host: str | None = None
    depth: int = 0
    tree: int | None = None


class RunOrder(Struct, frozen=True, kw_only=True):
    """The run that a caller or a trigger asks for."""

    tenant: str
    principal: str
    workflow_id: str
    #: the workflow, when the caller has loaded it; else the newest one with the id runs
    flow: Flow | None = None
    #: the person that the key names, if any
    person: str = "user"
    inputs: dict[str, object] = {}
    #: refuse a conversation whose roster cannot work before the run exists
    checks_rosters: bool = False
    configurable: dict[str, object] = {}
    tags: list[str] = []
    metadata: dict[str, object] = {}
    scope_id: str | None = None
    #: refuse a second run of the scope
    dedup: bool = False
    callback_url: str | None = None
    engine_version: int = ENGINE_VERSION
    remote: RemoteCause | None = None
    #: the kind of trigger, or a start by hand for a member; None for a plain request
    source: str | None = None
    #: the standing agent that the run is for
    roster_id: str | None = None
    delivered: TriggerDelivery | None = None
    #: the inbound event; the run stores it as untrusted data
    trigger: dict[str, Any] | None = None
    hops: int = 0


async def start_run(
    host: Host,
    order: RunOrder,
    pins: AgentPins | None = None,
    member: MemberVersion | None = None,
    receipt: ReceiptFor | None = None,
    beside: BatchHook | None = None,
) -> Run:
    """Start the run and return when its first events are on disk.

    ``member`` is the standing agent that ``order`` names, and ``pins`` finds the agents of the
    nodes; the host's own workflows have none. Raise Overtaken when an agent of the run has changed
    meanwhile.
    """
    flow, pinned = await prepare_run(host, order, pins, member)

    def add_guards(run: Run, batch: Batch) -> None:
        batch.guards += pinned.guards
        if beside is not None:
            beside(run, batch)

    command = start_command(host, order, flow, pinned)
    return await host.create(flow, command, receipt, order.dedup, add_guards)


async def prepare_run(
    host: Host, order: RunOrder, pins: AgentPins | None = None, member: MemberVersion | None = None
) -> tuple[Flow, PinnedAgents]:
    """Return the workflow and the agents that a start would use.

    Raise what a start would raise; start nothing.
    """
    flow = order.flow or await host.flows.newest(order.tenant, order.workflow_id)
    check_inputs(flow, order.inputs)
    if order.checks_rosters:
        check_rosters(flow, order.inputs)
    if pins is None:
        return flow, PinnedAgents()
    return flow, await pins.drawn(order.tenant, flow, host.flows, member)


def start_command(host: Host, order: RunOrder, flow: Flow, pinned: PinnedAgents) -> StartRun:
    # CPython passes more than 15 keywords as a dict, at many times the cost
    command = StartRun(
        tenant=order.tenant,
        principal=order.principal,
        person=order.person,
        at=host.clock.millis(),
        limits=host.limits,
        inputs=order.inputs,
        configurable=order.configurable,
        tags=order.tags,
        metadata=order.metadata,
        scope_id=order.scope_id,
        callback_url=order.callback_url,
        engine_version=order.engine_version,
        versions=pinned.versions,
        members=pinned.members,
        initiation=_initiation(order, flow, pinned),
    )
    return command if order.remote is None else replace(command, **asdict(order.remote))


def check_rosters(flow: Flow, inputs: Mapping[str, object]) -> None:
    """Raise when a conversation's roster cannot work, before a run exists."""
    for node in flow.nodes.values():
        if node.type.type_id == CONVERSATION_GATE.type_id:
            roster = node.definition.config.get("participants", inputs.get("participants"))
            if roster is not None:
                check_roster(roster)


def check_member(member: MemberVersion, workflow_id: str | None, now: int) -> None:
    """Raise MemberOffDuty or NotInPortfolio when the member may not do this work."""
    roster_id, portfolio = member.entry.roster_id, member.entry.workflows
    if reason := member.hired.off_duty(now):
        raise MemberOffDuty(roster_id, reason)
    if workflow_id is not None and workflow_id not in portfolio:
        raise NotInPortfolio(roster_id, workflow_id, portfolio)


def _initiation(order: RunOrder, flow: Flow, pinned: PinnedAgents) -> Initiation | None:
    if order.source is None:
        return None
    return Initiation(
        source=order.source,
        member=_responsible_member(order, flow, pinned),
        delivered=order.delivered,
        trigger=order.trigger,
        hops=order.hops,
    )


def _responsible_member(order: RunOrder, flow: Flow, pinned: PinnedAgents) -> RunMember | None:
    """Return the member the run is started for.

    Without one, return the only member that its nodes name, if the workflow is in the portfolio of
    that member.
    """
    if order.roster_id is not None:
        return pinned.members[order.roster_id]
    candidates = [name for name in standing_agents.node_handles(flow) if name in pinned.members]
    only = candidates[0] if len(candidates) == 1 else None
    if only is None or order.workflow_id not in pinned.portfolios.get(only, ()):
        return None
    return pinned.members[only]


@lru_cache(maxsize=standing_agents.CACHED_FLOWS)
def _names_agents(flow: Flow) -> bool:
    """Return whether the flow, or a workflow that it calls, may name an agent."""
    if flow.references or standing_agents.all_handles(flow):
        return True
    return any(_agent_reference(node) is not None for node in flow.nodes.values())


def _reachable_handles(tenant: str, flow: Flow, flows: WorkflowRegistry) -> list[str]:
    """Return the handles that the flow and the loaded workflows it calls mention."""
    reachable: dict[str, None] = {}
    visited: set[str] = set()
    waiting = [flow]
    while waiting:
        each = waiting.pop()
        reachable |= dict.fromkeys(standing_agents.all_handles(each))
        for name in each.references:
            child = flows.known(tenant, name) if name not in visited else None
            visited.add(name)
            if child is not None:
                waiting.append(child)
    return list(reachable)


def _agent_reference(node: FlowNode) -> AgentPin | None:
    """Return the agent that the node needs: its executor, or its pin with a channel."""
    definition, type_ = node.definition, node.type
    pin = AgentPin()
    if isinstance(definition.agent, dict):
        pin = msgspec.convert(definition.agent, AgentPin)
    is_agent_supervisor = type_.type_id == SUPERVISOR and type_.kind is NodeKind.ACTIVITY
    if is_agent_supervisor or type_.type_id == TYPE_ID:
        name = definition.config.get("agent")
        ref = agent_reference(name if isinstance(name, str) else None, pin)
        return ref if ref.agent_id else None
    return pin if pin.channel is not None else None
