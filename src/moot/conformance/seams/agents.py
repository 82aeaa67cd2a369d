"""Seams for agents of a host under trial: a real agent on the demo model, really asked."""

from typing import Literal

from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.api.agents import deployments
from moot.api.http.request import Reply, Request
from moot.core.agents.deployments import STABLE, Change
from moot.core.runs.start import StartRun

#: who is asked when a suite names nobody
NAME = "conformance"
#: the agent that the fixture of channels is about
CHANNEL_AGENT = "core.conformance.channel-agent"


class LiveInvoke(Struct, frozen=True):
    source: Literal["run-api"] = "run-api"


class Transition(Struct, frozen=True, rename="camel"):
    scenario: Literal["promote"] = "promote"
    agent_id: str = CHANNEL_AGENT
    channel: str = STABLE


async def live_invoke(request: Request) -> Reply:
    await request.read(LiveInvoke)
    services, tenant = request.services, request.caller.tenant
    agent = Agent(name=NAME, role="tester", prompt="You are asked by a test suite. Be brief.")
    await services.agents.put(tenant, agent, by="conformance")
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        at=services.clock.millis(),
        limits=services.host.limits,
        inputs={"prompt": "Is anybody there?"},
    )
    flow = await services.host.flows.asking(tenant, agent.agent_id)
    run = await services.host.create(flow, command)
    return Reply({"runId": run.run_id})


async def transition(request: Request) -> Reply:
    """The newest version, promoted until it serves the channel."""
    asked = await request.read(Transition)
    services, tenant = request.services, request.caller.tenant
    agent = await services.agents.named(tenant, asked.agent_id)
    if agent is None:
        agent = stand_in(asked.agent_id)
        await services.agents.put(tenant, agent, by="conformance")
    version = agent.version
    found = await services.deployments.of(tenant, agent)
    for _ in range(4):
        if asked.channel in found.of(version).channels:
            break
        last = found.of(version).state in ("staged", "paused", "active")
        change = Change(
            version=version, transition="promote", channel=asked.channel if last else None
        )
        found, _ = await deployments.applied(request, agent.manifest_id, change)
    return Reply(deployments.shown(found, version))


def stand_in(agent_id: str) -> Agent:
    """An agent for an id that a suite names."""
    name = agent_id.removeprefix("host:").rpartition(".")[2]
    manifest = None if agent_id.startswith("host:") else agent_id
    return Agent(name=name, prompt="You stand in for an agent of a test.", manifest=manifest)
