"""Queues, deliveries and subscriptions: operations, and resources of the client."""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from moot.client.http.methods import Resource, S, client_method
from moot.client.http.operation import RequestParts, Retry, operation, without_none
from moot.core.triggers.subscriptions import Backoff, RetryPolicy, VerificationMode
from moot.wire import triggers

# -- queues --------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/queues", triggers.QueueList)
def list_queues() -> RequestParts:
    """List all queues."""
    return RequestParts()


@operation("GET /v1/host/moot/queues/{queue}", triggers.QueueView)
def get_queue(name: str) -> RequestParts:
    """Get a queue and the number of its items in each state."""
    return RequestParts(name)


@operation("PUT /v1/host/moot/queues/{queue}", triggers.QueueView)
def bind_queue(
    name: str,
    workflow_id: str,
    *,
    roster_id: str | None = None,
    max_attempts: int | None = None,
    backoff: Backoff | None = None,
    input_mapping: Mapping[str, str] | None = None,
    take_over: bool = False,
) -> RequestParts:
    """Bind a workflow to a queue; it also gets the items that wait there.

    With ``take_over``, bind it even if another standing agent owns the queue.
    """
    body = triggers.BindQueue(
        workflow_id=workflow_id,
        roster_id=roster_id,
        retry_policy=_retry_policy(max_attempts, backoff),
        input_mapping=dict(input_mapping or {}),
        take_over=take_over,
    )
    return RequestParts(name, body=body)


def _retry_policy(max_attempts: int | None, backoff: Backoff | None) -> RetryPolicy:
    return replace(RetryPolicy(), **without_none(max_attempts=max_attempts, backoff=backoff))


@operation("DELETE /v1/host/moot/queues/{queue}", triggers.QueueView)
def unbind_queue(name: str) -> RequestParts:
    """Unbind the workflow; the queue keeps its items.

    A queue without a workflow is removed if it has no items to process.
    """
    return RequestParts(name)


@operation("POST /v1/host/moot/queues/{queue}/items", triggers.PushedItem)
def push_item(name: str, item: Mapping[str, Any], *, key: str | None = None) -> RequestParts:
    """Add an item. Items with the same ``key`` are one item."""
    return RequestParts(name, body=dict(item), headers={"Idempotency-Key": key})


@operation("GET /v1/host/moot/queues/{queue}/items", triggers.QueueItemList)
def list_items(
    name: str,
    *,
    state: Sequence[str] = (),
    member: str | None = None,
    prefix: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> RequestParts:
    """List the items of a queue, newest first."""
    query = {"state": ",".join(state) or None, "member": member, "prefix": prefix}
    return RequestParts(name, query={**query, "limit": limit, "cursor": cursor})


@operation("GET /v1/host/moot/queues/{queue}/items/{item_id}", triggers.QueueItemView)
def get_item(name: str, item_id: str) -> RequestParts:
    """Get an item with its run, standing agent, turns and cost."""
    return RequestParts(name, item_id)


@operation("POST /v1/host/moot/queues/{queue}/items/{item_id}:redeliver", triggers.QueueItemView)
def redeliver_item(name: str, item_id: str) -> RequestParts:
    """Deliver an item again, from its first attempt."""
    return RequestParts(name, item_id, body={})


@operation("POST /v1/host/moot/queues/{queue}/items/{item_id}:drop", triggers.QueueItemView)
def drop_item(name: str, item_id: str) -> RequestParts:
    """Drop an item and delete its content."""
    return RequestParts(name, item_id, body={})


# -- deliveries of all sources -------------------------------------------------------------------


@operation("GET /v1/host/moot/deliveries", triggers.DeliveryList)
def list_deliveries(
    *,
    state: Sequence[str] = (),
    source: Sequence[str] = (),
    subscription: str | None = None,
    member: str | None = None,
    prefix: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> RequestParts:
    """List deliveries from queues and webhooks, newest first."""
    query = {"state": ",".join(state) or None, "source": ",".join(source) or None}
    query |= {"subscription": subscription, "member": member, "prefix": prefix}
    return RequestParts(query={**query, "limit": limit, "cursor": cursor})


@operation("GET /v1/host/moot/deliveries/{delivery_id}", triggers.QueueItemView)
def get_delivery(delivery_id: str) -> RequestParts:
    """Get a delivery with its content, run, standing agent, turns and cost."""
    return RequestParts(delivery_id)


@operation("POST /v1/host/moot/deliveries/{delivery_id}:redeliver", triggers.QueueItemView)
def redeliver_delivery(delivery_id: str) -> RequestParts:
    """Deliver again, from the first attempt."""
    return RequestParts(delivery_id, body={})


@operation("POST /v1/host/moot/deliveries/{delivery_id}:drop", triggers.QueueItemView)
def drop_delivery(delivery_id: str) -> RequestParts:
    """Drop a delivery and delete its content."""
    return RequestParts(delivery_id, body={})


# -- subscriptions -------------------------------------------------------------------------------


@operation("GET /v1/trigger-subscriptions", triggers.SubscriptionList)
def list_subscriptions(
    *, source: str | None = None, limit: int | None = None, cursor: str | None = None
) -> RequestParts:
    """List subscriptions by id, never their secrets."""
    return RequestParts(query={"source": source, "limit": limit, "cursor": cursor})


@operation("GET /v1/trigger-subscriptions/{subscription_id}", triggers.SubscriptionView)
def get_subscription(subscription_id: str) -> RequestParts:
    """Get a subscription with its newest deliveries and state changes."""
    return RequestParts(subscription_id)


@operation("POST /v1/trigger-subscriptions", triggers.NewSubscription, Retry.ONCE)
def create_subscription(  # noqa: PLR0913 - each is a field of the subscription
    workflow_id: str,
    *,
    source: Literal["webhook", "email", "form"] = "webhook",
    dedup_enabled: bool = True,
    max_attempts: int | None = None,
    backoff: Backoff | None = None,
    verification: VerificationMode = "required",
    input_mapping: Mapping[str, str] | None = None,
    roster_id: str | None = None,
) -> RequestParts:
    """Let an inbound webhook start runs. Only this answer contains the secret."""
    body = triggers.RegisterSubscription(
        source=source,
        workflow_id=workflow_id,
        dedup_enabled=dedup_enabled,
        retry_policy=_retry_policy(max_attempts, backoff),
        verification=triggers.SubscriptionVerification(mode=verification),
        input_mapping=dict(input_mapping or {}),
        roster_id=roster_id,
    )
    return RequestParts(body=body)


@operation("PATCH /v1/trigger-subscriptions/{subscription_id}", triggers.ChangedSubscription)
def change_subscription(
    subscription_id: str,
    *,
    state: Literal["active", "paused"] | None = None,
    roster_id: str | None = None,
    input_mapping: Mapping[str, str] | None = None,
    note: str = "",
    until: str | None = None,
) -> RequestParts:
    """Pause or resume a subscription, give it to a standing agent, or map its inputs.

    A pause ends by itself at ``until``, an ISO time.
    """
    body = triggers.ChangeSubscription(
        state=UNSET if state is None else state,
        roster_id=UNSET if roster_id is None else roster_id,
        input_mapping=UNSET if input_mapping is None else dict(input_mapping),
        note=note,
        until=until,
    )
    return RequestParts(subscription_id, body=body)


@operation("DELETE /v1/trigger-subscriptions/{subscription_id}", NoneType)
def remove_subscription(subscription_id: str) -> RequestParts:
    """Remove a subscription."""
    return RequestParts(subscription_id)


@operation(
    "POST /v1/trigger-subscriptions/{subscription_id}/rotate-secret",
    triggers.NewSubscription,
    Retry.ONCE,
)
def rotate_subscription_secret(subscription_id: str) -> RequestParts:
    """Create a new secret; the old one stays valid for a day."""
    return RequestParts(subscription_id, body={})


@operation(
    "GET /v1/trigger-subscriptions/{subscription_id}/dead-letters",
    triggers.SubscriptionDeadLetterList,
)
def list_subscription_dead_letters(
    subscription_id: str, *, limit: int = 50, cursor: str | None = None
) -> RequestParts:
    """List deliveries that were given up, newest first."""
    return RequestParts(subscription_id, query={"limit": limit, "cursor": cursor})


@operation("POST /v1/host/moot/ingest/{subscription_id}", triggers.IngestResult, Retry.ONCE)
def send_to_subscription(
    subscription_id: str, body: bytes, headers: Mapping[str, str]
) -> RequestParts:
    """Send bytes with the headers that sign them, like an outside sender."""
    return RequestParts(subscription_id, body=body, headers=dict(headers))


class QueuesResource(Resource[S]):
    """All queues and their items."""

    list = client_method(list_queues)
    get = client_method(get_queue)
    bind = client_method(bind_queue)
    unbind = client_method(unbind_queue)
    push = client_method(push_item)
    items = client_method(list_items)
    item = client_method(get_item)
    redeliver = client_method(redeliver_item)
    drop = client_method(drop_item)


class SubscriptionsResource(Resource[S]):
    """All subscriptions and deliveries."""

    list = client_method(list_subscriptions)
    get = client_method(get_subscription)
    register = client_method(create_subscription)
    change = client_method(change_subscription)
    remove = client_method(remove_subscription)
    rotate = client_method(rotate_subscription_secret)
    dead_letters = client_method(list_subscription_dead_letters)
    send = client_method(send_to_subscription)
    deliveries = client_method(list_deliveries)
    delivery = client_method(get_delivery)
    redeliver = client_method(redeliver_delivery)
    drop = client_method(drop_delivery)
