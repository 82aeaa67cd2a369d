"""What is answered about webhooks."""

from typing import Any

from moot.wire.runs import Answer


class WebhookView(Answer, frozen=True):
    webhook_id: str
    url: str = ""
    events: list[str] = []
    tags: list[str] = []
    state: str = ""
    secret_fingerprint: str = ""
    created_at: str = ""
    failures_in_a_row: int = 0
    #: how a call failed last, if none has succeeded since
    last_error: str | None = None
    last_error_at: str | None = None
    left_alone_until: str | None = None
    #: events that it has yet to be told of
    waiting: int = 0
    dead_letters: int = 0
    #: state of a delivery -> how many there are
    deliveries: dict[str, int] = {}


class NewSecret(Answer, frozen=True):
    """The only answers that hold the secret."""

    webhook_id: str
    secret: str
    secret_fingerprint: str
    earlier_until: str | None = None


class Webhooks(Answer, frozen=True):
    webhooks: list[WebhookView]
    total: int


class DeadLetter(Answer, frozen=True):
    delivery_id: str
    run_id: str
    sequence: int
    event_type: str
    state: str
    reason: str
    attempts: list[dict[str, Any]]
    since: str


class DeadLetters(Answer, frozen=True):
    dead_letters: list[DeadLetter]
    next_cursor: str | None = None
