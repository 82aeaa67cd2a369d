"""What came in from queues and by webhooks, by its id: listed, read, tried again, dropped."""

from typing import Any

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers import item_view
from moot.api.triggers.webhooks import MANAGE, PAGE
from moot.core.errors import BadRequest
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.items import SOURCES
from moot.triggers.inbound.subscriptions import Seen


async def list_deliveries(request: Request) -> Reply:
    sources = _chosen(request, "source", frozenset(SOURCES)) or SOURCES
    where = DeliveryFilter(
        subscription=request.query.get("subscription") or None,
        sources=sources,
        states=_chosen(request, "state", item_view.STATES),
        member=request.query.get("member") or None,
        prefix=request.query.get("prefix") or None,
    )
    limit = request.integer("limit", 50, 1, 200)
    found, cursor = await request.services.store.deliveries(
        request.caller.tenant, where, request.query.get("cursor"), limit
    )
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"deliveries": [await _row(request, each) for each in found], **more})


def _chosen(request: Request, name: str, known: frozenset[str]) -> tuple[str, ...]:
    asked = tuple(filter(None, request.query.get(name, "").split(",")))
    if unknown := set(asked) - known:
        raise BadRequest(
            f"There is no {name} '{min(unknown)[:32]}'; there are {', '.join(sorted(known))}.",
            field=name,
        )
    return asked


async def read(request: Request) -> Reply:
    row = await _found(request)
    whole = await item_view.whole(request.services, row)
    return Reply({**whole, **await _whence(request, row)})


async def redeliver(request: Request) -> Reply:
    row = await _found(request)
    after = await request.services.triggers.deliveries.again(
        await _seen(request, row), row, request.caller.id
    )
    return Reply(await _row(request, after), 202)


async def drop(request: Request) -> Reply:
    row = await _found(request)
    after = await request.services.triggers.deliveries.drop(row, request.caller.id)
    return Reply(await _row(request, after))


async def _found(request: Request) -> Delivery:
    return await request.services.triggers.items.must_find(
        request.caller.tenant, request.params["delivery_id"]
    )


async def _seen(request: Request, row: Delivery) -> Seen:
    return await request.services.triggers.subscriptions.must_find(row.tenant, row.subscription)


async def _row(request: Request, row: Delivery) -> dict[str, Any]:
    return {**item_view.row(row), **await _whence(request, row)}


async def _whence(request: Request, row: Delivery) -> dict[str, Any]:
    """By which way it came."""
    said = {"source": row.source, "subscriptionId": row.subscription}
    seen = await request.services.triggers.subscriptions.recalled(row.tenant, row.subscription)
    return said if seen is None or seen.it.queue is None else {**said, "queue": seen.it.queue}


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
ENDPOINTS = (
    Endpoint(
        method="GET", path=ROOT, call=list_deliveries, scope="runs:read", query=FILTERS,
        summary="What came in from queues and by webhooks, newest first",
    ),
    Endpoint(
        method="GET", path=ONE, call=read, scope="runs:read", errors=(404,),
        summary="Something that came in, its run, its member, the turns and the cost",
    ),
    Endpoint(
        method="POST", path=f"{ONE}:redeliver", call=redeliver, scope=MANAGE,
        beside="runs:create", status=202,
        summary="Try it again from the beginning", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{ONE}:drop", call=drop, scope=MANAGE,
        summary="Forget what it says", errors=(404, 409),
    ),
)  # fmt: skip
