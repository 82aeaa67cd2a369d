"""Change and list deployments: which version of an agent serves a channel."""

import msgspec

from moot.api.access.auth import is_agent_key, require_scope
from moot.api.http.request import Endpoint, Reply, Request
from moot.core.agents.deployments import AgentDeployment, DeploymentChange
from moot.core.errors import Forbidden
from moot.engine.start import RunOrder, start_run
from moot.engine.workflows.built_in import DEPLOYMENT
from moot.wire.agents import DeploymentList, DeploymentView

#: Percent of the runs that a version serves alone.
WHOLE_SHARE = 100

#: Transition -> the scope it needs.
TRANSITION_SCOPES = {
    "promote": "deploy:promote",
    "adjust-canary": "deploy:promote",
    "rollback": "deploy:rollback",
    "pause": "deploy:pause",
    "deprecate": "deploy:pause",
}


async def change_deployment(request: Request) -> Reply:
    agent_id = request.params["agent_id"]
    await request.services.agents.must_find_by_id(request.caller.tenant, agent_id)
    change = await request.read(DeploymentChange)
    require_scope(request.caller, TRANSITION_SCOPES[change.transition])
    if is_agent_key(request.caller) and not request.caller.admin:
        raise Forbidden("An agent's key does not say which version of an agent serves.")
    deployment, run_id = await apply_change(request, agent_id, change)
    headers = {"Location": f"/v1/runs/{run_id}"}
    return Reply(deployment_view(deployment, change.version), 200, headers)


async def apply_change(
    request: Request, agent_id: str, change: DeploymentChange
) -> tuple[AgentDeployment, str]:
    """Store the change, then start the run that records it."""
    services, tenant = request.services, request.caller.tenant
    agent = await services.agents.must_find_by_id(tenant, agent_id)
    deployment, event = await services.deployments.change(tenant, agent, change, request.caller.id)
    order = RunOrder(
        tenant=tenant,
        principal=request.caller.id,
        workflow_id=DEPLOYMENT,
        flow=await services.host.flows.own(tenant, DEPLOYMENT),
        inputs={"told": [[event.event_type, msgspec.to_builtins(event)]]},
    )
    run = await start_run(services.host, order)
    return deployment, run.run_id


def deployment_view(deployment: AgentDeployment, version: str) -> DeploymentView:
    """Return one version in the protocol's form."""
    deployed = deployment.of(version)
    has_share = bool(deployed.channels) or deployed.canary_percent != WHOLE_SHARE
    return DeploymentView(
        agent_id=deployment.agent_id,
        version=deployed.version,
        state=deployed.state,
        channels=list(deployed.channels),
        canary_percent=deployed.canary_percent if has_share else None,
        rollback_pointer=deployed.rollback_pointer,
        eval_run_id=deployed.eval_run_id,
    )


async def list_deployments(request: Request) -> Reply:
    services, tenant = request.services, request.caller.tenant
    agent = await services.agents.must_find_by_id(tenant, request.params["agent_id"])
    deployment = await services.deployments.of(tenant, agent)
    views = [deployment_view(deployment, version) for version in deployment.versions]
    return Reply(DeploymentList(deployments=views))


DEPLOYMENT_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/agents/{agent_id}/deployments", call=change_deployment,
        body=DeploymentChange,
        scope="manifest:read", summary="Change which version of an agent serves whom",
        published="agent-deployment", errors=(404, 409),
        tag="Agents", operation_id="changeDeployment", answer=DeploymentView,
        description="Promotes, pauses, deprecates or rolls back a version of an agent, or changes "
        "its share of the runs. Each transition needs its own scope. Refuses a "
        "transition that the state of the version does not allow with 409.",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/agents/{agent_id}/deployments", call=list_deployments,
        scope="manifest:read", summary="The versions of an agent that were promoted",
        errors=(404,),
        tag="Agents", operation_id="listDeployments", answer=DeploymentList,
        description="Lists the versions of an agent that were promoted, and the channels they "
        "serve.",
    ),
)  # fmt: skip
