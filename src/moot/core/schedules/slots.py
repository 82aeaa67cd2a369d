"""Slots of a schedule: the instants that its spec names.

A cron with named hours follows the wall clock of its zone: a time in a gap becomes the next instant
that exists, and of a repeated time the first one counts. A cron of every hour follows the hours
that pass. Intervals count from the schedule's creation.
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
    datetime_from_instant,
    instant_from_datetime,
    next_clock_change,
    parse_cron,
    parse_instant,
    require_zone,
    utc_offset_at,
)
from moot.core.schedules.model import Schedule, ScheduleDraft
from moot.core.schedules.words import timing_from_words

#: slots that one call returns at most
MOST_SLOTS = 10_000


class DueSlot(Struct, frozen=True):
    """A slot and the instant it falls due, which is the slot with its jitter."""

    slot: int
    due: int


def timing_from_spec(spec: ScheduleDraft) -> Timing:
    """Return the times of a spec. Raise ScheduleRefused when it names none or several kinds."""
    return _timing_from_fields(
        spec.kind, spec.cron_expr, spec.interval_seconds, spec.at, spec.words, spec.timezone
    )


def slots_between(spec: Schedule, after: int, until: int, most: int = MOST_SLOTS) -> list[int]:
    """Return the slots later than ``after`` and not later than ``until``, up to ``most``."""
    matching = takewhile(lambda slot: slot <= until, iterate_slots(spec, after))
    return list(islice(matching, min(most, MOST_SLOTS)))


def next_slots(spec: Schedule, after: int, count: int) -> list[int]:
    return list(islice(iterate_slots(spec, after), min(count, MOST_SLOTS)))


def iterate_due_slots(spec: Schedule, after: int) -> Iterator[DueSlot]:
    """Yield slots in order, which is also the order of their due times. It may not end.

    The same slot always falls due at the same time.
    """
    slots = iterate_slots(spec, after)
    if not spec.jitter_seconds:
        yield from (DueSlot(slot, slot) for slot in slots)
        return
    following = next(slots, None)
    while (slot := following) is not None:
        following = next(slots, None)
        yield DueSlot(slot, slot + _jitter(spec, slot, following))


def iterate_slots(spec: Schedule, after: int) -> Iterator[int]:
    """Yield all slots later than ``after``. It may not end."""
    timing = timing_from_spec(spec)
    after = max(after, 0)
    if timing.cron is not None:
        every_hour = timing.cron.split()[1] == "*"
        cron_slots = _passing_hours if every_hour else _wall_times
        return cron_slots(timing.cron, require_zone(timing.zone), after)
    if timing.every is not None:
        return _interval_slots(millis(spec.created_at), timing.every, after)
    assert timing.at is not None
    return iter((timing.at,) if timing.at > after else ())


def _wall_times(cron: str, zone: tzinfo, after: int) -> Iterator[int]:
    if after >= LAST_INSTANT:
        return
    for moment in CronSim(cron, datetime_from_instant(after).astimezone(zone)):
        slot = instant_from_datetime(moment)
        # a repeated hour names the wall times of its first pass again
        if slot > after:
            yield slot


def _passing_hours(cron: str, zone: tzinfo, after: int) -> Iterator[int]:
    """Yield slots by a fixed offset from one clock change to the next.

    In the zone itself cronsim may skip slots when a change repeats half an hour.
    """
    while after < LAST_INSTANT:
        offset = utc_offset_at(zone, after + 1)
        change = None
        for wall in CronSim(cron, datetime_from_instant(after + offset)):
            slot = instant_from_datetime(wall) - offset
            change = next_clock_change(zone, after + 1, slot)
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
    longest = spec.jitter_seconds * 1000
    if following is not None:
        longest = min(longest, following - slot - 1)
    seed = f"{spec.schedule_id}\0{slot}".encode()
    return int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest()) % (longest + 1)


@lru_cache(maxsize=16_384)
def _timing_from_fields(
    kind: str, cron: str | None, seconds: int | None, at: str | None, words: str | None, zone: str
) -> Timing:
    fields = {"cronExpr": cron, "intervalSeconds": seconds, "at": at, "words": words}
    required = {"cron": "cronExpr", "interval": "intervalSeconds", "once": "at"}.get(kind, "words")
    for field, value in fields.items():
        if value is None and field == required:
            raise ScheduleRefused(field, f"A schedule of kind '{kind}' needs '{field}'.")
        if value is not None and field != required:
            message = f"A schedule of kind '{kind}' has no '{field}'; leave it out."
            raise ScheduleRefused(field, message)
    if words is not None:
        return timing_from_words(words, zone)
    tz = require_zone(zone)
    if cron is not None:
        return Timing(cron=parse_cron(cron), zone=zone)
    if seconds is not None:
        return Timing(every=seconds * 1000, zone=zone)
    return Timing(at=parse_instant(at or "", tz), zone=zone)
