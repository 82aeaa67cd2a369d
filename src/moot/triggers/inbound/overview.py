"""All subscriptions of a tenant, with the state of their schedules and members."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import MemberVersion, RosterService
from moot.clock import Clock
from moot.core.errors.triggers import SubscriptionNotFound
from moot.core.triggers.subscriptions import TriggerSubscription
from moot.store.protocol import Store
from moot.store.records import Record
from moot.triggers.inbound.subscriptions import SubscriptionService
from moot.triggers.inbound.versions import (
    SubscriptionVersion,
    list_state_changes,
    subscription_from_record,
)
from moot.triggers.schedules.records import (
    SCHEDULE_KIND,
    SCHEDULE_SOURCE,
    SUBSCRIPTION_KIND,
    schedule_from_record,
    with_schedule_state,
)
from moot.triggers.schedules.service import ScheduleService
from moot.wire.triggers import StateChangeView


class MemberAvailability:
    """Looks up why members start nothing, once for each member of one list."""

    def __init__(self, roster: RosterService, tenant: str) -> None:
        self._roster, self._tenant = roster, tenant
        #: member -> why it is away, and the member
        self._members: dict[str, tuple[str | None, MemberVersion | None]] = {}

    async def inert(self, roster_id: str | None, workflow_id: str | None) -> str | None:
        """Return why a trigger of this member starts nothing, or None when it may."""
        if roster_id is None:
            return None
        if roster_id not in self._members:
            away = await self._roster.away(self._tenant, roster_id)
            member = await self._roster.find(self._tenant, roster_id)
            self._members[roster_id] = away, member
        away, member = self._members[roster_id]
        if away is not None or member is None or workflow_id in (None, *member.entry.workflows):
            return away
        return f"{workflow_id} is no longer {member.entry.persona}'s"


class Trigger(Struct, frozen=True):
    """A subscription of a member, and why it starts nothing, if so."""

    it: TriggerSubscription
    inert: str | None


class SubscriptionPage(Struct, frozen=True):
    """Some subscriptions, their total number, and the id after which more may follow."""

    found: list[SubscriptionVersion]
    total: int
    last: str | None = None


class SubscriptionOverview:
    """Reads and changes subscriptions of every source, including schedules."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        roster: RosterService,
        subscriptions: SubscriptionService,
        schedules: ScheduleService,
    ) -> None:
        self._store, self._clock, self._roster = store, clock, roster
        self._subscriptions, self._schedules = subscriptions, schedules

    # -- reading -----------------------------------------------------------------------------

    async def page(self, tenant: str, after: str, limit: int) -> SubscriptionPage:
        """Return the subscriptions after this id, by id. Only those are read."""
        records, total = await self._store.record_page(tenant, SUBSCRIPTION_KIND, after, limit)
        now = self._clock.millis()
        stored = [subscription_from_record(record, now) for record in records]
        versions = [await self._current_state(version) for version in stored]
        last = records[-1].name if len(records) == limit else None
        existing = [version for version in versions if version is not None]
        return SubscriptionPage(existing, total, last)

    async def scheduled(self, tenant: str) -> list[SubscriptionVersion]:
        """Return the subscriptions of schedules, by id."""
        records = await self._store.records(tenant, SCHEDULE_KIND)
        subscriptions = self._subscriptions_from_schedules(records)
        return [SubscriptionVersion(tenant, each, 0) for _, each in sorted(subscriptions.items())]

    async def must_find(self, tenant: str, name: str) -> SubscriptionVersion:
        version = await self._current_state(await self._subscriptions.must_find(tenant, name))
        if version is None:
            raise SubscriptionNotFound(name)
        return version

    async def _current_state(self, version: SubscriptionVersion) -> SubscriptionVersion | None:
        """Return the subscription as its schedule is now, or None when the schedule is gone."""
        if version.it.source != SCHEDULE_SOURCE:
            return version
        schedule_id = version.it.schedule_id or ""
        record = await self._store.record(version.tenant, SCHEDULE_KIND, schedule_id)
        if record is None:
            return None
        schedule, now = schedule_from_record(record), self._clock.millis()
        return replace(version, it=with_schedule_state(version.it, schedule, now))

    async def of_member(self, tenant: str, roster_id: str) -> list[Trigger]:
        """Return the triggers of one member."""
        schedules = await self.records_naming(tenant, SCHEDULE_KIND, roster_id)
        records = await self.records_naming(tenant, SUBSCRIPTION_KIND, roster_id)
        availability, now = MemberAvailability(self._roster, tenant), self._clock.millis()
        subscriptions = [
            *self._subscriptions_from_schedules(schedules).values(),
            *(subscription_from_record(record, now).it for record in records),
        ]
        return [
            Trigger(subscription, await availability.inert(roster_id, subscription.workflow_id))
            for subscription in subscriptions
            if subscription.roster_id == roster_id
        ]

    async def records_naming(self, tenant: str, kind: str, roster_id: str) -> list[Record]:
        """Return the records whose bytes contain the id. Only those are decoded."""
        mark = msgspec.json.encode(roster_id)
        return [record for record in await self._store.records(tenant, kind) if mark in record.body]

    def _subscriptions_from_schedules(
        self, records: list[Record]
    ) -> dict[str, TriggerSubscription]:
        """Return the subscriptions of these schedules, by id."""
        now, subscriptions = self._clock.millis(), dict[str, TriggerSubscription]()
        for record in records:
            schedule = schedule_from_record(record)
            name = schedule.subscription
            bare = TriggerSubscription(
                subscription_id=name, source=SCHEDULE_SOURCE, schedule_id=schedule.spec.schedule_id,
                owner=schedule.owner,
            )  # fmt: skip
            subscriptions[name] = with_schedule_state(bare, schedule, now)
        return subscriptions

    async def changes(self, version: SubscriptionVersion) -> list[StateChangeView]:
        """Return the state changes of a subscription, oldest first."""
        subscription, now = version.it, self._clock.millis()
        if subscription.source != SCHEDULE_SOURCE:
            name = subscription.subscription_id
            history = await self._subscriptions.history(version.tenant, name)
            return list_state_changes(_with_ended_pauses(history, now))
        name = subscription.schedule_id or ""
        history = await self._store.record_history(version.tenant, SCHEDULE_KIND, name)
        return list_state_changes(_versions_from_schedule(subscription, history, now))

    # -- by people ---------------------------------------------------------------------------

    async def pause(
        self, version: SubscriptionVersion, by: str, note: str = "", until: int | None = None
    ) -> SubscriptionVersion:
        it, tenant = version.it, version.tenant
        if it.source != SCHEDULE_SOURCE:
            return await self._subscriptions.pause(version, by, note, until)
        changed = it.state == "paused" and (note, until) != (it.note, it.until)
        if it.state == "active" or changed:
            await self._schedules.pause(tenant, str(it.schedule_id), by, note, until)
        return await self.must_find(tenant, it.subscription_id)

    async def resume(self, version: SubscriptionVersion, by: str) -> SubscriptionVersion:
        """Resume a subscription. A disabled schedule is enabled."""
        if version.it.source != SCHEDULE_SOURCE:
            return await self._subscriptions.resume(version, by)
        tenant, schedule_id = version.tenant, str(version.it.schedule_id)
        snapshot = await self._schedules.find(tenant, schedule_id)
        if not snapshot.plan.spec.enabled:
            await self._schedules.change(tenant, schedule_id, b'{"enabled":true}', by)
        if snapshot.plan.pause is not None:
            await self._schedules.resume(tenant, schedule_id, by)
        return await self.must_find(tenant, version.it.subscription_id)

    async def hand_to(
        self, version: SubscriptionVersion, roster_id: str | None, by: str
    ) -> SubscriptionVersion:
        if version.it.source != SCHEDULE_SOURCE:
            return await self._subscriptions.hand_to(version, roster_id, by)
        await self._subscriptions.check_member(version.tenant, roster_id, version.it.workflow_id)
        patch = msgspec.json.encode({"rosterId": roster_id})
        await self._schedules.change(version.tenant, str(version.it.schedule_id), patch, by)
        return await self.must_find(version.tenant, version.it.subscription_id)


def _versions_from_schedule(
    subscription: TriggerSubscription, history: list[Record], now: int
) -> list[Record]:
    """Return the versions of a schedule as versions of its subscription, newest first. The end of
    a pause counts as a version by the host."""
    versions: list[Record] = []
    next_at = now
    for record in history:
        schedule, at = schedule_from_record(record), record.created_at
        until = schedule.pause.until if schedule.pause is not None else None
        if until is not None and at < until <= next_at:
            resumed = with_schedule_state(subscription, schedule, until)
            versions.append(_version(record, resumed, until, "moot"))
        state = with_schedule_state(subscription, schedule, at)
        versions.append(_version(record, state, at, record.by))
        next_at = at
    return versions


def _with_ended_pauses(history: list[Record], now: int) -> list[Record]:
    """Return the versions of a subscription, newest first, with the ends of pauses among them."""
    versions: list[Record] = []
    next_at = now
    for record in history:
        subscription = subscription_from_record(record, 0).it
        until = subscription.until
        if until is not None and until <= next_at and subscription.at(until) != subscription:
            versions.append(_version(record, subscription.at(until), until, "moot"))
        versions.append(record)
        next_at = record.created_at
    return versions


def _version(record: Record, subscription: TriggerSubscription, at: int, by: str) -> Record:
    body = msgspec.json.encode(subscription)
    return replace(record, name=subscription.subscription_id, body=body, created_at=at, by=by)
