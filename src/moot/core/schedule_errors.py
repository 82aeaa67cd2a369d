"""Refusals of schedules: which field, why, and what to write instead."""

from moot.core.errors import BadRequest


class ScheduleRefused(BadRequest):
    """A field of a schedule cannot be meant as it stands."""

    def __init__(self, field: str, message: str, suggestion: str | None = None) -> None:
        hint = f" Did you mean '{suggestion}'?" if suggestion else ""
        details = {"suggestion": suggestion} if suggestion else {}
        super().__init__(message + hint, field=field, **details)


class ScheduleHorizonExceeded(BadRequest):
    code = "schedule_horizon_exceeded"

    def __init__(self, field: str, horizon: str) -> None:
        super().__init__(
            f"'{field}' lies further ahead than {horizon}, as far as this host looks; choose an"
            " earlier time.",
            field=field,
            maxFutureHorizon=horizon,
        )
