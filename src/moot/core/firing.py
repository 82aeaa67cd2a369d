"""What becomes of the slots of a schedule that have fallen due.

``decide_fires`` is asked in the transaction that writes what it says, whenever ``wake_at`` has come, a
run of the schedule has ended, or the schedule is about to be changed, paused, resumed or switched. It
says the same for the same spec, ledger and sight of the world, so that asking again after a crash
decides nothing twice.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from moot.core.calendars import duration_from
from moot.core.events import millis
from moot.core.schedule import (
    GRACE,
    MOST_BARS,
    MOST_BUFFERED,
    MOST_CAUGHT_UP,
    MOST_DECIDED,
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
from moot.core.slots import Tick, ticks


def opened(spec: Schedule, now: int) -> Ledger:
    """The ledger of a new schedule: nothing before now is a slot of it."""
    ledger = Ledger(decided=now)
    return ledger if spec.enabled else barred(ledger, now, "disabled")


def retimed(ledger: Ledger, now: int) -> Ledger:
    """After a change of its times: what the new ones name before now was never a slot of it."""
    return replace(ledger, decided=max(ledger.decided, now), caught_up=0)


def barred(ledger: Ledger, now: int, reason: Reason, until: int | None = None) -> Ledger:
    """Paused or switched off from now on, for good or until then."""
    raise NotImplementedError


def unbarred(ledger: Ledger, now: int, reason: Reason) -> Ledger:
    """Resumed or switched on. What fell due in between stays skipped."""
    raise NotImplementedError


def decide_fires(spec: Schedule, ledger: Ledger, seen: Seen) -> Decision:
    """What becomes of every slot that is due, of those that wait, and when to ask again."""
    raise NotImplementedError


def joined(earlier: Fire, later: Fire) -> Fire | None:
    """One fire that says the same as two skips in a row, if there is one."""
    raise NotImplementedError
