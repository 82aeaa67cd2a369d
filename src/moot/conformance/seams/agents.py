"""Seams of agents and models: ask an agent, promote it, program the mock model."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from moot.agents.definitions.manifest import Agent
from moot.api.agents import deployments
from moot.api.http.request import Reply, Request
from moot.conformance.host import CHANNEL_AGENT, seams_of, stand_in_agent
from moot.conformance.nodes.structured_output import MOST_ANSWERS, MockAnswer
from moot.conformance.seams.setup import seam, start_workflow
from moot.core.agents.deployments import STABLE, DeploymentChange
from moot.core.agents.model_key import RECIPE, model_key, parse_semantic_request

#: The agent that is asked by default.
NAME = "conformance"


class LiveInvoke(Struct, frozen=True):
    source: Literal["run-api"] = "run-api"


class DeploymentTransition(Struct, frozen=True, rename="camel"):
    scenario: Literal["promote"] = "promote"
    agent_id: str = CHANNEL_AGENT
    channel: str = STABLE


class MockAiProgram(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    node_id: Annotated[str, Meta(min_length=1, max_length=128)]
    program: Annotated[list[MockAnswer], Meta(min_length=1, max_length=MOST_ANSWERS)]


async def live_invoke(request: Request) -> Reply:
    await request.read(LiveInvoke)
    services, tenant = request.services, request.caller.tenant
    agent = Agent(name=NAME, role="tester", prompt="You are asked by a test suite. Be brief.")
    await services.agents.put(tenant, agent, by="conformance")
    flow = await services.host.flows.asking(tenant, agent.agent_id)
    inputs = {"prompt": "Is anybody there?"}
    return Reply({"runId": await start_workflow(request, flow, inputs)})


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
        channel = body.channel if last else None
        change = DeploymentChange(version=version, transition="promote", channel=channel)
        deployment, _ = await deployments.apply_change(request, agent.manifest_id, change)
    return Reply(deployments.deployment_view(deployment, version))


async def program_mock_ai(request: Request) -> Reply:
    body = await request.read(MockAiProgram)
    seams_of(request).programs.tell(request.caller.tenant, body.node_id, body.program)
    return Reply({"nodeId": body.node_id, "answers": len(body.program)})


async def read_cache_key(request: Request) -> Reply:
    call = await request.read(dict[str, object])
    return Reply({"cacheKey": model_key(parse_semantic_request(call)), "recipe": RECIPE})


AGENT_SEAMS = (
    seam("agents/live-invoke", live_invoke, LiveInvoke),
    seam(
        "agents/deployment-transition",
        transition_deployment,
        DeploymentTransition,
    ),
    seam(
        "test/mock-ai/program",
        program_mock_ai,
        MockAiProgram,
    ),
    seam("test/llm-cache-key", read_cache_key, dict[str, object]),
)
