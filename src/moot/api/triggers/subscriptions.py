"""Register, change, pause and remove subscriptions; rotate their secrets."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request, encode, whole_number
from moot.api.interrupts import notices
from moot.api.schedules.pauses import parse_pause_end
from moot.api.triggers.views import (
    binding_view,
    delivery_view,
    read_delivery_page,
    subscription_dead_letter,
    summary_view,
)
from moot.api.triggers.webhooks import MANAGE
from moot.api.views import copy_fields
from moot.core.errors import BadRequest, NotProvided
from moot.core.events import iso
from moot.core.triggers.subscriptions import TriggerSubscription
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.inbound.overview import MemberAvailability, SubscriptionPage
from moot.triggers.inbound.subscriptions import SubscriptionRequest
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.triggers.schedules import records
from moot.wire.triggers import (
    ChangedSubscription,
    ChangeSubscription,
    NewSubscription,
    RegisterSubscription,
    SubscriptionBinding,
    SubscriptionDeadLetterList,
    SubscriptionList,
    SubscriptionView,
    TriggerBinding,
)

#: Outside callers send webhooks here.
INGEST_PATH = "/v1/host/moot/ingest"
MOST_SHOWN = 50
MOST_LISTED = 1000


async def register_subscription(request: Request) -> Reply:
    body = await request.read(RegisterSubscription)
    if body.source != "webhook":
        raise NotProvided(
            f"This host takes nothing in by {body.source}; a webhook it does.",
            capability="triggerBridge.ingestion",
        )
    subscription = await request.triggers.subscriptions.register(
        request.tenant,
        copy_fields(SubscriptionRequest, body, verification=body.verification.mode),
        request.caller.id,
    )
    return _secret_reply(request, subscription, 201)


async def rotate_subscription_secret(request: Request) -> Reply:
    record = await _find_subscription(request)
    fresh = await request.triggers.subscriptions.rotate(record, request.caller.id)
    return _secret_reply(request, fresh, 200)


def _secret_reply(request: Request, subscription: TriggerSubscription, status: int) -> Reply:
    """Answer with the secret, this one time. The stored answer has none."""
    has_earlier = subscription.earlier is not None
    binding = SubscriptionBinding(
        ingest_url=ingest_url(request, subscription.subscription_id),
        secret_fingerprint=subscription.fingerprint,
        earlier_until=iso(subscription.earlier_until * 1000) if has_earlier else None,
    )
    view = NewSubscription(subscription=summary_view(subscription), binding=binding)
    whole = replace(view, binding=replace(binding, signing_secret=subscription.secret))
    location = {"Location": f"/v1/trigger-subscriptions/{subscription.subscription_id}"}
    reply = Reply(whole, status, location if status == 201 else {})
    reply.remembered = encode(view)
    return reply


def ingest_url(request: Request, name: str) -> str:
    return f"{request.host.peers.address}{INGEST_PATH}/{name}"


async def list_subscriptions(request: Request) -> Reply:
    """List subscriptions, with a reason for each whose member is away.

    With ``source`` also show what each starts.
    """
    limit = request.integer("limit", MOST_LISTED, 1, MOST_LISTED)
    page = await _subscription_page(request, limit)
    records = page.found
    where = member_whereabouts(request)
    reasons = {
        record.it.subscription_id: why
        for record in records
        if (why := await where.inert(record.it.roster_id, record.it.workflow_id)) is not None
    }
    answer = SubscriptionList(
        subscriptions=[summary_view(record.it) for record in records],
        total=page.total,
        inert=reasons,
        next_cursor=page.last,
    )
    if "source" in request.query:
        bound = {record.it.subscription_id: binding_view(record.it) for record in records}
        answer = replace(answer, bound=bound)
    return Reply(answer)


async def _subscription_page(request: Request, limit: int) -> SubscriptionPage:
    triggers, tenant = request.triggers, request.tenant
    after, source = request.query.get("cursor", ""), request.query.get("source")
    if source is None:
        return await triggers.listening.page(tenant, after, limit)
    sources = (*INBOUND_SOURCES, records.SCHEDULE_SOURCE)
    if source not in sources:
        raise BadRequest(f"source is one of {', '.join(sources)}.", field="source")
    if source == records.SCHEDULE_SOURCE:
        of_source = await triggers.listening.scheduled(tenant)
    else:
        inbound = await triggers.subscriptions.inbound(tenant)
        of_source = [record for record in inbound if record.it.source == source]
    following = [record for record in of_source if record.it.subscription_id > after]
    last = following[limit - 1].it.subscription_id if len(following) > limit else None
    return SubscriptionPage(following[:limit], len(of_source), last)


def member_whereabouts(request: Request) -> MemberAvailability:
    return MemberAvailability(request.services.roster, request.tenant)


async def binding_with_inert(request: Request, subscription: TriggerSubscription) -> TriggerBinding:
    """Return the target of a subscription, and the reason if it starts nothing now."""
    why = await member_whereabouts(request).inert(subscription.roster_id, subscription.workflow_id)
    return replace(binding_view(subscription), inert=why)


async def read_subscription(request: Request) -> Reply:
    """Return a subscription with its newest deliveries and state changes."""
    record = await _find_subscription(request)
    name, tenant = record.it.subscription_id, record.tenant
    store = request.store
    rows, _ = await store.deliveries(tenant, DeliveryFilter(subscription=name), None, MOST_SHOWN)
    return Reply(
        SubscriptionView(
            subscription=summary_view(record.it),
            bound=await binding_with_inert(request, record.it),
            counts=await store.delivery_counts(tenant, name),
            deliveries=[delivery_view(each) for each in rows],
            state_changes=await request.triggers.listening.changes(record),
            ingest_url=None if record.it.secret is None else ingest_url(request, name),
        )
    )


async def change_subscription(request: Request) -> Reply:
    body = await request.read(ChangeSubscription)
    triggers, by = request.triggers, request.caller.id
    record = await _find_subscription(request)
    if body == ChangeSubscription(note=body.note, until=body.until):
        raise BadRequest("Send state, rosterId or inputMapping.")
    if body.until is not None and body.state != "paused":
        raise BadRequest("until is the end of a pause: send it with state paused.", field="until")
    until = parse_pause_end(body.until, request.now())
    if body.input_mapping is not UNSET:
        record = await triggers.subscriptions.map_inputs(record, body.input_mapping, by)
    if body.roster_id is not UNSET:
        record = await triggers.listening.hand_to(record, body.roster_id, by)
    if body.state == "paused":
        record = await triggers.listening.pause(record, by, body.note, until)
        triggers.courier.news()  # the new pause may end earlier than the former one
    elif body.state == "active":
        record = await triggers.listening.resume(record, by)
        await notices.announce_inbox_change(request)
    if record.it.state == "active":
        await triggers.queues.wake(record)
    bound = await binding_with_inert(request, record.it)
    return Reply(ChangedSubscription(subscription=summary_view(record.it), bound=bound))


async def remove_subscription(request: Request) -> Reply:
    """Remove a subscription and its undelivered items. Runs that it started continue."""
    record, triggers = await _find_subscription(request), request.triggers
    await triggers.subscriptions.remove(record, request.caller.id)
    await triggers.deliveries.drop_all(record)
    return Reply(None, 204)


async def list_subscription_dead_letters(request: Request) -> Reply:
    record = await _find_subscription(request)
    where = DeliveryFilter(subscription=record.it.subscription_id, states=("dead", "unverified"))
    rows, cursor = await read_delivery_page(request, record.tenant, where)
    letters = [subscription_dead_letter(record.it, each) for each in rows]
    return Reply(SubscriptionDeadLetterList(dead_letters=letters, next_cursor=cursor))


async def _find_subscription(request: Request) -> SubscriptionVersion:
    return await request.triggers.listening.must_find(
        request.tenant, request.params["subscription_id"]
    )


ROOT = "/v1/trigger-subscriptions"
ONE = f"{ROOT}/{{subscription_id}}"
SUBSCRIPTION_ENDPOINTS = (
    Endpoint("GET", ROOT, list_subscriptions, scope=MANAGE,
             query={"limit": whole_number(1, MOST_LISTED), "cursor": TEXT, "source": TEXT},
             answer=SubscriptionList),
    Endpoint("POST", ROOT, register_subscription, scope=MANAGE, beside="runs:create",
             body=RegisterSubscription, status=201, answer=NewSubscription),
    Endpoint("GET", ONE, read_subscription, scope=MANAGE, answer=SubscriptionView),
    Endpoint("PATCH", ONE, change_subscription, scope=MANAGE, beside="runs:create",
             body=ChangeSubscription, answer=ChangedSubscription),
    Endpoint("DELETE", ONE, remove_subscription, scope=MANAGE, status=204),
    Endpoint("POST", f"{ONE}/rotate-secret", rotate_subscription_secret, scope=MANAGE,
             beside="runs:create", answer=NewSubscription),
    Endpoint("GET", f"{ONE}/dead-letters", list_subscription_dead_letters, scope=MANAGE,
             query=PAGE_QUERY, answer=SubscriptionDeadLetterList),
)  # fmt: skip
