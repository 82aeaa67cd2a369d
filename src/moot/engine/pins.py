"""Who serves a run, drawn once when it begins: agents that its workflow finds by a channel."""

from typing import Any

from moot.agents.deployments import Deployments
from moot.agents.manifest import Agent
from moot.agents.registry import Agents
from moot.clock import Clock
from moot.core.agency import bound
from moot.core.definition import SUPERVISOR
from moot.core.errors import BadRequest, NoActiveDeployment, NotFound, Unprocessable
from moot.core.flow import Flow, FlowNode
from moot.core.outcomes import Kind
from moot.engine.nodes import agent as agent_node


class Pins:
    def __init__(self, agents: Agents, deployments: Deployments, clock: Clock) -> None:
        self._agents, self._deployments, self._clock = agents, deployments, clock

    async def drawn(self, tenant: str, flow: Flow) -> dict[str, str]:
        """agent@channel -> version. Raises BadRequest when nobody serves a channel, and
        Unprocessable when a node needs an agent that is not here."""
        found: dict[str, str] = {}
        for node in flow.nodes.values():
            ref = _reference(node)
            if ref is None:
                continue
            name, channel = str(ref["agentId"]), ref.get("channel")
            agent = await self._known(tenant, node, name)
            if channel is None or bound(name, channel) in found:
                continue
            found[bound(name, channel)] = await self._chosen(tenant, agent, channel, node)
        return found

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


def _reference(node: FlowNode) -> dict[str, Any] | None:
    """Whom the node needs: who carries it out, or who its pin finds by a channel."""
    pin = node.definition.agent if isinstance(node.definition.agent, dict) else {}
    type_ = node.type
    led = type_.type_id == SUPERVISOR and type_.kind is Kind.ACTIVITY
    if led or type_.type_id == agent_node.TYPE_ID:
        ref = agent_node.reference(node.definition.config.get("agent"), pin)
        return ref if "agentId" in ref else None
    return pin if "channel" in pin else None
