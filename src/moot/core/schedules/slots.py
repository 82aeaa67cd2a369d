"""The slots of a schedule: which instants its spec names. No clock; instants come in and go out.

Wall times (a cron whose hours are named) follow the clock on the wall of the zone: a time that does
not exist stands for the next instant that does, a time that comes twice is the first of the two.
Crons of every hour follow the hours that pass, and intervals count from the schedule's creation.
"""

import hashlib
from collections.abc import Iterator
from datetime import tzinfo
from functools import lru_cache
from itertools import islice, takewhile

from cronsim import CronSim
from msgspec import Struct

from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import millis
from moot.core.schedules.calendar import (
    LAST_INSTANT,
    Timing,
    change_between,
    cron_from,
    instant_from,
    instant_of,
    moment_of,
    offset_at,
    zone_from,
)
from moot.core.schedules.model import Schedule, ScheduleDraft
from moot.core.schedules.words import timing_from_words

#: slots that one question may be answered with
MOST_SLOTS = 10_000


class Tick(Struct, frozen=True):
    """A slot and when it falls due: with its jitter, before the next slot."""

    slot: int
    due: int


def timing_of(spec: ScheduleDraft) -> Timing:
    """Raises ScheduleRefused for a spec that names no times, or more than one kind of them."""
    return _timing(
        spec.kind, spec.cron_expr, spec.interval_seconds, spec.at, spec.words, spec.timezone
    )


def slots(spec: Schedule, after: int, until: int, most: int = MOST_SLOTS) -> list[int]:
    """Those later than ``after``, not later than ``until``; the first ones, if there are more."""
    found = takewhile(lambda slot: slot <= until, stream(spec, after))
    return list(islice(found, min(most, MOST_SLOTS)))


def next_slots(spec: Schedule, after: int, count: int) -> list[int]:
    return list(islice(stream(spec, after), min(count, MOST_SLOTS)))


def due_at(spec: Schedule, slot: int) -> int:
    """When a slot of this spec falls due; the same answer for ever."""
    if not spec.jitter_seconds:
        return slot
    return slot + _jitter(spec, slot, next(stream(spec, slot), None))


def ticks(spec: Schedule, after: int) -> Iterator[Tick]:
    """In the order of their slots, which is that of their due times. Has no end of its own."""
    found = stream(spec, after)
    if not spec.jitter_seconds:
        yield from (Tick(slot, slot) for slot in found)
        return
    following = next(found, None)
    while (slot := following) is not None:
        following = next(found, None)
        yield Tick(slot, slot + _jitter(spec, slot, following))


def stream(spec: Schedule, after: int) -> Iterator[int]:
    """All slots later than ``after``. It has no end of its own; whoever asks takes a number."""
    timing = timing_of(spec)
    after = max(after, 0)
    if timing.cron is not None:
        every_hour = timing.cron.split()[1] == "*"
        cron_slots = _passing_hours if every_hour else _wall_times
        return cron_slots(timing.cron, zone_from(timing.zone), after)
    if timing.every is not None:
        return _interval_slots(millis(spec.created_at), timing.every, after)
    assert timing.at is not None
    return iter((timing.at,) if timing.at > after else ())


def _wall_times(cron: str, zone: tzinfo, after: int) -> Iterator[int]:
    if after >= LAST_INSTANT:
        return
    for moment in CronSim(cron, moment_of(after).astimezone(zone)):
        slot = instant_of(moment)
        # within a repeated hour, the wall times of its first pass are named again
        if slot > after:
            yield slot


def _passing_hours(cron: str, zone: tzinfo, after: int) -> Iterator[int]:
    """Between two changes of the clocks the zone is a fixed offset, and that is how it is walked.

    In the zone itself cronsim may jump over what half an hour of change repeats, depending on where
    it begins.
    """
    while after < LAST_INSTANT:
        offset = offset_at(zone, after + 1)
        change = None
        for wall in CronSim(cron, moment_of(after + offset)):
            slot = instant_of(wall) - offset
            change = change_between(zone, after + 1, slot)
            if change is not None:
                break
            yield slot
            after = slot
        if change is None:
            return
        after = change - 1


def _interval_slots(anchor: int, every: int, after: int) -> Iterator[int]:
    slot = anchor + max(1, (after - anchor) // every + 1) * every
    while slot < LAST_INSTANT:
        yield slot
        slot += every


def _jitter(spec: Schedule, slot: int, following: int | None) -> int:
    most = spec.jitter_seconds * 1000
    if following is not None:
        most = min(most, following - slot - 1)
    name = f"{spec.schedule_id}\0{slot}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) % (most + 1)


@lru_cache(maxsize=16_384)
def _timing(
    kind: str, cron: str | None, every: int | None, at: str | None, words: str | None, zone: str
) -> Timing:
    given = {"cronExpr": cron, "intervalSeconds": every, "at": at, "words": words}
    wanted = {"cron": "cronExpr", "interval": "intervalSeconds", "once": "at"}.get(kind, "words")
    for field, value in given.items():
        if value is None and field == wanted:
            raise ScheduleRefused(field, f"A schedule of kind '{kind}' needs '{field}'.")
        if value is not None and field != wanted:
            message = f"A schedule of kind '{kind}' has no '{field}'; leave it out."
            raise ScheduleRefused(field, message)
    if words is not None:
        return timing_from_words(words, zone)
    found = zone_from(zone)
    if cron is not None:
        return Timing(cron=cron_from(cron), zone=zone)
    if every is not None:
        return Timing(every=every * 1000, zone=zone)
    return Timing(at=instant_from(at or "", found), zone=zone)
