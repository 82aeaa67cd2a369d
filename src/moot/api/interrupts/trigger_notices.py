"""Notices about queues and webhooks that stay stopped until a person acts."""

from moot.api.http.request import Request
from moot.core.events import iso
from moot.store.records import Delivery
from moot.triggers.inbound.deliveries import OPEN_STATES
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.inbound.versions import SUBSCRIPTION_KIND, SubscriptionVersion
from moot.wire.interrupts import InboxNotice

#: States of a subscription that only a person can end.
STOPPED = ("failed", "dead-lettered")


def without_removed_sources(
    rows: list[Delivery], subscriptions: list[SubscriptionVersion]
) -> list[Delivery]:
    """Return the rows without those of removed subscriptions, because no person can act on them."""
    names = {subscription.it.subscription_id for subscription in subscriptions}
    return [row for row in rows if row.source not in INBOUND_SOURCES or row.subscription in names]


async def list_stopped_notices(
    request: Request, subscriptions: list[SubscriptionVersion]
) -> list[InboxNotice]:
    return [
        await _stopped_notice(request, subscription)
        for subscription in subscriptions
        if subscription.it.state in STOPPED
    ]


async def _stopped_notice(request: Request, subscription: SubscriptionVersion) -> InboxNotice:
    it, store = subscription.it, request.store
    record = await store.record(subscription.tenant, SUBSCRIPTION_KIND, it.subscription_id)
    counts = await store.delivery_counts(subscription.tenant, it.subscription_id)
    waiting = sum(counts.get(state, 0) for state in OPEN_STATES)
    source = f"The queue {it.queue}" if it.queue else f"The webhook {it.subscription_id}"
    text = f"{source} stands still: it is {it.state}, as no run could be begun"
    return InboxNotice(
        id=it.subscription_id,
        kind="stopped",
        text=f"{text}; {waiting} wait" if waiting else text,
        source=it.source,
        subscription_id=it.subscription_id,
        count=waiting,
        actions=["resume"],
        since=iso((it.created_at if record is None else record.created_at) * 1000),
        queue=it.queue,
        workflow_id=it.workflow_id,
        roster_id=it.roster_id,
    )
