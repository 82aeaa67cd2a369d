"""Whether there is anything to do: asked of the store before a slot wakes anybody."""

import logging
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.json import encode

from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.calendar import moment_of, zone_from
from moot.core.schedules.model import Condition
from moot.core.schedules.slots import timing_of
from moot.core.workflows.expressions import ExpressionError, check, evaluate
from moot.store.protocol import Store
from moot.store.records import DeliveryFilter
from moot.triggers.schedules.queue_items import taken
from moot.triggers.schedules.records import Book, Plan

log = logging.getLogger("moot.triggers")

#: states of an item that nobody has done yet
UNDONE = ("waiting", "retrying")
#: items are counted so far
MOST_COUNTED = 100


def check_condition(condition: Condition | None) -> None:
    """Raises ScheduleRefused for an expression that cannot be read."""
    if condition is None or condition.expression is None:
        return
    try:
        check(condition.expression)
    except ExpressionError as error:
        raise ScheduleRefused("condition", f"The expression cannot be read: {error}") from None


class Work(Struct, frozen=True):
    """Whether there is any, and what a condition that waits for a change has seen."""

    there: bool = True
    observed: str | None = None


async def work(store: Store, tenant: str, plan: Plan, book: Book, now: int) -> Work:
    """What the condition of a schedule comes to; there is work where it has none."""
    condition = plan.spec.condition
    if condition is None:
        return Work()
    if condition.queue is not None:
        return Work(bool((await taken(store, tenant, condition.queue, 1)).rows))
    try:
        names = await _names(store, tenant, plan, book, now)
        value = evaluate(condition.expression or "", names)
    except (ExpressionError, ScheduleRefused) as error:
        log.warning("Schedule %s: its condition has no value: %s", plan.spec.schedule_id, error)
        return Work(False, book.observed)
    if not condition.on_change:
        return Work(value is True)
    seen = encode(value).decode()
    return Work(book.observed not in (None, seen), seen)


async def _names(store: Store, tenant: str, plan: Plan, book: Book, now: int) -> dict[str, Any]:
    """What an expression may speak of; docs/schedules.md lists it."""
    local: datetime = moment_of(now).astimezone(zone_from(timing_of(plan.spec).zone))
    found, _ = await store.deliveries(
        tenant, DeliveryFilter(sources=("queue",), states=UNDONE), None, MOST_COUNTED
    )
    last = await store.find_run(tenant, book.last_run) if book.last_run is not None else None
    return {
        "now": iso(now * 1000),
        "weekday": local.isoweekday(),
        "hour": local.hour,
        "minute": local.minute,
        "items": len(found),
        "going": len(book.going),
        "last": {} if last is None else {"runId": last.run_id, "status": last.status},
    }
