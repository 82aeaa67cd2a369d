"""Which version of an agent does the work: asked for, bound to a channel, or the newest."""

import asyncio

import msgspec

from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import HOST, Agents
from moot.agents.invocation.desk import Assignment
from moot.agents.invocation.invoke import Found
from moot.clock import Clock
from moot.core.agents import deployments
from moot.core.agents.deployments import LATEST, Change, Deployment, Told
from moot.core.errors import AgentNotFound, NoActiveDeployment, NotFound
from moot.core.state.agents import bound
from moot.store.records import Record, RecordKeeping

KIND = "deployment"

_decode = msgspec.json.Decoder(Deployment).decode


class Deployments:
    """The deployments of every tenant, one record for each agent."""

    def __init__(self, store: RecordKeeping, clock: Clock, agents: Agents) -> None:
        self._store, self._clock, self._agents = store, clock, agents
        self._changing = asyncio.Lock()

    async def of(self, tenant: str, agent: Agent) -> Deployment:
        record = await self._store.record(tenant, KIND, agent.name)
        return Deployment(agent_id=agent.manifest_id) if record is None else _decode(record.body)

    async def change(
        self, tenant: str, agent: Agent, asked: Change, by: str
    ) -> tuple[Deployment, list[Told]]:
        """One change after the other. Raises NotFound for a version there never was."""
        if await self._agents.at(tenant, agent.name, asked.version) is None:
            raise NotFound(
                f"There is no version '{asked.version}' of {agent.name}.", version=asked.version
            )
        async with self._changing:
            found, told = deployments.changed(await self.of(tenant, agent), asked)
            await self._store.put_record(
                Record(
                    tenant=tenant,
                    kind=KIND,
                    name=agent.name,
                    version=asked.version,
                    body=msgspec.json.encode(found),
                    created_at=self._clock.millis(),
                    by=by,
                )
            )
        return found, told

    async def chosen(self, tenant: str, agent: Agent, channel: str, run_id: str) -> str:
        """The version that serves this run. Raises NoActiveDeployment."""
        found = await self.of(tenant, agent)
        if channel == LATEST and not found.versions:
            return agent.version
        version = deployments.drawn(found, channel, run_id)
        if version is None:
            raise NoActiveDeployment(
                f"No active version of {agent.name} serves the channel '{channel}'; promote one:"
                f" POST /v1/agents/{agent.manifest_id}/deployments.",
                agentId=agent.manifest_id,
                channel=channel,
            )
        return version

    async def resolve(self, asked: Assignment) -> Found | None:
        """What a run was given before it is given again, whatever has been promoted since."""
        agent = await self._agents.named(asked.tenant, asked.agent)
        name = agent.name if agent is not None else asked.agent.removeprefix(HOST)
        known = asked.version or asked.versions.get(bound(asked.agent, asked.channel))
        if known is None:
            if agent is None:
                return None
            if asked.channel is None:
                return Found(agent=agent, version=agent.version)
            known = await self.chosen(asked.tenant, agent, asked.channel, asked.run_id)
        found = await self._agents.at(asked.tenant, name, known)
        if found is None and asked.version is not None:
            raise AgentNotFound(
                f"There is no version '{known}' of {asked.agent}.", agentId=asked.agent
            )
        if found is None:
            return None
        return Found(agent=found, version=known, channel=asked.channel)
