"""Notices in the inbox: what no run waits for, but a person should know of and may act on."""

from collections.abc import Callable
from typing import Any

from moot.api.wire import Request
from moot.core.events import iso
from moot.store.protocol import Delivery
from moot.store.standing import DeliveryFilter
from moot.triggers.deliveries import UNDONE
from moot.triggers.fires import fire_of, schedule_of
from moot.triggers.items import SOURCES
from moot.triggers.subscriptions import KIND, Seen

#: states of a subscription from which only a person helps it
STOPPED = ("failed", "dead-lettered")

#: notices of one kind that are shown; the lists of what they are about have all of them
MOST_NOTICES = 100


async def of(request: Request) -> dict[str, Any]:
    """The newest first. They are no part of the inbox's revision, which is about what waits."""
    store, tenant = request.services.store, request.caller.tenant
    found: list[Delivery] = []
    for state in NOTICES:
        rows, _ = await store.deliveries(
            tenant, DeliveryFilter(states=(state,)), None, MOST_NOTICES
        )
        found += [row for row in rows if row.source in NOTICES[state]]
    found.sort(key=lambda row: row.updated_at, reverse=True)
    listening = {
        seen.it.subscription_id: seen
        for seen in await request.services.triggers.subscriptions.inbound(tenant)
    }
    stopped = [
        await _stopped(request, seen) for seen in listening.values() if seen.it.state in STOPPED
    ]
    rows = [row for row in found if row.source not in SOURCES or row.subscription in listening]
    letters = [NOTICES[row.state][row.source](row) for row in rows]
    for notice in letters:
        if (seen := listening.get(notice.get("subscriptionId", ""))) and seen.it.queue:
            notice["queue"] = seen.it.queue
    shown = [*stopped, *letters]
    return {"notices": shown} if shown else {}


async def _stopped(request: Request, seen: Seen) -> dict[str, Any]:
    """A queue or a webhook from which nothing comes any more until somebody has looked at it."""
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


def _missed(row: Delivery) -> dict[str, Any]:
    fire = fire_of(row)
    last = iso((fire.slot if fire.until is None else fire.until) * 1000)
    fires = "1 missed fire" if fire.count == 1 else f"{fire.count} missed fires, the last"
    return {
        **_of_schedule(row),
        "kind": "missed-fire",
        "text": f"{fires} at {last}",
        "at": last,
        "count": fire.count,
    }


def _unbegun(row: Delivery) -> dict[str, Any]:
    at = iso(fire_of(row).slot * 1000)
    text = f"The run for {at} could not begin: {row.reason}"
    return {**_of_schedule(row), "kind": "failed-fire", "text": text, "at": at, "count": 1}


def _of_schedule(row: Delivery) -> dict[str, Any]:
    return {
        "id": row.delivery_id,
        "scheduleId": schedule_of(row.key),
        "workflowId": row.subject,
        "actions": ["run", "skip"],
        "since": iso(row.updated_at * 1000),
        **({} if row.member is None else {"rosterId": row.member}),
    }


def _undelivered(row: Delivery) -> dict[str, Any]:
    member = {} if row.member is None else {"rosterId": row.member}
    return {
        "id": row.delivery_id,
        "kind": "dead-letter",
        "text": f"Not delivered: {row.delivery_id}: {row.reason}",
        "source": row.source,
        "subscriptionId": row.subscription,
        "reason": row.reason,
        "actions": ["redeliver", "drop"],
        "since": iso(row.updated_at * 1000),
        **member,
    }


#: state of a delivery -> source -> what a person is told
NOTICES: dict[str, dict[str, Callable[[Delivery], dict[str, Any]]]] = {
    "missed": {"schedule": _missed},
    "dead": {
        "schedule": _unbegun,
        **dict.fromkeys(("queue", "webhook", "outbound"), _undelivered),
    },
}
