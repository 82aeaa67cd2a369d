"""Decide which due slots of a schedule start, wait or are skipped.

The host calls ``decide_fires`` in the transaction that writes the decision: when ``wake_at`` has
come, when a run of the schedule has ended, and before the schedule changes. The same spec, ledger
and facts give the same decision, so a crash decides nothing twice.
"""

from msgspec.structs import replace

from moot.core.schedules.model import (
    MOST_BUFFERED,
    MOST_DECIDED,
    BlockedPeriod,
    BufferedSlot,
    Fire,
    FireCause,
    FireDecision,
    OverlapPolicy,
    Schedule,
    ScheduleFacts,
    SkipReason,
    SlotLedger,
)
from moot.core.schedules.pauses import block_starts, blocked_period_at
from moot.core.schedules.slots import DueSlot, iterate_due_slots

#: milliseconds of delay within which a slot is on time; the newest slot has longer
ON_TIME_MS = 5_000
NEWEST_ON_TIME_MS = 60_000
#: missed slots that start after one outage, even if the window holds more
MOST_CAUGHT_UP = 100


def new_ledger(spec: Schedule, now: int) -> SlotLedger:
    """Return the ledger of a new schedule. Instants before now are not slots of it."""
    ledger = SlotLedger(decided=now)
    return ledger if spec.enabled else block_starts(ledger, now, "disabled")


def retime_ledger(ledger: SlotLedger, now: int) -> SlotLedger:
    """Return the ledger after a change of times. The new times have no slots before now."""
    return replace(ledger, decided=max(ledger.decided, now), caught_up=0)


def decide_fires(spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts) -> FireDecision:
    """Decide all due and buffered slots, and when to decide again."""
    due_slots, wake_at, more = _find_due_slots(spec, ledger.decided, facts.now)
    decider = SlotDecider(spec, ledger, facts)
    decider.decide_buffered()
    reasons = [decider.block_reason(due_slot) for due_slot in due_slots]
    # the newest slot is known only when all due slots are in view
    unblocked = (
        []
        if more
        else [due_slot for due_slot, reason in zip(due_slots, reasons, strict=True) if not reason]
    )
    newest = unblocked[-1] if unblocked else None
    for due_slot, reason in zip(due_slots, reasons, strict=True):
        decider.decide_slot(due_slot, reason, due_slot is newest)
    return decider.decision(due_slots[-1].slot if due_slots else ledger.decided, wake_at, more)


def merge_skips(earlier: Fire, later: Fire) -> Fire | None:
    """Merge two consecutive skips into one fire, or return None.

    A schedule that is off for a year leaves one skip behind.
    """
    last = earlier.slot if earlier.until is None else earlier.until
    is_same = earlier.reason == later.reason and earlier.cause == later.cause == "slot"
    if earlier.act != "skip" or later.act != "skip" or not is_same or later.slot <= last:
        return None
    if earlier.waited or later.waited:
        return None  # slots between them were decided earlier
    until = later.slot if later.until is None else later.until
    return replace(earlier, count=earlier.count + later.count, until=until)


def _find_due_slots(
    spec: Schedule, decided: int, now: int
) -> tuple[list[DueSlot], int | None, bool]:
    """Return the due slots, when the next one is due, and whether more are due now."""
    due_slots: list[DueSlot] = []
    for due_slot in iterate_due_slots(spec, decided):
        if due_slot.due > now:
            return due_slots, due_slot.due, False
        if len(due_slots) == MOST_DECIDED:
            return due_slots, now, True
        due_slots.append(due_slot)
    return due_slots, None, False


class SlotDecider:
    """Decides the slots of one schedule, and collects the fires for a decision."""

    def __init__(self, spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts) -> None:
        self._spec = spec
        self._ledger = ledger
        self._facts = facts
        self._fires: list[Fire] = []
        self._buffered = list(ledger.buffered)
        self._busy = bool(facts.going)
        self._caught_up = ledger.caught_up
        #: with cancel-other, the fire that will start
        self._chosen: Fire | None = None
        self._blocked_now = blocked_period_at(spec, ledger, facts, facts.now)

    def block_reason(self, due_slot: DueSlot) -> SkipReason | None:
        """Return why the slot is skipped before its policies apply."""
        period = (
            blocked_period_at(self._spec, self._ledger, self._facts, due_slot.due)
            or self._blocked_now
        )
        if period is not None:
            return period.reason
        return "asked" if due_slot.slot in self._ledger.skips else None

    def decide_slot(self, due_slot: DueSlot, block_reason: SkipReason | None, newest: bool) -> None:
        late = self._facts.now - due_slot.due
        on_time = late <= ON_TIME_MS or (newest and late <= NEWEST_ON_TIME_MS)
        reason = block_reason or (None if on_time else missed_slot_reason(self._spec, late, newest))
        cause: FireCause = "slot" if on_time else "catch-up"
        fire = Fire(act="start", slot=due_slot.slot, due=due_slot.due, cause=cause)
        if reason is not None:
            self._skip(fire, reason)
        elif not self._facts.work:
            self._skip(fire, "no-work")
        else:
            self.apply_overlap(fire, self._spec.overlap)

    def decide_buffered(self) -> None:
        """Skip buffered slots after a pause, and start one when no run is active."""
        waiting, self._buffered = self._buffered, []
        for buffered in waiting:
            fire = Fire(
                act="start", slot=buffered.slot, due=buffered.due, cause=buffered.cause, waited=True
            )
            may_start = not self._busy or self._spec.overlap in ("allow", "cancel-other")
            if (period := self._blocked_since(buffered.since)) is not None:
                self._skip(fire, period.reason)
            elif not may_start:
                self._buffered.append(buffered)
            elif not self._facts.work:
                self._skip(fire, "no-work")
            else:
                self.apply_overlap(fire, self._spec.overlap)

    def retry(self, fire: Fire, since: int) -> None:
        """Decide a fire again whose run could not start at ``since``."""
        retried = replace(fire, act="start", waited=True)
        if (period := self._blocked_since(since)) is not None:
            self._skip(retried, period.reason)
        else:
            self.apply_overlap(retried, self._spec.overlap)

    def apply_overlap(self, fire: Fire, overlap: OverlapPolicy) -> None:
        """Start, buffer or skip the fire by the overlap policy."""
        if fire.cause == "catch-up" and not fire.waited and self._caught_up >= MOST_CAUGHT_UP:
            self._skip(fire, "missed")
        elif overlap == "cancel-other":
            if self._chosen is not None:
                self._skip(self._chosen, "overlap")
            self._chosen = fire
        elif overlap == "allow" or not self._busy:
            self._busy = True
            self._record(fire)
        elif overlap == "buffer-all" or (overlap == "buffer-one" and not self._buffered):
            self._buffer(fire)
        else:
            self._skip(fire, "overlap")

    def decision(self, decided: int, wake_at: int | None, more: bool) -> FireDecision:
        if self._chosen is not None and more:
            self._skip(self._chosen, "overlap")  # a newer slot is due as well
        elif self._chosen is not None:
            self._record(replace(self._chosen, cancels=self._facts.going))
        now, ledger_before = self._facts.now, self._ledger
        periods = ledger_before.bars
        if not more:
            periods = tuple(
                period for period in periods if period.until is None or period.until > now
            )
        ledger = SlotLedger(
            decided=decided,
            buffered=tuple(self._buffered),
            skips=tuple(slot for slot in ledger_before.skips if slot > decided),
            bars=periods,
            caught_up=self._caught_up if more else 0,
        )
        if self._blocked_now is not None and not more:
            wake_at = self._blocked_now.until
        return FireDecision(fires=tuple(self._fires), ledger=ledger, wake_at=wake_at, more=more)

    def _blocked_since(self, since: int) -> BlockedPeriod | None:
        if self._blocked_now is not None:
            return self._blocked_now
        periods = (*self._ledger.bars, *self._facts.bars)
        return next(
            (period for period in periods if since <= period.since <= self._facts.now), None
        )

    def _buffer(self, fire: Fire) -> None:
        if len(self._buffered) >= MOST_BUFFERED:
            self._skip(fire, "overlap")
            return
        self._buffered.append(BufferedSlot(fire.slot, fire.due, fire.cause, self._facts.now))
        self._record(replace(fire, act="buffer"))

    def _skip(self, fire: Fire, reason: SkipReason) -> None:
        cause: FireCause = "slot" if fire.cause == "catch-up" else fire.cause
        self._record(replace(fire, act="skip", reason=reason, cause=cause))

    def _record(self, fire: Fire) -> None:
        if fire.cause == "catch-up" and fire.act != "skip" and not fire.waited:
            self._caught_up += 1
        merged = merge_skips(self._fires[-1], fire) if self._fires else None
        if merged is not None:
            self._fires[-1] = merged
        else:
            self._fires.append(fire)


def missed_slot_reason(spec: Schedule, late: int, newest: bool) -> SkipReason | None:
    """Return why a missed slot is skipped, or None when it is caught up.

    ``late`` is in milliseconds. ``newest`` marks the newest of all slots that are due.
    """
    if spec.catch_up == "none":
        return "missed"
    if late > spec.catch_up_window_seconds * 1000:
        return "window"
    return None if newest or spec.catch_up == "all-within-window" else "missed"
