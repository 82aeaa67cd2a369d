"""Times as people type them: one reader for all commands."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from moot.cli.shared.times import END_OF_DAY, MIDNIGHT, parse_time

#: a Wednesday; 12:30 in Berlin
NOW = datetime(2030, 5, 15, 10, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("monday", datetime(2030, 5, 20, 8, tzinfo=UTC)),
        ("Wed", datetime(2030, 5, 22, 8, tzinfo=UTC)),
        ("thu", datetime(2030, 5, 16, 8, tzinfo=UTC)),
        ("friday 17:00", datetime(2030, 5, 17, 17, tzinfo=UTC)),
        ("today 17:00", datetime(2030, 5, 15, 17, tzinfo=UTC)),
        ("17:00", datetime(2030, 5, 15, 17, tzinfo=UTC)),
        ("9:15", datetime(2030, 5, 16, 9, 15, tzinfo=UTC)),
        ("tomorrow", datetime(2030, 5, 16, 8, tzinfo=UTC)),
        ("2h", NOW + timedelta(hours=2)),
        ("3d", NOW + timedelta(days=3)),
        ("2030-06-01", datetime(2030, 6, 1, 8, tzinfo=UTC)),
        ("2030-06-01 17:00", datetime(2030, 6, 1, 17, tzinfo=UTC)),
        ("2030-06-01T08:00", datetime(2030, 6, 1, 8, tzinfo=UTC)),
        ("2030-06-01T08:00+00:00", datetime(2030, 6, 1, 8, tzinfo=UTC)),
    ],
)
def test_a_time_to_come(given: str, expected: datetime) -> None:
    assert parse_time(given, NOW, UTC) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("monday", datetime(2030, 5, 13, tzinfo=UTC)),
        ("wed", datetime(2030, 5, 8, tzinfo=UTC)),
        ("thu 12:00", datetime(2030, 5, 9, 12, tzinfo=UTC)),
        ("yesterday", datetime(2030, 5, 14, tzinfo=UTC)),
        ("09:15", datetime(2030, 5, 15, 9, 15, tzinfo=UTC)),
        ("17:00", datetime(2030, 5, 14, 17, tzinfo=UTC)),
        ("2h", NOW - timedelta(hours=2)),
        ("2030-05-10", datetime(2030, 5, 10, tzinfo=UTC)),
    ],
)
def test_a_time_of_the_past(given: str, expected: datetime) -> None:
    assert parse_time(given, NOW, UTC, past=True, daily=MIDNIGHT) == expected


def test_a_time_is_on_the_wall_of_the_zone_that_counts() -> None:
    assert parse_time("17:00", NOW, BERLIN) == datetime(2030, 5, 15, 15, tzinfo=UTC)
    assert parse_time("12:00", NOW, BERLIN) == datetime(2030, 5, 16, 10, tzinfo=UTC)
    assert parse_time("2030-05-10", NOW, BERLIN, daily=END_OF_DAY).isoformat()[-6:] == "+02:00"
    winter = datetime(2030, 10, 25, 10, tzinfo=UTC)  # clocks change before Monday
    assert parse_time("monday", winter, BERLIN) == datetime(2030, 10, 28, 7, tzinfo=UTC)
    assert parse_time("3d", winter, BERLIN) == winter + timedelta(days=3)


@pytest.mark.parametrize(
    "given", ["", "mo", "t", "soon", "2 weeks from now", "monday noon", "25:00"]
)
def test_what_is_no_time_says_how_to_write_one(given: str) -> None:
    with pytest.raises(ValueError, match="write monday"):
        parse_time(given, NOW, UTC)
