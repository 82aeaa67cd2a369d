"""Decide about subscriptions: their states, retries and the inputs of runs.

Pure. A delivery that uses up its retries dead-letters its subscription until a person acts. Many
deliveries that fail at once fail it for a while. A delivery whose inputs do not fit is given up
alone.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.core.backoff import retry_wait_ms, valid_secrets
from moot.core.events import iso
from moot.core.secrets import mask_sealed

SubscriptionState = Literal["active", "paused", "failed", "dead-lettered"]
SubscriptionSource = Literal["webhook", "queue", "schedule"]
Backoff = Literal["none", "fixed", "exponential"]
VerificationMode = Literal["required", "best-effort", "none"]

#: the prefix of queue item ids; other deliveries have another one
ITEM_PREFIX = "wi_"
STATES: tuple[SubscriptionState, ...] = ("active", "paused", "failed", "dead-lettered")
#: event types: a subscription changed its state; a delivery was tried
SUBSCRIPTION_CHANGED = "trigger.subscription.state.changed"
MOST_TRIES = 3
#: this many deliveries that fail at once make the subscription fail
FAILING_LIMIT = 10
#: request headers that a run may see; none of them is a credential
HEADERS = frozenset({
    "content-type", "user-agent", "webhook-id", "webhook-timestamp", "x-event-type", "x-event-key",
    "x-github-event", "x-github-delivery", "x-gitlab-event", "x-request-id",
    "x-openwop-event-type", "x-openwop-webhook-id", "x-openwop-timestamp",
})  # fmt: skip
LONGEST_HEADER = 1024


class RetryPolicy(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The number of tries of a delivery, and the intervals between them."""

    max_attempts: Annotated[int, Meta(ge=1, le=20)] = MOST_TRIES
    backoff: Backoff = "exponential"


class TriggerSubscription(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A stored subscription.

    Fields outside the protocol stay on this host; the secret is sent once.
    """

    subscription_id: str
    source: SubscriptionSource
    state: SubscriptionState = "active"
    #: None: a queue without a consumer
    workflow_id: str | None = None
    roster_id: str | None = None
    #: the principal that runs are started for
    owner: str = ""
    created_at: int = 0
    dedup_enabled: bool = True
    retry_policy: RetryPolicy = RetryPolicy()
    verification: VerificationMode = "required"
    #: input of the workflow -> its path in the trigger event
    input_mapping: dict[str, str] = {}
    queue: str | None = None
    schedule_id: str | None = None
    secret: str | None = None
    fingerprint: str | None = None
    earlier: str | None = None
    earlier_until: int = 0
    #: the protocol's reason for this state, if it has one
    reason: str | None = None
    #: the note of the person who paused it
    note: str = ""
    #: when a pause ends by itself (ms); None: a person must resume it
    until: int | None = None

    def at(self, now: int) -> "TriggerSubscription":
        """Return the subscription at this time: a pause that has run out is over."""
        ends = self.state == "paused" and self.until is not None and self.until <= now
        if not ends or self.workflow_id is None:
            return self
        return replace(self, state="active", reason=None, note="", until=None)

    def secrets(self, now: int) -> list[str]:
        """Return the secrets that may sign, the newest first."""
        return valid_secrets(self.secret, self.earlier, self.earlier_until, now)


def next_delivery_time(policy: RetryPolicy, tries: int, now: int, lot: int) -> int | None:
    """Return when to try again after this many tries; None when there are no more tries.

    ``lot`` (0..999) spreads deliveries that failed together.
    """
    if tries >= policy.max_attempts:
        return None
    if policy.backoff == "none":
        return now
    return now + retry_wait_ms(tries, lot, growing=policy.backoff == "exponential")


def state_after_failure(
    state: SubscriptionState, exhausted: bool, failing: int
) -> tuple[SubscriptionState, str | None]:
    """Return the subscription's state after a failed delivery, and the protocol's reason."""
    if exhausted:
        return "dead-lettered", "retry-exhausted"
    if state == "active" and failing >= FAILING_LIMIT:
        return "failed", None
    return state, None


def dedup_key(subscription_id: str, event_id: str) -> str:
    """Return a key that reveals nothing of the content."""
    digest = hashlib.sha256(f"{subscription_id}\0{event_id}".encode())
    return f"k_{digest.hexdigest()[:40]}"


def queue_subscription_id(tenant: str, queue: str) -> str:
    """Return the id of the queue's one subscription."""
    digest = hashlib.sha256(f"{tenant}\0queue\0{queue}".encode()).hexdigest()
    return f"sub_{digest[:20]}"


def visible_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    headers = {name.lower(): value[:LONGEST_HEADER] for name, value in pairs}
    return {name: value for name, value in headers.items() if name in HEADERS}


class Arrival(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An inbound item, stored until its run starts.

    ``content`` is the object that the protocol's trigger event has for this source; for a queue,
    the item.
    """

    content: Mapping[str, object]
    verified: bool | None = None
    #: see ``moot.core.triggers.hops``
    hops: int = 0


def trigger_event(
    subscription: TriggerSubscription,
    arrival: Arrival,
    delivery_id: str,
    key: str,
    received_at: int,
) -> dict[str, object]:
    """Return the event that starts a run. Its whole content is untrusted."""
    event: dict[str, object] = {
        "source": subscription.source,
        "subscriptionId": subscription.subscription_id,
        "deliveryId": delivery_id,
        "receivedAt": iso(received_at * 1000),
        "contentTrust": "untrusted",
        subscription.source: arrival.content,
    }
    if subscription.dedup_enabled:
        event["dedupKey"] = key
    if arrival.verified is not None:
        event["verified"] = arrival.verified
    return event


def remove_content(event: Mapping[str, object]) -> dict[str, object]:
    """Remove the content, which must not enter the log of a run with secret inputs."""
    return {**event, str(event["source"]): {}}


#: a path in a trigger event
Path = tuple[str, ...]


def inputs_from_event(
    event: Mapping[str, object],
    mapping: dict[str, str],
    declared: Iterable[str],
    sensitive: Collection[str] = (),
    masking: str = "mask",
) -> dict[str, object]:
    """Return the inputs of a run.

    Without a mapping, declared inputs are filled by their names. A value of a sensitive input is
    removed from all other inputs, except a part that the workflow maps separately. Copies of it are
    masked.
    """
    paths = input_paths(event, mapping, declared)
    hidden = [path for name, path in paths.items() if name in sensitive]
    secrets = secrets_from_event(event, paths, sensitive)
    inputs = {}
    for name, path in paths.items():
        value = _value_at(event, path)
        if name not in sensitive:
            if path in hidden:
                continue
            inner = [each[len(path) :] for each in hidden if each[: len(path)] == path]
            value = remove_paths(value, inner)
            if not any(_is_part(path, each) for each in hidden):
                value = mask_sealed(value, secrets, masking)
        inputs[name] = value
    return inputs


def secrets_from_event(
    event: Mapping[str, object], paths: dict[str, Path], sensitive: Collection[str]
) -> dict[str, object]:
    """Return the values of sensitive inputs without the parts that are mapped separately."""
    secrets = {}
    for name, path in paths.items():
        if name in sensitive:
            parts = [each for other, each in paths.items() if other not in sensitive]
            inner = [each[len(path) :] for each in parts if _is_part(each, path)]
            secrets[name] = remove_paths(_value_at(event, path), inner)
    return secrets


def _is_part(path: Path, whole: Path) -> bool:
    return len(path) > len(whole) and path[: len(whole)] == whole


def input_paths(
    event: Mapping[str, object], mapping: dict[str, str], declared: Iterable[str]
) -> dict[str, Path]:
    """Return the path of each input that is in the event."""
    paths = {name: tuple(path.split(".")) for name, path in mapping.items()}
    if not mapping:
        offered = _offered_paths(event)
        paths = {name: offered[name] for name in declared if name in offered}
    return {name: path for name, path in paths.items() if _value_at(event, path) is not MISSING}


def _offered_paths(event: Mapping[str, object]) -> dict[str, Path]:
    source = str(event["source"])
    content = _value_at(event, (source,))
    offered: dict[str, Path] = {name: (source, name) for name in content}
    body = content.get("body")
    if source == "webhook" and isinstance(body, dict):
        fields: dict[str, Path] = {name: (source, "body", name) for name in body}
        offered = {**fields, **offered}
        if "body" in fields:  # a field of that name wins, as in a queue item
            offered["body"] = fields["body"]
    if source == "queue":
        offered["item"] = (source,)
    return {**offered, "trigger": ()}


def remove_paths(value: Any, paths: Iterable[Path]) -> Any:
    """Return a copy without the values at these paths."""
    for path in paths:
        value = _remove_path(value, path)
    return value


def _remove_path(value: Any, path: Path) -> Any:
    word, rest = path[0], path[1:]
    if isinstance(value, dict) and word in value:
        others = {name: each for name, each in value.items() if name != word}
        return {**others, word: _remove_path(value[word], rest)} if rest else others
    if isinstance(value, list) and word.isdecimal() and int(word) < len(value):
        at = int(word)
        return [*value[:at], _remove_path(value[at], rest) if rest else None, *value[at + 1 :]]
    return value


MISSING: Any = object()


def _value_at(event: Mapping[str, object], path: Path) -> Any:
    value: Any = event
    for word in path:
        if isinstance(value, dict) and word in value:
            value = value[word]
        elif isinstance(value, list) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            return MISSING
    return value
