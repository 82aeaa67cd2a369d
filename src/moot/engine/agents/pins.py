"""Resolve the agents of a run when it starts: standing agents and pinned versions."""

from functools import lru_cache

import msgspec
from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.agents.roster.members import MemberVersion
from moot.agents.roster.resolve import MemberResolver
from moot.clock import Clock
from moot.core.errors import BadRequest, MootError, NoActiveDeployment, NotFound, Unprocessable
from moot.core.errors.triggers import MemberOffDuty
from moot.core.runs import standing_agents
from moot.core.state.agents import version_key
from moot.core.state.initiation import RunMember
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeKind
from moot.engine.nodes.agent import TYPE_ID, agent_reference
from moot.engine.nodes.context import AgentPin
from moot.engine.workflows.registry import WorkflowRegistry
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
            pinned.versions[version_key(name, channel)] = await self._choose_version(
                tenant, agent, channel, node
            )
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
            raise Unprocessable(
                f"{seat.entry.roster_id}: {refusal.message}",
                code=refusal.code,
                rosterId=seat.entry.roster_id,
            ) from None

    async def _choose_version(self, tenant: str, agent: Agent, channel: str, node: FlowNode) -> str:
        lot = self._clock.new_id("lot_")
        try:
            return await self._deployments.chosen(tenant, agent, channel, lot)
        except NoActiveDeployment as refusal:
            raise BadRequest(
                f"Node '{node.id}': {refusal.message}", code=refusal.code, nodeId=node.id
            ) from None

    async def _find_agent(self, tenant: str, node: FlowNode, name: str) -> Agent:
        try:
            return await self._agents.must_find_by_id(tenant, name)
        except NotFound as refusal:
            raise Unprocessable(
                f"Node '{node.id}': {refusal.message}", nodeId=node.id, agentId=name
            ) from None


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
