"""Seams for what comes in, of a host under trial: thin callers of the deliveries themselves."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.api.triggers.subscriptions import delivery, payload
from moot.conformance.seams.standing_agents import at_its_time, given_up, scheduled
from moot.core.errors import BadRequest
from moot.core.events import decode, iso
from moot.core.ids import derived_id
from moot.core.triggers.subscriptions import (
    ATTEMPTED,
    Arrival,
    Mode,
    RetryPolicy,
    Source,
    Subscription,
    dedup_key,
    seen_headers,
)
from moot.net.outbound import CallFailed, TargetRefused
from moot.store.protocol import Delivery
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.items import SOURCES
from moot.triggers.inbound.subscriptions import Seen
from moot.triggers.schedules.records import SOURCE as SCHEDULE

#: deliveries of which a suite is told
MOST_TOLD = 200
WORKFLOW = "conformance-seam-trigger"
#: nobody registers one of this name
MISSING = "conformance-seam-missing"
FLOW: dict[str, Any] = {
    "id": WORKFLOW, "name": WORKFLOW, "version": "1.0", "edges": [], "triggers": [],
    "nodes": [{"id": "a", "typeId": "core.noop", "name": "a", "position": {"x": 0, "y": 0},
               "config": {}, "inputs": {}}],
    "variables": [], "metadata": {}, "settings": {},
}  # fmt: skip
UNSERVED: dict[str, Any] = {
    **FLOW, "id": "conformance-seam-unserved", "name": "conformance-seam-unserved",
    "nodes": [{**FLOW["nodes"][0], "typeId": "moot.agent",
               "config": {"agent": "conformance-nobody", "prompt": "Are you there?"}}],
}  # fmt: skip


class Deliver(Struct, frozen=True, rename="camel"):
    scenario: Literal["deliver", "dedup", "exhaust"]
    dedup_key: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    source: str = "webhook"


class Verification(Struct, frozen=True):
    mode: Mode = "required"


class Webhook(Struct, frozen=True):
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = {}
    body: Any = None


class Ingest(Struct, frozen=True, rename="camel"):
    source: str = "webhook"
    verification: Verification = Verification()
    attachment_url: str | None = None
    webhook: Webhook = Webhook()


async def deliver(request: Request) -> Reply:
    """``exhaust`` is a delivery to a workflow that is not there, tried once. What is named by a
    ``dedupKey`` is delivered under that very key, once for all calls."""
    asked = await request.read(Deliver)
    exhaust = asked.scenario == "exhaust"
    if asked.source == SCHEDULE:
        return await _told(request, [await _of_schedule(request, asked.scenario)])
    named = None if exhaust else asked.dedup_key
    seen = await _subscribed(request, asked.source, MISSING if exhaust else WORKFLOW, named)
    key = named or dedup_key(seen.it.subscription_id, request.services.clock.new_id(""))
    rows = []
    for _ in range(2 if asked.scenario == "dedup" else 1):
        arrival = Arrival(content=_content(asked.source, Webhook()), verified=True)
        handed = await request.services.triggers.deliveries.take(seen, arrival, key)
        rows.append(handed.delivery)
    return await _told(request, rows)


async def _told(request: Request, rows: list[Delivery]) -> Reply:
    told: dict[str, Any] = {
        "outcome": rows[0].attempts[-1].outcome,
        "subscriptionId": rows[0].subscription,
    }
    if rows[0].run_id is not None:
        told["runId"] = rows[0].run_id
    counts = await request.services.store.delivery_counts(rows[0].tenant, rows[0].subscription)
    return Reply({**told, "deliveredCount": counts.get("delivered", 0)})


async def given_up_last(request: Request) -> list[dict[str, Any]]:
    """The log of the subscription whose delivery was given up last; empty before there is one."""
    rows, _ = await request.services.store.deliveries(
        request.caller.tenant, DeliveryFilter(states=("dead",)), None, MOST_TOLD
    )
    # what a schedule brought came at its time, which a suite does not wait for
    last = max(rows, key=lambda row: row.updated_at, default=None)
    return await log_of(request, last.subscription) if last else []


async def log_of(request: Request, name: str) -> list[dict[str, Any]]:
    """What was written down of a subscription and of what came by it, as events of a log of its
    own; the newest deliveries."""
    triggers, tenant = request.services.triggers, request.caller.tenant
    seen = await triggers.listening.must_find(tenant, name)
    rows, _ = await request.services.store.deliveries(
        tenant, DeliveryFilter(subscription=name), None, MOST_TOLD
    )
    told = await triggers.listening.changes(seen)
    changed = [{**each, "at": iso(each["at"] * 1000)} for each in told]
    tried = [each for row in rows for each in _tries(row)]
    in_order = sorted([*changed, *tried], key=lambda each: str(each["at"]))
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


def _tries(row: Delivery) -> list[dict[str, Any]]:
    """In their order: none is told before the one that it repeats."""
    found: list[dict[str, Any]] = []
    for each in delivery(row)["attempts"]:
        if "payload" in each:
            at = max(str(each["at"]), found[-1]["at"] if found else "")
            found.append({**each, "at": at})
    return found


async def _of_schedule(request: Request, scenario: str) -> Delivery:
    """Repeats are told apart by the time itself; what cannot begin names nobody who is here."""
    flow = UNSERVED if scenario == "exhaust" else FLOW
    await request.services.host.flows.register(request.caller.tenant, encode(flow))
    if scenario == "exhaust":
        return await given_up(request, flow["id"])
    case = await scheduled(request, flow["id"], None)
    row = await at_its_time(request, case, times=2 if scenario == "dedup" else 1)
    schedules = request.services.triggers.schedules
    await schedules.remove(case.tenant, case.plan.spec.schedule_id, request.caller.id)
    return row


async def ingest(request: Request) -> Reply:
    """Nobody signs here: with ``required`` it is a dead letter, else a run that is told so."""
    asked = await request.read(Ingest)
    services = request.services
    if asked.attachment_url is not None and await _refused(request, asked.attachment_url):
        return Reply({"triggerEvent": None, "deliveryEvent": None, "ssrfRefused": True})
    seen = await _subscribed(request, asked.source, WORKFLOW)
    if asked.verification.mode == "required":
        row = await services.triggers.deliveries.refuse(seen, "It is not signed.")
        return Reply({"triggerEvent": None, "deliveryEvent": _event(row) if row else None})
    content = _content(asked.source, asked.webhook)
    key = dedup_key(seen.it.subscription_id, services.clock.new_id(""))
    arrival = Arrival(content=content, verified=False)
    row = (await services.triggers.deliveries.take(seen, arrival, key)).delivery
    log = await services.store.read(seen.tenant, row.run_id or "", -1, 1)
    return Reply({"triggerEvent": decode(log[0]).payload["trigger"], "deliveryEvent": _event(row)})


def _event(row: Delivery) -> dict[str, Any]:
    last = len(row.attempts) - 1
    return {
        "type": ATTEMPTED,
        "eventId": row.attempts[last].event_id,
        "payload": payload(row, row.attempts[last], last),
    }


def _content(source: str, given: Webhook) -> dict[str, Any]:
    if source == "queue":
        return {"body": given.body}
    headers = seen_headers(given.headers.items())
    return {"method": given.method, "headers": headers, "body": given.body}


async def _subscribed(
    request: Request, source: str, workflow_id: str, named: str | None = None
) -> Seen:
    """A subscription of its own for each call, or for each name."""
    services, tenant = request.services, request.caller.tenant
    if source not in SOURCES:
        raise BadRequest(f"{source[:32]} is none of {', '.join(SOURCES)}.", field="source")
    kind: Source = "queue" if source == "queue" else "webhook"
    await services.host.flows.register(tenant, encode(FLOW))
    name = services.clock.new_id("sub_")
    if named is not None:
        name = derived_id("sub_", "named", tenant, source, named)
    made = Subscription(
        subscription_id=name,
        source=kind,
        workflow_id=workflow_id,
        owner=request.caller.id,
        created_at=services.clock.millis(),
        retry_policy=RetryPolicy(max_attempts=1, backoff="none"),
    )
    return await services.triggers.subscriptions.ensure(tenant, made, request.caller.id)


async def _refused(request: Request, url: str) -> bool:
    """Whether the guard of every call outside lets nobody go there."""
    net = request.services.triggers.net
    try:
        await net.addresses(net.judged(url))
    except TargetRefused:
        return True
    except CallFailed:
        return False
    return False
