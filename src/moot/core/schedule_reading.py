"""Schedules as people write them, checked before anything is kept. Refusals name field and way out."""

from typing import Any

from moot.core.schedule import HORIZON, Schedule, ScheduleDraft


def read_schedule(
    body: bytes | dict[str, Any], schedule_id: str, now: int, horizon: str = HORIZON
) -> Schedule:
    """A new schedule. ``horizon`` is the host's; a schedule may have a shorter one.

    Raises ScheduleRefused and ScheduleHorizonExceeded.
    """
    raise NotImplementedError


def edit_schedule(
    spec: Schedule, patch: bytes | dict[str, Any], now: int, horizon: str = HORIZON
) -> Schedule:
    """The schedule with what the patch says; null takes a field back to its default.

    A patch that names another kind of times replaces those the schedule had.
    """
    raise NotImplementedError


def retimes(before: ScheduleDraft, after: ScheduleDraft) -> bool:
    """Whether the slots of one are not those of the other; then the ledger is ``retimed``."""
    raise NotImplementedError
