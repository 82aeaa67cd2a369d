"""Times to come, as people type them: ``monday``, ``tomorrow``, ``2d``, an ISO time. Pure."""

from datetime import datetime, timedelta

from moot.cli.quantities import seconds

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: when a day begins for who names only the day
MORNING = 8


def instant(given: str, now: datetime) -> datetime:
    """With its zone. ``now`` says where the person is. Raises ValueError with the way out."""
    word = given.strip().lower()
    if word == "tomorrow":
        return _morning(now + timedelta(days=1))
    names = [day for day in DAYS if len(word) >= 3 and day.startswith(word)]
    if len(names) == 1:
        ahead = (DAYS.index(names[0]) - now.weekday()) % 7 or 7
        return _morning(now + timedelta(days=ahead))
    try:
        found = datetime.fromisoformat(given.strip())
    except ValueError:
        pass
    else:
        return found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)
    try:
        return now + timedelta(seconds=seconds(given))
    except ValueError:
        raise ValueError(
            f"'{given}' is no time to come; write monday, tomorrow, 2h, 3d or 2030-01-31T08:00"
        ) from None


def _morning(day: datetime) -> datetime:
    return day.replace(hour=MORNING, minute=0, second=0, microsecond=0)
