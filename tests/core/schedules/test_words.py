"""Calendar words come to cron expressions and intervals; what is not understood is answered."""

import pytest

from moot.core.errors.schedules import ScheduleRefused
from moot.core.schedules.calendar import Timing
from moot.core.schedules.words import EXAMPLES, timing_from_words

CRONS = {
    "hourly": "0 * * * *",
    "every hour": "0 * * * *",
    "daily": "0 0 * * *",
    "every day": "0 0 * * *",
    "daily at 7:15": "15 7 * * *",
    "Every day at 07:15": "15 7 * * *",
    "daily noon": "0 12 * * *",
    "daily at midnight": "0 0 * * *",
    "daily at 8am, 8pm": "0 8,20 * * *",
    "daily 12:30am and 12:30pm": "30 0,12 * * *",
    "daily 9:00, 9:30, 10:00, 10:30": "0,30 9,10 * * *",
    "weekly": "0 0 * * 1",
    "every week at 6:00": "0 6 * * 1",
    "monthly at 3:00": "0 3 1 * *",
    "every month": "0 0 1 * *",
    "weekday 08:30": "30 8 * * 1-5",
    "Weekdays at 8:30": "30 8 * * 1-5",
    "every weekend 10:00": "0 10 * * 0,6",
    "monday,thursday 09:00": "0 9 * * 1,4",
    "every monday and thursday at 09:00": "0 9 * * 1,4",
    "mon, Tues, thurs 9:00": "0 9 * * 1,2,4",
    "mon-fri 9:00": "0 9 * * 1,2,3,4,5",
    "sat-mon 9:00": "0 9 * * 6,0,1",
    "first of month 06:00": "0 6 1 * *",
    "on the 15th of the month at 6:00": "0 6 15 * *",
    "31 of month 6:00": "0 6 31 * *",
    "last of month 18:00": "0 18 L * *",
    "first monday of month 10:00": "0 10 * * 1#1",
    "third tuesday of the month 10:00": "0 10 * * 2#3",
    "last friday of month 17:00": "0 17 * * 5L",
    "last weekday of month 17:00": "0 17 LW * *",
}

INTERVALS = {
    "every 15 minutes": 900,
    "every minute": 60,
    "every second": 1,
    "every 90 seconds": 90,
    "every 2 hours": 7200,
    "every 2 days": 172_800,
    "every 6 weeks": 3_628_800,
}

NOT_UNDERSTOOD = {
    "weekdy 8:30": "weekday 8:30",
    "every 15 minuts": "every 15 minutes",
    "blursday 9:00": "thursday 9:00",
    "dayly at 7:15": "daily at 7:15",
    "monday": "monday 09:00",
    "last of month Europe/Berlin": "last of month 09:00",
    "weekday 8:30 Europe/Berln": "weekday 8:30 Europe/Berlin",
    "weekday 8:30 europe/berlin": "weekday 8:30 Europe/Berlin",
    "every 2 days at 9:00": "daily at 09:00",
    "first weekday of month 9:00": "first monday of month 10:00",
    "daily at 25:00": None,
    "daily at 8:60": None,
    "daily at 13pm": None,
    "daily at 7:15 and 19:45": None,
    "every second monday 9:00": None,
    "every 0 minutes": None,
    "every 99999999 days": None,
    "sixth monday of month 9:00": "fifth monday of month 9:00",
    "9:00": None,
    "": None,
    "if it suits you": None,
}


@pytest.mark.parametrize("words", CRONS)
def test_words_that_name_wall_times_are_cron(words: str) -> None:
    assert timing_from_words(words, "UTC") == Timing(cron=CRONS[words], zone="UTC")


@pytest.mark.parametrize("words", INTERVALS)
def test_words_that_count_are_intervals(words: str) -> None:
    assert timing_from_words(words, "UTC") == Timing(every=INTERVALS[words] * 1000, zone="UTC")


def test_words_may_end_with_a_zone() -> None:
    found = timing_from_words("weekday 08:30 Europe/Berlin", "UTC")
    assert found == Timing(cron="30 8 * * 1-5", zone="Europe/Berlin")
    assert timing_from_words("weekday 08:30", "Asia/Kolkata").zone == "Asia/Kolkata"
    assert timing_from_words("hourly utc", "UTC").zone == "UTC"


def test_two_zones_that_differ_are_refused() -> None:
    assert timing_from_words("hourly Asia/Kolkata", "Asia/Kolkata").zone == "Asia/Kolkata"
    with pytest.raises(ScheduleRefused, match="leave one of them out"):
        timing_from_words("hourly Asia/Kolkata", "Europe/Berlin")


@pytest.mark.parametrize("words", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_answered_with_the_nearest_that_is(words: str) -> None:
    with pytest.raises(ScheduleRefused) as refused:
        timing_from_words(words, "UTC")
    meant = NOT_UNDERSTOOD[words]
    assert refused.value.details == {"field": "words", **({"suggestion": meant} if meant else {})}
    if meant is not None:
        timing_from_words(meant, "UTC")


def test_the_examples_it_gives_are_understood() -> None:
    for words in EXAMPLES:
        timing_from_words(words, "UTC")
