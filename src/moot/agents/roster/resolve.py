"""Standing agents as runs meet them: found once, in one version, under their own name."""

from msgspec.structs import replace

from moot.agents.definitions.deployments import Deployments
from moot.agents.definitions.registry import HOST, Agents
from moot.agents.invocation.desk import Assignment
from moot.agents.invocation.invoke import Found
from moot.agents.roster.members import Roster, Seat
from moot.clock import Clock
from moot.core.agents.deployments import LATEST
from moot.core.errors.triggers import MemberOffDuty
from moot.core.state.agents import MENTIONED, bound
from moot.core.state.initiation import Member


class Instances:
    def __init__(
        self, roster: Roster, agents: Agents, deployments: Deployments, clock: Clock
    ) -> None:
        self.roster, self.agents, self.deployments = roster, agents, deployments
        self._clock = clock

    async def seat(self, tenant: str, handle: str) -> Seat | None:
        return await self.roster.find(tenant, handle)

    async def resolved(self, tenant: str, seat: Seat) -> Member:
        """In the version that serves now: one draw, for the caller to keep. Raises NotFound when
        its agent has gone, and NoActiveDeployment when nobody serves its channel."""
        entry, ref = seat.entry, seat.entry.agent_ref
        agent = await self.agents.must_be(tenant, ref.agent_id)
        version = ref.version
        if version is None and ref.channel is not None:
            lot = self._clock.new_id("lot_")
            version = await self.deployments.chosen(tenant, agent, ref.channel, lot)
        return Member(
            roster_id=entry.roster_id,
            persona=entry.persona,
            agent_id=ref.agent_id,
            manifest_id=agent.manifest_id,
            version=version or agent.version,
            channel=ref.channel,
        )

    async def worker(self, tenant: str, name: str) -> str | None:
        """The id of who is meant by the name of a worker: a member, or else an agent."""
        handle = name if name.startswith(HOST) else f"{HOST}{name}"
        if await self.roster.find(tenant, handle) is not None:
            return handle
        return await self.agents.worker(tenant, name)

    async def resolve(self, asked: Assignment) -> Found | None:
        """The agent that does the work. A member that the run's start did not name is looked up:
        somebody in a conversation, or a worker that only a decision thought of."""
        member = asked.member or await self._met(asked)
        if member is None:
            return await self.deployments.resolve(asked)
        channel = member.channel or LATEST
        chosen = {bound(member.agent_id, channel): member.version or ""}
        meant = replace(
            asked, agent=member.agent_id, version=None, channel=channel, versions=chosen
        )
        found = await self.deployments.resolve(meant)
        if found is None:
            return None
        named = replace(found.agent, persona=member.persona)
        return Found(agent=named, version=found.version, channel=member.channel, member=member)

    async def _met(self, asked: Assignment) -> Member | None:
        if not asked.agent.startswith(HOST):
            return None
        here = await self.agents.named(asked.tenant, asked.agent)
        if here is not None and asked.source != MENTIONED:
            return None
        seat = await self.roster.find(asked.tenant, asked.agent)
        if seat is None:
            return None
        if reason := seat.hired.off_duty(self._clock.millis()):
            raise MemberOffDuty(asked.agent, reason)
        return await self.resolved(asked.tenant, seat)
