"""Schedules: requests about them and answers."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from moot.core.schedules.model import CatchUpPolicy, Condition, OverlapPolicy, ScheduleKind, Seconds
from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import Name, Note, RequestStruct

Instant = Annotated[str, Meta(min_length=1, max_length=64)]
FireId = Annotated[str, Meta(min_length=1, max_length=128)]


class ChangeSchedule(RequestStruct, frozen=True):
    """Changes to a schedule. Fields that are left out stay, null resets a field to its default."""

    workflow_id: Name | UnsetType = UNSET
    kind: ScheduleKind | UnsetType = UNSET
    roster_id: Name | UnsetType | None = UNSET
    cron_expr: Name | UnsetType | None = UNSET
    interval_seconds: Annotated[int, Meta(ge=1, le=31_622_400)] | UnsetType | None = UNSET
    at: Name | UnsetType | None = UNSET
    words: Name | UnsetType | None = UNSET
    timezone: Instant | UnsetType | None = UNSET
    overlap: OverlapPolicy | UnsetType | None = UNSET
    catch_up: CatchUpPolicy | UnsetType | None = UNSET
    catch_up_window_seconds: Seconds | UnsetType | None = UNSET
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] | UnsetType | None = UNSET
    enabled: bool | UnsetType | None = UNSET
    horizon: Name | UnsetType | None = UNSET
    inputs: JsonObject | UnsetType | None = UNSET
    condition: Condition | UnsetType | None = UNSET


class PauseSchedule(RequestStruct, frozen=True):
    """The reason and the end of a pause."""

    reason: Note = ""
    until: Annotated[
        Instant | None,
        Meta(description="A time. Without it the pause lasts until a person resumes."),
    ] = None


class RunSchedule(RequestStruct, frozen=True):
    """``fire`` names a row of missed slots, whose newest one is run."""

    overlap: OverlapPolicy | None = None
    fire: FireId | None = None
    dry_run: bool = False


class SkipSlot(RequestStruct, frozen=True):
    """Skips the next slot, or dismisses a row of missed slots.

    With ``undo`` the last skipped slot is restored.
    """

    fire: FireId | None = None
    undo: bool = False
    dry_run: bool = False


class BackfillSchedule(RequestStruct, frozen=True):
    """A period of the past. Both ends are included."""

    since: Instant = field(name="from")
    to: Instant
    overlap: OverlapPolicy | None = None
    dry_run: bool = False


class Owner(WireStruct, frozen=True):
    """The tenant and workspace that own a thing."""

    tenant_id: str
    workspace_id: str | None = None


class SkippedFire(WireStruct, frozen=True):
    """A time at which no run starts."""

    at: str
    workflow_id: str
    timezone: str


class PauseCost(WireStruct, frozen=True):
    """The number of slots that a pause skips, and the first of them."""

    count: int
    fires: list[SkippedFire]


class SchedulePause(WireStruct, frozen=True):
    """The pause of a schedule."""

    since: str
    by: str
    reason: str
    until: str | None = None


class SchedulePreview(WireStruct, frozen=True):
    """The fields of a schedule and its next times."""

    workflow_id: str
    kind: str
    timezone: str
    overlap: str
    catch_up: str
    catch_up_window_seconds: int
    jitter_seconds: int
    enabled: bool
    horizon: str
    roster_id: str | None = None
    cron_expr: str | None = None
    interval_seconds: int | None = None
    at: str | None = None
    words: str | None = None
    #: the meaning of ``words``
    comes_to: str | None = None
    inputs: JsonObject | None = None
    condition: Condition | None = None
    #: absent when the schedule has a problem, null when no time is left
    next_fire_at: str | UnsetType | None = UNSET
    next_fires: Sequence[str] = ()


class CheckedSchedule(SchedulePreview, frozen=True, kw_only=True):
    """The fields and next times of a schedule that was not created."""

    ok: bool


class ScheduleView(SchedulePreview, frozen=True, kw_only=True):
    """A schedule with its state."""

    schedule_id: str
    subscription_id: str
    owner: Owner
    state: str
    #: the runs that have not ended, and the number of slots that wait for them
    going: list[str]
    waiting: int
    created_at: str
    updated_at: str
    #: why the schedule cannot be evaluated any more
    problem: str | None = None
    #: why the state of its standing agent stops it
    inert: str | None = None
    #: slots that a person skips
    left_out: list[str] = []
    #: in lists: the number of slots that were missed or never started
    missed: int = 0
    #: of a pause with an end
    costs: PauseCost | None = None
    pause: SchedulePause | None = None
    last_run_id: str | None = None
    last_fire_at: str | None = None


class ScheduleDetail(ScheduleView, frozen=True, kw_only=True):
    """A schedule with the number of its fires in each state."""

    fires: dict[str, int]


class ScheduleList(WireStruct, frozen=True):
    """One page of schedules."""

    schedules: list[ScheduleView]
    next_cursor: str | None = None


class SlotResult(WireStruct, frozen=True):
    """The outcome for one slot."""

    act: str
    slot: str
    cause: str
    reason: str | None = None
    run_id: str | None = None


class FireResultList(WireStruct, frozen=True):
    """The outcomes of a manual run or a backfill."""

    schedule_id: str
    dry_run: bool
    fires: list[SlotResult]
    #: the newest run that was started
    run_id: str | None = None


class SkipResult(WireStruct, frozen=True):
    """The slot that was skipped, restored or dismissed."""

    schedule_id: str
    dry_run: bool
    skipped: str | None = None
    restored: str | None = None
    dismissed: str | None = None


class FireView(WireStruct, frozen=True):
    """A fire, or ``count`` skipped slots in a row up to ``until``."""

    fire_id: str
    state: str
    slot: str
    due_at: str
    cause: str
    count: int
    decided_at: str
    until: str | None = None
    reason: str | None = None
    run_id: str | None = None


class FireList(WireStruct, frozen=True):
    """One page of fires."""

    fires: list[FireView]
    next_cursor: str | None = None


class ScheduleChange(WireStruct, frozen=True):
    """One change of a schedule."""

    did: str
    by: str
    at: str
    reason: str | None = None


class ScheduleChangeList(WireStruct, frozen=True):
    """The changes of a schedule."""

    changes: list[ScheduleChange]
