"""Times to come, as people type them."""

from datetime import UTC, datetime, timedelta

import pytest

from moot.cli.moments import instant

#: a Wednesday
NOW = datetime(2030, 5, 15, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("monday", datetime(2030, 5, 20, 8, tzinfo=UTC)),
        ("Wed", datetime(2030, 5, 22, 8, tzinfo=UTC)),
        ("thu", datetime(2030, 5, 16, 8, tzinfo=UTC)),
        ("tomorrow", datetime(2030, 5, 16, 8, tzinfo=UTC)),
        ("2h", NOW + timedelta(hours=2)),
        ("3d", NOW + timedelta(days=3)),
        ("2030-06-01T08:00", datetime(2030, 6, 1, 8, tzinfo=UTC)),
        ("2030-06-01T08:00+00:00", datetime(2030, 6, 1, 8, tzinfo=UTC)),
    ],
)
def test_a_time_to_come(given: str, expected: datetime) -> None:
    assert instant(given, NOW) == expected


@pytest.mark.parametrize("given", ["", "mo", "t", "soon", "2 weeks from now"])
def test_what_is_no_time_says_how_to_write_one(given: str) -> None:
    with pytest.raises(ValueError, match="write monday"):
        instant(given, NOW)
