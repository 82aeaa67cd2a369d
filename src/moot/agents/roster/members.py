"""Standing agents of a tenant: each is an instance of an agent and has workflows.

A member names an agent and copies nothing of it. It gets no right that the agent lacks."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.agents.definitions.registry import HOST_PREFIX, AgentRegistry, DeploymentService
from moot.agents.invocation.context import Assignment, ResolvedAgent
from moot.clock import Clock
from moot.core.agents.deployments import LATEST
from moot.core.errors import NotFound
from moot.core.errors.triggers import MemberOffDuty, Overtaken
from moot.core.state.agents import CHAT_MENTION, version_key
from moot.core.state.initiation import RunMember
from moot.core.text.nearest import nearest_word
from moot.store.protocol import Batch, Store
from moot.store.records import Guard, Record
from moot.wire.roster import ROSTER_ID, MemberAgentRef, MemberBudget

MEMBER_KIND = "member"
MOST_RACES = 20

MemberId = Annotated[str, Meta(min_length=6, max_length=128, pattern=ROSTER_ID)]


class MemberOwner(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The tenant and workspace that own a member."""

    tenant_id: str
    workspace_id: str | None = None


class MemberEntry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A member as the protocol shows it."""

    roster_id: MemberId
    persona: Annotated[str, Meta(min_length=1, max_length=200)]
    agent_ref: MemberAgentRef
    owner: MemberOwner
    workflows: tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...] = ()
    enabled: bool = True
    label: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    description: Annotated[str, Meta(max_length=500)] | None = None


class PausePeriod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pause with its reason. Without an end it lasts until a person resumes."""

    since: int
    by: str
    reason: str = ""
    until: int | None = None

    def holds(self, now: int) -> bool:
        return self.until is None or now < self.until


class MemberRecord(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A member as it is stored: the protocol entry, and the fields of this host."""

    entry: MemberEntry
    #: the change of this version: hired, changed, paused, resumed, dismissed
    did: str
    hired_at: int
    pause: PausePeriod | None = None
    budget: MemberBudget | None = None
    #: the principal that added it
    hired_by: str = ""
    #: when it last resumed
    back_at: int = 0

    def off_duty(self, now: int) -> str | None:
        """Return why nothing may be started for the member, or None."""
        if not self.entry.enabled:
            return "disabled"
        if self.pause is not None and self.pause.holds(now):
            return "paused"
        return None

    def seen(self, now: int) -> MemberEntry:
        """Return the protocol entry. A paused member is disabled there."""
        return replace(self.entry, enabled=self.off_duty(now) is None)

    def since(self, now: int) -> int:
        """Return since when it is on or off duty. A pause may end by itself."""
        if self.pause is None:
            return max(self.hired_at, self.back_at)
        return self.pause.since if self.pause.holds(now) else self.pause.until or 0


class MemberVersion(Struct, frozen=True):
    """A member and the guard of its record, for a batch to rely on."""

    hired: MemberRecord
    guard: Guard

    @property
    def entry(self) -> MemberEntry:
        return self.hired.entry


_decode = msgspec.json.Decoder(MemberRecord).decode


class RosterService:
    def __init__(self, store: Store, clock: Clock, enabled: bool = True) -> None:
        self._store, self._clock, self._enabled = store, clock, enabled
        #: called with tenant and member id after each change
        self.told: list[Callable[[str, str], None]] = []
        #: builds the batch to write with a dismissal
        self.leaving: list[Callable[[str, MemberRecord], Awaitable[Batch]]] = []

    async def find(self, tenant: str, roster_id: str) -> MemberVersion | None:
        """Return the member, or None. A host without a roster has no members."""
        if not self._enabled:
            return None
        record = await self._store.record(tenant, MEMBER_KIND, roster_id)
        return None if record is None else _version_from_record(record)

    async def must_find(self, tenant: str, roster_id: str) -> MemberVersion:
        """Return the member. Raise NotFound with the nearest id."""
        member = await self.find(tenant, roster_id)
        if member is None:
            names = [member.entry.roster_id for member in await self.all(tenant)]
            suggestion = nearest_word(roster_id, names)
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            raise NotFound(f"There is no member '{roster_id}'.{hint}", rosterId=roster_id)
        return member

    async def all(self, tenant: str) -> list[MemberVersion]:
        records = await self._store.records(tenant, MEMBER_KIND)
        return [_version_from_record(record) for record in records]

    async def away(self, tenant: str, roster_id: str) -> str | None:
        """Return in words why nothing is started for a member, or None when it is on duty."""
        member = await self.find(tenant, roster_id)
        if member is not None:
            reason = member.hired.off_duty(self._clock.millis())
            return None if reason is None else f"{member.entry.persona} is {reason}"
        if not self._enabled:
            return "this host keeps no roster"
        history = await self.history(tenant, roster_id)
        name = member_from_record(history[0]).entry.persona if history else roster_id
        return f"{name} is dismissed"

    async def guard(self, tenant: str, roster_id: str) -> Guard:
        """Return a guard for the current revision of an id, even if no member has it."""
        history = await self.history(tenant, roster_id)
        revision = history[0].revision if history else 0
        return replace(new_member_guard(tenant, roster_id), revision=revision)

    async def history(self, tenant: str, roster_id: str) -> list[Record]:
        return await self._store.record_history(tenant, MEMBER_KIND, roster_id)

    async def put(
        self, tenant: str, member_record: MemberRecord, by: str, guard: Guard, gone: bool = False
    ) -> None:
        """Write the next version of a member. Raise Overtaken when another came between."""
        record = Record(
            tenant=tenant,
            kind=MEMBER_KIND,
            name=member_record.entry.roster_id,
            version=member_record.did,
            body=msgspec.json.encode(member_record),
            created_at=self._clock.millis(),
            by=by,
            gone=gone,
        )
        if gone:
            await self._dismiss(record, member_record, guard)
        else:
            await self._store.commit(Batch(guards=[guard], records=[record]))
        for notify in self.told:
            notify(tenant, member_record.entry.roster_id)

    async def _dismiss(self, record: Record, member_record: MemberRecord, guard: Guard) -> None:
        """Dismiss a member and pause its triggers. Do the latter twice, because a trigger may be
        handed to it meanwhile; after that none can be."""
        batch = Batch(guards=[guard], records=[record])
        await self._commit_with_triggers(batch, member_record, guard)
        gone = await self.guard(record.tenant, record.name)
        with suppress(Overtaken):  # the id has a new member already
            await self._commit_with_triggers(Batch(guards=[gone]), member_record, gone)

    async def _commit_with_triggers(
        self, batch: Batch, member_record: MemberRecord, guard: Guard
    ) -> None:
        """Commit the batch with the batches of ``leaving``. Retry when a trigger has changed;
        raise Overtaken when the member has."""
        for _ in range(MOST_RACES):
            whole = Batch(guards=list(batch.guards), records=list(batch.records))
            for build in self.leaving:
                extra = await build(guard.tenant, member_record)
                whole.guards += extra.guards
                whole.records += extra.records
                whole.ledgers += extra.ledgers
            try:
                if whole.records:
                    await self._store.commit(whole)
                return
            except Overtaken:
                if await self.guard(guard.tenant, guard.name) != guard:
                    raise
        raise Overtaken(guard.name)


def member_from_record(record: Record) -> MemberRecord:
    return _decode(record.body)


def new_member_guard(tenant: str, roster_id: str) -> Guard:
    return Guard(tenant=tenant, kind=MEMBER_KIND, name=roster_id, revision=0)


def _version_from_record(record: Record) -> MemberVersion:
    kind, name = MEMBER_KIND, record.name
    guard = Guard(tenant=record.tenant, kind=kind, name=name, revision=record.revision)
    return MemberVersion(_decode(record.body), guard)


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
        return replace(resolved, agent=agent, channel=member.channel, member=member)

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
