"""Zones, cron expressions, instants and durations as people write them, ready to be evaluated.

Cron itself is read and walked by cronsim; here is what this host takes of it, and how it answers
mistakes.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from msgspec import Struct

from moot.core.errors.schedules import ScheduleRefused
from moot.core.text.nearest import nearest

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

#: later than this there is no calendar (the year 9000 or so)
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

#: the longest gap that a zone ever had is a day
_LONGEST_GAP = 1500
#: no zone shifts its clocks and shifts them back within three days
_SHORTEST_SEASON = 259_200_000

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
#: files beside the zones: with leap seconds, or whatever this machine is set to
_NO_ZONES = ("right", "posix", "posixrules", "localtime", "Factory")

_DURATION = re.compile(
    r"P(?=.)(?:(\d{1,6})W)?(?:(\d{1,6})D)?"
    r"(?:T(?=.)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?",
    re.ASCII,
)


class Timing(Struct, frozen=True, kw_only=True):
    """What is evaluated: one of a cron expression, an interval in milliseconds, and an instant."""

    cron: str | None = None
    every: int | None = None
    at: int | None = None
    zone: str = "UTC"


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo | None:
    if name in ("UTC", "Etc/UTC"):
        return UTC
    if len(name) > 64 or not _ZONE.fullmatch(name) or name.split("/")[0] in _NO_ZONES:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # no such file, a folder, no such key
        return None


def nearest_zone(name: str) -> str | None:
    """By its whole name, or by its city."""
    known = _zones()
    asked = name.casefold().replace(" ", "_")
    meant = nearest(asked, known)
    return known[meant] if meant is not None else None


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    zones = sorted(zone for zone in available_timezones() if "/" in zone)
    cities = {zone.rsplit("/")[-1].casefold(): zone for zone in zones}
    return {**cities, **{zone.casefold(): zone for zone in zones}}


def zone_from(name: str) -> tzinfo:
    """Raises ScheduleRefused with the nearest name."""
    found = zone_of(name)
    if found is None:
        message = f"'{name[:64]}' is not a time zone of the IANA list, like Europe/Berlin."
        raise ScheduleRefused("timezone", message, nearest_zone(name))
    return found


def instant_of(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


def moment_of(instant: int) -> datetime:
    return EPOCH + timedelta(milliseconds=instant)


def offset_at(zone: tzinfo, instant: int) -> int:
    """How much more than UTC the clocks of the zone show, in milliseconds."""
    offset = moment_of(instant).astimezone(zone).utcoffset()
    return offset // MILLISECOND if offset is not None else 0


def change_between(zone: tzinfo, since: int, until: int) -> int | None:
    """The first instant after ``since``, not after ``until``, from which clocks are shifted."""
    if zone is UTC:
        return None
    before = offset_at(zone, since)
    while since < until:
        last = min(since + _SHORTEST_SEASON, until)
        if offset_at(zone, last) != before:
            while last - since > 1:
                middle = (since + last) // 2
                shifted = offset_at(zone, middle) != before
                since, last = (since, middle) if shifted else (middle, last)
            return last
        since = last
    return None


def wall_instant(wall: datetime, zone: tzinfo) -> int:
    """Of a wall time: the first of two, or the first instant after a gap that has it."""
    for _ in range(_LONGEST_GAP):
        moment = wall.replace(tzinfo=zone, fold=0)
        if moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall:
            return instant_of(moment)
        wall = wall.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return instant_of(wall.replace(tzinfo=zone))


def instant_from(text: str, zone: tzinfo, field: str = "at") -> int:
    """An ISO 8601 time; without an offset it is a wall time of the zone."""
    try:
        if len(text) < 11:
            raise ValueError(text)  # a day, not a time
        found = datetime.fromisoformat(text)
        at = instant_of(found) if found.tzinfo is not None else wall_instant(found, zone)
    except (ValueError, OverflowError):
        message = f"'{text[:64]}' is not a time like 2026-03-01T08:30 or 2026-03-01T08:30:00Z."
        raise ScheduleRefused(field, message) from None
    if not 0 <= at < LAST_INSTANT:
        raise ScheduleRefused(field, f"'{text[:64]}' is outside of this host's calendar.")
    return at


def duration_from(text: str, field: str) -> int:
    """Milliseconds of an ISO 8601 duration in weeks, days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        message = f"'{text[:64]}' is not a duration in days or less, like P90D or PT12H."
        raise ScheduleRefused(field, message)
    parts = zip(found.groups(), (604_800, 86_400, 3600, 60, 1), strict=True)
    return sum(int(count or 0) * seconds for count, seconds in parts) * 1000


@lru_cache(maxsize=4096)
def cron_from(text: str, field: str = "cronExpr") -> str:
    """The expression as it is evaluated. Raises ScheduleRefused with the field that is wrong.

    The same hours mean the same however they are spelled: cronsim tells wall times from hours that
    pass by a leading ``*``, so named hours are written out, and all of them are ``*``.
    """
    if text.startswith("@"):
        return _alias(text, field)
    try:
        parsed = CronSim(text, EPOCH)
        next(parsed)
    except CronSimError as error:
        raise ScheduleRefused(field, _trouble(text, str(error))) from None
    except StopIteration:
        raise ScheduleRefused(field, f"'{text}' names no day that ever comes.") from None
    if len(text.split()) != 5:
        raise ScheduleRefused(field, _trouble(text, ""), " ".join(parsed.parts[1:]))
    _, minute, hour, *days = parsed.parts
    if len(parsed.hours) == 24:
        hour = "*"
    else:
        minute, hour = _listed(parsed.minutes), _listed(parsed.hours)
    return " ".join((minute, hour, *days))


def _listed(numbers: set[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))


def _alias(text: str, field: str) -> str:
    if (found := ALIASES.get(text.casefold())) is None:
        message = f"'{text}' is none of {', '.join(ALIASES)}."
        raise ScheduleRefused(field, message, nearest(text.casefold(), ALIASES))
    return found


def _trouble(text: str, said: str) -> str:
    name = said.removeprefix("Bad ")
    if name in FIELDS:
        return f"In '{text}' the {name} cannot be read; it is {FIELDS[name]}."
    return f"'{text}' is not a cron expression of five fields: {' '.join(FIELDS)}."
