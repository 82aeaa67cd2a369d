"""Parse times as people type them: ``monday``, ``friday 17:00``, ``2h``.

Every command that takes a time uses this parser.
"""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.quantities import parse_seconds
from moot.clock import SystemClock

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: days from today
NEAR_DAYS = {"today": 0, "tomorrow": 1, "yesterday": -1}
#: the time of a day that is named alone
MORNING = time(8)
MIDNIGHT = time()
END_OF_DAY = time(23, 59, 59, 999_000)

#: help of an option that takes the end of something
UNTIL_HELP = "In this machine's zone: monday, friday 17:00, 17:00, 2h, 2027-01-04."
TIME_HINT = "write monday, friday 17:00, 17:00, tomorrow, 2h, 3d, 2030-01-31 or 2030-01-31T08:00"
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def parse_time(
    text_given: str, now: datetime, zone: tzinfo | None, past: bool = False, daily: time = MORNING
) -> datetime:
    """Return the time with its zone. Raise ValueError with a hint.

    Words are local times of ``zone``, or of this machine if that is None. They mean the next such
    time, or with ``past`` the last one. ``daily`` is the time of a day that is named alone.
    """
    text = " ".join(text_given.split())
    local_now = now.astimezone(zone).replace(tzinfo=None)
    day, _, clock = text.partition(" ") if " " in text else (text, "", "")
    if _CLOCK.fullmatch(text):
        return _with_zone(_nearest_clock_time(text, local_now, past), zone)
    named_day, time_of_day = _parse_day(day, local_now, past), _parse_clock(clock, daily)
    if named_day is not None and time_of_day is not None:
        return _with_zone(datetime.combine(named_day, time_of_day), zone)
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else _with_zone(moment, zone)
    except ValueError:
        pass
    try:
        span = timedelta(seconds=parse_seconds(text))
        return (now - span if past else now + span).astimezone(zone)
    except (ValueError, OverflowError):
        raise ValueError(f"'{text_given}' is no time; {TIME_HINT}") from None


def _nearest_clock_time(text: str, local_now: datetime, past: bool) -> datetime:
    """Return the next time that clocks show this, or with ``past`` the last one."""
    moment = datetime.combine(local_now.date(), _parse_clock(text, MORNING) or MORNING)
    if past:
        return moment if moment <= local_now else moment - timedelta(days=1)
    return moment if moment > local_now else moment + timedelta(days=1)


def _parse_clock(text: str, daily: time) -> time | None:
    if not text:
        return daily
    match = _CLOCK.fullmatch(text)
    return None if match is None else time(int(match[1]), int(match[2]))


def _parse_day(text: str, local_now: datetime, past: bool) -> date | None:
    """Return the day that the text names. A weekday never means today."""
    word, today = text.lower(), local_now.date()
    if word in NEAR_DAYS:
        return today + timedelta(days=NEAR_DAYS[word])
    names = [day for day in WEEKDAYS if len(word) >= 3 and day.startswith(word)]
    if len(names) == 1:
        ahead = (WEEKDAYS.index(names[0]) - today.weekday()) % 7
        return today + timedelta(days=ahead - 7 if past else ahead or 7)
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _with_zone(local: datetime, zone: tzinfo | None) -> datetime:
    return local.astimezone() if zone is None else local.replace(tzinfo=zone)


def parse_time_option(
    option: str, text: str, zone: tzinfo | None, past: bool = False, daily: time = MORNING
) -> str:
    """Return the typed time in the form that the server takes. Raise CommandError."""
    now = datetime.fromtimestamp(SystemClock().millis() / 1000, UTC)
    try:
        return parse_time(text, now, zone, past, daily).isoformat()
    except (ValueError, OverflowError) as problem:
        raise CommandError(f"{option}: {problem}.", ExitCode.USAGE) from None
