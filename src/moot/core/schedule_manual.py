"""What people do to a schedule by hand. Asking without writing the answer down is the dry run."""

from collections.abc import Collection

from msgspec import Struct

from moot.core.schedule import Decision, Ledger, Overlap, Schedule, Seen


class Upcoming(Struct, frozen=True, kw_only=True, rename="camel"):
    """A slot to come, as far as is known now."""

    slot: int
    due: int
    #: why it will start nothing, if nothing changes
    skipped: str | None = None


def upcoming(spec: Schedule, ledger: Ledger, seen: Seen, count: int = 5) -> list[Upcoming]:
    raise NotImplementedError


def run_now(
    spec: Schedule, ledger: Ledger, seen: Seen, overlap: Overlap | None = None
) -> Decision:
    """A run by hand: of no slot, by the overlap policy or the one that is given.

    A paused schedule can be run by hand, one that is switched off cannot; the skip says why.
    """
    raise NotImplementedError


def skip_next(spec: Schedule, ledger: Ledger, seen: Seen) -> tuple[int, Ledger]:
    """The next slot that is not left out yet, and the ledger that leaves it out.

    Raises ScheduleRefused where no slot is to come.
    """
    raise NotImplementedError


def backfill(
    spec: Schedule,
    ledger: Ledger,
    seen: Seen,
    between: tuple[int, int],
    ran: Collection[int] = (),
    overlap: Overlap = "buffer-all",
) -> Decision:
    """Runs for slots of the past, both ends included, except those in ``ran`` that had one.

    Raises ScheduleRefused for more slots than one backfill may name, and for times to come.
    """
    raise NotImplementedError
