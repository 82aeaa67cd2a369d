"""Standing agents: named workers of a tenant, each an instance of an agent, with its workflows.

An entry names an agent and copies nothing of it. It gives no right that the agent has not.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.errors import NotFound
from moot.core.errors.triggers import Overtaken
from moot.core.text.nearest import nearest
from moot.store.protocol import Batch, Guard, Store
from moot.store.records import Record

KIND = "member"
MOST_RACES = 20
#: how a member is called; also agents of this host are
ROSTER_ID = r"^host:[a-z0-9][a-z0-9._-]*$(?!\n)"

Id = Annotated[str, Meta(min_length=6, max_length=128, pattern=ROSTER_ID)]


class AgentRef(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
               omit_defaults=True):  # fmt: skip
    """Whom a member is an instance of: by a version or by a channel, or as the agent is now."""

    agent_id: Annotated[str, Meta(min_length=3, max_length=256)]
    version: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    channel: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class Owner(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    tenant_id: str
    workspace_id: str | None = None


class Entry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A member as the protocol shows it."""

    roster_id: Id
    persona: Annotated[str, Meta(min_length=1, max_length=200)]
    agent_ref: AgentRef
    owner: Owner
    workflows: tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...] = ()
    enabled: bool = True
    label: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    description: Annotated[str, Meta(max_length=500)] | None = None


class Pause(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why a member does nothing for now; without an end until somebody resumes it."""

    since: int
    by: str
    reason: str = ""
    until: int | None = None

    def holds(self, now: int) -> bool:
        return self.until is None or now < self.until


class Budget(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
             omit_defaults=True):  # fmt: skip
    """What a member's runs may use up; days and months are those of UTC."""

    tokens_per_day: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    tokens_per_month: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    money_per_day: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    money_per_month: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class Hired(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A member as it is kept: the entry, and what is only ours."""

    entry: Entry
    #: what happened in this version: hired, changed, paused, resumed, dismissed
    did: str
    hired_at: int
    pause: Pause | None = None
    budget: Budget | None = None
    #: who took it on
    hired_by: str = ""
    #: when it was last called back to duty
    back_at: int = 0

    def off_duty(self, now: int) -> str | None:
        """Why nothing may be started for it."""
        if not self.entry.enabled:
            return "disabled"
        if self.pause is not None and self.pause.holds(now):
            return "paused"
        return None

    def seen(self, now: int) -> Entry:
        """As others see it: whoever is paused is not enabled as long as that lasts."""
        return replace(self.entry, enabled=self.off_duty(now) is None)

    def since(self, now: int) -> int:
        """From when on it has been on duty or off it; a pause ends by itself, too."""
        if self.pause is None:
            return max(self.hired_at, self.back_at)
        return self.pause.since if self.pause.holds(now) else self.pause.until or 0


class Seat(Struct, frozen=True):
    """A member and the version of its record, for a batch to rely on."""

    hired: Hired
    guard: Guard

    @property
    def entry(self) -> Entry:
        return self.hired.entry


_decode = msgspec.json.Decoder(Hired).decode


class Roster:
    """The members of every tenant."""

    def __init__(self, store: Store, clock: Clock, kept: bool = True) -> None:
        self._store, self._clock, self._kept = store, clock, kept
        #: who is told (tenant, member) that a member was changed
        self.told: list[Callable[[str, str], None]] = []
        #: what goes to disk with somebody's leaving, or not at all
        self.leaving: list[Callable[[str, Hired], Awaitable[Batch]]] = []

    async def find(self, tenant: str, roster_id: str) -> Seat | None:
        """Nobody on a host that keeps no roster."""
        if not self._kept:
            return None
        record = await self._store.record(tenant, KIND, roster_id)
        return None if record is None else _seat(record)

    async def must_find(self, tenant: str, roster_id: str) -> Seat:
        """Raises NotFound with the nearest name."""
        found = await self.find(tenant, roster_id)
        if found is None:
            names = [seat.entry.roster_id for seat in await self.all(tenant)]
            meant = nearest(roster_id, names)
            hint = f" Did you mean '{meant}'?" if meant else ""
            raise NotFound(f"There is no member '{roster_id}'.{hint}", rosterId=roster_id)
        return found

    async def all(self, tenant: str) -> list[Seat]:
        """By id."""
        return [_seat(record) for record in await self._store.records(tenant, KIND)]

    async def away(self, tenant: str, roster_id: str) -> str | None:
        """Why nothing is started for a member, in words; None when it is on duty."""
        seat = await self.find(tenant, roster_id)
        if seat is not None:
            off = seat.hired.off_duty(self._clock.millis())
            return None if off is None else f"{seat.entry.persona} is {off}"
        if not self._kept:
            return "this host keeps no roster"
        known = await self.history(tenant, roster_id)
        return f"{decoded(known[0]).entry.persona if known else roster_id} is dismissed"

    async def guard(self, tenant: str, roster_id: str) -> Guard:
        """That a name stays as it is, whoever has it or had it; or nobody."""
        known = await self.history(tenant, roster_id)
        return replace(nobody(tenant, roster_id), revision=known[0].revision if known else 0)

    async def history(self, tenant: str, roster_id: str) -> list[Record]:
        return await self._store.record_history(tenant, KIND, roster_id)

    async def put(
        self, tenant: str, hired: Hired, by: str, guard: Guard, gone: bool = False
    ) -> None:
        """The next version of a member. Raises Overtaken when another came between."""
        record = Record(
            tenant=tenant,
            kind=KIND,
            name=hired.entry.roster_id,
            version=hired.did,
            body=msgspec.json.encode(hired),
            created_at=self._clock.millis(),
            by=by,
            gone=gone,
        )
        if gone:
            await self._let_go(record, hired, guard)
        else:
            await self._store.commit(Batch(guards=[guard], records=[record]))
        for tell in self.told:
            tell(tenant, hired.entry.roster_id)

    async def _let_go(self, record: Record, hired: Hired, guard: Guard) -> None:
        """Then once more for what was handed to it while it left; after that nothing can be."""
        await self._with_all(Batch(guards=[guard], records=[record]), hired, guard)
        gone = await self.guard(record.tenant, record.name)
        with suppress(Overtaken):  # somebody else is hired under this name already
            await self._with_all(Batch(guards=[gone]), hired, gone)

    async def _with_all(self, batch: Batch, hired: Hired, guard: Guard) -> None:
        """A batch with all that leaves with a member. That is looked at again when somebody has
        changed it; a change of the member itself raises Overtaken."""
        for _ in range(MOST_RACES):
            whole = Batch(guards=list(batch.guards), records=list(batch.records))
            for beside in self.leaving:
                more = await beside(guard.tenant, hired)
                whole.guards += more.guards
                whole.records += more.records
                whole.ledgers += more.ledgers
            try:
                if whole.records:
                    await self._store.commit(whole)
                return
            except Overtaken:
                if await self.guard(guard.tenant, guard.name) != guard:
                    raise
        raise Overtaken(guard.name)


def decoded(record: Record) -> Hired:
    return _decode(record.body)


def nobody(tenant: str, roster_id: str) -> Guard:
    """What a batch relies on that hires somebody."""
    return Guard(tenant=tenant, kind=KIND, name=roster_id, revision=0)


def _seat(record: Record) -> Seat:
    guard = Guard(tenant=record.tenant, kind=KIND, name=record.name, revision=record.revision)
    return Seat(_decode(record.body), guard)
