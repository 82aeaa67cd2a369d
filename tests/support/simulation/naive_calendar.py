"""Random schedules, and their slots worked out the long way: no cron, only offsets of zones."""

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

HOUR = 3_600_000
DAY = 24 * HOUR
DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

#: each in a year in which something happens there
YEARS = {
    "Europe/Berlin": 2026,
    "America/New_York": 2026,
    "Australia/Lord_Howe": 2026,
    "Asia/Kolkata": 2026,
    "America/Sao_Paulo": 2018,
    "Pacific/Apia": 2011,
}


@dataclass
class Plan:
    """A schedule by its meaning. Hours of None are all that pass."""

    zone: str
    hours: list[int] | None = None
    minute: int = 0
    weekdays: set[int] = field(default_factory=lambda: set(range(7)))
    day_of_month: int | None = None
    interval: int | None = None
    once: int | None = None

    def body(self, chance: random.Random) -> dict[str, Any]:
        """One of the ways to write it."""
        if self.interval is not None:
            if self.interval % 60 == 0 and chance.random() < 0.5:
                return {"kind": "words", "words": f"every {self.interval // 60} minutes"}
            return {"kind": "interval", "intervalSeconds": self.interval}
        if self.once is not None:
            at = datetime.fromtimestamp(self.once / 1000, UTC)
            return {"kind": "once", "at": at.isoformat()}
        if chance.random() < 0.5 and (self.hours is not None or self.minute == 0):
            return {"kind": "words", "words": f"{self._words()} {self.zone}"}
        return {"kind": "cron", "cronExpr": self._cron(), "timezone": self.zone}

    def _words(self) -> str:
        if self.hours is None:
            return "hourly"
        times = ", ".join(f"{hour}:{self.minute:02d}" for hour in self.hours)
        if self.day_of_month is not None:
            return f"{self.day_of_month}th of month {times}"
        if len(self.weekdays) == 7:
            return f"daily at {times}"
        if self.weekdays == {0, 1, 2, 3, 4}:
            return f"weekdays {times}"
        return f"{' and '.join(DAY_NAMES[day] for day in sorted(self.weekdays))} {times}"

    def _cron(self) -> str:
        hours = "*" if self.hours is None else ",".join(map(str, self.hours))
        month_day = "*" if self.day_of_month is None else str(self.day_of_month)
        days = "*" if len(self.weekdays) == 7 else ",".join(str(d + 1) for d in self.weekdays)
        return f"{self.minute} {hours} {month_day} * {days}"


def random_plan(chance: random.Random, zone: str, start: int) -> Plan:
    form = chance.random()
    if form < 0.04:
        return Plan(zone, once=start + chance.randrange(1, 300 * DAY // 1000) * 1000)
    if form < 0.16:
        return Plan(zone, interval=chance.choice([3600, 5400, 7201, 43_200, 86_400, 604_799]))
    if form < 0.22:
        return Plan(zone, minute=chance.choice([0, 0, 17, 30, 59]))
    count = chance.choice([1, 1, 2, 3, 4, 6, 8, 12, 16, 23])
    plan = Plan(
        zone,
        # the hours in which clocks are changed come up more often
        hours=sorted({*chance.sample(range(24), count), *chance.choice([(), (0,), (1, 2)])}),
        minute=chance.choice([0, 0, 15, 30, 45, 59]),
    )
    if len(plan.hours or ()) == 24:
        plan.hours = None
    elif form < 0.5:
        plan.weekdays = set(chance.sample(range(7), chance.randint(1, 6)))
    elif form < 0.6:
        plan.weekdays = {0, 1, 2, 3, 4}
    elif form < 0.7:
        plan.day_of_month = chance.randint(4, 20)
    return plan


def slots_of(plan: Plan, created: int, until: int) -> list[int]:
    """All instants after the creation, in order."""
    if plan.interval is not None:
        return list(range(created + plan.interval * 1000, until + 1, plan.interval * 1000))
    if plan.once is not None:
        return [plan.once] if created < plan.once <= until else []
    offsets = Offsets(plan.zone, created - 3 * DAY, until + 3 * DAY)
    found = _passing(plan, offsets) if plan.hours is None else _walls(plan, offsets)
    return [slot for slot in sorted(found) if created < slot <= until]


class Offsets:
    """From when on the clocks of a zone show how much more than UTC."""

    def __init__(self, name: str, start: int, end: int) -> None:
        self._zone = ZoneInfo(name)
        self.start, self.end = start, end
        self.changes = [(start, self.at(start))]
        for hour in range(start, end, 6 * HOUR):
            if (later := self.at(hour + 6 * HOUR)) != self.changes[-1][1]:
                self.changes.append((self._change(hour, hour + 6 * HOUR), later))
        ends = [since for since, _ in self.changes[1:]] + [end]
        #: from when until when by how much
        self.periods = [(since, to, by) for (since, by), to in zip(self.changes, ends, strict=True)]

    def at(self, instant: int) -> int:
        offset = datetime.fromtimestamp(instant / 1000, self._zone).utcoffset()
        assert offset is not None
        return offset // timedelta(milliseconds=1)

    def _change(self, low: int, high: int) -> int:
        """The first instant with the new offset; one of low and high is on either side."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) == self.at(low) else (low, middle)
        return high


def _walls(plan: Plan, offsets: Offsets) -> set[int]:
    assert plan.hours is not None
    first = datetime.fromtimestamp(offsets.start / 1000, UTC).date() - timedelta(days=2)
    count = (offsets.end - offsets.start) // DAY + 4
    found = set()
    for day in (first + timedelta(days=number) for number in range(count)):
        if day.weekday() in plan.weekdays and plan.day_of_month in (None, day.day):
            midnight = (day - date(1970, 1, 1)).days * DAY
            for hour in plan.hours:
                found.add(_instant(midnight + hour * HOUR + plan.minute * 60_000, offsets))
    return found


def _instant(wall: int, offsets: Offsets) -> int:
    """The first instant at which clocks show this or, across a gap, more."""
    for since, end, by in offsets.periods:
        if wall - by < end:
            return max(since, wall - by)
    return offsets.end


def _passing(plan: Plan, offsets: Offsets) -> set[int]:
    found = set()
    for since, end, by in offsets.periods:
        shown = since + by
        first = shown + (plan.minute * 60_000 - shown) % HOUR - by
        found.update(range(first, end, HOUR))
    return found
