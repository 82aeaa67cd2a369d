"""Notices beside the inbox: nobody waits for an answer to them, but somebody should look."""

from typing import Any

from moot.api.wire import Request
from moot.core.events import iso
from moot.store.standing import Delivery, DeliveryFilter

MOST = 50


async def of(request: Request) -> dict[str, Any]:
    """What could not be delivered, in or out, newest first. They are no part of the inbox's
    revision, which is about what waits."""
    tenant = request.caller.tenant
    found, _ = await request.services.store.deliveries(
        tenant, DeliveryFilter(states=("dead",)), None, MOST
    )
    queues: dict[str, str | None] = {}
    for row in found:
        if row.source == "queue" and row.subscription not in queues:
            seen = await request.services.triggers.subscriptions.find(tenant, row.subscription)
            queues[row.subscription] = None if seen is None else seen.it.queue
    shown = [_notice(row, queues.get(row.subscription)) for row in found]
    return {"notices": shown} if shown else {}


def _notice(row: Delivery, queue: str | None) -> dict[str, Any]:
    said = {
        "id": row.delivery_id,
        "kind": "dead-letter",
        "source": row.source,
        "subscriptionId": row.subscription,
        "reason": row.reason,
        "since": iso(row.updated_at * 1000),
    }
    more = {"queue": queue, "rosterId": row.member}
    return {**said, **{name: value for name, value in more.items() if value}}
