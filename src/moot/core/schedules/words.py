"""Calendar words: a small grammar that comes to a cron expression or an interval.

    hourly
    daily | weekly | monthly [at TIME …]      "every day" and so on mean the same
    every N seconds | minutes | hours | days | weeks
    [every] DAY … [at] TIME …                 DAY: monday … sunday, mon-fri, weekday, weekend
    first | 15th | last of month [at] TIME …  also: first monday, last weekday of month

Any of them may end with a time zone. Commas and "and" separate what is listed; case is all one.
"""

import re

from moot.core.errors.schedules import ScheduleRefused
from moot.core.schedules.calendar import Timing, cron_from, nearest_zone, zone_from, zone_of
from moot.core.text.nearest import nearest

EXAMPLES = (
    "hourly",
    "daily at 07:15",
    "weekday 08:30 Europe/Berlin",
    "monday, thursday 09:00",
    "every 15 minutes",
    "first of month 06:00",
    "first monday of month 10:00",
)
_LIKE = ", ".join(f"'{example}'" for example in EXAMPLES)

_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
DAYS = {
    **{day: number for number, day in enumerate(_DAYS)},
    **{day[:3]: number for number, day in enumerate(_DAYS)},
    "tues": 2,
    "thur": 4,
    "thurs": 4,
}
GROUPS = {"weekday": "1-5", "weekend": "0,6"}
PERIODS = {"daily": "* * *", "weekly": "* * 1", "monthly": "1 * *"}
EVERY = {"hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly"}
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
TIMES = {"noon": (12, 0), "midnight": (0, 0)}
FILLERS = ("and", "at", "on", "of", "the")

#: words that may end with an s
_COUNTED = (*_DAYS, *GROUPS, *UNITS)
VOCABULARY = frozenset(
    (
        *("hourly", "every", "last", "month"),
        *(*PERIODS, *DAYS, *GROUPS, *UNITS, *ORDINALS, *TIMES, *FILLERS),
    )
)

#: the longest interval, a leap year
_LONGEST = 31_622_400

_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?(am|pm)?", re.ASCII)
_NUMBER = re.compile(r"(\d{1,8})(st|nd|rd|th)?", re.ASCII)
_RANGE = re.compile(r"([a-z]+)[-\u2013]([a-z]+)")

Clock = tuple[int, int]


def timing_from_words(text: str, zone: str) -> Timing:
    """Raises ScheduleRefused with the nearest words that are understood."""
    words = [word for word in re.split(r"[\s,]+", text) if word]
    if words and ("/" in words[-1] or words[-1].casefold() in ("utc", "gmt")):
        zone = _zone_of(words.pop(), zone, text)
    zone_from(zone)
    plain = [_plain(word, text) for word in words]
    plain = [word for word in plain if word not in FILLERS]
    clocks = [clock for word in plain if (clock := _clock(word, text)) is not None]
    head = [word for word in plain if _clock(word, text) is None]
    if (every := _interval(head, clocks, text)) is not None:
        return Timing(every=every, zone=zone)
    if head in (["hourly"], ["every", "hour"]) and not clocks:
        return Timing(cron="0 * * * *", zone=zone)
    cron = _on_days(_days_of(head, text), head, clocks, " ".join(words))
    return Timing(cron=cron_from(cron, "words"), zone=zone)


def _zone_of(word: str, zone: str, text: str) -> str:
    named = "UTC" if word.casefold() in ("utc", "gmt") else word
    if zone_of(named) is None:
        meant = nearest_zone(named)
        suggestion = text.replace(word, meant) if meant else None
        raise ScheduleRefused("words", f"'{word[:64]}' is not a time zone.", suggestion)
    if zone not in ("UTC", named):
        message = f"The words say {named} and 'timezone' says {zone}; leave one of them out."
        raise ScheduleRefused("timezone", message)
    return named


def _plain(word: str, text: str) -> str:
    """A word of the grammar. Anything else is refused with the sentence that was meant."""
    plain = word.casefold()
    if plain.endswith("s") and plain[:-1] in _COUNTED:
        plain = plain[:-1]
    if plain in VOCABULARY or _TIME.fullmatch(plain) or _NUMBER.fullmatch(plain):
        return plain
    if (ends := _RANGE.fullmatch(plain)) and all(end in DAYS for end in ends.groups()):
        return plain
    meant = nearest(plain, (*sorted(VOCABULARY), *(f"{counted}s" for counted in _COUNTED)))
    suggestion = text.replace(word, meant, 1) if meant else None
    message = f"'{word[:40]}' is not a word of schedules; they are like {_LIKE}."
    raise ScheduleRefused("words", message, suggestion)


def _clock(word: str, text: str) -> Clock | None:
    if word in TIMES:
        return TIMES[word]
    found = _TIME.fullmatch(word)
    if found is None or (found[2] is None and found[3] is None):
        return None
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3] is not None:
        hour = hour % 12 + (12 if found[3] == "pm" else 0) if 1 <= hour <= 12 else 99
    if hour > 23 or minute > 59:
        raise ScheduleRefused("words", f"'{word}' in '{text}' is no time of day, like 08:30.")
    return hour, minute


def _interval(head: list[str], clocks: list[Clock], text: str) -> int | None:
    """Milliseconds of ``every 15 minutes``."""
    match head:
        case ["every", ("second" | "minute") as unit]:
            count = 1
        case ["every", number, unit] if number.isdecimal() and unit in UNITS:
            count = int(number)
        case _:
            return None
    if clocks:
        message = f"'{text}' counts from the schedule's creation and has no time of day."
        raise ScheduleRefused("words", message, "daily at 09:00")
    if not 1 <= count * UNITS[unit] <= _LONGEST:
        raise ScheduleRefused("words", f"'{text}' is not between a second and a year.")
    return count * UNITS[unit] * 1000


def _days_of(head: list[str], text: str) -> str:
    """The last three fields of a cron expression."""
    match head:
        case ["every", period] if period in EVERY and period != "hour":
            return PERIODS[EVERY[period]]
        case [period] if period in PERIODS:
            return PERIODS[period]
        case ["last", "month"]:
            return "L * *"
        case ["last", "weekday", "month"]:
            return "LW * *"
        case ["last", day, "month"] if day in DAYS:
            return f"* * {DAYS[day]}L"
        case [ordinal, "month"] if 1 <= _number(ordinal) <= 31:
            return f"{_number(ordinal)} * *"
        case [ordinal, day, "month"] if 1 <= _number(ordinal) <= 5 and day in DAYS:
            return f"* * {DAYS[day]}#{_number(ordinal)}"
        case ["every", *days] | days if days and all(_is_day(day) for day in days):
            return f"* * {','.join(_weekdays(day) for day in days)}"
    message = f"'{text[:80]}' is not understood; write it like {_LIKE}."
    raise ScheduleRefused("words", message, nearest(text.casefold(), EXAMPLES))


def _number(word: str) -> int:
    found = _NUMBER.fullmatch(word)
    return int(found[1]) if found else ORDINALS.get(word, 0)


def _is_day(word: str) -> bool:
    return word in DAYS or word in GROUPS or _RANGE.fullmatch(word) is not None


def _weekdays(word: str) -> str:
    if found := _RANGE.fullmatch(word):
        first, last = (DAYS[end] for end in found.groups())
        return ",".join(str((first + step) % 7) for step in range((last - first) % 7 + 1))
    return GROUPS.get(word) or str(DAYS[word])


def _on_days(days: str, head: list[str], clocks: list[Clock], text: str) -> str:
    """One expression names all pairs of its hours and minutes, so the times must be just those."""
    if not clocks and head[-1] not in PERIODS and not (head[0] == "every" and head[1] in EVERY):
        raise ScheduleRefused("words", f"'{text}' has no time of day.", f"{text} 09:00")
    chosen = set(clocks or [(0, 0)])
    hours, minutes = {hour for hour, _ in chosen}, {minute for _, minute in chosen}
    if len(chosen) != len(hours) * len(minutes):
        message = (
            f"The times of '{text}' share neither hour nor minutes; make one schedule of each."
        )
        raise ScheduleRefused("words", message)
    listed = (",".join(map(str, sorted(numbers))) for numbers in (minutes, hours))
    return f"{' '.join(listed)} {days}"
