"""What wakes somebody on a host under trial: a real schedule, queue or webhook, each called."""

from typing import Any

from moot.api.http.request import Request, encode
from moot.core.errors import NotFound, NotProvided
from moot.core.ids import derived_id
from moot.core.schedules.model import Fire
from moot.core.schedules.slots import next_slots
from moot.core.triggers.subscriptions import Arrival, RetryPolicy, Subscription, dedup_key
from moot.store.protocol import Delivery
from moot.triggers.inbound.queues import Consumer
from moot.triggers.schedules.retries import POLICY
from moot.triggers.schedules.service import Schedules
from moot.triggers.schedules.snapshot import Case

#: what comes in when a suite does not say
ITEM: dict[str, Any] = {"body": "from a test suite"}
ONCE = RetryPolicy(max_attempts=1, backoff="none")


async def woken(
    request: Request,
    source: str,
    workflow_id: str,
    roster_id: str | None = None,
    item: dict[str, Any] = ITEM,
) -> Delivery:
    """What became of something that came by this source. Raises NotProvided for others."""
    ways = {"schedule": _by_schedule, "queue": _by_queue, "webhook": _by_webhook}
    if source not in ways:
        raise NotProvided(
            f"Nothing comes by {source[:32]} here; by {', '.join(sorted(ways))} it does.",
            capability="triggerBridge.sources",
        )
    return await ways[source](request, workflow_id, roster_id, item)


async def _by_queue(
    request: Request, workflow_id: str, roster_id: str | None, item: dict[str, Any]
) -> Delivery:
    queues, tenant, by = request.services.triggers.queues, request.caller.tenant, request.caller.id
    name = derived_id("conformance-", tenant, workflow_id, roster_id or "")
    seen = await queues.find(tenant, name)
    if seen is None or seen.it.state != "active":
        consumer = Consumer(workflow_id=workflow_id, roster_id=roster_id, retry_policy=ONCE)
        await queues.bind(tenant, name, consumer, by)
    handed, _ = await queues.push(tenant, name, item, None, by)
    return handed.delivery


async def _by_webhook(
    request: Request, workflow_id: str, roster_id: str | None, item: dict[str, Any]
) -> Delivery:
    services, tenant, by = request.services, request.caller.tenant, request.caller.id
    wanted = Subscription(
        subscription_id=derived_id("sub_", "woken", tenant, workflow_id, roster_id or ""),
        source="webhook", workflow_id=workflow_id, roster_id=roster_id, owner=by,
        created_at=services.clock.millis(), retry_policy=ONCE,
    )  # fmt: skip
    seen = await services.triggers.subscriptions.ensure(tenant, wanted, by)
    if seen.it.state != "active":
        seen = await services.triggers.subscriptions.resume(seen, by)
    content = {"method": "POST", "headers": {}, "body": item}
    key = dedup_key(wanted.subscription_id, services.clock.new_id(""))
    arrival = Arrival(content=content, verified=True)
    return (await services.triggers.deliveries.take(seen, arrival, key)).delivery


async def _by_schedule(
    request: Request, workflow_id: str, roster_id: str | None, _: dict[str, Any]
) -> Delivery:
    """It is there for one of its times only, and brings no item."""
    case = await scheduled(request, workflow_id, roster_id)
    try:
        return await at_its_time(request, case)
    finally:
        await request.services.triggers.schedules.remove(
            case.tenant, case.plan.spec.schedule_id, request.caller.id
        )


async def scheduled(request: Request, workflow_id: str, roster_id: str | None) -> Case:
    schedules: Schedules = request.services.triggers.schedules
    body = {"workflowId": workflow_id, "kind": "interval", "intervalSeconds": 60}
    more = {} if roster_id is None else {"rosterId": roster_id}
    return await schedules.make(request.caller.tenant, encode({**body, **more}), request.caller.id)


async def at_its_time(request: Request, case: Case, times: int = 1) -> Delivery:
    """Its next time has come, for so many that look."""
    name, store = case.plan.spec.schedule_id, request.services.store
    [slot] = next_slots(case.plan.spec, case.book.decided.decided, 1)
    for _ in range(times):
        await request.services.triggers.clockwork.look(case.tenant, name, slot)
    key = Fire(act="start", slot=slot, due=slot).key(name)
    row = await store.delivery(case.tenant, case.plan.subscription, key)
    if row is None:
        raise NotFound("That time came to nothing.", scheduleId=name)
    return row


async def given_up(request: Request, workflow_id: str) -> Delivery:
    """One of a schedule whose run cannot be begun, tried until nobody tries any more."""
    case = await scheduled(request, workflow_id, None)
    row = await at_its_time(request, case)
    for _ in range(POLICY.max_attempts - 1):
        await request.services.triggers.clockwork.again(row)
        row = await request.services.store.delivery(row.tenant, row.subscription, row.key) or row
    return row
