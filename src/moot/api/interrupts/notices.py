"""Notices of the inbox: failures and skipped slots a person may act on."""

from collections.abc import Callable

from msgspec.structs import replace

from moot.api.http.request import Request
from moot.core.events import iso
from moot.core.triggers.webhooks import Circuit, WebhookRegistration
from moot.engine.effects.budgets import (
    BUDGET,
    STOPPED,
    WARN_AT,
    WARNED,
    AgentBudgets,
    budget_notice_key,
)
from moot.engine.streams.hub import inbox_channel
from moot.store.protocol import Batch
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.deliveries import OPEN_STATES
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.inbound.versions import SUBSCRIPTION_KIND, SubscriptionVersion
from moot.triggers.schedules.fire_rows import fire_from_row, schedule_id_from_key
from moot.wire.interrupts import InboxNotice

#: Notices of one kind in the inbox. Other lists show all of them.
MOST_NOTICES = 100


async def list_notices(request: Request) -> list[InboxNotice]:
    """Return all notices, the newest first.

    The inbox gets a new revision when one comes or goes.
    """
    rows = [row for state in NOTICES for row in await _deliveries_in(request, state)]
    subscriptions = await request.triggers.subscriptions.inbound(request.tenant)
    rows = without_removed_sources(rows, subscriptions)
    rows += await _current_limits(request, await _deliveries_in(request, "notice"))
    rows.sort(key=lambda row: row.updated_at, reverse=True)
    notices = [await _add_queue_name(request, _notice_view(row)) for row in rows]
    notices += await list_stopped_notices(request, subscriptions)
    notices += await list_webhook_notices(request)
    return notices


async def announce_inbox_change(request: Request) -> None:
    """Give the inbox a new revision and wake its readers, because notices may have changed."""
    tenant = request.tenant
    await request.store.commit(Batch(inboxes=[tenant]))
    request.host.hub.ring(inbox_channel(tenant))


async def _deliveries_in(request: Request, state: str) -> list[Delivery]:
    """Return deliveries in this state, only of sources with their own notices.

    Others could crowd them out.
    """
    where = DeliveryFilter(states=(state,), sources=tuple(NOTICES.get(state, ())))
    rows, _ = await request.store.deliveries(request.tenant, where, None, MOST_NOTICES)
    return rows


async def _current_limits(request: Request, rows: list[Delivery]) -> list[Delivery]:
    """Return the budget notices that are still true.

    Such a notice is from this day or month, its limit was not raised since, and no later notice
    replaces it.
    """
    services, tenant = request.services, request.tenant
    allowances = AgentBudgets(services.store, services.clock, services.roster)
    current: list[Delivery] = []
    for roster_id in dict.fromkeys(row.subscription for row in rows):
        member, now = await services.roster.find(tenant, roster_id), services.clock.millis()
        bounds = await allowances.bounds(tenant, member) if member is not None else []
        by_key = {row.key: row for row in rows if row.subscription == roster_id}
        for bound in bounds:
            stop = by_key.get(budget_notice_key(bound, STOPPED, now)) if bound.share >= 1 else None
            warning = by_key.get(budget_notice_key(bound, WARNED, now))
            newest = stop or (warning if bound.share >= WARN_AT else None)
            current += [newest] if newest is not None else []
    return current


def _notice_view(row: Delivery) -> InboxNotice:
    return _budget_notice(row) if row.source == BUDGET else NOTICES[row.state][row.source](row)


def _row_notice(row: Delivery, kind: str, text: str, actions: list[str]) -> InboxNotice:
    name, since = row.delivery_id, iso(row.updated_at * 1000)
    return InboxNotice(id=name, kind=kind, text=text, actions=actions, since=since)


def _budget_notice(row: Delivery) -> InboxNotice:
    kind = "budget-stop" if row.subject == STOPPED else "budget-warning"
    notice = _row_notice(row, kind, row.reason, ["change"])
    return replace(notice, limit=row.key.partition(":")[0], roster_id=row.subscription)


async def _add_queue_name(request: Request, notice: InboxNotice) -> InboxNotice:
    if notice.source != "queue" or notice.subscription_id is None:
        return notice
    subscriptions = request.triggers.subscriptions
    subscription = await subscriptions.find(request.tenant, notice.subscription_id)
    queue = subscription.it.queue if subscription is not None else None
    return replace(notice, queue=queue or None)


def _missed_fire_notice(row: Delivery) -> InboxNotice:
    fire = fire_from_row(row)
    last = iso((fire.slot if fire.until is None else fire.until) * 1000)
    fires = "1 missed fire" if fire.count == 1 else f"{fire.count} missed fires, the last"
    notice = _schedule_notice(row, "missed-fire", f"{fires} at {last}")
    return replace(notice, at=last, count=fire.count)


def _failed_fire_notice(row: Delivery) -> InboxNotice:
    at = iso(fire_from_row(row).slot * 1000)
    text = f"The run for {at} could not begin: {row.reason}"
    return replace(_schedule_notice(row, "failed-fire", text), at=at)


def _schedule_notice(row: Delivery, kind: str, text: str) -> InboxNotice:
    """Return the notice of one fire of a schedule that did not begin a run."""
    return replace(
        _row_notice(row, kind, text, ["run", "skip"]),
        schedule_id=schedule_id_from_key(row.key),
        workflow_id=row.subject,
        roster_id=row.member,
        count=1,
    )


def _dead_letter_notice(row: Delivery) -> InboxNotice:
    text = f"Not delivered: {row.delivery_id}: {row.reason}"
    return replace(
        _row_notice(row, "dead-letter", text, ["redeliver", "drop"]),
        source=row.source,
        subscription_id=row.subscription,
        reason=row.reason,
        roster_id=row.member,
    )


#: State of a delivery -> source -> function that builds the notice.
NOTICES: dict[str, dict[str, Callable[[Delivery], InboxNotice]]] = {
    "missed": {"schedule": _missed_fire_notice},
    "dead": {
        "schedule": _failed_fire_notice,
        **dict.fromkeys(("queue", "webhook"), _dead_letter_notice),
    },
}


#: States of a subscription that only a person can end.
STOPPED_STATES = ("failed", "dead-lettered")


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
        if subscription.it.state in STOPPED_STATES
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


async def list_webhook_notices(request: Request) -> list[InboxNotice]:
    triggers, tenant = request.triggers, request.tenant
    notices = []
    for hook in triggers.webhooks.all(tenant):
        circuit = await triggers.webhook_deliveries.known(tenant, hook.webhook_id)
        counts = await request.store.delivery_counts(tenant, hook.webhook_id)
        waiting, dead = counts.get("waiting", 0) + counts.get("retrying", 0), counts.get("dead", 0)
        if hook.state == "failed" or circuit.failing or dead:
            notices.append(_webhook_notice(hook, circuit, waiting, dead))
    return notices


def _webhook_notice(
    hook: WebhookRegistration, circuit: Circuit, waiting: int, dead: int
) -> InboxNotice:
    failing = circuit.failing and hook.state != "failed"
    parts = [
        *(["was given up; register it again"] if hook.state == "failed" else []),
        *([f"fails: {circuit.error}"] if failing else []),
        *([f"{waiting} wait" if waiting > 1 else "1 waits"] if failing and waiting else []),
        *([f"{dead} dead letters" if dead > 1 else "1 dead letter"] if dead else []),
    ]
    since = circuit.failures[-1] if circuit.failures else hook.created_at
    active = hook.state == "active"
    return InboxNotice(
        id=hook.webhook_id,
        kind="webhook",
        text=f"The webhook {hook.webhook_id} to {_public_url(hook.url)} {'; '.join(parts)}",
        source="outbound",
        subscription_id=hook.webhook_id,
        reason=circuit.error,
        count=waiting + dead,
        actions=[
            *(["resume"] if failing else []),
            *(["redeliver"] if dead and active else []),
            *(["drop"] if dead else []),
        ],
        since=iso(since * 1000),
    )


def _public_url(url: str) -> str:
    """Return the address without its query and fragment, which may hold a secret."""
    return url.partition("?")[0].partition("#")[0]
