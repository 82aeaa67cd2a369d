"""Errors of schedules: the field, the reason and a suggestion."""

from moot.core.errors import BadRequest, Conflict


class ScheduleRefused(BadRequest):
    """A field of a schedule is not valid."""

    def __init__(self, field: str, message: str, suggestion: str | None = None) -> None:
        hint = f" Did you mean '{suggestion}'?" if suggestion else ""
        details = {"suggestion": suggestion} if suggestion else {}
        super().__init__(message + hint, field=field, **details)


class ScheduleHorizonExceeded(BadRequest):
    code = "schedule_horizon_exceeded"

    def __init__(self, field: str, horizon: str) -> None:
        message = f"'{field}' lies further ahead than {horizon}; choose an earlier time."
        super().__init__(message, field=field, maxFutureHorizon=horizon)


class ScheduleOff(Conflict):
    """The schedule is paused or off; the host does not start it by hand, either."""

    def __init__(self, schedule_id: str, reason: str) -> None:
        way = "resume it" if reason == "paused" else "switch it on, and its member"
        message = f"The schedule is {reason}; {way} first."
        super().__init__(message, scheduleId=schedule_id, reason=reason)


class ScheduleBusy(Conflict):
    passing = True

    def __init__(self, schedule_id: str, run_id: str) -> None:
        super().__init__(
            "An earlier run of this schedule is still going, and its overlap policy lets no other"
            " one begin or wait; wait for it, cancel it, or name another 'overlap'.",
            scheduleId=schedule_id,
            activeRunId=run_id,
        )
