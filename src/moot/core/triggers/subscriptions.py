"""Subscriptions to what comes in: their states, when a delivery is tried again, what a run is told.

Pure. One delivery that cannot be made, however often it is tried, ends its subscription until a
person looks at it; so does, for the time being, a number of deliveries that fail side by side. One
that is itself at fault, with inputs that do not fit, is given up alone.
"""

import hashlib
from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.core.backoff import good_secrets, wait_after
from moot.core.events import iso
from moot.core.secrets import redacted

State = Literal["active", "paused", "failed", "dead-lettered"]
Source = Literal["webhook", "queue", "schedule"]
Backoff = Literal["none", "fixed", "exponential"]
Mode = Literal["required", "best-effort", "none"]

#: how ids of items of queues begin; those of other deliveries do not
ITEM = "wi_"
STATES: tuple[State, ...] = ("active", "paused", "failed", "dead-lettered")
#: what is written down of a subscription that has changed, and of each try of a delivery
CHANGED, ATTEMPTED = "trigger.subscription.state.changed", "trigger.delivery.attempted"
MOST_TRIES = 3
#: so many deliveries of one subscription that fail side by side are a failure of its own
FAILING = 10
#: headers of a request that a run may see; none of them carries a right
HEADERS = frozenset({
    "content-type", "user-agent", "webhook-id", "webhook-timestamp", "x-event-type", "x-event-key",
    "x-github-event", "x-github-delivery", "x-gitlab-event", "x-request-id",
    "x-openwop-event-type", "x-openwop-webhook-id", "x-openwop-timestamp",
})  # fmt: skip
LONGEST_HEADER = 1024


class RetryPolicy(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    max_attempts: Annotated[int, Meta(ge=1, le=20)] = MOST_TRIES
    backoff: Backoff = "exponential"


class Subscription(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """As it is kept. What is not the protocol's stays on this host; the secret is told once."""

    subscription_id: str
    source: Source
    state: State = "active"
    #: None: a queue that nobody takes from
    workflow_id: str | None = None
    roster_id: str | None = None
    #: runs are started in this name
    owner: str = ""
    created_at: int = 0
    dedup_enabled: bool = True
    retry_policy: RetryPolicy = RetryPolicy()
    verification: Mode = "required"
    #: input of the workflow -> where in what came in it stands
    input_mapping: dict[str, str] = {}
    queue: str | None = None
    schedule_id: str | None = None
    secret: str | None = None
    fingerprint: str | None = None
    earlier: str | None = None
    earlier_until: int = 0
    #: why it came into this state, where the protocol has a word for it
    reason: str | None = None
    #: what whoever paused it has said
    note: str = ""
    #: when a pause ends by itself (ms); None: when somebody resumes it
    until: int | None = None

    def at(self, now: int) -> "Subscription":
        """As it is then: a pause that has come to its end is none."""
        ends = self.state == "paused" and self.until is not None and self.until <= now
        if not ends or self.workflow_id is None:
            return self
        return replace(self, state="active", reason=None, note="", until=None)

    def secrets(self, now: int) -> list[str]:
        """Those that sign, the newest first."""
        return good_secrets(self.secret, self.earlier, self.earlier_until, now)

    def shown(self) -> dict[str, Any]:
        """As the protocol shows it."""
        policy = self.retry_policy
        said: dict[str, Any] = {
            "subscriptionId": self.subscription_id,
            "source": self.source,
            "state": self.state,
            "dedupEnabled": self.dedup_enabled,
            "retryPolicy": {"maxAttempts": policy.max_attempts, "backoff": policy.backoff},
        }
        if self.fingerprint is not None:
            said["secretFingerprint"] = self.fingerprint
        return said


def next_try(policy: RetryPolicy, tries: int, now: int, lot: int) -> int | None:
    """When to try once more after so many tries; None when it was often enough. ``lot`` (0..999)
    spreads those that failed together."""
    if tries >= policy.max_attempts:
        return None
    if policy.backoff == "none":
        return now
    return now + wait_after(tries, lot, growing=policy.backoff == "exponential")


def after_failure(state: State, exhausted: bool, failing: int) -> tuple[State, str | None]:
    """The subscription's state after a delivery of it has failed, and the protocol's reason."""
    if exhausted:
        return "dead-lettered", "retry-exhausted"
    if state == "active" and failing >= FAILING:
        return "failed", None
    return state, None


def dedup_key(subscription_id: str, event_id: str) -> str:
    """Says nothing of what came in."""
    digest = hashlib.sha256(f"{subscription_id}\0{event_id}".encode())
    return f"k_{digest.hexdigest()[:40]}"


def queue_subscription(tenant: str, queue: str) -> str:
    """A queue has one subscription, whoever speaks of it first."""
    digest = hashlib.sha256(f"{tenant}\0queue\0{queue}".encode()).hexdigest()
    return f"sub_{digest[:20]}"


def seen_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {
        name.lower(): value[:LONGEST_HEADER] for name, value in pairs if name.lower() in HEADERS
    }


class Arrival(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What came in, as it is kept until a run has it. ``content`` is the object that the
    protocol's trigger event has for this source; for a queue, the item."""

    content: dict[str, Any]
    verified: bool | None = None
    #: see ``moot.core.triggers.hops``
    hops: int = 0


def trigger_event(
    subscription: Subscription, arrival: Arrival, delivery_id: str, key: str, received_at: int
) -> dict[str, Any]:
    """What a run is told of what began it. All of its content is the world's word."""
    said: dict[str, Any] = {
        "source": subscription.source,
        "subscriptionId": subscription.subscription_id,
        "deliveryId": delivery_id,
        "receivedAt": iso(received_at * 1000),
        "contentTrust": "untrusted",
        subscription.source: arrival.content,
    }
    if subscription.dedup_enabled:
        said["dedupKey"] = key
    if arrival.verified is not None:
        said["verified"] = arrival.verified
    return said


def without_content(event: dict[str, Any]) -> dict[str, Any]:
    """For a run with secret inputs: they must not stand in its log by another way."""
    return {**event, event["source"]: {}}


#: where something stands in a trigger event
Path = tuple[str, ...]


def inputs_of(
    event: dict[str, Any],
    mapping: dict[str, str],
    declared: Iterable[str],
    sensitive: Collection[str] = (),
    masking: str = "mask",
) -> dict[str, Any]:
    """The inputs of a run. A mapping says where each stands; without one, inputs that the
    workflow declares are filled by their names. What fills a sensitive input is in no other one,
    save a part of it that the workflow asks for by a place of its own; where the same is said
    once more it is masked."""
    places = places_of(event, mapping, declared)
    hidden = [path for name, path in places.items() if name in sensitive]
    secrets = secrets_of(event, places, sensitive)
    found = {}
    for name, path in places.items():
        value = _at(event, path)
        if name not in sensitive:
            if path in hidden:
                continue
            inner = [each[len(path) :] for each in hidden if each[: len(path)] == path]
            value = without_places(value, inner)
            if not any(_is_part(path, each) for each in hidden):
                value = redacted(value, secrets, masking)
        found[name] = value
    return found


def secrets_of(
    event: dict[str, Any], places: dict[str, Path], sensitive: Collection[str]
) -> dict[str, Any]:
    """What fills sensitive inputs, without the parts that others ask for by places of their own."""
    found = {}
    for name, path in places.items():
        if name in sensitive:
            parts = [each for other, each in places.items() if other not in sensitive]
            inner = [each[len(path) :] for each in parts if _is_part(each, path)]
            found[name] = without_places(_at(event, path), inner)
    return found


def _is_part(path: Path, whole: Path) -> bool:
    return len(path) > len(whole) and path[: len(whole)] == whole


def places_of(
    event: dict[str, Any], mapping: dict[str, str], declared: Iterable[str]
) -> dict[str, Path]:
    """Where in the event each input stands; those that are not in it are left out."""
    wanted = {name: tuple(path.split(".")) for name, path in mapping.items()}
    if not mapping:
        offered = _offered(event)
        wanted = {name: offered[name] for name in declared if name in offered}
    return {name: path for name, path in wanted.items() if _at(event, path) is not MISSING}


def _offered(event: dict[str, Any]) -> dict[str, Path]:
    source = event["source"]
    content = event[source]
    offered: dict[str, Path] = {name: (source, name) for name in content}
    body = content.get("body")
    if source == "webhook" and isinstance(body, dict):
        fields: dict[str, Path] = {name: (source, "body", name) for name in body}
        offered = {**fields, **offered}
        if "body" in fields:  # who sends such a field means it, as in an item of a queue
            offered["body"] = fields["body"]
    if source == "queue":
        offered["item"] = (source,)
    return {**offered, "trigger": ()}


def without_places(value: Any, places: Iterable[Path]) -> Any:
    """A copy without what stands at these places inside."""
    for path in places:
        value = _without(value, path)
    return value


def _without(value: Any, path: Path) -> Any:
    word, rest = path[0], path[1:]
    if isinstance(value, dict) and word in value:
        others = {name: each for name, each in value.items() if name != word}
        return {**others, word: _without(value[word], rest)} if rest else others
    if isinstance(value, list) and word.isdecimal() and int(word) < len(value):
        at = int(word)
        return [*value[:at], _without(value[at], rest) if rest else None, *value[at + 1 :]]
    return value


MISSING: Any = object()


def _at(event: dict[str, Any], path: Path) -> Any:
    value: Any = event
    for word in path:
        if isinstance(value, dict) and word in value:
            value = value[word]
        elif isinstance(value, list) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            return MISSING
    return value
