"""Versions of subscriptions: a record with its guard, and its state changes."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.core.triggers.subscriptions import SUBSCRIPTION_CHANGED, TriggerSubscription
from moot.store.records import Guard, Record

SUBSCRIPTION_KIND = "subscription"


decode_subscription = msgspec.json.Decoder(TriggerSubscription).decode


class SubscriptionVersion(Struct, frozen=True):
    """A subscription and the revision of its record, for a batch to guard."""

    tenant: str
    it: TriggerSubscription
    revision: int

    @property
    def guard(self) -> Guard:
        name = self.it.subscription_id
        return Guard(tenant=self.tenant, kind=SUBSCRIPTION_KIND, name=name, revision=self.revision)


def list_state_changes(history: list[Record]) -> list[dict[str, Any]]:
    """Return the state changes of a subscription as protocol events, oldest first."""
    events: list[dict[str, Any]] = []
    previous: TriggerSubscription | None = None
    for record in reversed(history):
        subscription = decode_subscription(record.body)
        if previous is not None and subscription.state != previous.state:
            payload = {
                "subscriptionId": subscription.subscription_id,
                "source": subscription.source,
                "fromState": previous.state,
                "toState": subscription.state,
            }
            if subscription.reason is not None:
                payload["reason"] = subscription.reason
            event_id = f"{record.name}.{record.revision}"
            if events and events[-1]["eventId"] == event_id:
                event_id += ".ended"  # the end of a pause
            events.append({
                "eventId": event_id, "type": SUBSCRIPTION_CHANGED, "at": record.created_at,
                "by": record.by, "payload": payload,
            })  # fmt: skip
        previous = subscription
    return events


def subscription_from_record(record: Record, now: int) -> SubscriptionVersion:
    return SubscriptionVersion(
        record.tenant, decode_subscription(record.body).at(now), record.revision
    )
