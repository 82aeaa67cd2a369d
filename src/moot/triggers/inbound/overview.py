"""What wakes whom, as it stands: subscriptions of schedules as their schedules are, and why those
of a member that is away wake nobody."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Roster, Seat
from moot.clock import Clock
from moot.core.errors.triggers import SubscriptionNotFound
from moot.core.triggers.subscriptions import Subscription
from moot.store.protocol import Store
from moot.store.records import Record
from moot.triggers.inbound.subscriptions import Seen, Subscriptions, changes, seen_of
from moot.triggers.schedules.records import KIND, SOURCE, SUBSCRIPTION, as_planned, plan_of
from moot.triggers.schedules.service import Schedules


class Whereabouts:
    """Why members do nothing; each is looked up once, for one list."""

    def __init__(self, roster: Roster, tenant: str) -> None:
        self._roster, self._tenant = roster, tenant
        #: member -> why it is away, and what is its work
        self._known: dict[str, tuple[str | None, Seat | None]] = {}

    async def inert(self, roster_id: str | None, workflow_id: str | None) -> str | None:
        """Why a trigger of this member starts nothing, whatever its own state; None: it may."""
        if roster_id is None:
            return None
        if roster_id not in self._known:
            away = await self._roster.away(self._tenant, roster_id)
            seat = await self._roster.find(self._tenant, roster_id)
            self._known[roster_id] = away, seat
        away, seat = self._known[roster_id]
        if away is not None or seat is None or workflow_id in (None, *seat.entry.workflows):
            return away
        return f"{workflow_id} is no longer {seat.entry.persona}'s"


class Trigger(Struct, frozen=True):
    """Something that wakes a member, and why it does not, if it does not."""

    it: Subscription
    inert: str | None


class Page(Struct, frozen=True):
    """Some of what is listened to, how much there is in all, and after which name more may come."""

    found: list[Seen]
    total: int
    last: str | None = None


class Listening:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        roster: Roster,
        subscriptions: Subscriptions,
        schedules: Schedules,
    ) -> None:
        self._store, self._clock, self._roster = store, clock, roster
        self._subscriptions, self._schedules = subscriptions, schedules

    # -- reading -----------------------------------------------------------------------------

    async def page(self, tenant: str, after: str, limit: int) -> Page:
        """By id, those after this one. Only what is shown is read."""
        records, total = await self._store.record_page(tenant, SUBSCRIPTION, after, limit)
        now = self._clock.millis()
        found = [await self._as_planned(seen_of(record, now)) for record in records]
        last = records[-1].name if len(records) == limit else None
        return Page([seen for seen in found if seen is not None], total, last)

    async def scheduled(self, tenant: str) -> list[Seen]:
        """What the clock wakes, by id."""
        found = self._planned(await self._store.records(tenant, KIND))
        return [Seen(tenant, found[name], 0) for name in sorted(found)]

    async def must_find(self, tenant: str, name: str) -> Seen:
        seen = await self._as_planned(await self._subscriptions.must_find(tenant, name))
        if seen is None:
            raise SubscriptionNotFound(name)
        return seen

    async def _as_planned(self, seen: Seen) -> Seen | None:
        """None where its schedule is gone."""
        if seen.it.source != SOURCE:
            return seen
        record = await self._store.record(seen.tenant, KIND, seen.it.schedule_id or "")
        if record is None:
            return None
        return replace(seen, it=as_planned(seen.it, plan_of(record), self._clock.millis()))

    async def of_member(self, tenant: str, roster_id: str) -> list[Trigger]:
        """All that wakes one of them. Of what wakes others no more than the bytes are looked at."""
        mark = msgspec.json.encode(roster_id)
        records = [
            record
            for kind in (KIND, SUBSCRIPTION)
            for record in await self._store.records(tenant, kind)
            if mark in record.body
        ]
        where, now = Whereabouts(self._roster, tenant), self._clock.millis()
        found = [
            *self._planned([record for record in records if record.kind == KIND]).values(),
            *(seen_of(record, now).it for record in records if record.kind != KIND),
        ]
        return [
            Trigger(it, await where.inert(roster_id, it.workflow_id))
            for it in found
            if it.roster_id == roster_id
        ]

    def _planned(self, records: list[Record]) -> dict[str, Subscription]:
        """Subscriptions of these schedules, by id."""
        now, found = self._clock.millis(), dict[str, Subscription]()
        for record in records:
            plan = plan_of(record)
            name = plan.subscription
            bare = Subscription(
                subscription_id=name, source=SOURCE, schedule_id=plan.spec.schedule_id,
                owner=plan.owner,
            )  # fmt: skip
            found[name] = as_planned(bare, plan, now)
        return found

    async def changes(self, seen: Seen) -> list[dict[str, Any]]:
        """What has become of its state, oldest first."""
        if seen.it.source != SOURCE:
            history = await self._subscriptions.history(seen.tenant, seen.it.subscription_id)
            return changes(_ended(history, self._clock.millis()))
        name = seen.it.schedule_id or ""
        told = await self._store.record_history(seen.tenant, KIND, name)
        return changes(_as_planned(seen.it, told, self._clock.millis()))

    # -- by people ---------------------------------------------------------------------------

    async def pause(self, seen: Seen, by: str, note: str = "", until: int | None = None) -> Seen:
        if seen.it.source != SOURCE:
            return await self._subscriptions.pause(seen, by, note, until)
        again = seen.it.state == "paused" and (note, until) != (seen.it.note, seen.it.until)
        if seen.it.state == "active" or again:
            await self._schedules.pause(seen.tenant, str(seen.it.schedule_id), by, note, until)
        return await self.must_find(seen.tenant, seen.it.subscription_id)

    async def resume(self, seen: Seen, by: str) -> Seen:
        """A schedule that is switched off is switched on."""
        if seen.it.source != SOURCE:
            return await self._subscriptions.resume(seen, by)
        tenant, name = seen.tenant, str(seen.it.schedule_id)
        case = await self._schedules.find(tenant, name)
        if not case.plan.spec.enabled:
            await self._schedules.change(tenant, name, b'{"enabled":true}', by)
        if case.plan.pause is not None:
            await self._schedules.resume(tenant, name, by)
        return await self.must_find(tenant, seen.it.subscription_id)

    async def hand_to(self, seen: Seen, roster_id: str | None, by: str) -> Seen:
        if seen.it.source != SOURCE:
            return await self._subscriptions.hand_to(seen, roster_id, by)
        await self._subscriptions.check_member(seen.tenant, roster_id, seen.it.workflow_id)
        patch = msgspec.json.encode({"rosterId": roster_id})
        await self._schedules.change(seen.tenant, str(seen.it.schedule_id), patch, by)
        return await self.must_find(seen.tenant, seen.it.subscription_id)


def _as_planned(it: Subscription, history: list[Record], now: int) -> list[Record]:
    """The versions of a schedule as versions of its subscription, newest first. A pause that came
    to its end did so by itself."""
    told: list[Record] = []
    for number, record in enumerate(reversed(history)):
        plan, at = plan_of(record), record.created_at
        told.append(_version(record, as_planned(it, plan, at), at, record.by))
        later = history[len(history) - number - 2].created_at if number + 1 < len(history) else now
        until = plan.pause.until if plan.pause is not None else None
        if until is not None and at < until <= later:
            told.append(_version(record, as_planned(it, plan, until), until, "moot"))
    return told[::-1]


def _ended(history: list[Record], now: int) -> list[Record]:
    """The versions of a subscription, newest first, and among them pauses that have come to their
    ends by themselves."""
    told: list[Record] = []
    later = now
    for record in history:
        it = seen_of(record, 0).it
        if it.until is not None and (over := it.at(it.until)) != it and it.until <= later:
            told.append(_version(record, over, it.until, "moot"))
        told.append(record)
        later = record.created_at
    return told


def _version(record: Record, it: Subscription, at: int, by: str) -> Record:
    body = msgspec.json.encode(it)
    return replace(record, name=it.subscription_id, body=body, created_at=at, by=by)
