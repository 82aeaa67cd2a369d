"""Queues of work and subscriptions to what comes in: every call, and the parts that make them."""

from collections.abc import Mapping, Sequence
from typing import Any

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.http.operation import Again, Sent, given, operation, silent
from moot.wire import triggers

# -- queues --------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/queues", triggers.Queues)
def queues() -> Sent:
    """All of them."""
    return Sent()


@operation("GET /v1/host/moot/queues/{queue}", triggers.Queue)
def queue(name: str) -> Sent:
    """One of them, and how many items are in which state."""
    return Sent(name)


@operation("PUT /v1/host/moot/queues/{queue}", triggers.Queue)
def bind(
    name: str,
    workflow_id: str,
    *,
    roster_id: str | None = None,
    retry_policy: Mapping[str, Any] | None = None,
    input_mapping: Mapping[str, str] | None = None,
    take_over: bool | None = None,
) -> Sent:
    """Let a workflow take from a queue, also what waits in it; with ``take_over`` also from
    another standing agent."""
    body = given(
        rosterId=roster_id,
        retryPolicy=retry_policy,
        inputMapping=input_mapping,
        takeOver=take_over,
    )
    return Sent(name, body={"workflowId": workflow_id, **body})


@operation("DELETE /v1/host/moot/queues/{queue}", triggers.Queue)
def unbind(name: str) -> Sent:
    """Let nobody take from it; it keeps its items. One that nobody takes from is removed, if
    nothing in it is to be done."""
    return Sent(name)


@operation("POST /v1/host/moot/queues/{queue}/items", triggers.Pushed)
def push(name: str, item: Mapping[str, Any], *, key: str | None = None) -> Sent:
    """Put an item in. Under ``key`` it is the same item however often it is put in."""
    return Sent(name, body=dict(item), headers=given(**{"Idempotency-Key": key}))


@operation("GET /v1/host/moot/queues/{queue}/items", triggers.Items)
def items(
    name: str,
    *,
    state: Sequence[str] = (),
    member: str | None = None,
    prefix: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Sent:
    """Newest first."""
    states = ",".join(state) or None
    query = given(state=states, member=member, prefix=prefix, limit=limit, cursor=cursor)
    return Sent(name, query=query)


@operation("GET /v1/host/moot/queues/{queue}/items/{item_id}", triggers.Item)
def item(name: str, item_id: str) -> Sent:
    """An item, its run, its member, the turns and the cost."""
    return Sent(name, item_id)


@operation("POST /v1/host/moot/queues/{queue}/items/{item_id}:redeliver", triggers.Item)
def redeliver(name: str, item_id: str) -> Sent:
    """Try it again from the beginning."""
    return Sent(name, item_id, body={})


@operation("POST /v1/host/moot/queues/{queue}/items/{item_id}:drop", triggers.Item)
def drop(name: str, item_id: str) -> Sent:
    """Forget what it says."""
    return Sent(name, item_id, body={})


# -- what came in, by its id ---------------------------------------------------------------------


@operation("GET /v1/host/moot/deliveries", triggers.Deliveries)
def deliveries(
    *,
    state: Sequence[str] = (),
    source: Sequence[str] = (),
    subscription: str | None = None,
    member: str | None = None,
    prefix: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Sent:
    """What came in from queues and by webhooks, newest first."""
    query = given(
        state=",".join(state) or None, source=",".join(source) or None, subscription=subscription,
        member=member, prefix=prefix, limit=limit, cursor=cursor,
    )  # fmt: skip
    return Sent(query=query)


@operation("GET /v1/host/moot/deliveries/{delivery_id}", triggers.Item)
def delivery(delivery_id: str) -> Sent:
    """One of them, what it said, its run, its member, the turns and the cost."""
    return Sent(delivery_id)


@operation("POST /v1/host/moot/deliveries/{delivery_id}:redeliver", triggers.Item)
def deliver_again(delivery_id: str) -> Sent:
    """Try it again from the beginning."""
    return Sent(delivery_id, body={})


@operation("POST /v1/host/moot/deliveries/{delivery_id}:drop", triggers.Item)
def drop_delivery(delivery_id: str) -> Sent:
    """Forget what it says."""
    return Sent(delivery_id, body={})


# -- subscriptions -------------------------------------------------------------------------------


@operation("GET /v1/trigger-subscriptions", triggers.Subscriptions)
def subscriptions(
    *, source: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Sent:
    """What is listened to, by id; never the secrets."""
    return Sent(query=given(source=source, limit=limit, cursor=cursor))


@operation("GET /v1/trigger-subscriptions/{subscription_id}", triggers.SubscriptionView)
def subscription(subscription_id: str) -> Sent:
    """One of them, its newest deliveries, the history of its state."""
    return Sent(subscription_id)


@operation("POST /v1/trigger-subscriptions", triggers.Subscribed, Again.ONCE)
def subscribe(
    workflow_id: str,
    *,
    source: str = "webhook",
    dedup_enabled: bool | None = None,
    retry_policy: Mapping[str, Any] | None = None,
    verification: str | None = None,
    input_mapping: Mapping[str, str] | None = None,
    roster_id: str | None = None,
) -> Sent:
    """Let a webhook start runs; the answer has the secret, this once."""
    body = given(
        dedupEnabled=dedup_enabled,
        retryPolicy=retry_policy,
        verification=None if verification is None else {"mode": verification},
        inputMapping=input_mapping,
        rosterId=roster_id,
    )
    return Sent(body={"source": source, "workflowId": workflow_id, **body})


@operation("PATCH /v1/trigger-subscriptions/{subscription_id}", triggers.SubscriptionView)
def change(
    subscription_id: str,
    *,
    state: str | None = None,
    roster_id: str | None = None,
    input_mapping: Mapping[str, str] | None = None,
    note: str | None = None,
    until: str | None = None,
) -> Sent:
    """Pause or resume it, hand it to a standing agent, say where its inputs stand. A pause ends by
    itself at ``until``, an ISO time."""
    body = given(state=state, rosterId=roster_id, inputMapping=input_mapping, note=note)
    return Sent(subscription_id, body={**body, **given(until=until)})


@silent("DELETE /v1/trigger-subscriptions/{subscription_id}")
def unsubscribe(subscription_id: str) -> Sent:
    """Listen no longer."""
    return Sent(subscription_id)


@operation(
    "POST /v1/trigger-subscriptions/{subscription_id}/rotate-secret",
    triggers.Subscribed,
    Again.ONCE,
)
def rotate(subscription_id: str) -> Sent:
    """Another secret; the one before stays good for a day."""
    return Sent(subscription_id, body={})


@operation("GET /v1/trigger-subscriptions/{subscription_id}/dead-letters", triggers.TriggerLetters)
def dead_letters(subscription_id: str, *, limit: int = 50, cursor: str | None = None) -> Sent:
    """What could not be delivered, newest first."""
    return Sent(subscription_id, query=given(limit=limit, cursor=cursor))


@operation("POST /v1/host/moot/ingest/{subscription_id}", triggers.Taken, Again.ONCE)
def send(subscription_id: str, body: bytes, headers: Mapping[str, str]) -> Sent:
    """What a sender does: bytes, and the headers that sign them."""
    return Sent(subscription_id, body=body, headers=dict(headers))


class Queues(Of):
    list = waits(queues)
    get = waits(queue)
    bind = waits(bind)
    unbind = waits(unbind)
    push = waits(push)
    items = waits(items)
    item = waits(item)
    redeliver = waits(redeliver)
    drop = waits(drop)


class AsyncQueues(AsyncOf):
    list = awaits(queues)
    get = awaits(queue)
    bind = awaits(bind)
    unbind = awaits(unbind)
    push = awaits(push)
    items = awaits(items)
    item = awaits(item)
    redeliver = awaits(redeliver)
    drop = awaits(drop)


class Subscriptions(Of):
    list = waits(subscriptions)
    get = waits(subscription)
    register = waits(subscribe)
    change = waits(change)
    remove = waits(unsubscribe)
    rotate = waits(rotate)
    dead_letters = waits(dead_letters)
    send = waits(send)
    deliveries = waits(deliveries)
    delivery = waits(delivery)
    redeliver = waits(deliver_again)
    drop = waits(drop_delivery)


class AsyncSubscriptions(AsyncOf):
    list = awaits(subscriptions)
    get = awaits(subscription)
    register = awaits(subscribe)
    change = awaits(change)
    remove = awaits(unsubscribe)
    rotate = awaits(rotate)
    dead_letters = awaits(dead_letters)
    send = awaits(send)
    deliveries = awaits(deliveries)
    delivery = awaits(delivery)
    redeliver = awaits(deliver_again)
    drop = awaits(drop_delivery)
