"""Notices of queues and webhooks from which nothing comes until somebody has looked at them."""

from typing import Any

from moot.api.http.request import Request
from moot.core.events import iso
from moot.store.records import Delivery
from moot.triggers.inbound.deliveries import UNDONE
from moot.triggers.inbound.items import SOURCES
from moot.triggers.inbound.subscriptions import KIND, Seen

#: states of a subscription from which only a person helps it
STOPPED = ("failed", "dead-lettered")


def still_there(rows: list[Delivery], ways: list[Seen]) -> list[Delivery]:
    """Without what came by a way that is no more: nothing can be done about it."""
    names = {seen.it.subscription_id for seen in ways}
    return [row for row in rows if row.source not in SOURCES or row.subscription in names]


async def notices(request: Request, ways: list[Seen]) -> list[dict[str, Any]]:
    return [await _notice(request, seen) for seen in ways if seen.it.state in STOPPED]


async def _notice(request: Request, seen: Seen) -> dict[str, Any]:
    it, store = seen.it, request.services.store
    record = await store.record(seen.tenant, KIND, it.subscription_id)
    counts = await store.delivery_counts(seen.tenant, it.subscription_id)
    waiting = sum(counts.get(state, 0) for state in UNDONE)
    what = f"The queue {it.queue}" if it.queue else f"The webhook {it.subscription_id}"
    text = f"{what} stands still: it is {it.state}, as no run could be begun"
    said = {
        "id": it.subscription_id,
        "kind": "stopped",
        "text": f"{text}; {waiting} wait" if waiting else text,
        "source": it.source,
        "subscriptionId": it.subscription_id,
        "count": waiting,
        "actions": ["resume"],
        "since": iso((it.created_at if record is None else record.created_at) * 1000),
    }
    more = {"queue": it.queue, "workflowId": it.workflow_id, "rosterId": it.roster_id}
    return {**said, **{name: value for name, value in more.items() if value is not None}}
