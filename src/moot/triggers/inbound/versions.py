"""Versions of subscriptions: a record with its guard, and its state changes."""

import msgspec
from msgspec import Struct

from moot.core.events import iso
from moot.core.triggers.subscriptions import SUBSCRIPTION_CHANGED, TriggerSubscription
from moot.store.records import Guard, Record
from moot.wire.triggers import StateChange, StateChangeView

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


def list_state_changes(history: list[Record]) -> list[StateChangeView]:
    """Return the state changes of a subscription as protocol events, oldest first."""
    events: list[StateChangeView] = []
    previous: TriggerSubscription | None = None
    for record in reversed(history):
        subscription = decode_subscription(record.body)
        if previous is not None and subscription.state != previous.state:
            change = StateChange(
                subscription_id=subscription.subscription_id, source=subscription.source,
                from_state=previous.state, to_state=subscription.state, reason=subscription.reason,
            )  # fmt: skip
            event_id = f"{record.name}.{record.revision}"
            if events and events[-1].event_id == event_id:
                event_id += ".ended"  # the end of a pause
            kind, at = SUBSCRIPTION_CHANGED, iso(record.created_at * 1000)
            events.append(
                StateChangeView(event_id=event_id, type=kind, at=at, by=record.by, payload=change)
            )
        previous = subscription
    return events


def subscription_from_record(record: Record, now: int) -> SubscriptionVersion:
    subscription = decode_subscription(record.body).at(now)
    return SubscriptionVersion(record.tenant, subscription, record.revision)
