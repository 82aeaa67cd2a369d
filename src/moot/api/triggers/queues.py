"""Queues and their items: push, bind, list, redeliver, drop."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from moot.api.http.idempotency import KEY_HEADER, REPLAY_HEADER
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers import views
from moot.api.triggers.ingest import LARGEST_BODY
from moot.api.triggers.subscriptions import Mapping, WorkflowId, binding_with_inert
from moot.api.triggers.webhooks import MANAGE, PAGE
from moot.core.errors import BadRequest
from moot.core.triggers.subscriptions import RetryPolicy
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.queues import Consumer
from moot.triggers.inbound.versions import SubscriptionVersion


class Bind(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The workflow that takes from a queue, and its standing agent if any.

    ``takeOver`` takes the queue from another standing agent.
    """

    workflow_id: WorkflowId
    roster_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    input_mapping: Mapping = {}
    take_over: bool = False


async def list_queues(request: Request) -> Reply:
    queues = await request.services.triggers.queues.all(request.caller.tenant)
    return Reply({"queues": [await _queue_view(request, queue) for queue in queues]})


async def read_queue(request: Request) -> Reply:
    return Reply(await _queue_view(request, await _find_queue(request)))


async def bind_queue(request: Request) -> Reply:
    body = await request.read(Bind)
    queue = await request.services.triggers.queues.bind(
        request.caller.tenant,
        request.params["queue"],
        Consumer(
            workflow_id=body.workflow_id,
            roster_id=body.roster_id,
            retry_policy=body.retry_policy,
            input_mapping=body.input_mapping,
        ),
        request.caller.id,
        body.take_over,
    )
    return Reply(await _queue_view(request, queue))


async def unbind_queue(request: Request) -> Reply:
    queues, name = request.services.triggers.queues, request.params["queue"]
    queue = await _find_queue(request)
    if queue.it.workflow_id is None:
        await queues.remove(queue.tenant, name, request.caller.id)
        return Reply({**await _queue_view(request, queue), "removed": True})
    queue = await queues.unbind(queue.tenant, name, request.caller.id)
    return Reply(await _queue_view(request, queue))


async def push_item(request: Request) -> Reply:
    """Put an item into a queue, once for each Idempotency-Key while the item is known."""
    if not await request.body():
        raise BadRequest("An item is a JSON object; the body is empty.")
    item = await request.read(dict[str, Any])
    handed, _ = await request.services.triggers.queues.push(
        request.caller.tenant, request.params["queue"], item, request.header(KEY_HEADER),
        request.caller.id,
    )  # fmt: skip
    row = handed.delivery
    answer = {"itemId": row.delivery_id, "status": views.ITEM_STATUSES[row.state]}
    more = {"runId": row.run_id, "rosterId": row.member, "reason": row.reason}
    # also when the first receipt has expired
    headers = {} if handed.fresh else {REPLAY_HEADER: "true"}
    return Reply({**answer, **{name: value for name, value in more.items() if value}}, 202, headers)


async def list_items(request: Request) -> Reply:
    queue = await _find_queue(request)
    states = tuple(filter(None, request.query.get("state", "").split(",")))
    if unknown := set(states) - views.ITEM_STATES:
        allowed = ", ".join(views.ITEM_STATES)
        raise BadRequest(
            f"There is no state '{min(unknown)[:32]}'; there are {allowed}.",
            field="state",
        )
    where = DeliveryFilter(
        subscription=queue.it.subscription_id,
        states=states,
        member=request.query.get("member") or None,
        prefix=request.query.get("prefix") or None,
    )
    limit = request.integer("limit", 50, 1, 200)
    rows, cursor = await request.services.store.deliveries(
        queue.tenant, where, request.query.get("cursor"), limit
    )
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"items": [views.item_row(each) for each in rows], **more})


async def read_item(request: Request) -> Reply:
    """Return an item with its run, member, turns and cost."""
    _, row = await _find_item(request)
    return Reply(await views.item_details(request.services, row))


async def redeliver_item(request: Request) -> Reply:
    queue, row = await _find_item(request)
    after = await request.services.triggers.deliveries.again(queue, row, request.caller.id)
    return Reply(views.item_row(after), 202)


async def drop_item(request: Request) -> Reply:
    _, row = await _find_item(request)
    return Reply(
        views.item_row(await request.services.triggers.deliveries.drop(row, request.caller.id))
    )


async def _find_item(request: Request) -> Any:
    tenant, queue = request.caller.tenant, request.params["queue"]
    return await request.services.triggers.queues.item(tenant, queue, request.params["item_id"])


async def _find_queue(request: Request) -> SubscriptionVersion:
    tenant, queue = request.caller.tenant, request.params["queue"]
    return await request.services.triggers.queues.must_find(tenant, queue)


async def _queue_view(request: Request, queue: SubscriptionVersion) -> dict[str, Any]:
    subscription = queue.it
    counts = await request.services.store.delivery_counts(
        queue.tenant, subscription.subscription_id
    )
    view = {
        "name": subscription.queue,
        "subscriptionId": subscription.subscription_id,
        "state": subscription.state,
    }
    policy = msgspec.to_builtins(subscription.retry_policy)
    return {
        **view,
        **await binding_with_inert(request, subscription),
        "retryPolicy": policy,
        "items": counts,
    }


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
QUEUE_ENDPOINTS = (
    Endpoint(
        method="POST", path=ITEMS, call=push_item, body=dict[str, Any], scope="runs:create",
        status=202,
        largest=LARGEST_BODY, summary="Put an item into a queue", errors=(409,),
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
        method="POST", path=f"{ITEM}:redeliver", call=redeliver_item, scope=MANAGE,
        beside="runs:create", status=202,
        summary="Try an item again from the beginning", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{ITEM}:drop", call=drop_item, scope=MANAGE,
        summary="Forget what an item says", errors=(404, 409),
    ),
    Endpoint(method="GET", path=ROOT, call=list_queues, scope="runs:read", summary="All queues"),
    Endpoint(
        method="GET", path=ONE, call=read_queue, scope="runs:read", summary="One queue",
        errors=(404,),
    ),
    Endpoint(
        method="PUT", path=ONE, call=bind_queue, body=Bind, scope=MANAGE, beside="runs:create",
        summary="Let a workflow take from a queue", errors=(404, 409),
    ),
    Endpoint(
        method="DELETE", path=ONE, call=unbind_queue, scope=MANAGE, errors=(404, 409),
        summary="Let nobody take from a queue; remove one that nobody takes from and that is empty",
    ),
)  # fmt: skip
