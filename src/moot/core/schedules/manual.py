"""What is done to a schedule beside its times: by people, and by the host that tries again. Asking
without writing the answer down is the dry run."""

from collections.abc import Collection
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from moot.core.errors.schedules import ScheduleBusy, ScheduleOff, ScheduleRefused
from moot.core.schedules.decide import Sight, bar_at
from moot.core.schedules.model import (
    MOST_BACKFILLED,
    MOST_BUFFERED,
    MOST_SKIPS,
    Bar,
    Decision,
    Fire,
    Ledger,
    Overlap,
    Reason,
    Schedule,
    Seen,
)
from moot.core.schedules.slots import next_slots, slots, ticks


class Upcoming(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A slot to come, as far as is known now."""

    slot: int
    due: int
    #: why it will start nothing, if nothing changes
    skipped: Reason | None = None


def upcoming(spec: Schedule, ledger: Ledger, seen: Seen, count: int = 5) -> list[Upcoming]:
    """The next slots that are not decided."""
    found = []
    for tick in islice(ticks(spec, ledger.decided), min(count, MOST_SKIPS)):
        bar = bar_at(spec, ledger, seen, tick.due)
        reason: Reason | None = "asked" if tick.slot in ledger.skips else None
        found.append(Upcoming(slot=tick.slot, due=tick.due, skipped=bar.reason if bar else reason))
    return found


def run_now(spec: Schedule, ledger: Ledger, seen: Seen, overlap: Overlap | None = None) -> Decision:
    """A run by hand: of no slot, whatever the condition says, by its overlap policy or this one.

    A paused schedule can be run by hand, but nothing waits in it. Raises ScheduleOff, and
    ScheduleBusy where the policy would skip.
    """
    policy = overlap or spec.overlap
    bar = _check_on(spec, ledger, seen)
    waits = policy in ("buffer-one", "buffer-all")
    full = bar is not None or len(ledger.buffered) >= (
        1 if policy == "buffer-one" else MOST_BUFFERED
    )
    if seen.going and (policy == "skip" or (waits and full)):
        raise ScheduleBusy(spec.schedule_id, seen.going[0])
    sight = Sight(spec, ledger, seen)
    sight.take(Fire(act="start", slot=seen.now, due=seen.now, cause="manual"), policy)
    return _decision(sight, spec, ledger, seen.now)


def skip_next(spec: Schedule, ledger: Ledger) -> tuple[int, Ledger]:
    """The next slot that is not left out yet, and the ledger that leaves it out.

    Raises ScheduleRefused where no slot is to come.
    """
    if len(ledger.skips) >= MOST_SKIPS:
        message = f"{MOST_SKIPS} slots are left out already; pause the schedule instead."
        raise ScheduleRefused("scheduleId", message)
    after = max((ledger.decided, *ledger.skips))
    if not (found := next_slots(spec, after, 1)):
        raise ScheduleRefused("scheduleId", "No time of this schedule is to come.")
    return found[0], replace(ledger, skips=(*ledger.skips, found[0]))


def unskip(ledger: Ledger) -> tuple[int, Ledger]:
    """The time that was left out last is taken in again. Raises ScheduleRefused where none is."""
    if not ledger.skips:
        raise ScheduleRefused("undo", "No time of this schedule is left out.")
    return ledger.skips[-1], replace(ledger, skips=ledger.skips[:-1])


def backfill(
    spec: Schedule,
    ledger: Ledger,
    seen: Seen,
    between: tuple[int, int],
    ran: Collection[int] = (),
    overlap: Overlap = "buffer-all",
    paused: bool = False,
) -> Decision:
    """Runs for slots of the past, both ends included, except those in ``ran`` that had one. With
    ``paused`` also while it is; then nothing waits in it.

    Raises ScheduleOff, ScheduleBusy, and ScheduleRefused for more slots than one backfill may name
    and for times to come.
    """
    bar = _check_on(spec, ledger, seen)
    if bar is not None and not paused:
        raise ScheduleOff(spec.schedule_id, bar.reason)
    first, last = between
    if first > last:
        raise ScheduleRefused("from", "'from' is later than 'to'.")
    if last > seen.now:
        raise ScheduleRefused("to", "'to' lies ahead; a backfill is for times that have passed.")
    waiting = {one.slot for one in ledger.buffered if one.cause != "manual"}
    named = slots(spec, first - 1, min(last, ledger.decided), MOST_BACKFILLED + 1)
    wanted = [slot for slot in named if slot not in ran and slot not in waiting]
    if len(named) > MOST_BACKFILLED:
        message = f"More than {MOST_BACKFILLED} slots lie between; name a shorter time."
        raise ScheduleRefused("to", message)
    full = bar is not None or (overlap == "buffer-one" and ledger.buffered)
    if seen.going and (overlap == "skip" or (overlap.startswith("buffer") and full)):
        raise ScheduleBusy(spec.schedule_id, seen.going[0])
    sight = Sight(spec, ledger, seen)
    for slot in wanted:
        sight.take(Fire(act="start", slot=slot, due=slot, cause="backfill"), overlap)
    return _decision(sight, spec, ledger, seen.now)


def try_again(spec: Schedule, ledger: Ledger, seen: Seen, fire: Fire, since: int) -> Decision:
    """Once more a start whose run could not be begun at ``since``: by the overlap policy, and not
    if a pause came between."""
    sight = Sight(spec, ledger, seen)
    sight.look_again(fire, since)
    return _decision(sight, spec, ledger, seen.now)


def _check_on(spec: Schedule, ledger: Ledger, seen: Seen) -> Bar | None:
    """The pause that holds now, if one does. Raises ScheduleOff where it is more than a pause."""
    bar = bar_at(spec, ledger, seen, seen.now)
    if bar is not None and bar.reason == "disabled":
        raise ScheduleOff(spec.schedule_id, bar.reason)
    return bar


def _decision(sight: Sight, spec: Schedule, ledger: Ledger, now: int) -> Decision:
    """Slots are none of its business: what is remembered for deciding them stays as it is."""
    following = next(ticks(spec, ledger.decided), None)
    wake_at = max(following.due, now) if following is not None else None
    found = sight.decision(ledger.decided, wake_at, more=False)
    kept = replace(found.ledger, bars=ledger.bars, caught_up=ledger.caught_up)
    return replace(found, ledger=kept)
