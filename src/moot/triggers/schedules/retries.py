"""Retry runs of schedules that could not start, and stop the schedule in the end."""

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import PausePeriod
from moot.core.backoff import retry_jitter
from moot.core.schedules.model import BlockedPeriod
from moot.core.triggers.subscriptions import RetryPolicy, next_delivery_time, state_after_failure
from moot.store.protocol import Store
from moot.store.records import Delivery
from moot.triggers.schedules.records import SCHEDULE_KIND, ScheduleRecord, schedule_from_record
from moot.triggers.schedules.snapshot import ScheduleSnapshot

POLICY = RetryPolicy()
RETRYING = "retrying"


class FailedStart(Struct, frozen=True):
    """The row of a failed fire, and the paused schedule if the failure stops it."""

    row: Delivery
    plan: ScheduleRecord | None


async def handle_failed_start(
    store: Store, snapshot: ScheduleSnapshot, row: Delivery, now: int
) -> FailedStart:
    """Decide whether a failed start is retried. ``row`` is the dead letter; it is due again while
    tries are left."""
    stored = await store.delivery(row.tenant, row.subscription, row.key)
    due = next_delivery_time(POLICY, len(row.attempts), now, retry_jitter(row.delivery_id))
    if due is not None:
        attempts = [*row.attempts[:-1], replace(row.attempts[-1], outcome=RETRYING)]
        row = replace(row, state=RETRYING, due_at=due, attempts=attempts)
    counts = await store.delivery_counts(snapshot.tenant, row.subscription)
    added = 0 if stored is not None and stored.state == RETRYING else 1
    state, _ = state_after_failure("active", due is None, counts.get(RETRYING, 0) + added)
    if state not in ("failed", "dead-lettered"):
        return FailedStart(row, None)
    pause = PausePeriod(since=snapshot.seen.now, by="moot", reason=row.reason)
    return FailedStart(row, replace(snapshot.plan, pause=pause, stopped=state, did="stopped"))


async def pauses_since(
    store: Store, tenant: str, schedule_id: str, since: int
) -> list[BlockedPeriod]:
    """Return the pauses of a schedule that began since then, including ended ones."""
    history = await store.record_history(tenant, SCHEDULE_KIND, schedule_id)
    periods = []
    for record in history:
        schedule, at = schedule_from_record(record), record.created_at
        enabled = schedule.spec.enabled
        if at >= since and (schedule.pause is not None or not enabled):
            periods.append(BlockedPeriod(at, at, "paused" if enabled else "disabled"))
    return periods
