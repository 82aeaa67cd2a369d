"""Conditions of schedules: check whether there is work for a slot."""

import logging
from datetime import datetime

from msgspec import Struct
from msgspec.json import encode

from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.calendar import datetime_from_instant, require_zone
from moot.core.schedules.model import Condition
from moot.core.schedules.slots import timing_from_spec
from moot.core.workflows.expressions import ExpressionError, check_expression, evaluate_expression
from moot.store.protocol import Store
from moot.store.records import DeliveryFilter
from moot.triggers.schedules.queue_items import read_queue_items
from moot.triggers.schedules.records import ScheduleLedger, ScheduleRecord

log = logging.getLogger("moot.triggers")

#: states of items that are not done
OPEN_STATES = ("waiting", "retrying")
#: counting of items stops here
MOST_COUNTED = 100


def check_condition(condition: Condition | None) -> None:
    """Raise ScheduleRefused for an expression that cannot be parsed."""
    if condition is None or condition.expression is None:
        return
    try:
        check_expression(condition.expression)
    except ExpressionError as error:
        raise ScheduleRefused("condition", f"The expression cannot be read: {error}") from None


class ConditionResult(Struct, frozen=True):
    """The answer to whether there is work, and the value of the condition."""

    there: bool = True
    observed: str | None = None


async def evaluate_condition(
    store: Store, tenant: str, schedule: ScheduleRecord, schedule_ledger: ScheduleLedger, now: int
) -> ConditionResult:
    """Evaluate the condition of a schedule. Without a condition there is always work."""
    condition = schedule.spec.condition
    if condition is None:
        return ConditionResult()
    if condition.queue is not None:
        first = await read_queue_items(store, tenant, condition.queue, 1)
        return ConditionResult(bool(first.rows))
    try:
        names = await _expression_names(store, tenant, schedule, schedule_ledger, now)
        value = evaluate_expression(condition.expression or "", names)
    except (ExpressionError, ScheduleRefused) as error:
        log.warning("Schedule %s: its condition has no value: %s", schedule.spec.schedule_id, error)
        return ConditionResult(False, schedule_ledger.observed)
    if not condition.on_change:
        return ConditionResult(value is True)
    observed = encode(value).decode()
    return ConditionResult(schedule_ledger.observed not in (None, observed), observed)


async def _expression_names(
    store: Store, tenant: str, schedule: ScheduleRecord, schedule_ledger: ScheduleLedger, now: int
) -> dict[str, object]:
    """Return the names that an expression may use; docs/schedules.md lists them."""
    zone = require_zone(timing_from_spec(schedule.spec).zone)
    local: datetime = datetime_from_instant(now).astimezone(zone)
    open_items = DeliveryFilter(sources=("queue",), states=OPEN_STATES)
    items, _ = await store.deliveries(tenant, open_items, None, MOST_COUNTED)
    last_id = schedule_ledger.last_run
    last_run = await store.find_run(tenant, last_id) if last_id is not None else None
    return {
        "now": iso(now * 1000),
        "weekday": local.isoweekday(),
        "hour": local.hour,
        "minute": local.minute,
        "items": len(items),
        "going": len(schedule_ledger.going),
        "last": {} if last_run is None else {"runId": last_run.run_id, "status": last_run.status},
    }
