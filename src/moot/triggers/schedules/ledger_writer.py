"""Build the ledger rows of one decision about a schedule."""

from msgspec.structs import replace

from moot.core.schedules.model import Fire, FireDecision, ScheduleFacts
from moot.core.schedules.pauses import block_starts, blocked_period_at
from moot.core.schedules.slots import iterate_due_slots
from moot.core.state.run import Run
from moot.store.records import LedgerRow
from moot.triggers.schedules.fire_rows import waiting_from_fire
from moot.triggers.schedules.records import MOST_GOING, ScheduleLedger, ledger_row
from moot.triggers.schedules.snapshot import ScheduleSnapshot

#: a fire that waits for a run is checked this often (ms), in case the end was missed
GLANCE = 60_000


class LedgerWriter:
    """The ledger of one decision, from one transaction to the next."""

    def __init__(self, snapshot: ScheduleSnapshot, decision: FireDecision, by_hand: bool) -> None:
        self._snapshot, self._decision, self.by_hand = snapshot, decision, by_hand
        self.book = replace(snapshot.book, decided=decision.ledger)
        if any(fire.cause != "manual" and not fire.waited for fire in decision.fires):
            self.book = replace(self.book, observed=snapshot.observed)
        self.revision = snapshot.ledger.revision
        #: the starts that are still to come after the next transaction
        self.remaining: list[Fire] = []

    def stop(self) -> None:
        """Bar all later starts."""
        ledger = block_starts(self._decision.ledger, self._snapshot.seen.now, "paused")
        self._decision = replace(self._decision, ledger=ledger)

    def with_run(self, run: Run) -> LedgerRow:
        now = self._snapshot.seen.now
        going = (*self.book.going, run.run_id)[-MOST_GOING:]
        self.book = replace(self.book, going=going, last_run=run.run_id, last_fire=now)
        return self.ledger(self.book)

    def ledger(self, schedule_ledger: ScheduleLedger) -> LedgerRow:
        snapshot, now = self._snapshot, self._snapshot.seen.now
        decided = self._decision.ledger
        if self.remaining:
            waiting = tuple(waiting_from_fire(fire, now) for fire in self.remaining)
            decided = replace(decided, buffered=(*waiting, *decided.buffered))
        schedule_ledger = replace(schedule_ledger, decided=decided)
        at_once = self.remaining or self._decision.more
        due = now if at_once else _next_look(snapshot, self._decision)
        name = snapshot.schedule_id
        return ledger_row(snapshot.tenant, name, schedule_ledger, self.revision, due)


def _next_look(snapshot: ScheduleSnapshot, decision: FireDecision) -> int | None:
    """Return when to decide again. While only a member bars the schedule, every slot is recorded
    when it passes."""
    now, spec, decided = snapshot.seen.now, snapshot.plan.spec, decision.ledger
    due = decision.wake_at
    own_bar = blocked_period_at(spec, decided, ScheduleFacts(now=now), now)
    if own_bar is not None:
        due = own_bar.until
    elif any(bar.holds(now) for bar in snapshot.seen.bars):
        due = next((slot.due for slot in iterate_due_slots(spec, decided.decided)), None)
    if decided.buffered:
        due = now + GLANCE if due is None else min(due, now + GLANCE)
    return due
