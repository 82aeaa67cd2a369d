"""Runs that agents of this host work in: whom they name is known before they begin."""

from typing import Any

from msgspec import UNSET

from moot.agents.manifest import Agent
from moot.api.options import CreateRun
from moot.api.services import Services
from moot.api.wire import Request
from moot.core.agency import bound
from moot.core.definition import SUPERVISOR
from moot.core.errors import BadRequest, NoActiveDeployment, NotFound, Unprocessable
from moot.core.flow import Flow, FlowNode
from moot.core.outcomes import Kind
from moot.engine.ask import PROMPT, TASK
from moot.engine.nodes import agent as agent_node


async def flow_of(request: Request, asked: CreateRun) -> Flow:
    """The workflow that is asked for: one by its id, or that of a question to an agent."""
    flows, tenant = request.services.host.flows, request.caller.tenant
    evaluated = not (asked.mode is asked.eval_suite_ref is UNSET)
    if asked.agent_id is UNSET or evaluated:
        if asked.workflow_id is UNSET or not asked.workflow_id:
            raise BadRequest("workflowId is missing.", field="workflowId")
        return await flows.newest(tenant, asked.workflow_id)
    if asked.workflow_id is not UNSET:
        raise BadRequest("A run is of a workflow or of an agent: leave one out.", field="agentId")
    agents = request.services.agents
    await agents.must_be(tenant, asked.agent_id)
    meant = await agents.worker(tenant, asked.agent_id)
    if not (asked.inputs.get(PROMPT) or asked.inputs.get(TASK)):
        raise BadRequest(
            f"Say what the agent shall do: inputs.{PROMPT} in words, or inputs.{TASK} as data.",
            field=f"inputs.{PROMPT}",
        )
    return await flows.asking(tenant, meant or asked.agent_id)


async def versions_of(services: Services, tenant: str, flow: Flow) -> dict[str, str]:
    """agent@channel -> version, drawn once. Raises BadRequest when nobody serves a channel, and
    Unprocessable when a node needs an agent that is not here."""
    found: dict[str, str] = {}
    for node in flow.nodes.values():
        ref = _reference(node)
        if ref is None:
            continue
        name, channel = str(ref["agentId"]), ref.get("channel")
        agent = await _known(services, tenant, node, name)
        if channel is None or bound(name, channel) in found:
            continue
        lot = services.clock.new_id("lot_")
        try:
            version = await services.deployments.chosen(tenant, agent, channel, lot)
        except NoActiveDeployment as refusal:
            raise BadRequest(
                f"Node '{node.id}': {refusal.message}", code=refusal.code, nodeId=node.id
            ) from None
        found[bound(name, channel)] = version
    return found


def _reference(node: FlowNode) -> dict[str, Any] | None:
    """Whom the node needs: who carries it out, or who its pin finds by a channel."""
    pin = node.definition.agent if isinstance(node.definition.agent, dict) else {}
    type_ = node.type
    led = type_.type_id == SUPERVISOR and type_.kind is Kind.ACTIVITY
    if led or type_.type_id == agent_node.TYPE_ID:
        ref = agent_node.reference(node.definition.config.get("agent"), pin)
        return ref if "agentId" in ref else None
    return pin if "channel" in pin else None


async def _known(services: Services, tenant: str, node: FlowNode, name: str) -> Agent:
    try:
        return await services.agents.must_be(tenant, name)
    except NotFound as refusal:
        raise Unprocessable(
            f"Node '{node.id}': {refusal.message}", nodeId=node.id, agentId=name
        ) from None
