"""Items that a schedule takes: all that wait in its queue, handed to the run that it starts."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.core.events import iso
from moot.core.schedules.model import Schedule
from moot.core.secrets import redacted
from moot.core.triggers.subscriptions import Arrival, Subscription, queue_subscription
from moot.core.workflows.graph import Flow
from moot.store.protocol import Delivery, Guard, Store
from moot.store.records import Attempt
from moot.triggers.schedules.records import SUBSCRIPTION, guard_of
from moot.triggers.start_run import Claim, Order

#: items that one run is given, and how long they may be together; what is left waits for the next
MOST_TAKEN = 100
LONGEST = 1_000_000
#: the input of a workflow that is given them
INPUT = "items"
#: the field of an item that lists show
SUBJECT = "subject"

_arrival = msgspec.json.Decoder(Arrival).decode
_subscription = msgspec.json.Decoder(Subscription).decode


class Taken(Struct, frozen=True):
    """Oldest first; it is so while the guards hold and the rows are as they were."""

    rows: list[Delivery]
    guards: list[Guard]


async def taken(store: Store, tenant: str, queue: str, most: int = MOST_TAKEN) -> Taken:
    """What waits in a queue that no workflow takes from; a bound one gives its items there."""
    record = await store.record(tenant, SUBSCRIPTION, queue_subscription(tenant, queue))
    if record is None or _subscription(record.body).workflow_id is not None:
        return Taken([], [])
    rows, length = list[Delivery](), 0
    for row in await store.waiting_deliveries(tenant, record.name, most):
        length += len(row.body)
        if rows and length > LONGEST:
            break
        rows.append(row)
    return Taken(rows, [guard_of(record)])


def given_by(spec: Schedule, flow: Flow) -> dict[str, Any]:
    """What a run of a schedule is given besides its inputs, as long as there is nothing."""
    takes = spec.condition is not None and spec.condition.queue is not None
    return {INPUT: []} if takes and _declares(flow) else {}


def _declares(flow: Flow) -> bool:
    return any(variable.name == INPUT for variable in flow.definition.variables)


def hand_over(found: Taken, order: Order, claim: Claim, flow: Flow, now: int) -> Order:
    """The run is told of the items, they are its own with its beginning. A workflow that declares
    ``items`` gets them as an input; if that is a secret one, no other place has them. A field with
    the name of a secret input is not given along: nothing else of the run would keep it secret."""
    assert order.delivered is not None and order.trigger is not None
    whole = [_said(row) for row in found.rows]
    secret = INPUT in flow.sensitive
    said = whole if secret else [_plain(each, flow) for each in whole]
    kept = [
        each if each == full and not secret else {"itemId": each["itemId"]}
        for each, full in zip(said, whole, strict=True)
    ]
    by = order.delivered.delivery_id
    claim.guards = [*claim.guards, *found.guards]
    shown = ["" if secret else _subject(row, flow) for row in found.rows]
    given = [replace(_given(row, by, order, now), subject=each)
             for row, each in zip(found.rows, shown, strict=True)]  # fmt: skip
    claim.deliveries = [*claim.deliveries, *given]
    told = {**order.trigger["schedule"], INPUT: kept}
    trigger = {**order.trigger, "contentTrust": "untrusted", "schedule": told}
    inputs = {INPUT: said, **order.inputs} if _declares(flow) else order.inputs
    return replace(order, trigger=trigger, inputs=inputs)


def _said(row: Delivery) -> dict[str, Any]:
    received = iso(row.received_at * 1000)
    return {"itemId": row.delivery_id, "receivedAt": received, "item": _arrival(row.body).content}


def _plain(said: dict[str, Any], flow: Flow) -> dict[str, Any]:
    """Without the fields of secret inputs, and what they hold masked where it stands once more."""
    secret = _secrets(said["item"], flow)
    rest = {name: each for name, each in said["item"].items() if name not in secret}
    return {**said, "item": redacted(rest, secret, flow.masking)}


def _subject(row: Delivery, flow: Flow) -> str:
    """What is shown of it from now on."""
    secret = _secrets(_arrival(row.body).content, flow)
    return "" if SUBJECT in secret else str(redacted(row.subject, secret, flow.masking))


def _secrets(item: dict[str, Any], flow: Flow) -> dict[str, Any]:
    return {name: each for name, each in item.items() if name in flow.sensitive}


def _given(row: Delivery, by: str, order: Order, now: int) -> Delivery:
    """``by`` is the delivery of the schedule, whose event says so for all of them."""
    return replace(
        row, state="delivered", revision=row.revision + 1, updated_at=now, due_at=None, reason="",
        body=b"", member=order.roster_id,
        attempts=[*row.attempts, Attempt(event_id=by, at=now, outcome="delivered")],
    )  # fmt: skip
