"""Runs of schedules that could not be begun: tried again as everything that is delivered is, and
given up with the schedule, which then stands still until somebody looks."""

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Pause
from moot.core.backoff import lot_of
from moot.core.schedules.model import Bar
from moot.core.triggers.subscriptions import RetryPolicy, after_failure, next_try
from moot.store.protocol import Delivery, Store
from moot.triggers.schedules.records import KIND, Plan, plan_of
from moot.triggers.schedules.snapshot import Case

POLICY = RetryPolicy()
RETRYING = "retrying"


class Failed(Struct, frozen=True):
    """What becomes of a fire, and of its schedule if that is stopped by it."""

    row: Delivery
    plan: Plan | None


async def failed(store: Store, case: Case, row: Delivery, now: int) -> Failed:
    """``row`` says that it is given up; it is not before it was tried so often."""
    was = await store.delivery(row.tenant, row.subscription, row.key)
    due = next_try(POLICY, len(row.attempts), now, lot_of(row.delivery_id))
    if due is not None:
        attempts = [*row.attempts[:-1], replace(row.attempts[-1], outcome=RETRYING)]
        row = replace(row, state=RETRYING, due_at=due, attempts=attempts)
    counts = await store.delivery_counts(case.tenant, row.subscription)
    beside = 0 if was is not None and was.state == RETRYING else 1
    state, _ = after_failure("active", due is None, counts.get(RETRYING, 0) + beside)
    if state not in ("failed", "dead-lettered"):
        return Failed(row, None)
    pause = Pause(since=case.seen.now, by="moot", reason=row.reason)
    return Failed(row, replace(case.plan, pause=pause, stopped=state, did="stopped"))


async def stops_since(store: Store, tenant: str, schedule_id: str, since: int) -> list[Bar]:
    """Pauses of a schedule that began since then, also those that are over."""
    history = await store.record_history(tenant, KIND, schedule_id)
    later = [(each.created_at, plan_of(each)) for each in history if each.created_at >= since]
    return [
        Bar(at, at, "paused" if plan.spec.enabled else "disabled")
        for at, plan in later
        if plan.pause is not None or not plan.spec.enabled
    ]
