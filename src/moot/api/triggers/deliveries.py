"""List, read, redeliver and drop inbound deliveries."""

from msgspec.structs import replace

from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request
from moot.api.triggers.views import (
    ITEM_STATES,
    item_details,
    item_row,
    parse_words,
    read_delivery_page,
)
from moot.api.triggers.webhooks import MANAGE
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.wire.triggers import DeliveryList, QueueItemView


async def list_deliveries(request: Request) -> Reply:
    sources = parse_words(request, "source", INBOUND_SOURCES) or INBOUND_SOURCES
    where = DeliveryFilter(
        subscription=request.query.get("subscription") or None,
        sources=sources,
        states=parse_words(request, "state", ITEM_STATES),
        member=request.query.get("member") or None,
        prefix=request.query.get("prefix") or None,
    )
    rows, cursor = await read_delivery_page(request, request.tenant, where)
    deliveries = [await _delivery_row(request, each) for each in rows]
    return Reply(DeliveryList(deliveries=deliveries, next_cursor=cursor))


async def read_delivery(request: Request) -> Reply:
    row = await _find_delivery(request)
    details = await item_details(request.services, row)
    return Reply(await _add_source(request, row, details))


async def redeliver_delivery(request: Request) -> Reply:
    row = await _find_delivery(request)
    subscription = await request.triggers.subscriptions.must_find(row.tenant, row.subscription)
    after = await request.triggers.deliveries.again(subscription, row, request.caller.id)
    return Reply(await _delivery_row(request, after), 202)


async def drop_delivery(request: Request) -> Reply:
    row = await _find_delivery(request)
    after = await request.triggers.deliveries.drop(row, request.caller.id)
    return Reply(await _delivery_row(request, after))


async def _find_delivery(request: Request) -> Delivery:
    return await request.triggers.items.must_find(request.tenant, request.params["delivery_id"])


async def _delivery_row(request: Request, row: Delivery) -> QueueItemView:
    return await _add_source(request, row, item_row(row))


async def _add_source(request: Request, row: Delivery, view: QueueItemView) -> QueueItemView:
    """Return the view with the source, the subscription and the queue of the delivery."""
    subscription = await request.triggers.subscriptions.recalled(row.tenant, row.subscription)
    queue = None if subscription is None else subscription.it.queue
    return replace(view, source=row.source, subscription_id=row.subscription, queue=queue)


ROOT = "/v1/host/moot/deliveries"
ONE = f"{ROOT}/{{delivery_id}}"
FILTERS = {"state": TEXT, "source": TEXT, "subscription": TEXT, "member": TEXT, "prefix": TEXT}
DELIVERY_ENDPOINTS = (
    Endpoint("GET", ROOT, list_deliveries, scope="runs:read", query={**PAGE_QUERY, **FILTERS},
             answer=DeliveryList),
    Endpoint("GET", ONE, read_delivery, scope="runs:read", answer=QueueItemView),
    Endpoint("POST", f"{ONE}:redeliver", redeliver_delivery, scope=MANAGE, beside="runs:create",
             status=202, answer=QueueItemView),
    Endpoint("POST", f"{ONE}:drop", drop_delivery, scope=MANAGE, answer=QueueItemView),
)  # fmt: skip
