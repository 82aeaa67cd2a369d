"""Resolve standing agents for runs: which agent works in which version."""

from msgspec.structs import replace

from moot.agents.definitions.deployments import DeploymentService
from moot.agents.definitions.registry import HOST_PREFIX, AgentRegistry
from moot.agents.invocation.context import Assignment
from moot.agents.invocation.invoke import ResolvedAgent
from moot.agents.roster.members import MemberVersion, RosterService
from moot.clock import Clock
from moot.core.agents.deployments import LATEST
from moot.core.errors.triggers import MemberOffDuty
from moot.core.state.agents import CHAT_MENTION, version_key
from moot.core.state.initiation import RunMember


class MemberResolver:
    """Finds the agent behind a member, a worker name or a mention."""

    def __init__(
        self,
        roster: RosterService,
        agents: AgentRegistry,
        deployments: DeploymentService,
        clock: Clock,
    ) -> None:
        self.roster, self.agents, self.deployments = roster, agents, deployments
        self._clock = clock

    async def seat(self, tenant: str, handle: str) -> MemberVersion | None:
        return await self.roster.find(tenant, handle)

    async def resolved(self, tenant: str, member: MemberVersion) -> RunMember:
        """Choose the version of a member now, for the caller to store. Raise NotFound when its
        agent is gone, and NoActiveDeployment when no version serves its channel."""
        entry, ref = member.entry, member.entry.agent_ref
        agent = await self.agents.must_find_by_id(tenant, ref.agent_id)
        version = ref.version
        if version is None and ref.channel is not None:
            seed = self._clock.new_id("lot_")
            version = await self.deployments.chosen(tenant, agent, ref.channel, seed)
        return RunMember(
            roster_id=entry.roster_id,
            persona=entry.persona,
            agent_id=ref.agent_id,
            manifest_id=agent.manifest_id,
            version=version or agent.version,
            channel=ref.channel,
        )

    async def worker(self, tenant: str, name: str) -> str | None:
        """Return the id that the name of a worker means: a member, else an agent."""
        handle = name if name.startswith(HOST_PREFIX) else f"{HOST_PREFIX}{name}"
        if await self.roster.find(tenant, handle) is not None:
            return handle
        return await self.agents.worker(tenant, name)

    async def resolve(self, assignment: Assignment) -> ResolvedAgent | None:
        """Return the agent that does the work. Look up a member that the start of the run did not
        name: one in a conversation, or a worker that a decision chose."""
        member = assignment.member or await self._find_member(assignment)
        if member is None:
            return await self.deployments.resolve(assignment)
        channel = member.channel or LATEST
        chosen = {version_key(member.agent_id, channel): member.version or ""}
        agent_assignment = replace(
            assignment, agent=member.agent_id, version=None, channel=channel, versions=chosen
        )
        resolved = await self.deployments.resolve(agent_assignment)
        if resolved is None:
            return None
        agent = replace(resolved.agent, persona=member.persona)
        return ResolvedAgent(
            agent=agent, version=resolved.version, channel=member.channel, member=member
        )

    async def _find_member(self, assignment: Assignment) -> RunMember | None:
        if not assignment.agent.startswith(HOST_PREFIX):
            return None
        agent = await self.agents.named(assignment.tenant, assignment.agent)
        if agent is not None and assignment.source != CHAT_MENTION:
            return None
        member = await self.roster.find(assignment.tenant, assignment.agent)
        if member is None:
            return None
        if reason := member.hired.off_duty(self._clock.millis()):
            raise MemberOffDuty(assignment.agent, reason)
        return await self.resolved(assignment.tenant, member)
