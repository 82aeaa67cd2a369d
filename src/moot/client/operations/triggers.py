"""Operations on queues, deliveries and subscriptions."""

from collections.abc import Mapping, Sequence
from typing import Any

from moot.client.http.operation import (
    RequestParts,
    Retry,
    operation,
    operation_without_answer,
    without_none,
)
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
    retry_policy: Mapping[str, Any] | None = None,
    input_mapping: Mapping[str, str] | None = None,
    take_over: bool | None = None,
) -> RequestParts:
    """Bind a workflow to a queue; it also gets the items that wait there.

    With ``take_over``, bind it even if another standing agent owns the queue.
    """
    body = without_none(
        rosterId=roster_id,
        retryPolicy=retry_policy,
        inputMapping=input_mapping,
        takeOver=take_over,
    )
    return RequestParts(name, body={"workflowId": workflow_id, **body})


@operation("DELETE /v1/host/moot/queues/{queue}", triggers.QueueView)
def unbind_queue(name: str) -> RequestParts:
    """Unbind the workflow; the queue keeps its items.

    A queue without a workflow is removed if it has no items to process.
    """
    return RequestParts(name)


@operation("POST /v1/host/moot/queues/{queue}/items", triggers.PushedItem)
def push_item(name: str, item: Mapping[str, Any], *, key: str | None = None) -> RequestParts:
    """Add an item. Items with the same ``key`` are one item."""
    return RequestParts(name, body=dict(item), headers=without_none(**{"Idempotency-Key": key}))


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
    states = ",".join(state) or None
    query = without_none(state=states, member=member, prefix=prefix, limit=limit, cursor=cursor)
    return RequestParts(name, query=query)


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
    query = without_none(
        state=",".join(state) or None, source=",".join(source) or None, subscription=subscription,
        member=member, prefix=prefix, limit=limit, cursor=cursor,
    )  # fmt: skip
    return RequestParts(query=query)


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
    return RequestParts(query=without_none(source=source, limit=limit, cursor=cursor))


@operation("GET /v1/trigger-subscriptions/{subscription_id}", triggers.SubscriptionView)
def get_subscription(subscription_id: str) -> RequestParts:
    """Get a subscription with its newest deliveries and state changes."""
    return RequestParts(subscription_id)


@operation("POST /v1/trigger-subscriptions", triggers.NewSubscription, Retry.ONCE)
def create_subscription(
    workflow_id: str,
    *,
    source: str = "webhook",
    dedup_enabled: bool | None = None,
    retry_policy: Mapping[str, Any] | None = None,
    verification: str | None = None,
    input_mapping: Mapping[str, str] | None = None,
    roster_id: str | None = None,
) -> RequestParts:
    """Let an inbound webhook start runs. Only this answer contains the secret."""
    body = without_none(
        dedupEnabled=dedup_enabled,
        retryPolicy=retry_policy,
        verification=None if verification is None else {"mode": verification},
        inputMapping=input_mapping,
        rosterId=roster_id,
    )
    return RequestParts(body={"source": source, "workflowId": workflow_id, **body})


@operation("PATCH /v1/trigger-subscriptions/{subscription_id}", triggers.ChangedSubscription)
def change_subscription(
    subscription_id: str,
    *,
    state: str | None = None,
    roster_id: str | None = None,
    input_mapping: Mapping[str, str] | None = None,
    note: str | None = None,
    until: str | None = None,
) -> RequestParts:
    """Pause or resume a subscription, give it to a standing agent, or map its inputs.

    A pause ends by itself at ``until``, an ISO time.
    """
    body = without_none(state=state, rosterId=roster_id, inputMapping=input_mapping, note=note)
    return RequestParts(subscription_id, body={**body, **without_none(until=until)})


@operation_without_answer("DELETE /v1/trigger-subscriptions/{subscription_id}")
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
    return RequestParts(subscription_id, query=without_none(limit=limit, cursor=cursor))


@operation("POST /v1/host/moot/ingest/{subscription_id}", triggers.IngestResult, Retry.ONCE)
def send_to_subscription(
    subscription_id: str, body: bytes, headers: Mapping[str, str]
) -> RequestParts:
    """Send bytes with the headers that sign them, like an outside sender."""
    return RequestParts(subscription_id, body=body, headers=dict(headers))
