"""Hand the waiting items of a queue to the run that a schedule starts."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.core.events import iso
from moot.core.schedules.model import Schedule
from moot.core.secrets import mask_sealed
from moot.core.triggers.subscriptions import Arrival, TriggerSubscription, queue_subscription_id
from moot.core.workflows.flow import Flow
from moot.engine.start import RunOrder
from moot.store.protocol import Store
from moot.store.records import Delivery, DeliveryAttempt, Guard
from moot.triggers.schedules.records import SUBSCRIPTION_KIND
from moot.triggers.start_run import RunClaim

#: the most items for one run, and their total size in bytes; the rest waits for the next run
MOST_TAKEN = 100
LONGEST = 1_000_000
#: the input of a workflow that gets them
INPUT = "items"
#: the field of an item that lists show
SUBJECT = "subject"

_decode_arrival = msgspec.json.Decoder(Arrival).decode
_decode_subscription = msgspec.json.Decoder(TriggerSubscription).decode


class QueueItems(Struct, frozen=True):
    """The waiting items of a queue, oldest first, and guards for the queue."""

    rows: list[Delivery]
    guards: list[Guard]


async def read_queue_items(
    store: Store, tenant: str, queue: str, most: int = MOST_TAKEN
) -> QueueItems:
    """Return the waiting items of an unbound queue. A bound queue gives its items to its own
    workflow."""
    record = await store.record(tenant, SUBSCRIPTION_KIND, queue_subscription_id(tenant, queue))
    if record is None or _decode_subscription(record.body).workflow_id is not None:
        return QueueItems([], [])
    rows, length = list[Delivery](), 0
    for row in await store.waiting_deliveries(tenant, record.name, most):
        length += len(row.body)
        if rows and length > LONGEST:
            break
        rows.append(row)
    return QueueItems(rows, [record.guard])


def empty_items_input(spec: Schedule, flow: Flow) -> dict[str, object]:
    """Return the input that a run gets when there are no items."""
    takes = spec.condition is not None and spec.condition.queue is not None
    return {INPUT: []} if takes and _declares_items(flow) else {}


def _declares_items(flow: Flow) -> bool:
    return any(variable.name == INPUT for variable in flow.definition.variables)


def hand_over_items(
    items: QueueItems, order: RunOrder, claim: RunClaim, flow: Flow, now: int
) -> RunOrder:
    """Add the items to the order and their rows to the claim.

    A workflow that declares ``items`` gets them as an input. If that input is secret, the items
    are stored nowhere else. Fields with the name of a secret input are removed, because nothing
    else would keep them secret."""
    assert order.delivered is not None and order.trigger is not None
    full_views = [_item_view(row) for row in items.rows]
    secret = INPUT in flow.sensitive
    views = full_views if secret else [_without_secrets(each, flow) for each in full_views]
    public_views = [
        each if each == full and not secret else {"itemId": each["itemId"]}
        for each, full in zip(views, full_views, strict=True)
    ]
    by = order.delivered.delivery_id
    claim.guards = [*claim.guards, *items.guards]
    subjects = ["" if secret else _visible_subject(row, flow) for row in items.rows]
    rows = [replace(_delivered_row(row, by, order, now), subject=each)
             for row, each in zip(items.rows, subjects, strict=True)]  # fmt: skip
    claim.deliveries = [*claim.deliveries, *rows]
    schedule_trigger = {**order.trigger["schedule"], INPUT: public_views}
    trigger = {**order.trigger, "contentTrust": "untrusted", "schedule": schedule_trigger}
    inputs = {INPUT: views, **order.inputs} if _declares_items(flow) else order.inputs
    return replace(order, trigger=trigger, inputs=inputs)


def _item_view(row: Delivery) -> dict[str, object]:
    received, item = iso(row.received_at * 1000), _decode_arrival(row.body).content
    return {"itemId": row.delivery_id, "receivedAt": received, "item": item}


def _without_secrets(view: dict[str, Any], flow: Flow) -> dict[str, object]:
    """Remove the fields of secret inputs, and mask their values elsewhere."""
    secret = _secret_fields(view["item"], flow)
    rest = {name: each for name, each in view["item"].items() if name not in secret}
    return {**view, "item": mask_sealed(rest, secret, flow.masking)}


def _visible_subject(row: Delivery, flow: Flow) -> str:
    """Return the subject without secrets."""
    secret = _secret_fields(_decode_arrival(row.body).content, flow)
    return "" if SUBJECT in secret else str(mask_sealed(row.subject, secret, flow.masking))


def _secret_fields(item: Mapping[str, object], flow: Flow) -> dict[str, object]:
    return {name: each for name, each in item.items() if name in flow.sensitive}


def _delivered_row(row: Delivery, by: str, order: RunOrder, now: int) -> Delivery:
    """Return the row of a delivered item. ``by`` is the delivery of the schedule."""
    attempt = DeliveryAttempt(event_id=by, at=now, outcome="delivered")
    return row.next(
        state="delivered", updated_at=now, due_at=None, reason="", body=b"",
        member=order.roster_id, attempts=[*row.attempts, attempt],
    )  # fmt: skip
