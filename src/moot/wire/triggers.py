"""What is answered about queues, their items, and subscriptions to what comes in."""

from moot.wire.runs import Answer, Data


class Queue(Answer, frozen=True):
    name: str
    subscription_id: str
    state: str
    workflow_id: str | None = None
    roster_id: str | None = None
    #: why it wakes nobody, if that is its member's doing
    inert: str | None = None
    #: why it is paused, and when that ends by itself
    note: str = ""
    until: str | None = None
    #: state of an item -> how many there are
    items: dict[str, int] = {}
    #: it was unbound and empty, and is not there any more
    removed: bool = False


class Queues(Answer, frozen=True):
    queues: list[Queue]


class Pushed(Answer, frozen=True):
    """``run_id`` where a run has begun already."""

    item_id: str
    status: str
    run_id: str | None = None
    roster_id: str | None = None
    #: why it has not
    reason: str = ""


class Item(Answer, frozen=True):
    item_id: str
    state: str
    subject: str = ""
    reason: str = ""
    run_id: str | None = None
    roster_id: str | None = None
    received_at: str = ""
    updated_at: str = ""
    next_try_at: str | None = None
    attempts: list[Data] = []
    #: by which way it came
    source: str | None = None
    subscription_id: str | None = None
    queue: str | None = None
    #: only of one item: what it says, where it has led, for whom, what was said
    content: Data | None = None
    run: Data | None = None
    member: Data | None = None
    turns: list[Data] = []


class Items(Answer, frozen=True):
    items: list[Item]
    next_cursor: str | None = None


class Deliveries(Answer, frozen=True):
    deliveries: list[Item]
    next_cursor: str | None = None


class Subscription(Answer, frozen=True):
    subscription_id: str
    source: str
    state: str
    dedup_enabled: bool = True
    retry_policy: Data = {}
    secret_fingerprint: str | None = None


class Subscriptions(Answer, frozen=True):
    subscriptions: list[Subscription]
    total: int
    #: subscription -> why it wakes nobody, if that is its member's doing
    inert: dict[str, str] = {}
    #: subscription -> what it leads to, where only those of one source were asked for
    bound: dict[str, Data] = {}
    next_cursor: str | None = None


class Binding(Answer, frozen=True):
    """Where to send and how to sign. Only the first answer has the secret."""

    ingest_url: str
    secret_fingerprint: str
    signing_secret: str | None = None
    earlier_until: str | None = None


class Subscribed(Answer, frozen=True):
    subscription: Subscription
    binding: Binding


class SubscriptionView(Answer, frozen=True):
    subscription: Subscription
    bound: Data = {}
    ingest_url: str | None = None
    counts: dict[str, int] = {}
    deliveries: list[Data] = []
    state_changes: list[Data] = []


class TriggerLetters(Answer, frozen=True):
    dead_letters: list[Data]
    next_cursor: str | None = None


class Taken(Answer, frozen=True):
    outcome: str
    run_id: str | None = None
