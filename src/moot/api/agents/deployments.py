"""Which version of an agent serves whom: changed here, and told in a run of its own."""

from typing import Any

import msgspec

from moot.api.access.auth import is_agents, require
from moot.api.http.request import Endpoint, Reply, Request
from moot.core.agents.deployments import Change, Deployment
from moot.core.errors import Forbidden
from moot.core.runs.start import StartRun
from moot.engine.workflows.built_in import DEPLOYMENT

#: what a key must be allowed to do for a transition
SCOPES = {
    "promote": "deploy:promote",
    "adjust-canary": "deploy:promote",
    "rollback": "deploy:rollback",
    "pause": "deploy:pause",
    "deprecate": "deploy:pause",
}


async def change(request: Request) -> Reply:
    agent_id = request.params["agent_id"]
    await request.services.agents.must_be(request.caller.tenant, agent_id)
    asked = await request.read(Change)
    require(request.caller, SCOPES[asked.transition])
    if is_agents(request.caller) and not request.caller.admin:
        raise Forbidden("An agent's key does not say which version of an agent serves.")
    found, run_id = await applied(request, agent_id, asked)
    headers = {"Location": f"/v1/runs/{run_id}"}
    return Reply(shown(found, asked.version), 200, headers)


async def applied(request: Request, agent_id: str, asked: Change) -> tuple[Deployment, str]:
    """The change is made, then a run tells of it."""
    services, tenant = request.services, request.caller.tenant
    agent = await services.agents.must_be(tenant, agent_id)
    found, told = await services.deployments.change(tenant, agent, asked, request.caller.id)
    flow = await services.host.flows.own(tenant, DEPLOYMENT)
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        at=services.clock.millis(),
        limits=services.host.limits,
        inputs={"told": [list(each) for each in told]},
    )
    run = await services.host.create(flow, command)
    return found, run.run_id


def shown(found: Deployment, version: str) -> dict[str, Any]:
    """One version, as the protocol has it."""
    one = found.of(version)
    said: dict[str, Any] = msgspec.to_builtins(one)
    share = {"canaryPercent": one.canary_percent} if one.channels else {}
    return {"agentId": found.agent_id, "state": one.state, **said, **share}


async def list_deployments(request: Request) -> Reply:
    services, tenant = request.services, request.caller.tenant
    agent = await services.agents.must_be(tenant, request.params["agent_id"])
    found = await services.deployments.of(tenant, agent)
    return Reply({"deployments": [shown(found, version) for version in found.versions]})


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/agents/{agent_id}/deployments", call=change, body=Change,
        scope="manifest:read", summary="Change which version of an agent serves whom",
        answer="agent-deployment", errors=(404, 409),
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/agents/{agent_id}/deployments", call=list_deployments,
        scope="manifest:read", summary="The versions of an agent that were promoted",
        errors=(404,),
    ),
)  # fmt: skip
