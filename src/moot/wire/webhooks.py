"""Webhooks: requests about them and answers."""

from typing import Annotated

from msgspec import Meta

from moot.wire.json import WireStruct
from moot.wire.request import RequestStruct

Url = Annotated[str, Meta(min_length=1, max_length=2048)]
EventName = Annotated[str, Meta(min_length=1, max_length=128)]
Tag = Annotated[str, Meta(min_length=1, max_length=128)]


class RegisterWebhook(RequestStruct, frozen=True):
    """``events`` are types of events, or ``*`` for all of them."""

    url: Annotated[Url, Meta(description="The address that the host calls.")]
    events: Annotated[list[EventName], Meta(min_length=1, max_length=200)]
    tags: Annotated[
        list[Tag], Meta(max_length=50, description="Only events of runs with one of these tags.")
    ] = []
    tenant_id: str | None = None


class WebhookSummary(WireStruct, frozen=True):
    """A webhook without the state of its receiver."""

    webhook_id: str
    url: str
    events: list[str]
    tags: list[str]
    state: str
    secret_fingerprint: str
    created_at: str


class WebhookView(WebhookSummary, frozen=True, kw_only=True):
    """A webhook and the state of its receiver."""

    failures_in_a_row: int
    #: the number of events that wait for delivery
    waiting: int
    dead_letters: int
    #: state of a delivery -> number of deliveries
    deliveries: dict[str, int]
    #: the last failure, if no call has succeeded since
    last_error: str | None = None
    last_error_at: str | None = None
    left_alone_until: str | None = None


class WebhookSecret(WireStruct, frozen=True):
    """A new secret, the only answers that contain it."""

    webhook_id: str
    #: the same as ``webhookId``
    subscription_id: str
    secret: str
    secret_fingerprint: str
    earlier_until: str | None = None


class WebhookList(WireStruct, frozen=True):
    """All webhooks."""

    webhooks: list[WebhookView]
    total: int


class WebhookAttempt(WireStruct, frozen=True):
    """One call of a webhook."""

    at: str
    outcome: str
    reason: str


class WebhookDeadLetter(WireStruct, frozen=True):
    """An event that could not be delivered."""

    delivery_id: str
    run_id: str
    sequence: int
    event_type: str
    state: str
    reason: str
    attempts: list[WebhookAttempt]
    since: str


class WebhookDeadLetterList(WireStruct, frozen=True):
    """One page of dead letters."""

    dead_letters: list[WebhookDeadLetter]
    next_cursor: str | None = None
