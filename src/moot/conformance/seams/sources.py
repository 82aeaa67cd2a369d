"""Deliver to a workflow through a real schedule, queue or webhook."""

from typing import Any

from moot.api.http.request import Request, encode
from moot.core.errors import NotFound, NotProvided
from moot.core.ids import derived_id
from moot.core.schedules.model import Fire
from moot.core.schedules.slots import next_slots
from moot.core.triggers.subscriptions import Arrival, RetryPolicy, TriggerSubscription, dedup_key
from moot.store.records import Delivery
from moot.triggers.inbound.queues import Consumer
from moot.triggers.schedules.retries import POLICY
from moot.triggers.schedules.service import ScheduleService
from moot.triggers.schedules.snapshot import ScheduleSnapshot

#: The default item.
ITEM: dict[str, Any] = {"body": "from a test suite"}
ONCE = RetryPolicy(max_attempts=1, backoff="none")


async def deliver_by_source(
    request: Request,
    source: str,
    workflow_id: str,
    roster_id: str | None = None,
    item: dict[str, Any] = ITEM,
) -> Delivery:
    """Return the delivery that came by this source. Raise NotProvided for an unknown source."""
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
    queue = await queues.find(tenant, name)
    if queue is None or queue.it.state != "active":
        consumer = Consumer(workflow_id=workflow_id, roster_id=roster_id, retry_policy=ONCE)
        await queues.bind(tenant, name, consumer, by)
    handed, _ = await queues.push(tenant, name, item, None, by)
    return handed.delivery


async def _by_webhook(
    request: Request, workflow_id: str, roster_id: str | None, item: dict[str, Any]
) -> Delivery:
    services, tenant, by = request.services, request.caller.tenant, request.caller.id
    wanted = TriggerSubscription(
        subscription_id=derived_id("sub_", "woken", tenant, workflow_id, roster_id or ""),
        source="webhook", workflow_id=workflow_id, roster_id=roster_id, owner=by,
        created_at=services.clock.millis(), retry_policy=ONCE,
    )  # fmt: skip
    record = await services.triggers.subscriptions.ensure(tenant, wanted, by)
    if record.it.state != "active":
        record = await services.triggers.subscriptions.resume(record, by)
    content = {"method": "POST", "headers": {}, "body": item}
    key = dedup_key(wanted.subscription_id, services.clock.new_id(""))
    arrival = Arrival(content=content, verified=True)
    return (await services.triggers.deliveries.take(record, arrival, key)).delivery


async def _by_schedule(
    request: Request, workflow_id: str, roster_id: str | None, _: dict[str, Any]
) -> Delivery:
    """Deliver one slot of a temporary schedule. It brings no item."""
    case = await create_minute_schedule(request, workflow_id, roster_id)
    try:
        return await reach_next_slot(request, case)
    finally:
        await request.services.triggers.schedules.remove(
            case.tenant, case.plan.spec.schedule_id, request.caller.id
        )


async def create_minute_schedule(
    request: Request, workflow_id: str, roster_id: str | None
) -> ScheduleSnapshot:
    schedules: ScheduleService = request.services.triggers.schedules
    body = {"workflowId": workflow_id, "kind": "interval", "intervalSeconds": 60}
    more = {} if roster_id is None else {"rosterId": roster_id}
    return await schedules.make(request.caller.tenant, encode({**body, **more}), request.caller.id)


async def reach_next_slot(request: Request, case: ScheduleSnapshot, times: int = 1) -> Delivery:
    """Let the next slot fall due, and look at it so many times."""
    name, store = case.plan.spec.schedule_id, request.services.store
    [slot] = next_slots(case.plan.spec, case.book.decided.decided, 1)
    for _ in range(times):
        await request.services.triggers.scheduler.look(case.tenant, name, slot)
    key = Fire(act="start", slot=slot, due=slot).key(name)
    row = await store.delivery(case.tenant, case.plan.subscription, key)
    if row is None:
        raise NotFound("That time came to nothing.", scheduleId=name)
    return row


async def exhaust_schedule(request: Request, workflow_id: str) -> Delivery:
    """Return the delivery of a schedule whose run cannot start, after the last attempt."""
    case = await create_minute_schedule(request, workflow_id, None)
    row = await reach_next_slot(request, case)
    for _ in range(POLICY.max_attempts - 1):
        await request.services.triggers.scheduler.again(row)
        row = await request.services.store.delivery(row.tenant, row.subscription, row.key) or row
    return row
