"""Webhooks: their operations, and their resource of the client."""

from collections.abc import Sequence
from types import NoneType

from moot.client.http.methods import Resource, S, client_method
from moot.client.http.operation import RequestParts, Retry, operation
from moot.wire.webhooks import (
    RegisterWebhook,
    WebhookDeadLetter,
    WebhookDeadLetterList,
    WebhookList,
    WebhookSecret,
    WebhookView,
)


@operation("GET /v1/host/moot/webhooks", WebhookList)
def list_webhooks() -> RequestParts:
    """List webhooks and their events, never their secrets."""
    return RequestParts()


@operation("GET /v1/host/moot/webhooks/{webhook_id}", WebhookView)
def get_webhook(webhook_id: str) -> RequestParts:
    """Get a webhook and the state of its receiver."""
    return RequestParts(webhook_id)


@operation("POST /v1/webhooks", WebhookSecret, Retry.ONCE)
def register_webhook(
    url: str, events: Sequence[str] = ("*",), *, tags: Sequence[str] = ()
) -> RequestParts:
    """Register a receiver for events. Only this answer contains the secret."""
    return RequestParts(body=RegisterWebhook(url=url, events=list(events), tags=list(tags)))


@operation("POST /v1/webhooks/{webhook_id}/rotate-secret", WebhookSecret, Retry.ONCE)
def rotate_webhook_secret(webhook_id: str) -> RequestParts:
    """Create a new secret; the old one stays valid for a day."""
    return RequestParts(webhook_id, body={})


@operation("POST /v1/host/moot/webhooks/{webhook_id}/pause", WebhookView)
def pause_webhook(webhook_id: str) -> RequestParts:
    """Stop calling the receiver. New events are stored for it."""
    return RequestParts(webhook_id, body={})


@operation("POST /v1/host/moot/webhooks/{webhook_id}/resume", WebhookView)
def resume_webhook(webhook_id: str) -> RequestParts:
    """Call the receiver again at once, even if calls were suspended after failures."""
    return RequestParts(webhook_id, body={})


@operation("DELETE /v1/webhooks/{webhook_id}", NoneType)
def remove_webhook(webhook_id: str) -> RequestParts:
    """Remove a webhook."""
    return RequestParts(webhook_id)


@operation("GET /v1/host/moot/webhooks/{webhook_id}/dead-letters", WebhookDeadLetterList)
def list_webhook_dead_letters(
    webhook_id: str, *, limit: int = 50, cursor: str | None = None
) -> RequestParts:
    """List events that could not be delivered, newest first."""
    return RequestParts(webhook_id, query={"limit": limit, "cursor": cursor})


@operation(
    "POST /v1/host/moot/webhooks/{webhook_id}/dead-letters/{delivery_id}:redeliver",
    WebhookDeadLetter,
)
def redeliver_dead_letter(webhook_id: str, delivery_id: str) -> RequestParts:
    """Deliver a dead letter again."""
    return RequestParts(webhook_id, delivery_id, body={})


@operation(
    "POST /v1/host/moot/webhooks/{webhook_id}/dead-letters/{delivery_id}:drop", WebhookDeadLetter
)
def drop_dead_letter(webhook_id: str, delivery_id: str) -> RequestParts:
    """Remove a dead letter from the list."""
    return RequestParts(webhook_id, delivery_id, body={})


class WebhooksResource(Resource[S]):
    """All webhooks."""

    list = client_method(list_webhooks)
    get = client_method(get_webhook)
    register = client_method(register_webhook)
    rotate = client_method(rotate_webhook_secret)
    remove = client_method(remove_webhook)
    dead_letters = client_method(list_webhook_dead_letters)
    redeliver = client_method(redeliver_dead_letter)
    drop = client_method(drop_dead_letter)
    pause = client_method(pause_webhook)
    resume = client_method(resume_webhook)
