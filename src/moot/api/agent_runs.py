"""Runs that agents of this host work in: whom they name is known before they begin."""

from msgspec import UNSET

from moot.api.options import CreateRun
from moot.api.wire import Request
from moot.core.errors import BadRequest
from moot.core.flow import Flow
from moot.engine.ask import PROMPT, TASK


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
