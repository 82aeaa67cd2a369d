"""List, read, redeliver and drop inbound deliveries."""

from msgspec.structs import replace

from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request
from moot.api.triggers import views
from moot.api.triggers.webhooks import MANAGE
from moot.core.errors import BadRequest
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.wire.triggers import DeliveryList, QueueItemView


async def list_deliveries(request: Request) -> Reply:
    sources = _parse_choice(request, "source", frozenset(INBOUND_SOURCES)) or INBOUND_SOURCES
    where = DeliveryFilter(
        subscription=request.query.get("subscription") or None,
        sources=sources,
        states=_parse_choice(request, "state", views.ITEM_STATES),
        member=request.query.get("member") or None,
        prefix=request.query.get("prefix") or None,
    )
    limit = request.integer("limit", 50, 1, 200)
    rows, cursor = await request.services.store.deliveries(
        request.caller.tenant, where, request.query.get("cursor"), limit
    )
    deliveries = [await _delivery_row(request, each) for each in rows]
    return Reply(DeliveryList(deliveries=deliveries, next_cursor=cursor))


def _parse_choice(request: Request, name: str, allowed: frozenset[str]) -> tuple[str, ...]:
    words = tuple(filter(None, request.query.get(name, "").split(",")))
    if unknown := set(words) - allowed:
        raise BadRequest(
            f"There is no {name} '{min(unknown)[:32]}'; there are {', '.join(sorted(allowed))}.",
            field=name,
        )
    return words


async def read_delivery(request: Request) -> Reply:
    row = await _find_delivery(request)
    details = await views.item_details(request.services, row)
    return Reply(await _add_source(request, row, details))


async def redeliver_delivery(request: Request) -> Reply:
    row = await _find_delivery(request)
    after = await request.services.triggers.deliveries.again(
        await _find_subscription(request, row), row, request.caller.id
    )
    return Reply(await _delivery_row(request, after), 202)


async def drop_delivery(request: Request) -> Reply:
    row = await _find_delivery(request)
    after = await request.services.triggers.deliveries.drop(row, request.caller.id)
    return Reply(await _delivery_row(request, after))


async def _find_delivery(request: Request) -> Delivery:
    return await request.services.triggers.items.must_find(
        request.caller.tenant, request.params["delivery_id"]
    )


async def _find_subscription(request: Request, row: Delivery) -> SubscriptionVersion:
    return await request.services.triggers.subscriptions.must_find(row.tenant, row.subscription)


async def _delivery_row(request: Request, row: Delivery) -> QueueItemView:
    return await _add_source(request, row, views.item_row(row))


async def _add_source(request: Request, row: Delivery, view: QueueItemView) -> QueueItemView:
    """Return the view with the source, the subscription and the queue of the delivery."""
    subscription = await request.services.triggers.subscriptions.recalled(
        row.tenant, row.subscription
    )
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
