"""What is answered about schedules."""

from msgspec import field

from moot.wire.runs import Answer, Data


class ScheduleTimes(Answer, frozen=True):
    """What a schedule says, and when it starts something next."""

    workflow_id: str
    kind: str = ""
    roster_id: str | None = None
    cron_expr: str | None = None
    interval_seconds: int | None = None
    at: str | None = None
    words: str | None = None
    #: what the words mean
    comes_to: str | None = None
    timezone: str = ""
    overlap: str = ""
    catch_up: str = ""
    catch_up_window_seconds: int = 0
    jitter_seconds: int = 0
    enabled: bool = True
    horizon: str = ""
    inputs: Data | None = None
    condition: Data | None = None
    next_fire_at: str | None = None
    next_fires: list[str] = []


class ScheduleView(ScheduleTimes, frozen=True, kw_only=True):
    schedule_id: str
    subscription_id: str = ""
    owner: Data = {}
    state: str = ""
    #: why it cannot be decided any more
    problem: str | None = None
    #: why it starts nothing, if that is its member's doing
    inert: str | None = None
    going: list[str] = []
    waiting: int = 0
    left_out: list[str] = []
    #: in lists: times that wait for somebody to look, missed or never begun
    missed: int = 0
    #: of a pause with an end: how many times it costs, and the first of them
    costs: Data | None = None
    pause: Data | None = None
    last_run_id: str | None = None
    last_fire_at: str | None = None
    created_at: str = ""
    updated_at: str = ""
    #: state of a fire -> how many there are; only where one schedule was asked for
    fires: dict[str, int] = {}


class Schedules(Answer, frozen=True):
    schedules: list[ScheduleView]
    next_cursor: str | None = None


class FireDone(Answer, frozen=True):
    act: str
    slot: str
    cause: str
    reason: str | None = None
    run_id: str | None = None


class FiresDone(Answer, frozen=True):
    schedule_id: str
    dry_run: bool = False
    fires: list[FireDone] = []
    #: the newest run that was started
    run_id: str | None = None


class Skipped(Answer, frozen=True):
    schedule_id: str
    dry_run: bool = False
    skipped: str | None = None
    restored: str | None = None
    dismissed: str | None = None


class FireView(Answer, frozen=True):
    """A fire, or ``count`` skipped ones in a row up to ``until``."""

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


class Fires(Answer, frozen=True):
    fires: list[FireView]
    next_cursor: str | None = None


class ScheduleChange(Answer, frozen=True):
    did: str
    by: str = ""
    at: str = ""
    reason: str | None = None


class ScheduleChanges(Answer, frozen=True):
    changes: list[ScheduleChange] = field(default_factory=list)
