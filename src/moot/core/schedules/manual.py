"""Decide manual runs, skips and backfills of a schedule, and retries.

A decision that is not written is a dry run.
"""

from collections.abc import Collection
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from moot.core.errors.schedules import ScheduleBusy, ScheduleOff, ScheduleRefused
from moot.core.schedules.decide import SlotDecider
from moot.core.schedules.model import (
    MOST_BACKFILLED,
    MOST_BUFFERED,
    MOST_SKIPS,
    BlockedPeriod,
    Fire,
    FireDecision,
    OverlapPolicy,
    Schedule,
    ScheduleFacts,
    SkipReason,
    SlotLedger,
)
from moot.core.schedules.pauses import blocked_period_at
from moot.core.schedules.slots import iterate_due_slots, next_slots, slots_between


class UpcomingSlot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A future slot, as far as the host knows now."""

    slot: int
    due: int
    #: why the slot will be skipped, if nothing changes
    skipped: SkipReason | None = None


def upcoming_slots(
    spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts, count: int = 5
) -> list[UpcomingSlot]:
    """Return the next slots that are not decided."""
    upcoming = []
    for due_slot in islice(iterate_due_slots(spec, ledger.decided), min(count, MOST_SKIPS)):
        period = blocked_period_at(spec, ledger, facts, due_slot.due)
        reason: SkipReason | None = "asked" if due_slot.slot in ledger.skips else None
        skipped = period.reason if period else reason
        upcoming.append(UpcomingSlot(slot=due_slot.slot, due=due_slot.due, skipped=skipped))
    return upcoming


def run_now(
    spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts, overlap: OverlapPolicy | None = None
) -> FireDecision:
    """Run the schedule by hand, without a slot and without its condition.

    A paused schedule can run, but cannot buffer. Raise ScheduleOff, and ScheduleBusy when the
    overlap policy would skip the run.
    """
    policy = overlap or spec.overlap
    period = _check_enabled(spec, ledger, facts)
    buffers = policy in ("buffer-one", "buffer-all")
    room = 1 if policy == "buffer-one" else MOST_BUFFERED
    is_full = period is not None or len(ledger.buffered) >= room
    if facts.going and (policy == "skip" or (buffers and is_full)):
        raise ScheduleBusy(spec.schedule_id, facts.going[0])
    decider = SlotDecider(spec, ledger, facts)
    decider.apply_overlap(Fire(act="start", slot=facts.now, due=facts.now, cause="manual"), policy)
    return _decision_beside_slots(decider, spec, ledger, facts.now)


def skip_next_slot(spec: Schedule, ledger: SlotLedger) -> tuple[int, SlotLedger]:
    """Return the next slot that is not skipped yet, and the ledger that skips it.

    Raise ScheduleRefused when there is no such slot.
    """
    if len(ledger.skips) >= MOST_SKIPS:
        message = f"{MOST_SKIPS} slots are left out already; pause the schedule instead."
        raise ScheduleRefused("scheduleId", message)
    after = max((ledger.decided, *ledger.skips))
    if not (upcoming := next_slots(spec, after, 1)):
        raise ScheduleRefused("scheduleId", "No time of this schedule is to come.")
    return upcoming[0], replace(ledger, skips=(*ledger.skips, upcoming[0]))


def unskip_last_slot(ledger: SlotLedger) -> tuple[int, SlotLedger]:
    """Return the slot that was skipped last, and the ledger that takes it back.

    Raise ScheduleRefused when no slot is skipped.
    """
    if not ledger.skips:
        raise ScheduleRefused("undo", "No time of this schedule is left out.")
    return ledger.skips[-1], replace(ledger, skips=ledger.skips[:-1])


def backfill(
    spec: Schedule,
    ledger: SlotLedger,
    facts: ScheduleFacts,
    between: tuple[int, int],
    ran: Collection[int] = (),
    overlap: OverlapPolicy = "buffer-all",
    paused: bool = False,
) -> FireDecision:
    """Start runs for past slots, both ends included, except those in ``ran``.

    With ``paused`` it also runs while the schedule is paused, and then buffers nothing. Raise
    ScheduleOff, ScheduleBusy, and ScheduleRefused for too many slots or future times.
    """
    period = _check_enabled(spec, ledger, facts)
    if period is not None and not paused:
        raise ScheduleOff(spec.schedule_id, period.reason)
    first, last = between
    if first > last:
        raise ScheduleRefused("from", "'from' is later than 'to'.")
    if last > facts.now:
        raise ScheduleRefused("to", "'to' lies ahead; a backfill is for times that have passed.")
    buffered = {waiting.slot for waiting in ledger.buffered if waiting.cause != "manual"}
    named = slots_between(spec, first - 1, min(last, ledger.decided), MOST_BACKFILLED + 1)
    wanted = [slot for slot in named if slot not in ran and slot not in buffered]
    if len(named) > MOST_BACKFILLED:
        message = f"More than {MOST_BACKFILLED} slots lie between; name a shorter time."
        raise ScheduleRefused("to", message)
    is_full = period is not None or (overlap == "buffer-one" and ledger.buffered)
    if facts.going and (overlap == "skip" or (overlap.startswith("buffer") and is_full)):
        raise ScheduleBusy(spec.schedule_id, facts.going[0])
    decider = SlotDecider(spec, ledger, facts)
    for slot in wanted:
        decider.apply_overlap(Fire(act="start", slot=slot, due=slot, cause="backfill"), overlap)
    return _decision_beside_slots(decider, spec, ledger, facts.now)


def retry_fire(
    spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts, fire: Fire, since: int
) -> FireDecision:
    """Decide a start again whose run could not begin at ``since``.

    The overlap policy applies, and a pause since then skips it.
    """
    decider = SlotDecider(spec, ledger, facts)
    decider.retry(fire, since)
    return _decision_beside_slots(decider, spec, ledger, facts.now)


def _check_enabled(
    spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts
) -> BlockedPeriod | None:
    """Return the pause that holds now, if any. Raise ScheduleOff when the schedule is disabled."""
    period = blocked_period_at(spec, ledger, facts, facts.now)
    if period is not None and period.reason == "disabled":
        raise ScheduleOff(spec.schedule_id, period.reason)
    return period


def _decision_beside_slots(
    decider: SlotDecider, spec: Schedule, ledger: SlotLedger, now: int
) -> FireDecision:
    """Return the decision without changing what the ledger records about slots."""
    next_due = next(iterate_due_slots(spec, ledger.decided), None)
    wake_at = max(next_due.due, now) if next_due is not None else None
    decision = decider.decision(ledger.decided, wake_at, more=False)
    ledger_after = replace(decision.ledger, bars=ledger.bars, caught_up=ledger.caught_up)
    return replace(decision, ledger=ledger_after)
