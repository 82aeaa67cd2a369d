"""Six zones and what their clocks do: gaps, repeated hours, half hours, a day that never was."""

import pytest

from moot.core.schedules.slots import next_slots, slots_between
from tests.support.core.schedules import HOUR, MINUTE, at, schedule, shown

BERLIN, NEW_YORK, HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
KOLKATA, SAO_PAULO, APIA = "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia"
CASABLANCA = "Africa/Casablanca"

#: zone, cron, from when on, the next slots as the clocks there show them
TABLE = [
    # the clocks go from 02:00 to 03:00
    (BERLIN, "30 2 * * *", "2026-03-28T00:00Z",
     ["2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
    (BERLIN, "0,30 2 * * *", "2026-03-28T12:00Z",
     ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
    (BERLIN, "0 2,3 * * *", "2026-03-28T12:00Z",
     ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
    (BERLIN, "0 * * * *", "2026-03-28T23:30Z",
     ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]),
    (BERLIN, "0 */2 * * *", "2026-03-28T23:30Z",
     ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00", "2026-03-29T06:00+02:00"]),
    (BERLIN, "*/30 2 * * *", "2026-03-28T12:00Z",
     ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
    # and from 03:00 to 02:00
    (BERLIN, "30 2 * * *", "2026-10-24T00:00Z",
     ["2026-10-24T02:30+02:00", "2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
    (BERLIN, "30 2 * * *", "2026-10-25T01:10Z", ["2026-10-26T02:30+01:00"]),
    (BERLIN, "0,30 2 * * *", "2026-10-25T00:10Z",
     ["2026-10-25T02:30+02:00", "2026-10-26T02:00+01:00"]),
    (BERLIN, "*/30 2 * * *", "2026-10-24T12:00Z",
     ["2026-10-25T02:00+02:00", "2026-10-25T02:30+02:00", "2026-10-26T02:00+01:00"]),
    (BERLIN, "0 * * * *", "2026-10-24T23:30Z",
     ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"]),
    (BERLIN, "0 0-23 * * *", "2026-10-24T23:30Z",
     ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"]),
    (NEW_YORK, "30 2 * * *", "2026-03-07T12:00Z",
     ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"]),
    (NEW_YORK, "30 1 * * *", "2026-10-31T12:00Z",
     ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
    (NEW_YORK, "0 9 * * 1-5", "2026-03-06T00:00Z",
     ["2026-03-06T09:00-05:00", "2026-03-09T09:00-04:00"]),
    # half an hour: 02:00 to 02:30 in October, 02:00 to 01:30 in April
    (HOWE, "15 2 * * *", "2026-10-02T20:00Z",
     ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
    (HOWE, "45 1 * * *", "2026-04-04T00:00Z",
     ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
    (HOWE, "0 * * * *", "2026-04-04T13:30Z",
     ["2026-04-05T01:00+11:00", "2026-04-05T02:00+10:30", "2026-04-05T03:00+10:30"]),
    (HOWE, "45 * * * *", "2026-04-04T14:00Z",
     ["2026-04-05T01:45+11:00", "2026-04-05T01:45+10:30", "2026-04-05T02:45+10:30"]),
    # never
    (KOLKATA, "30 2 * * *", "2026-03-28T00:00Z",
     ["2026-03-29T02:30+05:30", "2026-03-30T02:30+05:30"]),
    # at midnight, when there still was summer time
    (SAO_PAULO, "0 0 * * *", "2018-11-03T12:00Z",
     ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"]),
    (SAO_PAULO, "30 23 * * *", "2018-02-17T12:00Z",
     ["2018-02-17T23:30-02:00", "2018-02-18T23:30-03:00"]),
    (SAO_PAULO, "0 0 4 11 *", "2018-01-01T12:00Z", ["2018-11-04T01:00-02:00"]),
    (SAO_PAULO, "0 * 4 11 *", "2018-01-01T12:00Z",
     ["2018-11-04T01:00-02:00", "2018-11-04T02:00-02:00"]),
    # 30 December 2011 was left out
    (APIA, "0 8 * * *", "2011-12-29T00:00Z",
     ["2011-12-29T08:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T08:00+14:00"]),
    (APIA, "0 * * * *", "2011-12-30T08:30Z",
     ["2011-12-29T23:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T01:00+14:00"]),
    # an hour back for the month of Ramadan
    (CASABLANCA, "30 2 * * *", "2024-03-09T12:00Z",
     ["2024-03-10T02:30+01:00", "2024-03-11T02:30+00:00"]),
    (CASABLANCA, "30 2 * * *", "2024-04-13T12:00Z",
     ["2024-04-14T03:00+01:00", "2024-04-15T02:30+01:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "cron", "after", "expected"), TABLE)
def test_slots_follow_the_clocks_on_the_wall(
    zone: str, cron: str, after: str, expected: list[str]
) -> None:
    spec = schedule(cronExpr=cron, timezone=zone)
    found = next_slots(spec, at(after), len(expected))
    assert [shown(slot, zone) for slot in found] == expected


@pytest.mark.parametrize(("zone", "cron", "after", "expected"), TABLE)
def test_it_does_not_matter_where_one_begins(
    zone: str, cron: str, after: str, expected: list[str]
) -> None:
    spec = schedule(cronExpr=cron, timezone=zone)
    end = at(expected[-1])
    start = max(at(after), end - 50 * HOUR)
    whole = slots_between(spec, start, end)
    for begin in range(start, end, 73 * MINUTE):
        assert slots_between(spec, begin, end) == [slot for slot in whole if slot > begin]


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, HOWE, KOLKATA, SAO_PAULO, APIA])
def test_intervals_know_no_clocks_on_walls(zone: str) -> None:
    created = at("2026-03-01T10:17:05Z")
    spec = schedule(created, intervalSeconds=86_400, timezone=zone)
    found = slots_between(spec, 0, created + 300 * 86_400_000)
    assert found == [created + day * 86_400_000 for day in range(1, 301)]


@pytest.mark.parametrize(
    ("zone", "written", "meant"),
    [
        (BERLIN, "2026-03-29T02:30", "2026-03-29T03:00+02:00"),
        (BERLIN, "2026-03-29T02:30:45", "2026-03-29T03:00+02:00"),
        (BERLIN, "2026-10-25T02:30", "2026-10-25T02:30+02:00"),
        (BERLIN, "2026-10-25T02:30+01:00", "2026-10-25T02:30+01:00"),
        (HOWE, "2026-10-04T02:10", "2026-10-04T02:30+11:00"),
        (KOLKATA, "2026-05-01T08:30", "2026-05-01T08:30+05:30"),
        (KOLKATA, "2026-05-01T08:30Z", "2026-05-01T14:00+05:30"),
    ],
)
def test_a_single_time_follows_them_too(zone: str, written: str, meant: str) -> None:
    spec = schedule(at=written, timezone=zone)
    assert [shown(slot, zone) for slot in next_slots(spec, 0, 2)] == [meant]
