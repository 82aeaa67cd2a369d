"""Queues and their items: push, bind, list, redeliver, drop."""

from msgspec.structs import asdict, replace

from moot.api.http.idempotency import KEY_HEADER, REPLAY_HEADER
from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request
from moot.api.triggers.ingest import LARGEST_BODY
from moot.api.triggers.subscriptions import binding_with_inert
from moot.api.triggers.views import (
    ITEM_STATES,
    item_details,
    item_row,
    parse_words,
    read_delivery_page,
)
from moot.api.triggers.webhooks import MANAGE
from moot.api.views import copy_fields
from moot.core.errors import BadRequest
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.inbound.queues import Consumer
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.wire.triggers import (
    BindQueue,
    PushedItem,
    QueueItem,
    QueueItemList,
    QueueItemView,
    QueueList,
    QueueView,
    RetryRule,
)


async def list_queues(request: Request) -> Reply:
    queues = await request.triggers.queues.all(request.tenant)
    return Reply(QueueList(queues=[await _queue_view(request, queue) for queue in queues]))


async def read_queue(request: Request) -> Reply:
    return Reply(await _queue_view(request, await _find_queue(request)))


async def bind_queue(request: Request) -> Reply:
    body = await request.read(BindQueue)
    queue = await request.triggers.queues.bind(
        request.tenant,
        request.params["queue"],
        copy_fields(Consumer, body),
        request.caller.id,
        body.take_over,
    )
    return Reply(await _queue_view(request, queue))


async def unbind_queue(request: Request) -> Reply:
    queues, name = request.triggers.queues, request.params["queue"]
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
    handed, _ = await request.triggers.queues.push(
        request.tenant, request.params["queue"], item, request.header(KEY_HEADER),
        request.caller.id,
    )  # fmt: skip
    row = handed.delivery
    pushed = PushedItem(
        item_id=row.delivery_id,
        status="accepted" if row.state == "delivered" else row.state,
        run_id=row.run_id or None,
        roster_id=row.member or None,
        reason=row.reason or "",
    )
    # also when the first receipt has expired
    headers = {} if handed.fresh else {REPLAY_HEADER: "true"}
    return Reply(pushed, 202, headers)


async def list_items(request: Request) -> Reply:
    queue = await _find_queue(request)
    where = DeliveryFilter(
        subscription=queue.it.subscription_id,
        states=parse_words(request, "state", ITEM_STATES),
        member=request.query.get("member") or None,
        prefix=request.query.get("prefix") or None,
    )
    rows, cursor = await read_delivery_page(request, queue.tenant, where)
    items = [item_row(each) for each in rows]
    return Reply(QueueItemList(items=items, next_cursor=cursor))


async def read_item(request: Request) -> Reply:
    """Return an item with its run, member, turns and cost."""
    _, row = await _find_item(request)
    return Reply(await item_details(request.services, row))


async def redeliver_item(request: Request) -> Reply:
    queue, row = await _find_item(request)
    after = await request.triggers.deliveries.again(queue, row, request.caller.id)
    return Reply(item_row(after), 202)


async def drop_item(request: Request) -> Reply:
    _, row = await _find_item(request)
    return Reply(item_row(await request.triggers.deliveries.drop(row, request.caller.id)))


async def _find_item(request: Request) -> tuple[SubscriptionVersion, Delivery]:
    tenant, queue = request.tenant, request.params["queue"]
    return await request.triggers.queues.item(tenant, queue, request.params["item_id"])


async def _find_queue(request: Request) -> SubscriptionVersion:
    tenant, queue = request.tenant, request.params["queue"]
    return await request.triggers.queues.must_find(tenant, queue)


async def _queue_view(request: Request, queue: SubscriptionVersion) -> QueueView:
    subscription = queue.it
    counts = await request.store.delivery_counts(queue.tenant, subscription.subscription_id)
    return QueueView(
        **asdict(await binding_with_inert(request, subscription)),
        name=subscription.queue or "",
        subscription_id=subscription.subscription_id,
        state=subscription.state,
        retry_policy=copy_fields(RetryRule, subscription.retry_policy),
        items=counts,
    )


ROOT = "/v1/host/moot/queues"
ONE = f"{ROOT}/{{queue}}"
ITEMS = f"{ONE}/items"
ITEM = f"{ITEMS}/{{item_id}}"
FILTERS = {"state": TEXT, "member": TEXT, "prefix": TEXT}
QUEUE_ENDPOINTS = (
    Endpoint("POST", ITEMS, push_item, scope="runs:create", largest=LARGEST_BODY, body=QueueItem,
             needs_body=True, status=202, answer=PushedItem),
    Endpoint("GET", ITEMS, list_items, scope="runs:read", query={**PAGE_QUERY, **FILTERS},
             answer=QueueItemList),
    Endpoint("GET", ITEM, read_item, scope="runs:read", answer=QueueItemView),
    Endpoint("POST", f"{ITEM}:redeliver", redeliver_item, scope=MANAGE, beside="runs:create",
             status=202, answer=QueueItemView),
    Endpoint("POST", f"{ITEM}:drop", drop_item, scope=MANAGE, answer=QueueItemView),
    Endpoint("GET", ROOT, list_queues, scope="runs:read", answer=QueueList),
    Endpoint("GET", ONE, read_queue, scope="runs:read", answer=QueueView),
    Endpoint("PUT", ONE, bind_queue, scope=MANAGE, beside="runs:create", body=BindQueue,
             answer=QueueView),
    Endpoint("DELETE", ONE, unbind_queue, scope=MANAGE, answer=QueueView),
)  # fmt: skip
