"""Seams ``trigger-bridge/*``: deliver through real schedules, queues and webhooks."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.api.triggers.views import attempt_payload, delivery_view
from moot.conformance.seams.setup import node, register_workflow, seam, workflow
from moot.core.errors import BadRequest, NotFound, NotProvided
from moot.core.events import decode, payload_fields
from moot.core.ids import derived_id
from moot.core.payloads.runs import DeliveryAttempted
from moot.core.schedules.model import Fire
from moot.core.schedules.slots import next_slots
from moot.core.triggers.subscriptions import (
    Arrival,
    RetryPolicy,
    SubscriptionSource,
    TriggerSubscription,
    VerificationMode,
    dedup_key,
    visible_headers,
)
from moot.net.outbound import CallFailed, TargetRefused
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.inbound.queues import Consumer
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.triggers.schedules import records
from moot.triggers.schedules.retries import POLICY
from moot.triggers.schedules.snapshot import ScheduleSnapshot

#: Deliveries in one log.
MOST_ROWS = 200
WORKFLOW = "conformance-seam-trigger"
#: A workflow that does not exist.
MISSING = "conformance-seam-missing"
FLOW = workflow(WORKFLOW, [node("a")])
#: A workflow whose agent is missing.
UNSERVED = workflow(
    "conformance-seam-unserved",
    [node("a", "moot.agent", {"agent": "conformance-nobody", "prompt": "Are you there?"})],
)
DeliveredItem = Mapping[str, object]
#: The default item.
ITEM: DeliveredItem = {"body": "from a test suite"}
ONCE = RetryPolicy(max_attempts=1, backoff="none")


class DeliverTrigger(Struct, frozen=True, rename="camel"):
    scenario: Literal["deliver", "dedup", "exhaust"]
    dedup_key: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    source: str = "webhook"


class IngestVerification(Struct, frozen=True):
    mode: VerificationMode = "required"


class IngestedWebhook(Struct, frozen=True):
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = {}
    body: Any = None


class IngestTrigger(Struct, frozen=True, rename="camel"):
    source: str = "webhook"
    verification: IngestVerification = IngestVerification()
    attachment_url: str | None = None
    webhook: IngestedWebhook = IngestedWebhook()


async def deliver_trigger(request: Request) -> Reply:
    """Deliver as the scenario says.

    ``exhaust`` delivers once to a missing workflow. A ``dedupKey`` names a delivery that happens
    once for all calls.
    """
    body = await request.read(DeliverTrigger)
    exhaust = body.scenario == "exhaust"
    if body.source == records.SCHEDULE_SOURCE:
        return await _delivery_reply(request, [await _deliver_by_schedule(request, body.scenario)])
    named = None if exhaust else body.dedup_key
    workflow_id = MISSING if exhaust else WORKFLOW
    record = await _ensure_subscription(request, body.source, workflow_id, named)
    key = named or dedup_key(record.it.subscription_id, request.services.clock.new_id(""))
    rows = []
    for _ in range(2 if body.scenario == "dedup" else 1):
        arrival = Arrival(content=_trigger_content(body.source, IngestedWebhook()), verified=True)
        handed = await request.services.triggers.deliveries.take(record, arrival, key)
        rows.append(handed.delivery)
    return await _delivery_reply(request, rows)


async def _delivery_reply(request: Request, rows: list[Delivery]) -> Reply:
    answer: dict[str, object] = {
        "outcome": rows[0].attempts[-1].outcome,
        "subscriptionId": rows[0].subscription,
    }
    if rows[0].run_id is not None:
        answer["runId"] = rows[0].run_id
    counts = await request.services.store.delivery_counts(rows[0].tenant, rows[0].subscription)
    return Reply({**answer, "deliveredCount": counts.get("delivered", 0)})


async def read_last_exhausted_log(request: Request) -> list[dict[str, object]]:
    """Return the log of the subscription whose delivery was given up last, or nothing."""
    tenant, dead = request.caller.tenant, DeliveryFilter(states=("dead",))
    rows, _ = await request.services.store.deliveries(tenant, dead, None, MOST_ROWS)
    # a schedule's delivery has the time of its slot
    last = max(rows, key=lambda row: row.updated_at, default=None)
    return await read_subscription_log(request, last.subscription) if last else []


async def read_subscription_log(request: Request, name: str) -> list[dict[str, object]]:
    """Return state changes and newest deliveries of a subscription as events of a log."""
    triggers, tenant = request.services.triggers, request.caller.tenant
    record = await triggers.listening.must_find(tenant, name)
    mine = DeliveryFilter(subscription=name)
    rows, _ = await request.services.store.deliveries(tenant, mine, None, MOST_ROWS)
    changes = await triggers.listening.changes(record)
    tried = [each for row in rows for each in _attempt_events(row)]
    in_order = sorted([*msgspec.to_builtins(changes), *tried], key=lambda each: str(each["at"]))
    return [
        {
            "eventId": each["eventId"],
            "runId": name,
            "sequence": number,
            "type": each["type"],
            "timestamp": each["at"],
            "payload": each["payload"],
        }
        for number, each in enumerate(in_order)
    ]


def _attempt_events(row: Delivery) -> list[dict[str, object]]:
    """Return attempts as events, none earlier than the one it repeats."""
    events: list[dict[str, object]] = []
    for each in delivery_view(row).attempts:
        if each.payload is not None:
            at = max(each.at, str(events[-1]["at"]) if events else "")
            events.append({**msgspec.to_builtins(each), "at": at})
    return events


async def _deliver_by_schedule(request: Request, scenario: str) -> Delivery:
    """Deliver a slot.

    Looking twice does not repeat it. ``exhaust`` uses a workflow whose agent is missing.
    """
    flow = UNSERVED if scenario == "exhaust" else FLOW
    workflow_id = (await register_workflow(request, flow)).definition.id
    if scenario == "exhaust":
        return await _exhaust_schedule(request, workflow_id)
    case = await create_minute_schedule(request, workflow_id)
    row = await _reach_next_slot(request, case, times=2 if scenario == "dedup" else 1)
    schedules = request.services.triggers.schedules
    await schedules.remove(case.tenant, case.plan.spec.schedule_id, request.caller.id)
    return row


async def ingest_trigger(request: Request) -> Reply:
    """Ingest without a signature: a dead letter with ``required``, else an unverified run."""
    body = await request.read(IngestTrigger)
    services = request.services
    if body.attachment_url is not None and await _is_refused_target(request, body.attachment_url):
        return Reply({"triggerEvent": None, "deliveryEvent": None, "ssrfRefused": True})
    record = await _ensure_subscription(request, body.source, WORKFLOW)
    if body.verification.mode == "required":
        row = await services.triggers.deliveries.refuse(record, "It is not signed.")
        return Reply({"triggerEvent": None, "deliveryEvent": _delivery_event(row) if row else None})
    content = _trigger_content(body.source, body.webhook)
    key = dedup_key(record.it.subscription_id, services.clock.new_id(""))
    arrival = Arrival(content=content, verified=False)
    row = (await services.triggers.deliveries.take(record, arrival, key)).delivery
    log = await services.store.read(record.tenant, row.run_id or "", -1, 1)
    trigger = payload_fields(decode(log[0]))["trigger"]
    return Reply({"triggerEvent": trigger, "deliveryEvent": _delivery_event(row)})


def _delivery_event(row: Delivery) -> dict[str, object]:
    last = len(row.attempts) - 1
    return {
        "type": DeliveryAttempted.event_type,
        "eventId": row.attempts[last].event_id,
        "payload": attempt_payload(row, row.attempts[last], last),
    }


def _trigger_content(source: str, webhook: IngestedWebhook) -> dict[str, object]:
    if source == "queue":
        return {"body": webhook.body}
    headers = visible_headers(webhook.headers.items())
    return {"method": webhook.method, "headers": headers, "body": webhook.body}


async def _ensure_subscription(
    request: Request, source: str, workflow_id: str, named: str | None = None
) -> SubscriptionVersion:
    """Return a new subscription, or the one with this name."""
    services, tenant = request.services, request.caller.tenant
    if source not in INBOUND_SOURCES:
        raise BadRequest(f"{source[:32]} is none of {', '.join(INBOUND_SOURCES)}.", field="source")
    kind: SubscriptionSource = "queue" if source == "queue" else "webhook"
    await register_workflow(request, FLOW)
    name = services.clock.new_id("sub_")
    if named is not None:
        name = derived_id("sub_", "named", tenant, source, named)
    subscription = TriggerSubscription(
        subscription_id=name,
        source=kind,
        workflow_id=workflow_id,
        owner=request.caller.id,
        created_at=services.clock.millis(),
        retry_policy=ONCE,
    )
    return await services.triggers.subscriptions.ensure(tenant, subscription, request.caller.id)


async def _is_refused_target(request: Request, url: str) -> bool:
    """Return whether the guard of outgoing calls refuses this address."""
    net = request.services.triggers.net
    try:
        await net.addresses(net.check_url(url))
    except TargetRefused:
        return True
    except CallFailed:
        return False
    return False


# -- by the source of a trigger ------------------------------------------------------------------


async def deliver_by_source(
    request: Request, source: str, workflow_id: str, roster_id: str | None, item: DeliveredItem
) -> Delivery:
    """Return the delivery that came by this source. Raise NotProvided for an unknown source."""
    ways = {"schedule": _by_schedule, "queue": _by_queue, "webhook": _by_webhook}
    if source not in ways:
        message = f"Nothing comes by {source[:32]} here; by {', '.join(sorted(ways))} it does."
        raise NotProvided(message, capability="triggerBridge.sources")
    return await ways[source](request, workflow_id, roster_id, item)


async def _by_queue(
    request: Request, workflow_id: str, roster_id: str | None, item: DeliveredItem
) -> Delivery:
    queues, tenant, by = request.services.triggers.queues, request.caller.tenant, request.caller.id
    name = derived_id("conformance-", tenant, workflow_id, roster_id or "")
    queue = await queues.find(tenant, name)
    if queue is None or queue.it.state != "active":
        consumer = Consumer(workflow_id=workflow_id, roster_id=roster_id, retry_policy=ONCE)
        await queues.bind(tenant, name, consumer, by)
    handed, _ = await queues.push(tenant, name, dict(item), None, by)
    return handed.delivery


async def _by_webhook(
    request: Request, workflow_id: str, roster_id: str | None, item: DeliveredItem
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
    request: Request, workflow_id: str, roster_id: str | None, _: DeliveredItem
) -> Delivery:
    """Deliver one slot of a temporary schedule. It brings no item."""
    member = {} if roster_id is None else {"rosterId": roster_id}
    case = await create_minute_schedule(request, workflow_id, **member)
    try:
        return await _reach_next_slot(request, case)
    finally:
        schedules, name = request.services.triggers.schedules, case.plan.spec.schedule_id
        await schedules.remove(case.tenant, name, request.caller.id)


async def create_minute_schedule(
    request: Request, workflow_id: str, name: str | None = None, **more: object
) -> ScheduleSnapshot:
    """Make a schedule with one slot each minute; ``more`` are fields of its request."""
    schedules, caller = request.services.triggers.schedules, request.caller
    body = {"workflowId": workflow_id, "kind": "interval", "intervalSeconds": 60, **more}
    return await schedules.make(caller.tenant, encode(body), caller.id, name)


async def _reach_next_slot(request: Request, case: ScheduleSnapshot, times: int = 1) -> Delivery:
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


async def _exhaust_schedule(request: Request, workflow_id: str) -> Delivery:
    """Return the delivery of a schedule whose run cannot start, after the last attempt."""
    case = await create_minute_schedule(request, workflow_id)
    row = await _reach_next_slot(request, case)
    for _ in range(POLICY.max_attempts - 1):
        await request.services.triggers.scheduler.again(row)
        row = await request.services.store.delivery(row.tenant, row.subscription, row.key) or row
    return row


DELIVERY_SEAMS = (
    seam("trigger-bridge/deliver", deliver_trigger, DeliverTrigger),
    seam("trigger-bridge/ingest", ingest_trigger, IngestTrigger),
)
