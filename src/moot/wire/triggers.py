"""Answers about queues, items and subscriptions."""

from moot.wire.json import JsonObject, WireStruct


class QueueView(WireStruct, frozen=True):
    """A queue and its binding."""

    name: str
    subscription_id: str
    state: str
    workflow_id: str | None = None
    roster_id: str | None = None
    #: why the state of its standing agent stops it
    inert: str | None = None
    #: the reason and the end of a pause
    note: str = ""
    until: str | None = None
    #: state of an item -> number of items
    items: dict[str, int] = {}
    #: the queue was unbound and empty, so it was removed
    removed: bool = False


class QueueList(WireStruct, frozen=True):
    """All queues."""

    queues: list[QueueView]


class PushedItem(WireStruct, frozen=True):
    """A new item. ``run_id`` is set if its run has started."""

    item_id: str
    status: str
    run_id: str | None = None
    roster_id: str | None = None
    #: why no run has started
    reason: str = ""


class QueueItemView(WireStruct, frozen=True):
    """An item of a queue or another delivery."""

    item_id: str
    state: str
    subject: str = ""
    reason: str = ""
    run_id: str | None = None
    roster_id: str | None = None
    received_at: str = ""
    updated_at: str = ""
    next_try_at: str | None = None
    attempts: list[JsonObject] = []
    #: the source of the item
    source: str | None = None
    subscription_id: str | None = None
    queue: str | None = None
    #: only if one item was requested: content, run, standing agent and turns
    content: JsonObject | None = None
    run: JsonObject | None = None
    member: JsonObject | None = None
    turns: list[JsonObject] = []


class QueueItemList(WireStruct, frozen=True):
    """One page of items."""

    items: list[QueueItemView]
    next_cursor: str | None = None


class DeliveryList(WireStruct, frozen=True):
    """One page of deliveries."""

    deliveries: list[QueueItemView]
    next_cursor: str | None = None


class SubscriptionSummary(WireStruct, frozen=True):
    """A subscription in a list."""

    subscription_id: str
    source: str
    state: str
    dedup_enabled: bool = True
    retry_policy: JsonObject = {}
    secret_fingerprint: str | None = None


class SubscriptionList(WireStruct, frozen=True):
    """One page of subscriptions."""

    subscriptions: list[SubscriptionSummary]
    total: int
    #: subscription -> why the state of its standing agent stops it
    inert: dict[str, str] = {}
    #: subscription -> its target; only if one source was requested
    bound: dict[str, JsonObject] = {}
    next_cursor: str | None = None


class SubscriptionBinding(WireStruct, frozen=True):
    """The address and signature of inbound work. Only the first answer has the secret."""

    ingest_url: str
    secret_fingerprint: str
    signing_secret: str | None = None
    earlier_until: str | None = None


class NewSubscription(WireStruct, frozen=True):
    """A new subscription or a new secret of one."""

    subscription: SubscriptionSummary
    binding: SubscriptionBinding


class SubscriptionView(WireStruct, frozen=True):
    """A subscription with its deliveries and state changes."""

    subscription: SubscriptionSummary
    bound: JsonObject = {}
    ingest_url: str | None = None
    counts: dict[str, int] = {}
    deliveries: list[JsonObject] = []
    state_changes: list[JsonObject] = []


class SubscriptionDeadLetterList(WireStruct, frozen=True):
    """One page of deliveries that were given up."""

    dead_letters: list[JsonObject]
    next_cursor: str | None = None


class IngestResult(WireStruct, frozen=True):
    """The outcome of inbound work."""

    outcome: str
    run_id: str | None = None
