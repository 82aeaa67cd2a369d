"""Queues, items, deliveries and subscriptions: requests about them and answers."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from moot.core.triggers.subscriptions import RetryPolicy, VerificationMode
from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import Name, Note, RequestStruct
from moot.wire.runs import RunMetrics

RosterId = Annotated[str, Meta(min_length=1, max_length=128)]
InputMapping = Annotated[
    dict[str, Annotated[str, Meta(min_length=1, max_length=512)]], Meta(max_length=100)
]
QueueItem = Annotated[
    JsonObject, Meta(title="QueueItem", description="An item of a queue, any JSON object.")
]
InboundContent = Annotated[
    JsonObject, Meta(title="InboundContent", description="The sender's own JSON object.")
]


class BindQueue(RequestStruct, frozen=True):
    """The workflow that takes from a queue, and its standing agent if any.

    ``takeOver`` takes the queue from another standing agent.
    """

    workflow_id: Name
    roster_id: RosterId | None = None
    retry_policy: RetryPolicy = RetryPolicy()
    input_mapping: InputMapping = {}
    take_over: Annotated[bool, Meta(description="Take the queue from another standing agent.")] = (
        False
    )


class SubscriptionVerification(RequestStruct, frozen=True):
    """The rule about signatures of calls."""

    mode: VerificationMode = "required"


class RegisterSubscription(RequestStruct, frozen=True):
    """A new subscription.

    ``inputMapping`` maps an input of the workflow to a path in the trigger event
    (``webhook.body.issue.title``). ``rosterId`` is the standing agent that owns the work.
    """

    source: Literal["webhook", "email", "form"]
    workflow_id: Name
    dedup_enabled: bool = True
    retry_policy: RetryPolicy = RetryPolicy()
    verification: SubscriptionVerification = SubscriptionVerification()
    input_mapping: InputMapping = {}
    roster_id: RosterId | None = None


class ChangeSubscription(RequestStruct, frozen=True):
    """Changes to a subscription.

    ``rosterId`` hands it to a standing agent; null takes it back. ``inputMapping`` replaces the
    former one; an empty one fills inputs by their names. ``note`` says why it pauses; ``until`` is
    an ISO time that ends the pause.
    """

    state: Literal["active", "paused"] | UnsetType = UNSET
    note: Note = ""
    until: str | None = None
    roster_id: RosterId | UnsetType | None = UNSET
    input_mapping: InputMapping | UnsetType = UNSET


# -- queues and items ----------------------------------------------------------------------------


class RetryRule(WireStruct, frozen=True):
    """The number of tries of a delivery, and the growth of the intervals between them."""

    max_attempts: int
    backoff: str


class VerificationView(WireStruct, frozen=True):
    """The rule about signatures of calls: required, best-effort or none."""

    mode: str


class TriggerBinding(WireStruct, frozen=True):
    """The target of a subscription, and the reason if it starts nothing now."""

    workflow_id: str | None = None
    roster_id: str | None = None
    queue: str | None = None
    schedule_id: str | None = None
    #: input of the workflow -> its path in the trigger event
    input_mapping: dict[str, str] = {}
    #: the reason and the end of a pause
    note: str = ""
    until: str | None = None
    verification: VerificationView | None = None
    #: why the state of its standing agent stops it
    inert: str | None = None


class QueueView(TriggerBinding, frozen=True, kw_only=True):
    """A queue and its binding."""

    name: str
    subscription_id: str
    state: str
    retry_policy: RetryRule
    #: state of an item -> number of items
    items: dict[str, int]
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


class AttemptPayload(WireStruct, frozen=True):
    """The payload of a ``trigger.delivery.attempted`` event."""

    subscription_id: str
    dedup_key: str
    attempt: int
    outcome: str
    run_id: str | None = None


class AttemptView(WireStruct, frozen=True):
    """One attempt with its event. A redelivery by hand has no event."""

    event_id: str
    at: str
    outcome: str
    reason: str | None = None
    type: str | None = None
    payload: AttemptPayload | None = None


class DeliveryProgress(WireStruct, frozen=True):
    """The state of a delivery and its attempts."""

    state: str
    received_at: str
    updated_at: str
    attempts: list[AttemptView]
    run_id: str | None = None
    roster_id: str | None = None
    reason: str = ""
    next_try_at: str | None = None


class DeliveryView(DeliveryProgress, frozen=True, kw_only=True):
    """A delivery of a subscription, without its content."""

    delivery_id: str


class ItemRun(WireStruct, frozen=True):
    """The run of an item."""

    run_id: str
    workflow_id: str
    status: str
    started_at: str
    metrics: RunMetrics


class ItemMember(WireStruct, frozen=True):
    """The standing agent of an item."""

    roster_id: str
    persona: str
    agent_id: str


class ItemTurn(WireStruct, frozen=True):
    """A turn of an item's run, without its text."""

    sequence: int
    type: str
    at: str
    by: str | None = None


class QueueItemView(DeliveryProgress, frozen=True, kw_only=True):
    """An item of a queue or another delivery."""

    item_id: str
    subject: str = ""
    #: the source of the item
    source: str | None = None
    subscription_id: str | None = None
    queue: str | None = None
    #: only if one item was requested: content, run, standing agent and turns
    content: JsonObject | None = None
    run: ItemRun | None = None
    member: ItemMember | None = None
    turns: Sequence[ItemTurn] = ()


class QueueItemList(WireStruct, frozen=True):
    """One page of items."""

    items: list[QueueItemView]
    next_cursor: str | None = None


class DeliveryList(WireStruct, frozen=True):
    """One page of deliveries."""

    deliveries: list[QueueItemView]
    next_cursor: str | None = None


# -- subscriptions -------------------------------------------------------------------------------


class SubscriptionSummary(WireStruct, frozen=True):
    """A subscription in a list."""

    subscription_id: str
    source: str
    state: str
    dedup_enabled: bool
    retry_policy: RetryRule
    secret_fingerprint: str | None = None


class SubscriptionList(WireStruct, frozen=True):
    """One page of subscriptions."""

    subscriptions: list[SubscriptionSummary]
    total: int
    #: subscription -> why the state of its standing agent stops it
    inert: dict[str, str] = {}
    #: subscription -> its target; only if one source was requested
    bound: dict[str, TriggerBinding] | None = None
    next_cursor: str | None = None


class SubscriptionBinding(WireStruct, frozen=True):
    """The address and signature of inbound work. Only the first answer has the secret."""

    ingest_url: str
    secret_fingerprint: str | None
    signing_secret: str | None = None
    earlier_until: str | None = None


class NewSubscription(WireStruct, frozen=True):
    """A new subscription or a new secret of one."""

    subscription: SubscriptionSummary
    binding: SubscriptionBinding


class StateChange(WireStruct, frozen=True):
    """The payload of a ``trigger.subscription.state.changed`` event."""

    subscription_id: str
    source: str
    from_state: str
    to_state: str
    reason: str | None = None


class StateChangeView(WireStruct, frozen=True):
    """One change of a subscription's state."""

    event_id: str
    type: str
    at: str
    by: str
    payload: StateChange


class ChangedSubscription(WireStruct, frozen=True):
    """A subscription after a change, and its target."""

    subscription: SubscriptionSummary
    bound: TriggerBinding


class SubscriptionView(ChangedSubscription, frozen=True, kw_only=True):
    """A subscription with its deliveries and state changes."""

    #: state of a delivery -> number of deliveries
    counts: dict[str, int]
    deliveries: list[DeliveryView]
    state_changes: list[StateChangeView]
    ingest_url: str | None = None


class SubscriptionDeadLetter(WireStruct, frozen=True):
    """A delivery that was given up, in the protocol's form."""

    subscription_id: str
    attempt_event_id: str
    attempt: AttemptPayload
    reason: str
    dead_lettered_at: str
    expires_at: str
    delivery_id: str
    #: absent when the subscription stays active
    state_change: StateChange | None = None


class SubscriptionDeadLetterList(WireStruct, frozen=True):
    """One page of deliveries that were given up."""

    dead_letters: list[SubscriptionDeadLetter]
    next_cursor: str | None = None


class IngestResult(WireStruct, frozen=True):
    """The outcome of inbound work."""

    outcome: str
    run_id: str | None = None
