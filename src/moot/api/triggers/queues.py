"""Queues and their items: push, bind, list, redeliver, drop."""

from msgspec.structs import asdict, replace

from moot.api.http.idempotency import KEY_HEADER, REPLAY_HEADER
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers import views
from moot.api.triggers.ingest import LARGEST_BODY
from moot.api.triggers.subscriptions import binding_with_inert
from moot.api.triggers.webhooks import MANAGE, PAGE
from moot.core.errors import BadRequest
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.queues import Consumer
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.wire.json import JsonObject
from moot.wire.triggers import (
    BindQueue,
    PushedItem,
    QueueItem,
    QueueItemList,
    QueueItemView,
    QueueList,
    QueueView,
)


async def list_queues(request: Request) -> Reply:
    queues = await request.services.triggers.queues.all(request.caller.tenant)
    return Reply(QueueList(queues=[await _queue_view(request, queue) for queue in queues]))


async def read_queue(request: Request) -> Reply:
    return Reply(await _queue_view(request, await _find_queue(request)))


async def bind_queue(request: Request) -> Reply:
    body = await request.read(BindQueue)
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
        return Reply(replace(await _queue_view(request, queue), removed=True))
    queue = await queues.unbind(queue.tenant, name, request.caller.id)
    return Reply(await _queue_view(request, queue))


async def push_item(request: Request) -> Reply:
    """Put an item into a queue, once for each Idempotency-Key while the item is known."""
    if not await request.body():
        raise BadRequest("An item is a JSON object; the body is empty.")
    item = await request.read(dict)
    handed, _ = await request.services.triggers.queues.push(
        request.caller.tenant, request.params["queue"], item, request.header(KEY_HEADER),
        request.caller.id,
    )  # fmt: skip
    row = handed.delivery
    pushed = PushedItem(
        item_id=row.delivery_id,
        status=views.ITEM_STATUSES[row.state],
        run_id=row.run_id or None,
        roster_id=row.member or None,
        reason=row.reason or "",
    )
    # also when the first receipt has expired
    headers = {} if handed.fresh else {REPLAY_HEADER: "true"}
    return Reply(pushed, 202, headers)


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
    items = [views.item_row(each) for each in rows]
    return Reply(QueueItemList(items=items, next_cursor=cursor))


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


async def _find_item(request: Request) -> tuple[SubscriptionVersion, Delivery]:
    tenant, queue = request.caller.tenant, request.params["queue"]
    return await request.services.triggers.queues.item(tenant, queue, request.params["item_id"])


async def _find_queue(request: Request) -> SubscriptionVersion:
    tenant, queue = request.caller.tenant, request.params["queue"]
    return await request.services.triggers.queues.must_find(tenant, queue)


async def _queue_view(request: Request, queue: SubscriptionVersion) -> QueueView:
    subscription = queue.it
    counts = await request.services.store.delivery_counts(
        queue.tenant, subscription.subscription_id
    )
    return QueueView(
        **asdict(await binding_with_inert(request, subscription)),
        name=subscription.queue or "",
        subscription_id=subscription.subscription_id,
        state=subscription.state,
        retry_policy=views.retry_view(subscription.retry_policy),
        items=counts,
    )


ROOT = "/v1/host/moot/queues"
ONE = f"{ROOT}/{{queue}}"
ITEMS = f"{ONE}/items"
ITEM = f"{ITEMS}/{{item_id}}"
FILTERS: dict[str, tuple[JsonObject, str]] = {
    **PAGE,
    "state": ({"type": "string"}, "only those in one of these states, with commas between"),
    "member": ({"type": "string"}, "only those for this standing agent"),
    "prefix": ({"type": "string"}, "only those whose id begins so"),
}
QUEUE_ENDPOINTS = (
    Endpoint(
        method="POST", path=ITEMS, call=push_item, body=QueueItem, scope="runs:create",
        status=202,
        largest=LARGEST_BODY, needs_body=True, summary="Put an item into a queue", errors=(409,),
        tag="Queues", operation_id="pushItem", answer=PushedItem,
        description="Puts a JSON object into a queue, once for each Idempotency-Key. A bound "
        "queue starts a run for it. A queue that does not exist is created. Refuses an empty "
        "body.",
    ),
    Endpoint(
        method="GET", path=ITEMS, call=list_items, scope="runs:read", query=FILTERS,
        summary="Items of a queue, newest first", errors=(404,),
        tag="Queues", operation_id="listItems", answer=QueueItemList,
        description="Lists the items of a queue, newest first, without their contents.",
    ),
    Endpoint(
        method="GET", path=ITEM, call=read_item, scope="runs:read", errors=(404,),
        summary="An item, its run, its member, the turns and the cost",
        tag="Queues", operation_id="readItem", answer=QueueItemView,
        description="Returns an item with its content, its run, its standing agent and its turns.",
    ),
    Endpoint(
        method="POST", path=f"{ITEM}:redeliver", call=redeliver_item, scope=MANAGE,
        beside="runs:create", status=202,
        summary="Try an item again from the beginning", errors=(404, 409),
        tag="Queues", operation_id="redeliverItem", answer=QueueItemView,
        description="Starts the delivery of a failed item again. Refuses an item that is "
        "delivered or on its way with 409.",
    ),
    Endpoint(
        method="POST", path=f"{ITEM}:drop", call=drop_item, scope=MANAGE,
        summary="Forget what an item says", errors=(404, 409),
        tag="Queues", operation_id="dropItem", answer=QueueItemView,
        description="Drops an item and its content. Refuses a delivered item with 409.",
    ),
    Endpoint(
        method="GET", path=ROOT, call=list_queues, scope="runs:read", summary="All queues",
        tag="Queues", operation_id="listQueues", answer=QueueList,
        description="Lists all queues with their bindings and the number of items in each state.",
    ),
    Endpoint(
        method="GET", path=ONE, call=read_queue, scope="runs:read", summary="One queue",
        errors=(404,),
        tag="Queues", operation_id="readQueue", answer=QueueView,
        description="Returns a queue with its binding and the number of items in each state.",
    ),
    Endpoint(
        method="PUT", path=ONE, call=bind_queue, body=BindQueue, scope=MANAGE, beside="runs:create",
        summary="Let a workflow take from a queue", errors=(404, 409),
        tag="Queues", operation_id="bindQueue", answer=QueueView,
        description="Binds a queue to a workflow, and to a standing agent if you name one. "
        "Refuses a queue of another standing agent, unless `takeOver` is set.",
    ),
    Endpoint(
        method="DELETE", path=ONE, call=unbind_queue, scope=MANAGE, errors=(404, 409),
        summary="Let nobody take from a queue; remove one that nobody takes from and that is empty",
        tag="Queues", operation_id="unbindQueue", answer=QueueView,
        description="Unbinds a queue, so that its items wait. Removes a queue that is unbound and "
        "empty already.",
    ),
)  # fmt: skip
