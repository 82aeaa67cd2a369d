"""Decide whether a missed slot is caught up."""

from moot.core.schedules.model import Schedule, SkipReason

#: milliseconds of delay within which a slot is on time; the newest slot has longer
ON_TIME_MS = 5_000
NEWEST_ON_TIME_MS = 60_000
#: missed slots that start after one outage, even if the window holds more
MOST_CAUGHT_UP = 100


def missed_slot_reason(spec: Schedule, late: int, newest: bool) -> SkipReason | None:
    """Return why a missed slot is skipped, or None when it is caught up.

    ``late`` is in milliseconds. ``newest`` marks the newest of all slots that are due.
    """
    if spec.catch_up == "none":
        return "missed"
    if late > spec.catch_up_window_seconds * 1000:
        return "window"
    return None if newest or spec.catch_up == "all-within-window" else "missed"
