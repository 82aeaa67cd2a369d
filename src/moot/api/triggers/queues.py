"""Queues and their items: put in, bound to who takes them, looked after."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from moot.api.http.idempotency import HEADER, REPLAYED
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers import item_view
from moot.api.triggers.ingest import LARGEST
from moot.api.triggers.subscriptions import Mapping, WorkflowId, with_inert
from moot.api.triggers.webhooks import MANAGE, PAGE
from moot.core.errors import BadRequest
from moot.core.triggers.subscriptions import RetryPolicy
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.queues import Consumer
from moot.triggers.inbound.subscriptions import Seen


class Bind(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Who takes from a queue: a workflow, for a standing agent or for nobody. ``takeOver``: also
    from another standing agent."""

    workflow_id: WorkflowId
    roster_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    input_mapping: Mapping = {}
    take_over: bool = False


async def list_queues(request: Request) -> Reply:
    found = await request.services.triggers.queues.all(request.caller.tenant)
    return Reply({"queues": [await _queue(request, seen) for seen in found]})


async def read_queue(request: Request) -> Reply:
    return Reply(await _queue(request, await _seen(request)))


async def bind(request: Request) -> Reply:
    asked = await request.read(Bind)
    seen = await request.services.triggers.queues.bind(
        request.caller.tenant,
        request.params["queue"],
        Consumer(
            workflow_id=asked.workflow_id,
            roster_id=asked.roster_id,
            retry_policy=asked.retry_policy,
            input_mapping=asked.input_mapping,
        ),
        request.caller.id,
        asked.take_over,
    )
    return Reply(await _queue(request, seen))


async def unbind(request: Request) -> Reply:
    queues, name = request.services.triggers.queues, request.params["queue"]
    seen = await _seen(request)
    if seen.it.workflow_id is None:
        await queues.remove(seen.tenant, name, request.caller.id)
        return Reply({**await _queue(request, seen), "removed": True})
    seen = await queues.unbind(seen.tenant, name, request.caller.id)
    return Reply(await _queue(request, seen))


async def push(request: Request) -> Reply:
    """Under an Idempotency-Key an item is put in once, for as long as it is known."""
    if not await request.body():
        raise BadRequest("An item is a JSON object; the body is empty.")
    item = await request.read(dict[str, Any])
    handed, _ = await request.services.triggers.queues.push(
        request.caller.tenant, request.params["queue"], item, request.header(HEADER),
        request.caller.id,
    )  # fmt: skip
    row = handed.delivery
    told = {"itemId": row.delivery_id, "status": item_view.STATUS[row.state]}
    more = {"runId": row.run_id, "rosterId": row.member, "reason": row.reason}
    headers = {} if handed.fresh else {REPLAYED: "true"}  # also when the first answer is forgotten
    return Reply({**told, **{name: value for name, value in more.items() if value}}, 202, headers)


async def list_items(request: Request) -> Reply:
    seen = await _seen(request)
    states = tuple(filter(None, request.query.get("state", "").split(",")))
    if unknown := set(states) - item_view.STATES:
        raise BadRequest(
            f"There is no state '{min(unknown)[:32]}'; there are {', '.join(item_view.STATES)}.",
            field="state",
        )
    where = DeliveryFilter(
        subscription=seen.it.subscription_id,
        states=states,
        member=request.query.get("member") or None,
        prefix=request.query.get("prefix") or None,
    )
    limit = request.integer("limit", 50, 1, 200)
    found, cursor = await request.services.store.deliveries(
        seen.tenant, where, request.query.get("cursor"), limit
    )
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"items": [item_view.row(each) for each in found], **more})


async def read_item(request: Request) -> Reply:
    """The item, the run it became, for whom, what was said in it and what it has cost."""
    _, row = await _item(request)
    return Reply(await item_view.whole(request.services, row))


async def redeliver(request: Request) -> Reply:
    seen, row = await _item(request)
    after = await request.services.triggers.deliveries.again(seen, row, request.caller.id)
    return Reply(item_view.row(after), 202)


async def drop(request: Request) -> Reply:
    _, row = await _item(request)
    return Reply(
        item_view.row(await request.services.triggers.deliveries.drop(row, request.caller.id))
    )


async def _item(request: Request) -> Any:
    tenant, queue = request.caller.tenant, request.params["queue"]
    return await request.services.triggers.queues.item(tenant, queue, request.params["item_id"])


async def _seen(request: Request) -> Seen:
    tenant, queue = request.caller.tenant, request.params["queue"]
    return await request.services.triggers.queues.must_find(tenant, queue)


async def _queue(request: Request, seen: Seen) -> dict[str, Any]:
    it = seen.it
    counts = await request.services.store.delivery_counts(seen.tenant, it.subscription_id)
    shown = {"name": it.queue, "subscriptionId": it.subscription_id, "state": it.state}
    policy = msgspec.to_builtins(it.retry_policy)
    return {**shown, **await with_inert(request, it), "retryPolicy": policy, "items": counts}


ROOT = "/v1/host/moot/queues"
ONE = f"{ROOT}/{{queue}}"
ITEMS = f"{ONE}/items"
ITEM = f"{ITEMS}/{{item_id}}"
FILTERS: dict[str, tuple[dict[str, Any], str]] = {
    **PAGE,
    "state": ({"type": "string"}, "only those in one of these states, with commas between"),
    "member": ({"type": "string"}, "only those for this standing agent"),
    "prefix": ({"type": "string"}, "only those whose id begins so"),
}
ENDPOINTS = (
    Endpoint(
        method="POST", path=ITEMS, call=push, body=dict[str, Any], scope="runs:create", status=202,
        largest=LARGEST, summary="Put an item into a queue", errors=(409,),
    ),
    Endpoint(
        method="GET", path=ITEMS, call=list_items, scope="runs:read", query=FILTERS,
        summary="Items of a queue, newest first", errors=(404,),
    ),
    Endpoint(
        method="GET", path=ITEM, call=read_item, scope="runs:read", errors=(404,),
        summary="An item, its run, its member, the turns and the cost",
    ),
    Endpoint(
        method="POST", path=f"{ITEM}:redeliver", call=redeliver, scope=MANAGE,
        beside="runs:create", status=202,
        summary="Try an item again from the beginning", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{ITEM}:drop", call=drop, scope=MANAGE,
        summary="Forget what an item says", errors=(404, 409),
    ),
    Endpoint(method="GET", path=ROOT, call=list_queues, scope="runs:read", summary="All queues"),
    Endpoint(
        method="GET", path=ONE, call=read_queue, scope="runs:read", summary="One queue",
        errors=(404,),
    ),
    Endpoint(
        method="PUT", path=ONE, call=bind, body=Bind, scope=MANAGE, beside="runs:create",
        summary="Let a workflow take from a queue", errors=(404, 409),
    ),
    Endpoint(
        method="DELETE", path=ONE, call=unbind, scope=MANAGE, errors=(404, 409),
        summary="Let nobody take from a queue; remove one that nobody takes from and that is empty",
    ),
)  # fmt: skip
