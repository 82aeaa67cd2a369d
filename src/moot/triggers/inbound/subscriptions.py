"""Who listens to what comes in: subscriptions, kept as records with all of their history."""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Roster
from moot.clock import Clock
from moot.core.backoff import OVERLAP
from moot.core.errors import BadRequest, Conflict
from moot.core.errors.triggers import (
    MemberGone,
    NotInPortfolio,
    Overtaken,
    QueueIdle,
    SubscriptionNotFound,
)
from moot.core.triggers.signatures import PREFIX
from moot.core.triggers.subscriptions import (
    CHANGED,
    Mode,
    RetryPolicy,
    State,
    Subscription,
    queue_subscription,
)
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Batch, Guard, Store
from moot.store.records import Record

KIND = "subscription"
MOST_SUBSCRIPTIONS = 1000
#: queues of a tenant that nobody takes from
MOST_IDLE = 1000
MOST_RACES = 20
MOST_KNOWN = 10_000

_decode = msgspec.json.Decoder(Subscription).decode


class Seen(Struct, frozen=True):
    """A subscription and the version of its record, for a batch to rely on."""

    tenant: str
    it: Subscription
    revision: int

    @property
    def guard(self) -> Guard:
        name = self.it.subscription_id
        return Guard(tenant=self.tenant, kind=KIND, name=name, revision=self.revision)


class Wanted(Struct, frozen=True, kw_only=True):
    """What somebody who registers a webhook asks for."""

    workflow_id: str
    dedup_enabled: bool = True
    retry_policy: RetryPolicy = RetryPolicy()
    verification: Mode = "required"
    input_mapping: dict[str, str] = {}
    roster_id: str | None = None


class Subscriptions:
    """Every change is a new version of the record, with who made it."""

    def __init__(self, store: Store, clock: Clock, flows: Flows, roster: Roster) -> None:
        self._store, self._clock, self._flows, self._roster = store, clock, flows, roster
        #: where requests of strangers may go: subscription -> whose it is
        self._owners: dict[str, str] = {}
        self._known: dict[tuple[str, str], Seen] = {}
        #: tenant -> its queues and webhooks, without what schedules have, and whether each leads to
        #: a workflow; filled when asked for
        self._own: dict[str, dict[str, bool]] = {}

    async def load(self) -> None:
        for tenant in await self._store.record_tenants(KIND):
            for seen in await self.inbound(tenant):
                if seen.it.source == "webhook":
                    self._owners[seen.it.subscription_id] = tenant

    async def all(self, tenant: str) -> list[Seen]:
        """By id. Those of schedules are no more than a name here: see ``listening``."""
        now = self._clock.millis()
        return [seen_of(record, now) for record in await self._store.records(tenant, KIND)]

    async def inbound(self, tenant: str) -> list[Seen]:
        """Those of queues and webhooks, by id. However many schedules there are, only the first
        look reads them."""
        names = sorted(await self._names(tenant))
        return [seen for name in names if (seen := await self.find(tenant, name)) is not None]

    async def _names(self, tenant: str) -> dict[str, bool]:
        if tenant not in self._own:
            found = [seen for seen in await self.all(tenant) if seen.it.source != "schedule"]
            for seen in found:
                self._keep(seen)
            own = {seen.it.subscription_id: _leads(seen.it) for seen in found}
            self._own[tenant] = {**own, **self._own.get(tenant, {})}
        return self._own[tenant]

    async def refuse_too_many(self, tenant: str) -> None:
        """Of those that lead to a workflow. Schedules are counted where they are made."""
        if sum((await self._names(tenant)).values()) >= MOST_SUBSCRIPTIONS:
            raise BadRequest(f"There are {MOST_SUBSCRIPTIONS} subscriptions; remove one first.")

    async def refuse_too_many_idle(self, tenant: str) -> None:
        """Of queues that nobody takes from: whoever may push makes them, and takes no room from
        those that somebody has registered."""
        idle = [leads for leads in (await self._names(tenant)).values() if not leads]
        if len(idle) >= MOST_IDLE:
            raise BadRequest(
                f"There are {MOST_IDLE} queues that nobody takes from; bind or remove one first."
            )

    async def find(self, tenant: str, name: str) -> Seen | None:
        record = await self._store.record(tenant, KIND, name)
        if record is None:
            self._known.pop((tenant, name), None)
            return None
        return self._keep(seen_of(record, self._clock.millis()))

    async def recalled(self, tenant: str, name: str) -> Seen | None:
        """As it was when it was last looked at here: only for a batch that guards it."""
        known = self._known.get((tenant, name))
        if known is None:
            return await self.find(tenant, name)
        return replace(known, it=known.it.at(self._clock.millis()))

    def forget(self, seen: Seen) -> None:
        self._known.pop((seen.tenant, seen.it.subscription_id), None)

    def _keep(self, seen: Seen) -> Seen:
        """Unless a newer version is known already: two may read at once."""
        place = (seen.tenant, seen.it.subscription_id)
        if (known := self._known.get(place)) is not None and known.revision > seen.revision:
            return known
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[place] = seen
        return seen

    async def must_find(self, tenant: str, name: str) -> Seen:
        found = await self.find(tenant, name)
        if found is None:
            raise SubscriptionNotFound(name)
        return found

    async def of_strangers(self, name: str) -> Seen:
        """The subscription whose address somebody without a key has called."""
        tenant = self._owners.get(name)
        if tenant is None:
            raise SubscriptionNotFound(name)
        return await self.must_find(tenant, name)

    async def history(self, tenant: str, name: str) -> list[Record]:
        return await self._store.record_history(tenant, KIND, name)

    # -- made --------------------------------------------------------------------------------

    async def register(self, tenant: str, wanted: Wanted, by: str) -> Subscription:
        """One for a webhook. Raises WorkflowNotFound; NotFound or NotInPortfolio for its member."""
        await self._flows.newest(tenant, wanted.workflow_id)
        await self.check_member(tenant, wanted.roster_id, wanted.workflow_id)
        await self.refuse_too_many(tenant)
        name = self._clock.new_id("sub_")
        secret = self._secret()
        made = Subscription(
            subscription_id=name,
            source="webhook",
            workflow_id=wanted.workflow_id,
            roster_id=wanted.roster_id,
            owner=by,
            created_at=self._clock.millis(),
            dedup_enabled=wanted.dedup_enabled,
            retry_policy=wanted.retry_policy,
            verification=wanted.verification,
            input_mapping=wanted.input_mapping,
            secret=secret,
            fingerprint=fingerprint(name, secret),
        )
        await self._put(Seen(tenant, made, 0), made, by, "made")
        self._owners[name] = tenant
        return made

    async def ensure(self, tenant: str, subscription: Subscription, by: str) -> Seen:
        """The subscription of this id, made as given where there is none. For sources that make
        theirs themselves: queues, schedules."""
        for _ in range(MOST_RACES):
            name = subscription.subscription_id
            if (found := await self.find(tenant, name)) is not None:
                return found
            known = await self.history(tenant, name)
            revision = known[0].revision if known else 0
            try:
                return await self._put(
                    Seen(tenant, subscription, revision), subscription, by, "made"
                )
            except Overtaken:
                continue
        raise Overtaken(subscription.subscription_id)

    async def of_queue(self, tenant: str, queue: str, by: str) -> Seen:
        """That of a queue. A queue that nobody takes from keeps what comes."""
        fresh = Subscription(
            subscription_id=queue_subscription(tenant, queue),
            source="queue",
            state="paused",
            queue=queue,
            owner=by,
            created_at=self._clock.millis(),
        )
        return await self.ensure(tenant, fresh, by)

    # -- changed -----------------------------------------------------------------------------

    async def change(
        self, seen: Seen, by: str, did: str, guards: Sequence[Guard] = (), **changes: Any
    ) -> Seen:
        """The next version. Raises Overtaken when another came between."""
        return await self._put(seen, replace(seen.it, **changes), by, did, guards=guards)

    async def pause(self, seen: Seen, by: str, note: str = "", until: int | None = None) -> Seen:
        if (seen.it.state, seen.it.note, seen.it.until) == ("paused", note, until):
            return seen
        return await self.change(
            seen, by, "paused", state="paused", reason="operator-paused", note=note, until=until
        )

    async def resume(self, seen: Seen, by: str) -> Seen:
        """Also after it had failed. Raises QueueIdle for a queue that nobody takes from, and
        MemberGone."""
        if seen.it.workflow_id is None:
            raise QueueIdle(str(seen.it.queue))
        guards = []
        if seen.it.roster_id is not None:
            seat = await self._roster.find(seen.tenant, seen.it.roster_id)
            if seat is None:
                raise MemberGone(seen.it.roster_id)
            guards = [seat.guard]
        return await self.turned(seen, "active", None, by, guards)

    async def turned(
        self, seen: Seen, state: State, reason: str | None, by: str, guards: Sequence[Guard] = ()
    ) -> Seen:
        if seen.it.state == state:
            return seen
        return await self.change(
            seen, by, state, guards, state=state, reason=reason, note="", until=None
        )

    async def hand_to(self, seen: Seen, roster_id: str | None, by: str) -> Seen:
        """To a standing agent, whose workflow it must be. Raises NotFound, NotInPortfolio."""
        guards = await self.check_member(seen.tenant, roster_id, seen.it.workflow_id)
        return await self.change(seen, by, "handed", guards, roster_id=roster_id)

    async def map_inputs(self, seen: Seen, mapping: dict[str, str], by: str) -> Seen:
        if seen.it.source == "schedule":
            raise Conflict("A schedule has inputs of its own; change those.")
        return await self.change(seen, by, "mapped", input_mapping=mapping)

    async def check_member(
        self, tenant: str, roster_id: str | None, workflow_id: str | None
    ) -> list[Guard]:
        """It is so while the guards hold."""
        if roster_id is None:
            return []
        seat = await self._roster.must_find(tenant, roster_id)
        if workflow_id is not None and workflow_id not in seat.entry.workflows:
            raise NotInPortfolio(roster_id, workflow_id, seat.entry.workflows)
        return [seat.guard]

    async def rotate(self, seen: Seen, by: str) -> Subscription:
        """Another secret; the one before stays good for a day."""
        if seen.it.secret is None:
            raise Conflict("Only subscriptions to webhooks have a secret.")
        secret = self._secret()
        fresh = await self.change(
            seen,
            by,
            "rotated",
            secret=secret,
            fingerprint=fingerprint(seen.it.subscription_id, secret),
            earlier=seen.it.secret,
            earlier_until=self._clock.millis() + OVERLAP,
        )
        return fresh.it

    async def remove(self, seen: Seen, by: str) -> None:
        if seen.it.source == "schedule":
            raise Conflict("It goes with its schedule; remove that.", id=seen.it.schedule_id)
        if seen.it.source == "queue":
            raise Conflict("It goes with its queue; remove that.", queue=seen.it.queue)
        await self.end(seen, by)

    async def end(self, seen: Seen, by: str) -> None:
        """Whatever it is of. Raises Overtaken when it has changed meanwhile."""
        await self._put(seen, seen.it, by, "removed", gone=True)
        self._owners.pop(seen.it.subscription_id, None)

    async def restored(self, tenant: str, name: str) -> Seen | None:
        """That of a queue that was removed while something came into it, made again."""
        known = await self.history(tenant, name)
        queue = _decode(known[0].body).queue if known else None
        return None if queue is None else await self.of_queue(tenant, queue, known[0].by)

    async def _put(
        self, seen: Seen, it: Subscription, by: str, did: str, gone: bool = False,
        guards: Sequence[Guard] = (),
    ) -> Seen:  # fmt: skip
        record = self.record(seen.tenant, it, by, did, gone)
        self.forget(seen)
        await self._store.commit(Batch(guards=[seen.guard, *guards], records=[record]))
        newest = await self._store.record(seen.tenant, KIND, it.subscription_id)
        ours = newest is not None and newest.body == record.body
        #: 0: somebody has changed it since, and what relies on this version is overtaken
        fresh = Seen(seen.tenant, it, newest.revision if newest is not None and ours else 0)
        if it.source != "schedule" and seen.tenant in self._own:
            own = self._own[seen.tenant]
            own[it.subscription_id] = _leads(it)
            if gone:
                del own[it.subscription_id]
        return fresh if gone else self._keep(fresh)

    def record(
        self, tenant: str, it: Subscription, by: str, did: str, gone: bool = False
    ) -> Record:
        return Record(
            tenant=tenant,
            kind=KIND,
            name=it.subscription_id,
            version=did,
            body=msgspec.json.encode(it),
            created_at=self._clock.millis(),
            by=by,
            gone=gone,
        )

    def _secret(self) -> str:
        drawn = hashlib.sha256(self._clock.new_secret("").encode()).digest()
        return PREFIX + base64.b64encode(drawn).decode()


def _leads(it: Subscription) -> bool:
    return it.workflow_id is not None


def fingerprint(name: str, secret: str) -> str:
    """Enough to tell secrets apart, and of no use to find one."""
    return hashlib.sha256(f"{name}\0{secret}".encode()).hexdigest()[:16]


def changes(history: list[Record]) -> list[dict[str, Any]]:
    """What has become of a subscription's state, oldest first, as the protocol tells it."""
    told: list[dict[str, Any]] = []
    before: Subscription | None = None
    for record in reversed(history):
        it = _decode(record.body)
        if before is not None and it.state != before.state:
            said = {
                "subscriptionId": it.subscription_id,
                "source": it.source,
                "fromState": before.state,
                "toState": it.state,
            }
            if it.reason is not None:
                said["reason"] = it.reason
            name = f"{record.name}.{record.revision}"
            if told and told[-1]["eventId"] == name:
                name += ".ended"  # a pause, by itself
            told.append({"eventId": name, "type": CHANGED, "at": record.created_at,
                         "by": record.by, "payload": said})  # fmt: skip
        before = it
    return told


def seen_of(record: Record, now: int) -> Seen:
    return Seen(record.tenant, _decode(record.body).at(now), record.revision)
