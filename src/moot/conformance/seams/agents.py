"""Seams ``agents/*``: ask a real agent, promote a real deployment."""

from typing import Literal

from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.api.agents import deployments
from moot.api.http.request import Reply, Request
from moot.core.agents.deployments import STABLE, DeploymentChange
from moot.engine.start import RunOrder, start_run

#: The agent that is asked by default.
NAME = "conformance"
#: The agent of the fixture about channels.
CHANNEL_AGENT = "core.conformance.channel-agent"


class LiveInvoke(Struct, frozen=True):
    source: Literal["run-api"] = "run-api"


class DeploymentTransition(Struct, frozen=True, rename="camel"):
    scenario: Literal["promote"] = "promote"
    agent_id: str = CHANNEL_AGENT
    channel: str = STABLE


async def live_invoke(request: Request) -> Reply:
    await request.read(LiveInvoke)
    services, tenant = request.services, request.caller.tenant
    agent = Agent(name=NAME, role="tester", prompt="You are asked by a test suite. Be brief.")
    await services.agents.put(tenant, agent, by="conformance")
    flow = await services.host.flows.asking(tenant, agent.agent_id)
    order = RunOrder(
        tenant=tenant,
        principal=request.caller.id,
        workflow_id=flow.definition.id,
        flow=flow,
        inputs={"prompt": "Is anybody there?"},
    )
    run = await start_run(services.host, order)
    return Reply({"runId": run.run_id})


async def transition_deployment(request: Request) -> Reply:
    """Promote the newest version until it serves the channel."""
    body = await request.read(DeploymentTransition)
    services, tenant = request.services, request.caller.tenant
    agent = await services.agents.named(tenant, body.agent_id)
    if agent is None:
        agent = stand_in_agent(body.agent_id)
        await services.agents.put(tenant, agent, by="conformance")
    version = agent.version
    deployment = await services.deployments.of(tenant, agent)
    for _ in range(4):
        if body.channel in deployment.of(version).channels:
            break
        last = deployment.of(version).state in ("staged", "paused", "active")
        change = DeploymentChange(
            version=version, transition="promote", channel=body.channel if last else None
        )
        deployment, _ = await deployments.apply_change(request, agent.manifest_id, change)
    return Reply(deployments.deployment_view(deployment, version))


def stand_in_agent(agent_id: str) -> Agent:
    """Return an agent for an id that a suite names."""
    name = agent_id.removeprefix("host:").rpartition(".")[2]
    manifest = None if agent_id.startswith("host:") else agent_id
    return Agent(name=name, prompt="You stand in for an agent of a test.", manifest=manifest)
