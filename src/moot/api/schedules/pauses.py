"""Pauses of schedules and members: when they end and what they skip."""

from datetime import datetime

from moot.api.http.request import Request
from moot.core.errors import BadRequest, NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.calendar import LAST_INSTANT
from moot.core.schedules.manual import upcoming_slots
from moot.core.schedules.slots import timing_from_spec
from moot.triggers.schedules.records import SCHEDULE_SOURCE
from moot.triggers.schedules.snapshot import ScheduleSnapshot
from moot.wire.schedules import PauseCost, SkippedFire

#: Fires of one schedule that are counted, and schedules that are read.
MOST_COUNTED = 100
MOST_LOOKED_AT = 100
#: Fires that the answer lists.
NAMED = 5


def schedule_pause_cost(case: ScheduleSnapshot, until: int | None) -> PauseCost | None:
    """Return the fires that the pause skips, or None for a pause without an end.

    ``case`` is the schedule before the pause.
    """
    return None if until is None else _cost_view(_skipped_fires(case, until))


async def member_pause_cost(
    request: Request, roster_id: str, until: int | None
) -> PauseCost | None:
    """Return the fires of all the member's schedules that the pause skips."""
    if until is None:
        return None
    tenant, triggers = request.tenant, request.triggers
    triggers_of_member = await triggers.listening.of_member(tenant, roster_id)
    times: list[SkippedFire] = []
    for subscription in [
        each.it for each in triggers_of_member if each.it.source == SCHEDULE_SOURCE
    ][:MOST_LOOKED_AT]:
        try:
            times += _skipped_fires(
                await triggers.schedules.find(tenant, subscription.schedule_id or ""), until
            )
        except NotFound:
            continue  # removed meanwhile
    return _cost_view(times)


def _skipped_fires(case: ScheduleSnapshot, until: int) -> list[SkippedFire]:
    spec = case.plan.spec
    try:
        zone = timing_from_spec(spec).zone
        slots = upcoming_slots(spec, case.book.decided, case.seen, MOST_COUNTED)
    except ScheduleRefused:
        return []  # an invalid schedule starts nothing
    return [
        SkippedFire(at=iso(slot.due * 1000), workflow_id=spec.workflow_id, timezone=zone)
        for slot in slots
        if slot.skipped is None and slot.due < until
    ]


def _cost_view(times: list[SkippedFire]) -> PauseCost:
    times.sort(key=lambda each: each.at)
    return PauseCost(count=len(times), fires=times[:NAMED])


def parse_pause_end(text: str | None, now: int) -> int | None:
    """Return the end of a pause in ms. Raise BadRequest when it has passed."""
    if text is None:
        return None
    until = _parse_time(text)
    if until <= now:
        raise BadRequest("until has passed; name a time to come.", field="until")
    return until


def _parse_time(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BadRequest(f"'{text[:64]}' is no ISO time.", field="until") from None
    if time.tzinfo is None:
        raise BadRequest("until needs a time zone, such as Z or +01:00.", field="until")
    millis = round(time.timestamp() * 1000)
    if not 0 <= millis < LAST_INSTANT:
        raise BadRequest(f"'{text[:64]}' is outside of this host's calendar.", field="until")
    return millis
