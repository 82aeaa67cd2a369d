"""Notices in the inbox: what no run waits for, but a person should know of and may act on."""

from collections.abc import Callable
from typing import Any

from moot.api import stopped
from moot.api.wire import Request
from moot.core.events import iso
from moot.store.protocol import Delivery
from moot.store.standing import DeliveryFilter
from moot.triggers.fires import fire_of, schedule_of

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
    found = await stopped.still_there(request, found)
    found.sort(key=lambda row: row.updated_at, reverse=True)
    shown = [NOTICES[row.state][row.source](row) for row in found]
    for notice in shown:
        if notice.get("source") == "queue":
            await _name_queue(request, notice)
    shown += await stopped.notices(request)
    return {"notices": shown} if shown else {}


async def _name_queue(request: Request, notice: dict[str, Any]) -> None:
    subscriptions = request.services.triggers.subscriptions
    seen = await subscriptions.find(request.caller.tenant, notice["subscriptionId"])
    if seen is not None and seen.it.queue:
        notice["queue"] = seen.it.queue


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
