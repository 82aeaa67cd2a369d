"""Queues of work: items come in, and a workflow takes them.

The first item creates its queue. Items wait while no workflow is bound."""

import re
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import asdict

from moot.agents.roster.members import RosterService
from moot.clock import Clock
from moot.core.errors import BadRequest, Conflict, MootError, NotFound
from moot.core.errors.triggers import Overtaken, QueueTaken, SubscriptionNotFound
from moot.core.triggers.subscriptions import (
    Arrival,
    RetryPolicy,
    dedup_key,
    queue_subscription_id,
    trigger_event,
)
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.deliveries import OPEN_STATES, DeliveryResult, InboundDeliveries
from moot.triggers.inbound.items import visible_subject
from moot.triggers.inbound.subscriptions import MOST_RACES, SubscriptionService
from moot.triggers.inbound.versions import SubscriptionVersion

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LONGEST_SUBJECT = 500


class Consumer(Struct, frozen=True, kw_only=True):
    """The workflow and member that take from a queue, and its retry policy."""

    workflow_id: str
    roster_id: str | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    input_mapping: dict[str, str] = {}


class QueueService:
    """Makes, binds and removes queues, and pushes items into them."""

    def __init__(
        self,
        clock: Clock,
        flows: WorkflowRegistry,
        roster: RosterService,
        subscriptions: SubscriptionService,
        deliveries: InboundDeliveries,
    ) -> None:
        self._clock, self._flows, self._roster = clock, flows, roster
        self._subscriptions, self._deliveries = subscriptions, deliveries

    async def all(self, tenant: str) -> list[SubscriptionVersion]:
        """Return all queues, by name."""
        versions = await self._subscriptions.inbound(tenant)
        queues = [version for version in versions if version.it.queue]
        return sorted(queues, key=lambda version: version.it.queue or "")

    async def find(self, tenant: str, queue: str) -> SubscriptionVersion | None:
        return await self._subscriptions.find(tenant, queue_subscription_id(tenant, queue))

    async def must_find(self, tenant: str, queue: str) -> SubscriptionVersion:
        version = await self.find(tenant, queue)
        if version is None:
            raise NotFound("There is no such queue; see the list of them.", queue=queue[:64])
        return version

    async def bind(
        self, tenant: str, queue: str, consumer: Consumer, by: str, take_over: bool = False
    ) -> SubscriptionVersion:
        """Start runs of this workflow for the items of the queue, including those that wait. Raise
        QueueTaken when another member has the queue, unless ``take_over``."""
        await self._flows.newest(tenant, consumer.workflow_id)
        await self._subscriptions.check_member(tenant, consumer.roster_id, consumer.workflow_id)
        existing = await self.find(tenant, queue)
        if existing is None or existing.it.workflow_id is None:
            await self._subscriptions.refuse_too_many(tenant)
        await self._ensure(tenant, queue, by, bound=True)
        for _ in range(MOST_RACES):
            version = await self.must_find(tenant, queue)
            if not take_over:
                await self._refuse_taken(version, consumer.roster_id)
            try:
                bound = await self._bind_once(version, consumer, by)
            except Overtaken:
                continue
            await self.wake(bound)
            return bound
        raise Overtaken(queue)

    async def _bind_once(
        self, version: SubscriptionVersion, consumer: Consumer, by: str
    ) -> SubscriptionVersion:
        roster_id, workflow_id = consumer.roster_id, consumer.workflow_id
        guards = await self._subscriptions.check_member(version.tenant, roster_id, workflow_id)
        return await self._subscriptions.change(
            version, by, "bound", guards, **asdict(consumer), owner=by, state="active",
            reason=None, note="", until=None,
        )  # fmt: skip

    async def _refuse_taken(self, version: SubscriptionVersion, roster_id: str | None) -> None:
        """Raise QueueTaken when another member has the queue. A dismissed member does not count."""
        holder = version.it.roster_id
        if holder is None or holder == roster_id or version.it.workflow_id is None:
            return
        if await self._roster.find(version.tenant, holder) is not None:
            raise QueueTaken(str(version.it.queue), holder)

    async def unbind(self, tenant: str, queue: str, by: str) -> SubscriptionVersion:
        """Take no more items from the queue. It still stores new ones."""
        version = await self.must_find(tenant, queue)
        if version.it.workflow_id is None:
            raise Conflict("Nobody takes from this queue anyway.", queue=queue)
        return await self._subscriptions.change(
            version, by, "unbound", workflow_id=None, roster_id=None, state="paused",
            reason="source-removed", until=None,
        )  # fmt: skip

    async def remove(self, tenant: str, queue: str, by: str) -> None:
        """Remove an unbound queue without open items. Finished items stay and are found by id; a
        new item makes the queue again."""
        for _ in range(MOST_RACES):
            version = await self.must_find(tenant, queue)
            if version.it.workflow_id is not None:
                raise Conflict("A workflow takes from this queue; unbind it first.", queue=queue)
            counts = await self._deliveries.counts(version)
            if undone := sum(counts.get(state, 0) for state in ("dead", *OPEN_STATES)):
                message = "There are items in it that nobody has done; drop them first."
                raise Conflict(message, queue=queue, items=undone)
            with suppress(Overtaken):
                return await self._subscriptions.end(version, by)
        raise Overtaken(queue)

    async def wake(self, version: SubscriptionVersion) -> None:
        where = DeliveryFilter(subscription=version.it.subscription_id)
        await self._deliveries.wake(version.tenant, where)

    async def push(
        self, tenant: str, queue: str, item: Mapping[str, object], key: str | None, by: str
    ) -> tuple[DeliveryResult, SubscriptionVersion]:
        """Put an item into the queue. A second push with the same ``key`` is the same item."""
        subject = item.get("subject", "")
        if not isinstance(subject, str) or len(subject) > LONGEST_SUBJECT:
            message = f"subject must be a text of at most {LONGEST_SUBJECT} characters."
            raise BadRequest(message, field="subject")
        name = f"key:{key}" if key is not None else self._clock.new_id("item:")
        dedup = dedup_key(queue_subscription_id(tenant, queue), name)
        arrival = Arrival(content=item)
        for _ in range(MOST_RACES):
            version = await self._ensure(tenant, queue, by)
            visible = await self._visible_subject(version, arrival, subject)
            with suppress(SubscriptionNotFound):  # the queue was removed meanwhile
                named = key is not None
                return await self._deliveries.take(version, arrival, dedup, visible, named), version
        raise Overtaken(queue)

    async def _visible_subject(
        self, version: SubscriptionVersion, arrival: Arrival, subject: str
    ) -> str:
        """Return the subject without secret inputs of the bound workflow."""
        if not subject or version.it.workflow_id is None:
            return subject
        try:
            flow = await self._flows.newest(version.tenant, version.it.workflow_id)
        except MootError:
            return subject  # no run can start, so no input is secret yet
        if not flow.sensitive:
            return subject
        event = trigger_event(version.it, arrival, "", "", 0)
        return visible_subject(version.it, event, flow, subject)

    async def item(
        self, tenant: str, queue: str, name: str
    ) -> tuple[SubscriptionVersion, Delivery]:
        version = await self.must_find(tenant, queue)
        return version, await self._deliveries.must_find(tenant, version.it.subscription_id, name)

    async def _ensure(
        self, tenant: str, queue: str, by: str, bound: bool = False
    ) -> SubscriptionVersion:
        """Return the queue, and make it when it is missing. ``bound`` exempts it from the limit on
        unbound queues."""
        name = queue_subscription_id(tenant, queue)
        version = await self._subscriptions.recalled(tenant, name)
        if version is not None:
            return version
        if not NAME.fullmatch(queue):
            message = "A queue's name has 1 to 64 small letters, digits, dots, - or _."
            raise BadRequest(message, field="name")
        if not bound:
            await self._subscriptions.refuse_too_many_idle(tenant)
        return await self._subscriptions.ensure_queue(tenant, queue, by)
