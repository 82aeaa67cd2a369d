"""Answers about webhooks."""

from typing import Any

from moot.wire.json import WireStruct


class WebhookView(WireStruct, frozen=True):
    """A webhook and the state of its receiver."""

    webhook_id: str
    url: str = ""
    events: list[str] = []
    tags: list[str] = []
    state: str = ""
    secret_fingerprint: str = ""
    created_at: str = ""
    failures_in_a_row: int = 0
    #: the last failure, if no call has succeeded since
    last_error: str | None = None
    last_error_at: str | None = None
    left_alone_until: str | None = None
    #: the number of events that wait for delivery
    waiting: int = 0
    dead_letters: int = 0
    #: state of a delivery -> number of deliveries
    deliveries: dict[str, int] = {}


class WebhookSecret(WireStruct, frozen=True):
    """A new secret, the only answers that contain it."""

    webhook_id: str
    secret: str
    secret_fingerprint: str
    earlier_until: str | None = None


class WebhookList(WireStruct, frozen=True):
    """All webhooks."""

    webhooks: list[WebhookView]
    total: int


class WebhookDeadLetter(WireStruct, frozen=True):
    """An event that could not be delivered."""

    delivery_id: str
    run_id: str
    sequence: int
    event_type: str
    state: str
    reason: str
    attempts: list[dict[str, Any]]
    since: str


class WebhookDeadLetterList(WireStruct, frozen=True):
    """One page of dead letters."""

    dead_letters: list[WebhookDeadLetter]
    next_cursor: str | None = None
