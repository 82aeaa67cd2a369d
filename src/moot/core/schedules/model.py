"""Schedules, their ledgers, and the decisions about their slots.

A *slot* is an instant that a schedule names; it follows from the spec alone. Each slot is decided
once: a run starts for it, or it is skipped for a reason. Instants are milliseconds since the epoch.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

ScheduleKind = Literal["cron", "interval", "once", "words"]
OverlapPolicy = Literal["skip", "buffer-one", "buffer-all", "cancel-other", "allow"]
CatchUpPolicy = Literal["one", "none", "all-within-window"]

#: why a slot is skipped
SkipReason = Literal[
    "disabled",  # the schedule or its member is switched off
    "paused",  # the schedule or its member is paused
    "asked",  # a person asked for this slot to be left out
    "window",  # missed, and longer ago than the catch-up window
    "missed",  # missed, and the catch-up policy starts another slot or none
    "no-work",  # its condition says there is nothing to do
    "overlap",  # an earlier run is still going
]

#: what caused a fire
FireCause = Literal["slot", "catch-up", "manual", "backfill"]

DEFAULT_HORIZON = "P400D"

#: slots that one call decides; the caller calls again for more
MOST_DECIDED = 1000
#: slots that may wait for a run to end
MOST_BUFFERED = 100
#: slots one backfill may name
MOST_BACKFILLED = 100
#: slots a person may ask to leave out
MOST_SKIPS = 100
#: blocked periods that a ledger keeps; the oldest two are merged
MOST_BLOCKED_PERIODS = 20

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1, max_length=256)]
Seconds = Annotated[int, Meta(ge=0, le=31_622_400)]


class Condition(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """The condition for a slot to start a run: exactly one of an expression and a queue."""

    #: a CEL expression; the slot starts a run only when it is true
    expression: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    #: the queue that must hold an item
    queue: Name | None = None
    #: start when the expression's value, whatever it is, differs from the one at the slot before
    on_change: bool = False


class ScheduleDraft(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """A schedule as a person writes it."""

    workflow_id: Name
    kind: ScheduleKind
    roster_id: Name | None = None
    #: exactly the field that the kind names
    cron_expr: Text | None = None
    interval_seconds: Annotated[int, Meta(ge=1, le=31_622_400)] | None = None
    at: Text | None = None
    words: Text | None = None
    #: an IANA name; words may end with one instead
    timezone: Annotated[str, Meta(min_length=1, max_length=64)] = "UTC"
    overlap: OverlapPolicy = "skip"
    catch_up: CatchUpPolicy = "one"
    catch_up_window_seconds: Seconds = 86_400
    #: the slot is due up to this much later, always by the same amount, and before the next slot
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0
    enabled: bool = True
    #: an ISO 8601 duration: how far ahead a one-shot may lie when it is written
    horizon: Text = DEFAULT_HORIZON
    inputs: dict[str, Any] | None = None
    condition: Condition | None = None


class Schedule(ScheduleDraft, frozen=True, kw_only=True):
    """A stored schedule."""

    schedule_id: Name
    #: as ``events.iso`` writes it; intervals count from here
    created_at: str


class BlockedPeriod(Struct, frozen=True, rename="camel"):
    """A period without starts and catch-ups, from ``since`` until before ``until``."""

    since: int
    until: int | None
    reason: Literal["disabled", "paused"]

    def holds(self, at: int) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


class BufferedSlot(Struct, frozen=True, rename="camel"):
    """A slot that waits for a run to end."""

    slot: int
    due: int
    cause: FireCause
    #: when it began to wait
    since: int


class SlotLedger(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The state of a schedule beside its spec, written with each decision."""

    #: every slot up to and including this instant is decided
    decided: int
    #: oldest first
    buffered: tuple[BufferedSlot, ...] = ()
    #: future slots that a person asked to skip
    skips: tuple[int, ...] = ()
    #: blocked periods that an undecided slot may fall into
    bars: tuple[BlockedPeriod, ...] = ()
    #: catch-up starts of the current outage
    caught_up: int = 0


class ScheduleFacts(Struct, frozen=True, kw_only=True):
    """The facts that the store reads in the transaction of a decision."""

    now: int
    #: ids of this schedule's active runs
    going: tuple[str, ...] = ()
    #: the value of the condition; true when there is none
    work: bool = True
    #: periods when the schedule's member is paused or off; a missing member is off for ever
    bars: tuple[BlockedPeriod, ...] = ()


class Fire(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The decision about one slot, or about ``count`` skipped slots in a row up to ``until``.

    A buffered slot gets a second fire when it starts. Every other fire is final.
    """

    act: Literal["start", "buffer", "skip"]
    slot: int
    #: the slot and its jitter
    due: int
    cause: FireCause = "slot"
    #: always set for a skip
    reason: SkipReason | None = None
    #: runs to cancel before this start
    cancels: tuple[str, ...] = ()
    count: int = 1
    until: int | None = None
    #: whether the slot was buffered before
    waited: bool = False

    def key(self, schedule_id: str) -> str:
        """Return the key that one run may claim. A manual run never claims the key of a slot."""
        kind = "now" if self.cause == "manual" else "slot"
        return f"{schedule_id}:{kind}:{self.slot}"


class FireDecision(Struct, frozen=True, kw_only=True):
    """The result of a decision, written in one transaction."""

    fires: tuple[Fire, ...]
    ledger: SlotLedger
    #: when to decide again, unless a run ends before
    wake_at: int | None = None
    #: whether more slots are due now
    more: bool = False
