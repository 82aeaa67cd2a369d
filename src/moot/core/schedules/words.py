"""Parse calendar words into a cron expression or an interval.

    hourly
    daily | weekly | monthly [at TIME …]      "every day" and so on mean the same
    every N seconds | minutes | hours | days | weeks
    [every] DAY … [at] TIME …                 DAY: monday … sunday, mon-fri, weekday, weekend
    first | 15th | last of month [at] TIME …  also: first monday, last weekday of month

Any of them may end with a time zone. Commas and "and" separate the items of a list. Case does not
matter.
"""

import re

from moot.core.errors.schedules import ScheduleRefused
from moot.core.schedules.calendar import Timing, parse_cron, require_zone
from moot.core.text.nearest import nearest_word
from moot.core.text.zones import find_zone, nearest_zone

EXAMPLES = (
    "hourly",
    "daily at 07:15",
    "weekday 08:30 Europe/Berlin",
    "monday, thursday 09:00",
    "every 15 minutes",
    "first of month 06:00",
    "first monday of month 10:00",
)
_EXAMPLE_LIST = ", ".join(f"'{example}'" for example in EXAMPLES)

_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
DAYS = {name: number for number, day in enumerate(_DAYS) for name in (day, day[:3])}
DAYS |= {"tues": 2, "thur": 4, "thurs": 4}
GROUPS = {"weekday": "1-5", "weekend": "0,6"}
PERIODS = {"daily": "* * *", "weekly": "* * 1", "monthly": "1 * *"}
EVERY = {"hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly"}
UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
TIMES = {"noon": (12, 0), "midnight": (0, 0)}
FILLERS = ("and", "at", "on", "of", "the")

#: words that may have a plural s
_COUNTED = (*_DAYS, *GROUPS, *UNITS)
VOCABULARY = frozenset({"hourly", "every", "last", "month", *PERIODS, *DAYS, *GROUPS, *UNITS})
VOCABULARY |= {*ORDINALS, *TIMES, *FILLERS}

#: seconds of the longest interval, a leap year
_LONGEST_INTERVAL = 31_622_400

_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?(am|pm)?", re.ASCII)
_NUMBER = re.compile(r"(\d{1,8})(st|nd|rd|th)?", re.ASCII)
_RANGE = re.compile(r"([a-z]+)[-\u2013]([a-z]+)")

Clock = tuple[int, int]


def timing_from_words(text: str, zone: str) -> Timing:
    """Parse the words. Raise ScheduleRefused with the nearest words of the grammar."""
    words = [word for word in re.split(r"[\s,]+", text) if word]
    if words and ("/" in words[-1] or words[-1].casefold() in ("utc", "gmt")):
        zone = _parse_zone(words.pop(), zone, text)
    require_zone(zone)
    known_words = [_normalise_word(word, text) for word in words]
    known_words = [word for word in known_words if word not in FILLERS]
    clocks = [clock for word in known_words if (clock := _clock(word, text)) is not None]
    date_words = [word for word in known_words if _clock(word, text) is None]
    if (every := _interval(date_words, clocks, text)) is not None:
        return Timing(every=every, zone=zone)
    if date_words in (["hourly"], ["every", "hour"]) and not clocks:
        return Timing(cron="0 * * * *", zone=zone)
    cron = _cron_from_parts(_days_of(date_words, text), date_words, clocks, " ".join(words))
    return Timing(cron=parse_cron(cron, "words"), zone=zone)


def _parse_zone(word: str, zone: str, text: str) -> str:
    zone_name = "UTC" if word.casefold() in ("utc", "gmt") else word
    if find_zone(zone_name) is None:
        nearest_name = nearest_zone(zone_name)
        suggestion = text.replace(word, nearest_name) if nearest_name else None
        raise ScheduleRefused("words", f"'{word[:64]}' is not a time zone.", suggestion)
    if zone not in ("UTC", zone_name):
        message = f"The words say {zone_name} and 'timezone' says {zone}; leave one of them out."
        raise ScheduleRefused("timezone", message)
    return zone_name


def _normalise_word(word: str, text: str) -> str:
    """Return a word of the grammar, or raise with the nearest sentence."""
    plain = word.casefold()
    if plain.endswith("s") and plain[:-1] in _COUNTED:
        plain = plain[:-1]
    if plain in VOCABULARY or _TIME.fullmatch(plain) or _NUMBER.fullmatch(plain):
        return plain
    if (ends := _RANGE.fullmatch(plain)) and all(end in DAYS for end in ends.groups()):
        return plain
    nearest = nearest_word(plain, (*sorted(VOCABULARY), *(f"{counted}s" for counted in _COUNTED)))
    suggestion = text.replace(word, nearest, 1) if nearest else None
    message = f"'{word[:40]}' is not a word of schedules; they are like {_EXAMPLE_LIST}."
    raise ScheduleRefused("words", message, suggestion)


def _clock(word: str, text: str) -> Clock | None:
    if word in TIMES:
        return TIMES[word]
    match = _TIME.fullmatch(word)
    if match is None or (match[2] is None and match[3] is None):
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3] is not None:
        hour = hour % 12 + (12 if match[3] == "pm" else 0) if 1 <= hour <= 12 else 99
    if hour > 23 or minute > 59:
        raise ScheduleRefused("words", f"'{word}' in '{text}' is no time of day, like 08:30.")
    return hour, minute


def _interval(date_words: list[str], clocks: list[Clock], text: str) -> int | None:
    """Return the milliseconds of ``every 15 minutes``, or None."""
    match date_words:
        case ["every", ("second" | "minute") as unit]:
            count = 1
        case ["every", number, unit] if number.isdecimal() and unit in UNITS:
            count = int(number)
        case _:
            return None
    if clocks:
        message = f"'{text}' counts from the schedule's creation and has no time of day."
        raise ScheduleRefused("words", message, "daily at 09:00")
    if not 1 <= count * UNITS[unit] <= _LONGEST_INTERVAL:
        raise ScheduleRefused("words", f"'{text}' is not between a second and a year.")
    return count * UNITS[unit] * 1000


def _days_of(date_words: list[str], text: str) -> str:
    """Return the last three fields of a cron expression."""
    match date_words:
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
    message = f"'{text[:80]}' is not understood; write it like {_EXAMPLE_LIST}."
    raise ScheduleRefused("words", message, nearest_word(text.casefold(), EXAMPLES))


def _number(word: str) -> int:
    match = _NUMBER.fullmatch(word)
    return int(match[1]) if match else ORDINALS.get(word, 0)


def _is_day(word: str) -> bool:
    return word in DAYS or word in GROUPS or _RANGE.fullmatch(word) is not None


def _weekdays(word: str) -> str:
    if match := _RANGE.fullmatch(word):
        first, last = (DAYS[end] for end in match.groups())
        return ",".join(str((first + step) % 7) for step in range((last - first) % 7 + 1))
    return GROUPS.get(word) or str(DAYS[word])


def _cron_from_parts(days: str, date_words: list[str], clocks: list[Clock], text: str) -> str:
    """Return one cron expression for these days and times.

    It names all pairs of its hours and minutes, so the times must be exactly those pairs.
    """
    is_period = date_words[-1] in PERIODS or (date_words[0] == "every" and date_words[1] in EVERY)
    if not clocks and not is_period:
        raise ScheduleRefused("words", f"'{text}' has no time of day.", f"{text} 09:00")
    chosen = set(clocks or [(0, 0)])
    hours, minutes = {hour for hour, _ in chosen}, {minute for _, minute in chosen}
    if len(chosen) != len(hours) * len(minutes):
        problem = "share neither hour nor minutes; make one schedule of each"
        raise ScheduleRefused("words", f"The times of '{text}' {problem}.")
    fields = (",".join(map(str, sorted(numbers))) for numbers in (minutes, hours))
    return f"{' '.join(fields)} {days}"
