"""Choose the version of an agent: requested, deployed to a channel, or newest."""

import asyncio

import msgspec

from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import HOST_PREFIX, AgentRegistry
from moot.agents.invocation.context import Assignment
from moot.agents.invocation.invoke import ResolvedAgent
from moot.clock import Clock
from moot.core.agents import deployments
from moot.core.agents.deployments import LATEST, AgentDeployment, DeploymentChange, DeploymentStep
from moot.core.errors import AgentNotFound, NoActiveDeployment, NotFound
from moot.core.state.agents import version_key
from moot.store.records import Record, RecordStore

DEPLOYMENT_KIND = "deployment"

_decode = msgspec.json.Decoder(AgentDeployment).decode


class DeploymentService:
    """The deployments of every tenant, one record for each agent."""

    def __init__(self, store: RecordStore, clock: Clock, agents: AgentRegistry) -> None:
        self._store, self._clock, self._agents = store, clock, agents
        self._changing = asyncio.Lock()

    async def of(self, tenant: str, agent: Agent) -> AgentDeployment:
        record = await self._store.record(tenant, DEPLOYMENT_KIND, agent.name)
        return (
            AgentDeployment(agent_id=agent.manifest_id) if record is None else _decode(record.body)
        )

    async def change(
        self, tenant: str, agent: Agent, change: DeploymentChange, by: str
    ) -> DeploymentStep:
        """Change a deployment, one change at a time. Raise NotFound for an unknown version."""
        if await self._agents.at(tenant, agent.name, change.version) is None:
            raise NotFound(
                f"There is no version '{change.version}' of {agent.name}.", version=change.version
            )
        async with self._changing:
            deployment, event = deployments.change_deployment(await self.of(tenant, agent), change)
            await self._store.put_record(
                Record(
                    tenant=tenant,
                    kind=DEPLOYMENT_KIND,
                    name=agent.name,
                    version=change.version,
                    body=msgspec.json.encode(deployment),
                    created_at=self._clock.millis(),
                    by=by,
                )
            )
        return deployment, event

    async def chosen(self, tenant: str, agent: Agent, channel: str, run_id: str) -> str:
        """Return the version that serves this run. Raise NoActiveDeployment."""
        deployment = await self.of(tenant, agent)
        if channel == LATEST and not deployment.versions:
            return agent.version
        version = deployments.draw_version(deployment, channel, run_id)
        if version is None:
            raise NoActiveDeployment(
                f"No active version of {agent.name} serves the channel '{channel}'; promote one:"
                f" POST /v1/agents/{agent.manifest_id}/deployments.",
                agentId=agent.manifest_id,
                channel=channel,
            )
        return version

    async def resolve(self, assignment: Assignment) -> ResolvedAgent | None:
        """Return the agent for an assignment. A run keeps the version it got first, whatever is
        promoted later."""
        agent = await self._agents.named(assignment.tenant, assignment.agent)
        name = agent.name if agent is not None else assignment.agent.removeprefix(HOST_PREFIX)
        version = assignment.version or assignment.versions.get(
            version_key(assignment.agent, assignment.channel)
        )
        if version is None:
            if agent is None:
                return None
            if assignment.channel is None:
                return ResolvedAgent(agent=agent, version=agent.version)
            version = await self.chosen(
                assignment.tenant, agent, assignment.channel, assignment.run_id
            )
        pinned = await self._agents.at(assignment.tenant, name, version)
        if pinned is None and assignment.version is not None:
            raise AgentNotFound(
                f"There is no version '{version}' of {assignment.agent}.", agentId=assignment.agent
            )
        if pinned is None:
            return None
        return ResolvedAgent(agent=pinned, version=version, channel=assignment.channel)
