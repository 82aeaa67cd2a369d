"""Times as people type them: ``monday``, ``friday 17:00``, ``17:00``, ``2h``, ``2030-01-31``, an
ISO time. One reader for every command that takes a time."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.quantities import seconds

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: days by their distance
NEAR = {"today": 0, "tomorrow": 1, "yesterday": -1}
#: when a day begins for who names only the day
MORNING = time(8)
MIDNIGHT = time()
LAST = time(23, 59, 59, 999_000)

#: help of an option that takes the end of something
UNTIL = "In this machine's zone: monday, friday 17:00, 17:00, 2h, 2027-01-04."
WAYS = "write monday, friday 17:00, 17:00, tomorrow, 2h, 3d, 2030-01-31 or 2030-01-31T08:00"
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def instant(
    given: str, now: datetime, zone: tzinfo | None, past: bool = False, daily: time = MORNING
) -> datetime:
    """With its zone. Words are on the wall of ``zone``, or of this machine's where that is None;
    they mean the next such time, or the last one of the ``past``. ``daily`` is the time of a day
    that is named alone. Raises ValueError with the way out."""
    text = " ".join(given.split())
    wall = now.astimezone(zone).replace(tzinfo=None)
    day, _, clock = text.partition(" ") if " " in text else (text, "", "")
    if _CLOCK.fullmatch(text):
        return _on_wall(_at_clock(text, wall, past), zone)
    named, at = _day(day, wall, past), _clock(clock, daily)
    if named is not None and at is not None:
        return _on_wall(datetime.combine(named, at), zone)
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is not None else _on_wall(found, zone)
    except ValueError:
        pass
    try:
        ahead = timedelta(seconds=seconds(text))
        return (now - ahead if past else now + ahead).astimezone(zone)
    except (ValueError, OverflowError):
        raise ValueError(f"'{given}' is no time; {WAYS}") from None


def _at_clock(text: str, wall: datetime, past: bool) -> datetime:
    """The next time that clocks show this, or the last one."""
    found = datetime.combine(wall.date(), _clock(text, MORNING) or MORNING)
    if past:
        return found if found <= wall else found - timedelta(days=1)
    return found if found > wall else found + timedelta(days=1)


def _clock(text: str, daily: time) -> time | None:
    if not text:
        return daily
    found = _CLOCK.fullmatch(text)
    return None if found is None else time(int(found[1]), int(found[2]))


def _day(text: str, wall: datetime, past: bool) -> date | None:
    """A day of the week is never today: who means that says so."""
    word, today = text.lower(), wall.date()
    if word in NEAR:
        return today + timedelta(days=NEAR[word])
    names = [day for day in DAYS if len(word) >= 3 and day.startswith(word)]
    if len(names) == 1:
        ahead = (DAYS.index(names[0]) - today.weekday()) % 7
        return today + timedelta(days=ahead - 7 if past else ahead or 7)
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _on_wall(wall: datetime, zone: tzinfo | None) -> datetime:
    return wall.astimezone() if zone is None else wall.replace(tzinfo=zone)


def typed(
    option: str, given: str, zone: tzinfo | None, past: bool = False, daily: time = MORNING
) -> str:
    """What was typed as the server takes it. Raises Trouble."""
    from moot.clock import SystemClock

    now = datetime.fromtimestamp(SystemClock().millis() / 1000, UTC)
    try:
        return instant(given, now, zone, past, daily).isoformat()
    except (ValueError, OverflowError) as problem:
        raise Trouble(f"{option}: {problem}.", Exit.USAGE) from None
