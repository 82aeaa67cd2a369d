"""What becomes of the slots of a schedule that have fallen due.

``decide_fires`` is asked in the transaction that writes what it says: when ``wake_at`` has come,
when a run of the schedule has ended, and before the schedule is changed, paused, resumed or
switched. It says the same for the same spec, ledger and sight of the world, so that asking again
after a crash decides nothing twice.
"""

from typing import Literal

from msgspec.structs import replace

from moot.core.schedules.calendar import LAST_INSTANT
from moot.core.schedules.model import (
    GRACE,
    MOST_BARS,
    MOST_BUFFERED,
    MOST_CAUGHT_UP,
    MOST_DECIDED,
    PROMPT,
    Bar,
    Cause,
    Decision,
    Fire,
    Ledger,
    Overlap,
    Reason,
    Schedule,
    Seen,
    Waiting,
)
from moot.core.schedules.slots import Tick, ticks

Barring = Literal["disabled", "paused"]


def opened(spec: Schedule, now: int) -> Ledger:
    """The ledger of a new schedule: nothing before now is a slot of it."""
    ledger = Ledger(decided=now)
    return ledger if spec.enabled else barred(ledger, now, "disabled")


def retimed(ledger: Ledger, now: int) -> Ledger:
    """After a change of its times: what the new ones name before now was never a slot of it."""
    return replace(ledger, decided=max(ledger.decided, now), caught_up=0)


def barred(ledger: Ledger, now: int, reason: Barring, until: int | None = None) -> Ledger:
    """Paused or switched off from now on, for good or until then."""
    bars = (*unbarred(ledger, now, reason).bars, Bar(now, until, reason))
    if len(bars) > MOST_BARS:
        oldest, second, *rest = bars
        longer = max(
            oldest, second, key=lambda bar: LAST_INSTANT if bar.until is None else bar.until
        )
        # what lies between the two is then skipped as well, which is the safe side
        bars = (replace(longer, since=oldest.since), *rest)
    return replace(ledger, bars=bars)


def unbarred(ledger: Ledger, now: int, reason: Barring) -> Ledger:
    """Resumed or switched on. What fell due in between stays skipped."""
    bars = tuple(
        replace(bar, until=now) if bar.reason == reason and bar.holds(now) else bar
        for bar in ledger.bars
    )
    return replace(ledger, bars=bars)


def bar_at(spec: Schedule, ledger: Ledger, seen: Seen, at: int) -> Bar | None:
    """What keeps slots that fall due then from starting; being switched off says it first."""
    if not spec.enabled:
        return Bar(0, None, "disabled")
    found = [bar for bar in (*ledger.bars, *seen.bars) if bar.holds(at)]
    return min(found, key=lambda bar: bar.reason, default=None)


def decide_fires(spec: Schedule, ledger: Ledger, seen: Seen) -> Decision:
    """What becomes of every slot that is due, of those that wait, and when to ask again."""
    due, wake_at, more = _due(spec, ledger.decided, seen.now)
    sight = Sight(spec, ledger, seen)
    sight.look_at_waiting()
    reasons = [sight.barrier(tick) for tick in due]
    # only in sight of all that is due can it be known which of them is the newest
    open_ones = (
        [] if more else [tick for tick, reason in zip(due, reasons, strict=True) if not reason]
    )
    newest = open_ones[-1] if open_ones else None
    for tick, reason in zip(due, reasons, strict=True):
        sight.look_at(tick, reason, tick is newest)
    return sight.decision(due[-1].slot if due else ledger.decided, wake_at, more)


def joined(earlier: Fire, later: Fire) -> Fire | None:
    """One fire that says the same as two that follow each other, if there is one.

    Whoever keeps fires can put a later one into the last it has kept: a schedule that is off for a
    year leaves one behind.
    """
    last = earlier.slot if earlier.until is None else earlier.until
    same = earlier.reason == later.reason and earlier.cause == later.cause == "slot"
    if earlier.act != "skip" or later.act != "skip" or not same or later.slot <= last:
        return None
    if earlier.waited or later.waited:
        return None  # slots between them were decided before
    until = later.slot if later.until is None else later.until
    return replace(earlier, count=earlier.count + later.count, until=until)


def _due(spec: Schedule, decided: int, now: int) -> tuple[list[Tick], int | None, bool]:
    """Ticks that are due, when the next one is, and whether more are due than may be taken."""
    found: list[Tick] = []
    for tick in ticks(spec, decided):
        if tick.due > now:
            return found, tick.due, False
        if len(found) == MOST_DECIDED:
            return found, now, True
        found.append(tick)
    return found, None, False


class Sight:
    """One look at a schedule: what it comes to is collected here, and given away as a decision."""

    def __init__(self, spec: Schedule, ledger: Ledger, seen: Seen) -> None:
        self._spec = spec
        self._ledger = ledger
        self._seen = seen
        self._fires: list[Fire] = []
        self._buffered = list(ledger.buffered)
        self._busy = bool(seen.going)
        self._caught_up = ledger.caught_up
        #: with cancel-other, the one that is to start
        self._chosen: Fire | None = None
        self._now_barred = bar_at(spec, ledger, seen, seen.now)

    def barrier(self, tick: Tick) -> Reason | None:
        """Why the slot is skipped whatever its policies say."""
        bar = bar_at(self._spec, self._ledger, self._seen, tick.due) or self._now_barred
        if bar is not None:
            return bar.reason
        return "asked" if tick.slot in self._ledger.skips else None

    def look_at(self, tick: Tick, barrier: Reason | None, newest: bool) -> None:
        late = self._seen.now - tick.due
        on_time = late <= PROMPT or (newest and late <= GRACE)
        reason = barrier or (None if on_time else _missed(self._spec, late, newest))
        cause: Cause = "slot" if on_time else "catch-up"
        fire = Fire(act="start", slot=tick.slot, due=tick.due, cause=cause)
        if reason is not None:
            self._skip(fire, reason)
        elif not self._seen.work:
            self._skip(fire, "no-work")
        else:
            self.take(fire, self._spec.overlap)

    def look_at_waiting(self) -> None:
        """What waits is dropped by a pause, and goes on when nothing is going."""
        waiting, self._buffered = self._buffered, []
        for one in waiting:
            fire = Fire(act="start", slot=one.slot, due=one.due, cause=one.cause, waited=True)
            free = not self._busy or self._spec.overlap in ("allow", "cancel-other")
            if (bar := self._bar_since(one.since)) is not None:
                self._skip(fire, bar.reason)
            elif not free:
                self._buffered.append(one)
            elif not self._seen.work:
                self._skip(fire, "no-work")
            else:
                self.take(fire, self._spec.overlap)

    def look_again(self, fire: Fire, since: int) -> None:
        """One that had its turn and could not be begun then. What counted for its slot counts."""
        again = replace(fire, act="start", waited=True)
        if (bar := self._bar_since(since)) is not None:
            self._skip(again, bar.reason)
        else:
            self.take(again, self._spec.overlap)

    def take(self, fire: Fire, overlap: Overlap) -> None:
        """Start it, let it wait, or skip it, as the overlap policy has it."""
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

    def decision(self, decided: int, wake_at: int | None, more: bool) -> Decision:
        if self._chosen is not None and more:
            self._skip(self._chosen, "overlap")  # a newer one is due, too
        elif self._chosen is not None:
            self._record(replace(self._chosen, cancels=self._seen.going))
        now, was = self._seen.now, self._ledger
        bars = was.bars
        if not more:
            bars = tuple(bar for bar in bars if bar.until is None or bar.until > now)
        ledger = Ledger(
            decided=decided,
            buffered=tuple(self._buffered),
            skips=tuple(slot for slot in was.skips if slot > decided),
            bars=bars,
            caught_up=self._caught_up if more else 0,
        )
        if self._now_barred is not None and not more:
            wake_at = self._now_barred.until
        return Decision(fires=tuple(self._fires), ledger=ledger, wake_at=wake_at, more=more)

    def _bar_since(self, since: int) -> Bar | None:
        if self._now_barred is not None:
            return self._now_barred
        bars = (*self._ledger.bars, *self._seen.bars)
        return next((bar for bar in bars if since <= bar.since <= self._seen.now), None)

    def _buffer(self, fire: Fire) -> None:
        if len(self._buffered) >= MOST_BUFFERED:
            self._skip(fire, "overlap")
            return
        self._buffered.append(Waiting(fire.slot, fire.due, fire.cause, self._seen.now))
        self._record(replace(fire, act="buffer"))

    def _skip(self, fire: Fire, reason: Reason) -> None:
        cause: Cause = "slot" if fire.cause == "catch-up" else fire.cause
        self._record(replace(fire, act="skip", reason=reason, cause=cause))

    def _record(self, fire: Fire) -> None:
        if fire.cause == "catch-up" and fire.act != "skip" and not fire.waited:
            self._caught_up += 1
        both = joined(self._fires[-1], fire) if self._fires else None
        if both is not None:
            self._fires[-1] = both
        else:
            self._fires.append(fire)


def _missed(spec: Schedule, late: int, newest: bool) -> Reason | None:
    """Why a missed slot is not caught up."""
    if spec.catch_up == "none":
        return "missed"
    if late > spec.catch_up_window_seconds * 1000:
        return "window"
    return None if newest or spec.catch_up == "all-within-window" else "missed"
