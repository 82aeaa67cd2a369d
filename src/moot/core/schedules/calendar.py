"""Parse time zones, cron expressions, instants and durations.

Cron expressions are evaluated by cronsim. This module restricts what the host accepts of them.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from cronsim import CronSim, CronSimError
from msgspec import Struct

from moot.core.errors.schedules import ScheduleRefused
from moot.core.text.nearest import nearest_word
from moot.core.text.zones import find_zone, nearest_zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

#: the last instant of the calendar, about the year 9000
LAST_INSTANT = 221_845_392_000_000

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW, and must exist in one of the months",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, also 1#2 or 5L",
}

#: minutes of the longest gap in any zone: a day and some
_LONGEST_GAP = 1500
#: milliseconds of three days; no zone changes its clocks twice within them
_SHORTEST_SEASON = 259_200_000


_DURATION = re.compile(
    r"P(?=.)(?:(\d{1,6})W)?(?:(\d{1,6})D)?"
    r"(?:T(?=.)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?",
    re.ASCII,
)


class Timing(Struct, frozen=True, kw_only=True):
    """The times of a schedule: a cron expression, an interval in milliseconds, or an instant."""

    cron: str | None = None
    every: int | None = None
    at: int | None = None
    zone: str = "UTC"


def require_zone(name: str) -> tzinfo:
    """Return the zone, or raise ScheduleRefused with the nearest name."""
    zone = find_zone(name)
    if zone is None:
        message = f"'{name[:64]}' is not a time zone of the IANA list, like Europe/Berlin."
        raise ScheduleRefused("timezone", message, nearest_zone(name))
    return zone


def instant_from_datetime(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


def datetime_from_instant(instant: int) -> datetime:
    return EPOCH + timedelta(milliseconds=instant)


def utc_offset_at(zone: tzinfo, instant: int) -> int:
    """Return the zone's offset from UTC in milliseconds."""
    offset = datetime_from_instant(instant).astimezone(zone).utcoffset()
    return offset // MILLISECOND if offset is not None else 0


def next_clock_change(zone: tzinfo, since: int, until: int) -> int | None:
    """Return the first clock change after ``since`` and not after ``until``."""
    if zone is UTC:
        return None
    before = utc_offset_at(zone, since)
    while since < until:
        last = min(since + _SHORTEST_SEASON, until)
        if utc_offset_at(zone, last) != before:
            while last - since > 1:
                middle = (since + last) // 2
                shifted = utc_offset_at(zone, middle) != before
                since, last = (since, middle) if shifted else (middle, last)
            return last
        since = last
    return None


def instant_from_wall_time(wall: datetime, zone: tzinfo) -> int:
    """Return the instant of a wall time: the first of two, or the first one after a gap."""
    for _ in range(_LONGEST_GAP):
        moment = wall.replace(tzinfo=zone, fold=0)
        if moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall:
            return instant_from_datetime(moment)
        wall = wall.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return instant_from_datetime(wall.replace(tzinfo=zone))


def parse_instant(text: str, zone: tzinfo, field: str = "at") -> int:
    """Parse an ISO 8601 time. Without an offset it is a wall time of the zone."""
    try:
        if len(text) < 11:
            raise ValueError(text)  # a date without a time
        time = datetime.fromisoformat(text)
        zoned = time.tzinfo is not None
        at = instant_from_datetime(time) if zoned else instant_from_wall_time(time, zone)
    except (ValueError, OverflowError):
        message = f"'{text[:64]}' is not a time like 2026-03-01T08:30 or 2026-03-01T08:30:00Z."
        raise ScheduleRefused(field, message) from None
    if not 0 <= at < LAST_INSTANT:
        raise ScheduleRefused(field, f"'{text[:64]}' is outside of this host's calendar.")
    return at


def parse_duration(text: str, field: str) -> int:
    """Return the milliseconds of an ISO 8601 duration of weeks to seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        message = f"'{text[:64]}' is not a duration in days or less, like P90D or PT12H."
        raise ScheduleRefused(field, message)
    parts = zip(match.groups(), (604_800, 86_400, 3600, 60, 1), strict=True)
    return sum(int(count or 0) * seconds for count, seconds in parts) * 1000


@lru_cache(maxsize=4096)
def parse_cron(text: str, field: str = "cronExpr") -> str:
    """Return the expression to evaluate. Raise ScheduleRefused with the wrong field.

    The spelling of the hours must not matter. Cronsim reads a leading ``*`` as passing hours and
    anything else as wall times, so named hours are written out and all 24 hours become ``*``.
    """
    if text.startswith("@"):
        return _expand_alias(text, field)
    try:
        parsed = CronSim(text, EPOCH)
        next(parsed)
    except CronSimError as error:
        raise ScheduleRefused(field, _cron_mistake(text, str(error))) from None
    except StopIteration:
        raise ScheduleRefused(field, f"'{text}' names no day that ever comes.") from None
    if len(text.split()) != 5:
        raise ScheduleRefused(field, _cron_mistake(text, ""), " ".join(parsed.parts[1:]))
    _, minute, hour, *days = parsed.parts
    if len(parsed.hours) == 24:
        hour = "*"
    else:
        minute, hour = _join_numbers(parsed.minutes), _join_numbers(parsed.hours)
    return " ".join((minute, hour, *days))


def _join_numbers(numbers: set[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))


def _expand_alias(text: str, field: str) -> str:
    if (expression := ALIASES.get(text.casefold())) is None:
        message = f"'{text}' is none of {', '.join(ALIASES)}."
        raise ScheduleRefused(field, message, nearest_word(text.casefold(), ALIASES))
    return expression


def _cron_mistake(text: str, error: str) -> str:
    field = error.removeprefix("Bad ")
    if field in FIELDS:
        return f"In '{text}' the {field} cannot be read; it is {FIELDS[field]}."
    return f"'{text}' is not a cron expression of five fields: {' '.join(FIELDS)}."
