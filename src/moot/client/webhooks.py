"""Webhooks: every call there is, and the part of the client that makes them."""

from collections.abc import Sequence

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.http.operation import Again, Sent, given, operation, silent
from moot.wire import webhooks as answers


@operation("GET /v1/host/moot/webhooks", answers.Webhooks)
def webhooks() -> Sent:
    """Who is told what; never the secrets."""
    return Sent()


@operation("GET /v1/host/moot/webhooks/{webhook_id}", answers.WebhookView)
def webhook(webhook_id: str) -> Sent:
    """One of them, and how its receiver does."""
    return Sent(webhook_id)


@operation("POST /v1/webhooks", answers.NewSecret, Again.ONCE)
def register(url: str, events: Sequence[str] = ("*",), *, tags: Sequence[str] = ()) -> Sent:
    """Be told of events; the answer has the secret, this once."""
    return Sent(body={"url": url, "events": list(events), **given(tags=list(tags) or None)})


@operation("POST /v1/webhooks/{webhook_id}/rotate-secret", answers.NewSecret, Again.ONCE)
def rotate(webhook_id: str) -> Sent:
    """Another secret; the one before stays good for a day."""
    return Sent(webhook_id, body={})


@operation("POST /v1/host/moot/webhooks/{webhook_id}/pause", answers.WebhookView)
def pause(webhook_id: str) -> Sent:
    """Call it no more, and keep what happens for it."""
    return Sent(webhook_id, body={})


@operation("POST /v1/host/moot/webhooks/{webhook_id}/resume", answers.WebhookView)
def resume(webhook_id: str) -> Sent:
    """Call it again at once, also where it was left alone after failures."""
    return Sent(webhook_id, body={})


@silent("DELETE /v1/webhooks/{webhook_id}")
def remove(webhook_id: str) -> Sent:
    """Be told nothing more."""
    return Sent(webhook_id)


@operation("GET /v1/host/moot/webhooks/{webhook_id}/dead-letters", answers.DeadLetters)
def dead_letters(webhook_id: str, *, limit: int = 50, cursor: str | None = None) -> Sent:
    """What could not be delivered, newest first."""
    return Sent(webhook_id, query=given(limit=limit, cursor=cursor))


@operation(
    "POST /v1/host/moot/webhooks/{webhook_id}/dead-letters/{delivery_id}:redeliver",
    answers.DeadLetter,
)
def redeliver(webhook_id: str, delivery_id: str) -> Sent:
    """Try a dead letter once more."""
    return Sent(webhook_id, delivery_id, body={})


@operation(
    "POST /v1/host/moot/webhooks/{webhook_id}/dead-letters/{delivery_id}:drop", answers.DeadLetter
)
def drop(webhook_id: str, delivery_id: str) -> Sent:
    """Take a dead letter off the list."""
    return Sent(webhook_id, delivery_id, body={})


class Webhooks(Of):
    list = waits(webhooks)
    get = waits(webhook)
    register = waits(register)
    rotate = waits(rotate)
    remove = waits(remove)
    dead_letters = waits(dead_letters)
    redeliver = waits(redeliver)
    drop = waits(drop)
    pause = waits(pause)
    resume = waits(resume)


class AsyncWebhooks(AsyncOf):
    list = awaits(webhooks)
    get = awaits(webhook)
    register = awaits(register)
    rotate = awaits(rotate)
    remove = awaits(remove)
    dead_letters = awaits(dead_letters)
    redeliver = awaits(redeliver)
    drop = awaits(drop)
    pause = awaits(pause)
    resume = awaits(resume)
