"""Queues of work: items come in, a workflow takes them, for a standing agent or for nobody.

A queue is there as soon as something is put into it. What nobody takes is kept.
"""

import re
from typing import Any

from msgspec import Struct

from moot.agents.roster.members import Roster
from moot.clock import Clock
from moot.core.errors import BadRequest, Conflict, MootError, NotFound
from moot.core.errors.triggers import Overtaken, QueueTaken, SubscriptionNotFound
from moot.core.triggers.subscriptions import (
    Arrival,
    RetryPolicy,
    dedup_key,
    queue_subscription,
    trigger_event,
)
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Delivery
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.deliveries import UNDONE, Deliveries, Handed
from moot.triggers.inbound.items import shown_subject
from moot.triggers.inbound.subscriptions import MOST_RACES, Seen, Subscriptions

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LONGEST_SUBJECT = 500


class Consumer(Struct, frozen=True, kw_only=True):
    """Who takes from a queue, and how."""

    workflow_id: str
    roster_id: str | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    input_mapping: dict[str, str] = {}


class Queues:
    def __init__(
        self,
        clock: Clock,
        flows: Flows,
        roster: Roster,
        subscriptions: Subscriptions,
        deliveries: Deliveries,
    ) -> None:
        self._clock, self._flows, self._roster = clock, flows, roster
        self._subscriptions, self._deliveries = subscriptions, deliveries

    async def all(self, tenant: str) -> list[Seen]:
        """By name."""
        found = [seen for seen in await self._subscriptions.inbound(tenant) if seen.it.queue]
        return sorted(found, key=lambda seen: seen.it.queue or "")

    async def find(self, tenant: str, queue: str) -> Seen | None:
        return await self._subscriptions.find(tenant, queue_subscription(tenant, queue))

    async def must_find(self, tenant: str, queue: str) -> Seen:
        found = await self.find(tenant, queue)
        if found is None:
            raise NotFound("There is no such queue; see the list of them.", queue=queue[:64])
        return found

    async def bind(
        self, tenant: str, queue: str, consumer: Consumer, by: str, take_over: bool = False
    ) -> Seen:
        """From now on its items become runs of this workflow, also those that wait. Raises
        QueueTaken when another member listens to it and it is not to be taken over."""
        await self._flows.newest(tenant, consumer.workflow_id)
        await self._subscriptions.check_member(tenant, consumer.roster_id, consumer.workflow_id)
        known = await self.find(tenant, queue)
        if known is None or known.it.workflow_id is None:
            await self._subscriptions.refuse_too_many(tenant)
        await self._made(tenant, queue, by, bound=True)
        for _ in range(MOST_RACES):
            seen = await self.must_find(tenant, queue)
            if not take_over:
                await self._refuse_theft(seen, consumer.roster_id)
            try:
                bound = await self._bound(seen, consumer, by)
            except Overtaken:
                continue
            await self.wake(bound)
            return bound
        raise Overtaken(queue)

    async def _bound(self, seen: Seen, consumer: Consumer, by: str) -> Seen:
        guards = await self._subscriptions.check_member(
            seen.tenant, consumer.roster_id, consumer.workflow_id
        )
        return await self._subscriptions.change(
            seen,
            by,
            "bound",
            guards,
            workflow_id=consumer.workflow_id,
            roster_id=consumer.roster_id,
            retry_policy=consumer.retry_policy,
            input_mapping=consumer.input_mapping,
            owner=by,
            state="active",
            reason=None,
            note="",
            until=None,
        )

    async def _refuse_theft(self, seen: Seen, roster_id: str | None) -> None:
        """What was handed to somebody who has gone is free."""
        holder = seen.it.roster_id
        if holder is None or holder == roster_id or seen.it.workflow_id is None:
            return
        if await self._roster.find(seen.tenant, holder) is not None:
            raise QueueTaken(str(seen.it.queue), holder)

    async def unbind(self, tenant: str, queue: str, by: str) -> Seen:
        """Nobody takes from it any more; it keeps what it has and what comes."""
        seen = await self.must_find(tenant, queue)
        if seen.it.workflow_id is None:
            raise Conflict("Nobody takes from this queue anyway.", queue=queue)
        return await self._subscriptions.change(
            seen, by, "unbound", workflow_id=None, roster_id=None, state="paused",
            reason="source-removed", until=None,
        )  # fmt: skip

    async def remove(self, tenant: str, queue: str, by: str) -> None:
        """One that nobody takes from and that has nothing to be done. Items that were done stay,
        and are found by their ids; whatever is put in later makes it anew."""
        for _ in range(MOST_RACES):
            seen = await self.must_find(tenant, queue)
            if seen.it.workflow_id is not None:
                raise Conflict("A workflow takes from this queue; unbind it first.", queue=queue)
            counts = await self._deliveries.counts(seen)
            if undone := sum(counts.get(state, 0) for state in ("dead", *UNDONE)):
                raise Conflict(
                    "There are items in it that nobody has done; drop them first.",
                    queue=queue, items=undone,
                )  # fmt: skip
            try:
                return await self._subscriptions.end(seen, by)
            except Overtaken:
                continue
        raise Overtaken(queue)

    async def wake(self, seen: Seen) -> None:
        where = DeliveryFilter(subscription=seen.it.subscription_id)
        await self._deliveries.wake(seen.tenant, where)

    async def push(
        self, tenant: str, queue: str, item: dict[str, Any], key: str | None, by: str
    ) -> tuple[Handed, Seen]:
        """``key`` names the item: pushed again under it, it is the same one."""
        subject = item.get("subject", "")
        if not isinstance(subject, str) or len(subject) > LONGEST_SUBJECT:
            raise BadRequest(
                f"subject must be a text of at most {LONGEST_SUBJECT} characters.", field="subject"
            )
        name = f"key:{key}" if key is not None else self._clock.new_id("item:")
        dedup = dedup_key(queue_subscription(tenant, queue), name)
        arrival = Arrival(content=item)
        for _ in range(MOST_RACES):
            seen = await self._made(tenant, queue, by)
            shown = await self._shown(seen, arrival, subject)
            try:
                handed = await self._deliveries.take(seen, arrival, dedup, shown, key is not None)
            except SubscriptionNotFound:
                continue  # the queue was removed meanwhile
            return handed, seen
        raise Overtaken(queue)

    async def _shown(self, seen: Seen, arrival: Arrival, subject: str) -> str:
        """The subject as anybody may see it, by the workflow that takes from the queue."""
        if not subject or seen.it.workflow_id is None:
            return subject
        try:
            flow = await self._flows.newest(seen.tenant, seen.it.workflow_id)
        except MootError:
            return subject  # no run can begin; what comes is shown until one can
        if not flow.sensitive:
            return subject
        return shown_subject(seen.it, trigger_event(seen.it, arrival, "", "", 0), flow, subject)

    async def item(self, tenant: str, queue: str, name: str) -> tuple[Seen, Delivery]:
        seen = await self.must_find(tenant, queue)
        return seen, await self._deliveries.must_find(tenant, seen.it.subscription_id, name)

    async def _made(self, tenant: str, queue: str, by: str, bound: bool = False) -> Seen:
        """``bound``: it will lead somewhere, and is none of those that only keep what comes."""
        name = queue_subscription(tenant, queue)
        found = await self._subscriptions.recalled(tenant, name)
        if found is not None:
            return found
        if not NAME.fullmatch(queue):
            raise BadRequest(
                "A queue's name has 1 to 64 small letters, digits, dots, - or _.", field="name"
            )
        if not bound:
            await self._subscriptions.refuse_too_many_idle(tenant)
        return await self._subscriptions.of_queue(tenant, queue, by)
