"""What a schedule is, what is kept of it, and what can be decided about its times.

A *slot* is an instant the calendar names; a schedule's slots follow from its spec alone. Each is
decided once: a run is started for it, or it is skipped for a reason. Instants are milliseconds
since the epoch.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Kind = Literal["cron", "interval", "once", "words"]
Overlap = Literal["skip", "buffer-one", "buffer-all", "cancel-other", "allow"]
CatchUp = Literal["one", "none", "all-within-window"]

#: why a slot starts nothing
Reason = Literal[
    "disabled",  # the schedule or its member is switched off
    "paused",  # the schedule or its member is paused
    "asked",  # a person asked for this slot to be left out
    "window",  # missed, and longer ago than the catch-up window
    "missed",  # missed, and the catch-up policy starts another slot or none
    "no-work",  # its condition says there is nothing to do
    "overlap",  # an earlier run is still going
]

#: what brought a fire about
Cause = Literal["slot", "catch-up", "manual", "backfill"]

HORIZON = "P400D"

#: a slot decided this much later than it was due is still on time; the newest one has longer
PROMPT = 5_000
GRACE = 60_000
#: slots that one call decides; whoever asks goes on with the next call
MOST_DECIDED = 1000
#: missed slots that are started after one outage, whatever the window holds
MOST_CAUGHT_UP = 100
#: slots that wait for a run to end
MOST_BUFFERED = 100
#: slots one backfill may name
MOST_BACKFILLED = 100
#: slots a person may ask to leave out
MOST_SKIPS = 100
#: times without starts that are remembered; the oldest two become one
MOST_BARS = 20

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1, max_length=256)]
Seconds = Annotated[int, Meta(ge=0, le=31_622_400)]


class Condition(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """When there is no work: exactly one of the two. It is looked at before a slot starts a run."""

    #: in CEL; anything but true means that there is nothing to do
    expression: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    #: the queue that must hold an item
    queue: Name | None = None
    #: of an expression, of whatever value: there is work when it is another than at the slot before
    on_change: bool = False


class ScheduleDraft(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True,
    omit_defaults=True,
):  # fmt: skip
    """What a person says about a schedule. ``schedule_reading`` checks it."""

    workflow_id: Name
    kind: Kind
    roster_id: Name | None = None
    #: exactly the one that the kind names
    cron_expr: Text | None = None
    interval_seconds: Annotated[int, Meta(ge=1, le=31_622_400)] | None = None
    at: Text | None = None
    words: Text | None = None
    #: an IANA name; words may end with one instead
    timezone: Annotated[str, Meta(min_length=1, max_length=64)] = "UTC"
    overlap: Overlap = "skip"
    catch_up: CatchUp = "one"
    catch_up_window_seconds: Seconds = 86_400
    #: up to so many seconds later than the slot, the same for the same slot, before the next one
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0
    enabled: bool = True
    #: an ISO 8601 duration: how far ahead of its writing a one-shot may lie
    horizon: Text = HORIZON
    inputs: dict[str, Any] | None = None
    condition: Condition | None = None


class Schedule(ScheduleDraft, frozen=True, kw_only=True):
    """A schedule as it is kept."""

    schedule_id: Name
    #: as ``events.iso`` writes it; intervals count from here
    created_at: str


class Bar(Struct, frozen=True, rename="camel"):
    """A time in which nothing starts and nothing is caught up: from ``since``, before ``until``."""

    since: int
    until: int | None
    reason: Literal["disabled", "paused"]

    def holds(self, at: int) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


class Waiting(Struct, frozen=True, rename="camel"):
    """A slot that waits for a run to end."""

    slot: int
    due: int
    cause: Cause
    #: when it began to wait
    since: int


class Ledger(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is kept of a schedule besides its spec; small, and written with what it decided."""

    #: every slot up to and including this instant is decided
    decided: int
    #: oldest first
    buffered: tuple[Waiting, ...] = ()
    #: slots to come that a person asked to leave out
    skips: tuple[int, ...] = ()
    #: pauses and times switched off that a slot may still fall into
    bars: tuple[Bar, ...] = ()
    #: starts for missed slots of the outage that is being worked off
    caught_up: int = 0


class Seen(Struct, frozen=True, kw_only=True):
    """What the store says in the transaction in which it is decided."""

    now: int
    #: ids of the runs of this schedule that have not ended
    going: tuple[str, ...] = ()
    #: what the condition came to; true where there is none
    work: bool = True
    #: times in which the schedule's member is paused or switched off; a missing one is off for ever
    bars: tuple[Bar, ...] = ()


class Fire(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What becomes of a slot, or of ``count`` slots in a row up to ``until`` that are all skipped.

    A buffered slot gets a second fire when its turn has come; every other one is final.
    """

    act: Literal["start", "buffer", "skip"]
    slot: int
    #: the slot and its jitter
    due: int
    cause: Cause = "slot"
    #: of a skip, always there
    reason: Reason | None = None
    #: of a start: these runs are cancelled first
    cancels: tuple[str, ...] = ()
    count: int = 1
    until: int | None = None
    #: it was buffered before
    waited: bool = False

    def key(self, schedule_id: str) -> str:
        """What may be claimed once. A run by hand has no slot, and so never takes one's place."""
        kind = "now" if self.cause == "manual" else "slot"
        return f"{schedule_id}:{kind}:{self.slot}"


class Decision(Struct, frozen=True, kw_only=True):
    """All of it is written in one transaction, or none."""

    fires: tuple[Fire, ...]
    ledger: Ledger
    #: when to ask again if nothing happens before; a run's end is such a thing
    wake_at: int | None = None
    #: there is more to decide now
    more: bool = False
