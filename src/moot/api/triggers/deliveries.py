"""List, read, redeliver and drop inbound deliveries."""

from typing import Any

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers import views
from moot.api.triggers.webhooks import MANAGE, PAGE
from moot.core.errors import BadRequest
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.inbound.versions import SubscriptionVersion


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
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"deliveries": [await _delivery_row(request, each) for each in rows], **more})


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
    whole = await views.item_details(request.services, row)
    return Reply({**whole, **await _source_fields(request, row)})


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


async def _delivery_row(request: Request, row: Delivery) -> dict[str, Any]:
    return {**views.item_row(row), **await _source_fields(request, row)}


async def _source_fields(request: Request, row: Delivery) -> dict[str, Any]:
    """Return the source, the subscription and the queue of a delivery."""
    fields = {"source": row.source, "subscriptionId": row.subscription}
    subscription = await request.services.triggers.subscriptions.recalled(
        row.tenant, row.subscription
    )
    return (
        fields
        if subscription is None or subscription.it.queue is None
        else {**fields, "queue": subscription.it.queue}
    )


ROOT = "/v1/host/moot/deliveries"
ONE = f"{ROOT}/{{delivery_id}}"
FILTERS: dict[str, tuple[dict[str, Any], str]] = {
    **PAGE,
    "state": ({"type": "string"}, "only those in one of these states, with commas between"),
    "source": ({"type": "string"}, "only those from a queue, or by a webhook"),
    "subscription": ({"type": "string"}, "only those of this subscription"),
    "member": ({"type": "string"}, "only those for this standing agent"),
    "prefix": ({"type": "string"}, "only those whose id begins so"),
}
DELIVERY_ENDPOINTS = (
    Endpoint(
        method="GET", path=ROOT, call=list_deliveries, scope="runs:read", query=FILTERS,
        summary="What came in from queues and by webhooks, newest first",
    ),
    Endpoint(
        method="GET", path=ONE, call=read_delivery, scope="runs:read", errors=(404,),
        summary="Something that came in, its run, its member, the turns and the cost",
    ),
    Endpoint(
        method="POST", path=f"{ONE}:redeliver", call=redeliver_delivery, scope=MANAGE,
        beside="runs:create", status=202,
        summary="Try it again from the beginning", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{ONE}:drop", call=drop_delivery, scope=MANAGE,
        summary="Forget what it says", errors=(404, 409),
    ),
)  # fmt: skip
