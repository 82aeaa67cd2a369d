"""Answers about schedules."""

from msgspec import field

from moot.wire.json import JsonObject, WireStruct


class SchedulePreview(WireStruct, frozen=True):
    """The fields of a schedule and its next times."""

    workflow_id: str
    kind: str = ""
    roster_id: str | None = None
    cron_expr: str | None = None
    interval_seconds: int | None = None
    at: str | None = None
    words: str | None = None
    #: the meaning of ``words``
    comes_to: str | None = None
    timezone: str = ""
    overlap: str = ""
    catch_up: str = ""
    catch_up_window_seconds: int = 0
    jitter_seconds: int = 0
    enabled: bool = True
    horizon: str = ""
    inputs: JsonObject | None = None
    condition: JsonObject | None = None
    next_fire_at: str | None = None
    next_fires: list[str] = []


class ScheduleView(SchedulePreview, frozen=True, kw_only=True):
    """A schedule with its state."""

    schedule_id: str
    subscription_id: str = ""
    owner: JsonObject = {}
    state: str = ""
    #: why the schedule cannot be evaluated any more
    problem: str | None = None
    #: why the state of its standing agent stops it
    inert: str | None = None
    going: list[str] = []
    waiting: int = 0
    left_out: list[str] = []
    #: in lists: the number of slots that were missed or never started
    missed: int = 0
    #: of a pause with an end: the number of slots it skips, and the first of them
    costs: JsonObject | None = None
    pause: JsonObject | None = None
    last_run_id: str | None = None
    last_fire_at: str | None = None
    created_at: str = ""
    updated_at: str = ""
    #: state of a fire -> number of fires; only if one schedule was requested
    fires: dict[str, int] = {}


class ScheduleList(WireStruct, frozen=True):
    """One page of schedules."""

    schedules: list[ScheduleView]
    next_cursor: str | None = None


class FireResult(WireStruct, frozen=True):
    """The outcome for one slot."""

    act: str
    slot: str
    cause: str
    reason: str | None = None
    run_id: str | None = None


class FireResultList(WireStruct, frozen=True):
    """The outcomes of a manual run or a backfill."""

    schedule_id: str
    dry_run: bool = False
    fires: list[FireResult] = []
    #: the newest run that was started
    run_id: str | None = None


class SkipResult(WireStruct, frozen=True):
    """The slot that was skipped, restored or dismissed."""

    schedule_id: str
    dry_run: bool = False
    skipped: str | None = None
    restored: str | None = None
    dismissed: str | None = None


class FireView(WireStruct, frozen=True):
    """A fire, or ``count`` skipped slots in a row up to ``until``."""

    fire_id: str
    state: str
    slot: str
    due_at: str = ""
    cause: str = ""
    count: int = 1
    until: str | None = None
    reason: str | None = None
    run_id: str | None = None
    decided_at: str = ""


class FireList(WireStruct, frozen=True):
    """One page of fires."""

    fires: list[FireView]
    next_cursor: str | None = None


class ScheduleChange(WireStruct, frozen=True):
    """One change of a schedule."""

    did: str
    by: str = ""
    at: str = ""
    reason: str | None = None


class ScheduleChangeList(WireStruct, frozen=True):
    """The changes of a schedule."""

    changes: list[ScheduleChange] = field(default_factory=list)
