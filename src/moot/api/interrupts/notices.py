"""Notices in the inbox: what no run waits for, but a person should know of and may act on."""

from collections.abc import Callable
from typing import Any

from moot.api.http.request import Request
from moot.api.interrupts import trigger_notices, webhook_notices
from moot.core.events import iso
from moot.engine.effects.agent_budgets import (
    BUDGET,
    STOPPED,
    WARN_AT,
    WARNED,
    Allowances,
    notice_key,
)
from moot.engine.streams.hub import inbox_of
from moot.store.protocol import Batch, Delivery
from moot.store.records import DeliveryFilter
from moot.triggers.schedules.fire_rows import fire_of, schedule_of

#: notices of one kind that are shown; the lists of what they are about have all of them
MOST_NOTICES = 100


async def of(request: Request) -> dict[str, Any]:
    """The newest first. Where one comes or goes, the inbox has another revision."""
    found = [row for state in NOTICES for row in await _in(request, state)]
    ways = await request.services.triggers.subscriptions.inbound(request.caller.tenant)
    found = trigger_notices.still_there(found, ways)
    found += await _limits(request, await _in(request, "notice"))
    found.sort(key=lambda row: row.updated_at, reverse=True)
    shown = [_notice(row) for row in found]
    for notice in shown:
        if notice.get("source") == "queue":
            await _name_queue(request, notice)
    shown += await trigger_notices.notices(request, ways)
    shown += await webhook_notices.notices(request)
    return {"notices": shown} if shown else {}


async def changed(request: Request) -> None:
    """Some may be true no longer."""
    tenant = request.caller.tenant
    await request.services.store.commit(Batch(inboxes=[tenant]))
    request.services.host.hub.ring(inbox_of(tenant))


async def _in(request: Request, state: str) -> list[Delivery]:
    """Only of the sources that are told of one by one: others could hide them."""
    where = DeliveryFilter(states=(state,), sources=tuple(NOTICES.get(state, ())))
    rows, _ = await request.services.store.deliveries(
        request.caller.tenant, where, None, MOST_NOTICES
    )
    return rows


async def _limits(request: Request, rows: list[Delivery]) -> list[Delivery]:
    """Those about limits of members that are still as they say: in this day or month, with no
    higher limit set since, and no later notice of the same limit."""
    services, tenant = request.services, request.caller.tenant
    allowances = Allowances(services.store, services.clock, services.roster)
    kept: list[Delivery] = []
    for member in dict.fromkeys(row.subscription for row in rows):
        seat, now = await services.roster.find(tenant, member), services.clock.millis()
        bounds = await allowances.bounds(tenant, seat) if seat is not None else []
        mine = {row.key: row for row in rows if row.subscription == member}
        for bound in bounds:
            stop = mine.get(notice_key(bound, STOPPED, now)) if bound.share >= 1 else None
            warning = mine.get(notice_key(bound, WARNED, now))
            told = stop or (warning if bound.share >= WARN_AT else None)
            kept += [told] if told is not None else []
    return kept


def _notice(row: Delivery) -> dict[str, Any]:
    return _limit(row) if row.source == BUDGET else NOTICES[row.state][row.source](row)


def _limit(row: Delivery) -> dict[str, Any]:
    stopped = row.subject == STOPPED
    return {
        "id": row.delivery_id,
        "kind": "budget-stop" if stopped else "budget-warning",
        "text": row.reason,
        "limit": row.key.partition(":")[0],
        "actions": ["change"],
        "since": iso(row.updated_at * 1000),
        "rosterId": row.subscription,
    }


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
        **dict.fromkeys(("queue", "webhook"), _undelivered),
    },
}
