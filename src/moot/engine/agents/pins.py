"""Who serves a run, found once when it begins: standing agents that it names, and versions of
agents that its workflow finds by a channel."""

from typing import Any

from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.agents.roster.members import Seat
from moot.agents.roster.resolve import Instances
from moot.clock import Clock
from moot.core.errors import BadRequest, MootError, NoActiveDeployment, NotFound, Unprocessable
from moot.core.errors.triggers import MemberOffDuty
from moot.core.runs import handles
from moot.core.state.agents import bound
from moot.core.state.initiation import Member
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Kind
from moot.engine.nodes.agent import TYPE_ID, reference
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Guard

#: standing agents that one run may name
MOST_MEMBERS = 64


class Drawn(Struct):
    """agent@channel -> version; the standing agents by handle; what the run's first commit relies
    on: those who carry it out are still as they were."""

    versions: dict[str, str] = {}
    members: dict[str, Member] = {}
    guards: list[Guard] = []
    #: those who carry it out, and what each of them is hired for
    portfolios: dict[str, tuple[str, ...]] = {}

    def take(self, seat: Seat, member: Member) -> None:
        self.members[member.roster_id] = member
        self.portfolios[member.roster_id] = seat.entry.workflows
        self.guards.append(seat.guard)


class Pins:
    def __init__(self, instances: Instances, clock: Clock) -> None:
        self._agents, self._deployments = instances.agents, instances.deployments
        self._instances, self._clock = instances, clock

    async def drawn(
        self, tenant: str, flow: Flow, flows: Flows, whose: Seat | None = None
    ) -> Drawn:
        """``whose`` is the member whose run it is to be. Raises BadRequest when nobody serves a
        channel, Unprocessable when a node needs an agent that is not here, and MemberOffDuty."""
        found = Drawn()
        if whose is not None:
            found.take(whose, await self._resolved(tenant, whose))
        await self._members(tenant, flow, found)
        await self._workers(tenant, flow, flows, found)
        for node in flow.nodes.values():
            ref = _reference(node)
            if ref is None or handles.handle_of(node) in found.members:
                continue
            name, channel = str(ref["agentId"]), ref.get("channel")
            agent = await self._known(tenant, node, name)
            if channel is None or bound(name, channel) in found.versions:
                continue
            found.versions[bound(name, channel)] = await self._chosen(tenant, agent, channel, node)
        return found

    async def _members(self, tenant: str, flow: Flow, found: Drawn) -> None:
        """Those who carry out its own nodes: without them it does not begin."""
        for handle in handles.own(flow)[:MOST_MEMBERS]:
            if handle in found.members:
                continue
            seat = await self._instances.seat(tenant, handle)
            if seat is None:
                continue
            if reason := seat.hired.off_duty(self._clock.millis()):
                raise MemberOffDuty(handle, reason)
            found.take(seat, await self._resolved(tenant, seat))

    async def _workers(self, tenant: str, flow: Flow, flows: Flows, found: Drawn) -> None:
        """Those whom it, or a workflow it calls, may hand work to. Who is not on duty is left out,
        and refused when it comes to that."""
        now = self._clock.millis()
        for handle in _far(tenant, flow, flows)[:MOST_MEMBERS]:
            if handle in found.members:
                continue
            seat = await self._instances.seat(tenant, handle)
            if seat is None or seat.hired.off_duty(now):
                continue
            try:
                found.members[handle] = await self._instances.resolved(tenant, seat)
            except MootError:
                continue  # who is not here now says so when it is needed

    async def _resolved(self, tenant: str, seat: Seat) -> Member:
        try:
            return await self._instances.resolved(tenant, seat)
        except (NotFound, NoActiveDeployment) as refusal:
            raise Unprocessable(
                f"{seat.entry.roster_id}: {refusal.message}",
                code=refusal.code,
                rosterId=seat.entry.roster_id,
            ) from None

    async def _chosen(self, tenant: str, agent: Agent, channel: str, node: FlowNode) -> str:
        lot = self._clock.new_id("lot_")
        try:
            return await self._deployments.chosen(tenant, agent, channel, lot)
        except NoActiveDeployment as refusal:
            raise BadRequest(
                f"Node '{node.id}': {refusal.message}", code=refusal.code, nodeId=node.id
            ) from None

    async def _known(self, tenant: str, node: FlowNode, name: str) -> Agent:
        try:
            return await self._agents.must_be(tenant, name)
        except NotFound as refusal:
            raise Unprocessable(
                f"Node '{node.id}': {refusal.message}", nodeId=node.id, agentId=name
            ) from None


def _far(tenant: str, flow: Flow, flows: Flows) -> list[str]:
    """Handles that the flow and those it calls, as far as they are in memory, name at all."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [flow]
    while waiting:
        each = waiting.pop()
        found |= dict.fromkeys(handles.mentioned(each))
        for name in each.references:
            child = flows.known(tenant, name) if name not in seen else None
            seen.add(name)
            if child is not None:
                waiting.append(child)
    return list(found)


def _reference(node: FlowNode) -> dict[str, Any] | None:
    """Whom the node needs: who carries it out, or who its pin finds by a channel."""
    pin = node.definition.agent if isinstance(node.definition.agent, dict) else {}
    type_ = node.type
    led = type_.type_id == SUPERVISOR and type_.kind is Kind.ACTIVITY
    if led or type_.type_id == TYPE_ID:
        ref = reference(node.definition.config.get("agent"), pin)
        return ref if "agentId" in ref else None
    return pin if "channel" in pin else None
