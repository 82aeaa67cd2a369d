"""Subscriptions to inbound work, stored as records with their history."""

import base64
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from moot.agents.roster.members import RosterService
from moot.clock import Clock
from moot.core.backoff import SECRET_OVERLAP
from moot.core.errors import BadRequest, Conflict
from moot.core.errors.triggers import (
    MemberGone,
    NotInPortfolio,
    Overtaken,
    QueueIdle,
    SubscriptionNotActive,
    SubscriptionNotFound,
)
from moot.core.triggers.signatures import PREFIX
from moot.core.triggers.subscriptions import (
    RetryPolicy,
    SubscriptionState,
    TriggerSubscription,
    VerificationMode,
    queue_subscription_id,
)
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch, Store
from moot.store.records import Guard, Record, new_record
from moot.triggers.inbound.versions import (
    SUBSCRIPTION_KIND,
    SubscriptionVersion,
    decode_subscription,
    subscription_from_record,
)

MOST_SUBSCRIPTIONS = 1000
#: unbound queues of a tenant
MOST_IDLE = 1000
MOST_RACES = 20
MOST_KNOWN = 10_000


class SubscriptionRequest(Struct, frozen=True, kw_only=True):
    """The settings of a new webhook subscription."""

    workflow_id: str
    dedup_enabled: bool = True
    retry_policy: RetryPolicy = RetryPolicy()
    verification: VerificationMode = "required"
    input_mapping: dict[str, str] = {}
    roster_id: str | None = None


class SubscriptionService:
    """Makes, finds and changes subscriptions. Every change is a new version of the record."""

    def __init__(
        self, store: Store, clock: Clock, flows: WorkflowRegistry, roster: RosterService
    ) -> None:
        self._store, self._clock, self._flows, self._roster = store, clock, flows, roster
        #: subscriptions that take requests without a key -> their tenant
        self._owners: dict[str, str] = {}
        self._cache: dict[tuple[str, str], SubscriptionVersion] = {}
        #: tenant -> its queues and webhooks, and whether each has a workflow; filled on demand
        self._bound: dict[str, dict[str, bool]] = {}

    async def load(self) -> None:
        for tenant in await self._store.record_tenants(SUBSCRIPTION_KIND):
            for version in await self.inbound(tenant):
                if version.it.source == "webhook":
                    self._owners[version.it.subscription_id] = tenant

    async def all(self, tenant: str) -> list[SubscriptionVersion]:
        """Return all subscriptions, by id. Those of schedules have only a name here; see
        SubscriptionOverview."""
        now, records = self._clock.millis(), await self._store.records(tenant, SUBSCRIPTION_KIND)
        return [subscription_from_record(record, now) for record in records]

    async def inbound(self, tenant: str) -> list[SubscriptionVersion]:
        """Return the subscriptions of queues and webhooks, by id. Only the first call reads those
        of schedules."""
        names = sorted(await self._names(tenant))
        return [version for name in names if (version := await self.find(tenant, name)) is not None]

    async def _names(self, tenant: str) -> dict[str, bool]:
        if tenant not in self._bound:
            has_workflow = {}
            for version in await self.all(tenant):
                if version.it.source != "schedule":
                    self._remember(version)
                    has_workflow[version.it.subscription_id] = _has_workflow(version.it)
            self._bound[tenant] = {**has_workflow, **self._bound.get(tenant, {})}
        return self._bound[tenant]

    async def refuse_too_many(self, tenant: str) -> None:
        """Raise BadRequest at the limit of subscriptions with a workflow. Schedules have their own
        limit."""
        if sum((await self._names(tenant)).values()) >= MOST_SUBSCRIPTIONS:
            raise BadRequest(f"There are {MOST_SUBSCRIPTIONS} subscriptions; remove one first.")

    async def refuse_too_many_idle(self, tenant: str) -> None:
        """Raise BadRequest at the limit of unbound queues. Any push can make one, so they do not
        count against the other limit."""
        idle = [bound for bound in (await self._names(tenant)).values() if not bound]
        if len(idle) >= MOST_IDLE:
            advice = "bind or remove one first"
            raise BadRequest(f"There are {MOST_IDLE} queues that nobody takes from; {advice}.")

    async def find(self, tenant: str, name: str) -> SubscriptionVersion | None:
        record = await self._store.record(tenant, SUBSCRIPTION_KIND, name)
        if record is None:
            self._cache.pop((tenant, name), None)
            return None
        return self._remember(subscription_from_record(record, self._clock.millis()))

    async def recalled(self, tenant: str, name: str) -> SubscriptionVersion | None:
        """Return the cached version. Use it only in a batch that guards it."""
        cached = self._cache.get((tenant, name))
        if cached is None:
            return await self.find(tenant, name)
        return replace(cached, it=cached.it.at(self._clock.millis()))

    def forget(self, version: SubscriptionVersion) -> None:
        self._cache.pop((version.tenant, version.it.subscription_id), None)

    def _remember(self, version: SubscriptionVersion) -> SubscriptionVersion:
        """Cache the version unless a newer one is cached, because two tasks may read at once."""
        key = (version.tenant, version.it.subscription_id)
        if (cached := self._cache.get(key)) is not None and cached.revision > version.revision:
            return cached
        if len(self._cache) >= MOST_KNOWN:
            self._cache.clear()
        self._cache[key] = version
        return version

    async def must_find(self, tenant: str, name: str) -> SubscriptionVersion:
        version = await self.find(tenant, name)
        if version is None:
            raise SubscriptionNotFound(name)
        return version

    async def find_public(self, name: str) -> SubscriptionVersion:
        """Return the subscription whose address a caller without a key has called."""
        tenant = self._owners.get(name)
        if tenant is None:
            raise SubscriptionNotFound(name)
        return await self.must_find(tenant, name)

    async def history(self, tenant: str, name: str) -> list[Record]:
        return await self._store.record_history(tenant, SUBSCRIPTION_KIND, name)

    # -- making ------------------------------------------------------------------------------

    async def register(
        self, tenant: str, request: SubscriptionRequest, by: str
    ) -> TriggerSubscription:
        """Make a webhook subscription. Raise WorkflowNotFound, and NotFound or NotInPortfolio for
        its member."""
        await self._flows.newest(tenant, request.workflow_id)
        await self.check_member(tenant, request.roster_id, request.workflow_id)
        await self.refuse_too_many(tenant)
        name = self._clock.new_id("sub_")
        secret = self._secret()
        subscription = TriggerSubscription(
            subscription_id=name, source="webhook", owner=by, created_at=self._clock.millis(),
            secret=secret, fingerprint=secret_fingerprint(name, secret), **asdict(request),
        )  # fmt: skip
        await self._put(SubscriptionVersion(tenant, subscription, 0), subscription, by, "made")
        self._owners[name] = tenant
        return subscription

    async def ensure(
        self, tenant: str, subscription: TriggerSubscription, by: str
    ) -> SubscriptionVersion:
        """Return the subscription with this id, and make it when there is none."""
        for _ in range(MOST_RACES):
            name = subscription.subscription_id
            if (version := await self.find(tenant, name)) is not None:
                return version
            history = await self.history(tenant, name)
            revision = history[0].revision if history else 0
            with suppress(Overtaken):
                before = SubscriptionVersion(tenant, subscription, revision)
                return await self._put(before, subscription, by, "made")
        raise Overtaken(subscription.subscription_id)

    async def ensure_queue(self, tenant: str, queue: str, by: str) -> SubscriptionVersion:
        """Return the subscription of a queue, and make it when there is none. It starts unbound."""
        subscription = TriggerSubscription(
            subscription_id=queue_subscription_id(tenant, queue), source="queue", state="paused",
            queue=queue, owner=by, created_at=self._clock.millis(),
        )  # fmt: skip
        return await self.ensure(tenant, subscription, by)

    # -- changing ----------------------------------------------------------------------------

    async def change(
        self,
        version: SubscriptionVersion,
        by: str,
        did: str,
        guards: Sequence[Guard] = (),
        **changes: Any,
    ) -> SubscriptionVersion:
        """Write the next version. Raise Overtaken when another version came between."""
        return await self._put(version, replace(version.it, **changes), by, did, guards=guards)

    async def pause(
        self, version: SubscriptionVersion, by: str, note: str = "", until: int | None = None
    ) -> SubscriptionVersion:
        if (version.it.state, version.it.note, version.it.until) == ("paused", note, until):
            return version
        return await self.change(
            version, by, "paused", state="paused", reason="operator-paused", note=note, until=until
        )

    async def resume(self, version: SubscriptionVersion, by: str) -> SubscriptionVersion:
        """Resume a subscription, even one that failed. Raise QueueIdle for an unbound queue, and
        MemberGone."""
        if version.it.workflow_id is None:
            raise QueueIdle(str(version.it.queue))
        guards = []
        if version.it.roster_id is not None:
            member = await self._roster.find(version.tenant, version.it.roster_id)
            if member is None:
                raise MemberGone(version.it.roster_id)
            guards = [member.guard]
        return await self.set_state(version, "active", None, by, guards)

    async def set_state(
        self,
        version: SubscriptionVersion,
        state: SubscriptionState,
        reason: str | None,
        by: str,
        guards: Sequence[Guard] = (),
    ) -> SubscriptionVersion:
        if version.it.state == state:
            return version
        return await self.change(
            version, by, state, guards, state=state, reason=reason, note="", until=None
        )

    async def hand_to(
        self, version: SubscriptionVersion, roster_id: str | None, by: str
    ) -> SubscriptionVersion:
        """Hand the subscription to a member that owns its workflow. Raise NotFound or
        NotInPortfolio."""
        guards = await self.check_member(version.tenant, roster_id, version.it.workflow_id)
        return await self.change(version, by, "handed", guards, roster_id=roster_id)

    async def map_inputs(
        self, version: SubscriptionVersion, mapping: dict[str, str], by: str
    ) -> SubscriptionVersion:
        if version.it.source == "schedule":
            raise Conflict("A schedule has inputs of its own; change those.")
        return await self.change(version, by, "mapped", input_mapping=mapping)

    async def check_member(
        self, tenant: str, roster_id: str | None, workflow_id: str | None
    ) -> list[Guard]:
        """Raise when the member is missing or does not own the workflow. Return guards for that."""
        if roster_id is None:
            return []
        member = await self._roster.must_find(tenant, roster_id)
        if workflow_id is not None and workflow_id not in member.entry.workflows:
            raise NotInPortfolio(roster_id, workflow_id, member.entry.workflows)
        return [member.guard]

    async def rotate(self, version: SubscriptionVersion, by: str) -> TriggerSubscription:
        """Set a new secret. The previous one stays valid for a day."""
        if version.it.secret is None:
            raise Conflict("Only subscriptions to webhooks have a secret.")
        secret = self._secret()
        rotated = await self.change(
            version,
            by,
            "rotated",
            secret=secret,
            fingerprint=secret_fingerprint(version.it.subscription_id, secret),
            earlier=version.it.secret,
            earlier_until=self._clock.millis() + SECRET_OVERLAP,
        )
        return rotated.it

    async def remove(self, version: SubscriptionVersion, by: str) -> None:
        if version.it.source == "schedule":
            raise Conflict("It goes with its schedule; remove that.", id=version.it.schedule_id)
        if version.it.source == "queue":
            raise Conflict("It goes with its queue; remove that.", queue=version.it.queue)
        await self.end(version, by)

    async def end(self, version: SubscriptionVersion, by: str) -> None:
        """Remove a subscription of any source. Raise Overtaken when it has changed."""
        await self._put(version, version.it, by, "removed", gone=True)
        self._owners.pop(version.it.subscription_id, None)

    async def restore_queue(self, tenant: str, name: str) -> SubscriptionVersion | None:
        """Make the subscription of a removed queue again, for an item that came in meanwhile."""
        history = await self.history(tenant, name)
        queue = decode_subscription(history[0].body).queue if history else None
        return None if queue is None else await self.ensure_queue(tenant, queue, history[0].by)

    async def _put(
        self, version: SubscriptionVersion, subscription: TriggerSubscription, by: str, did: str,
        gone: bool = False, guards: Sequence[Guard] = (),
    ) -> SubscriptionVersion:  # fmt: skip
        record = self.record(version.tenant, subscription, by, did, gone)
        self.forget(version)
        await self._store.commit(Batch(guards=[version.guard, *guards], records=[record]))
        tenant, name = version.tenant, subscription.subscription_id
        newest = await self._store.record(tenant, SUBSCRIPTION_KIND, name)
        # 0: it has changed since, so a batch that guards this version is refused
        revision = newest.revision if newest is not None and newest.body == record.body else 0
        fresh = SubscriptionVersion(tenant, subscription, revision)
        if subscription.source != "schedule" and tenant in self._bound:
            self._bound[tenant][name] = _has_workflow(subscription)
            if gone:
                del self._bound[tenant][name]
        return fresh if gone else self._remember(fresh)

    def record(
        self, tenant: str, subscription: TriggerSubscription, by: str, did: str, gone: bool = False
    ) -> Record:
        place = tenant, SUBSCRIPTION_KIND, subscription.subscription_id
        return new_record(place, did, subscription, by, self._clock.millis(), gone)

    def _secret(self) -> str:
        digest = hashlib.sha256(self._clock.new_secret("").encode()).digest()
        return PREFIX + base64.b64encode(digest).decode()


def _has_workflow(subscription: TriggerSubscription) -> bool:
    return subscription.workflow_id is not None


def secret_fingerprint(name: str, secret: str) -> str:
    """Return a short hash that tells secrets apart and does not reveal them."""
    return hashlib.sha256(f"{name}\0{secret}".encode()).hexdigest()[:16]


def inactive_error(version: SubscriptionVersion) -> Conflict | None:
    """Return why the subscription starts no runs now."""
    it = version.it
    if it.queue is not None and it.workflow_id is None:
        return QueueIdle(it.queue)
    if it.state == "active":
        return None
    return SubscriptionNotActive(it.subscription_id, it.state, it.queue, it.note, it.until)
