"""What a pause with an end costs: the times before that end at which something would start."""

from typing import Any

from moot.api.http.request import Request
from moot.core.errors import NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.manual import upcoming
from moot.core.schedules.slots import timing_of
from moot.triggers.schedules.records import SOURCE
from moot.triggers.schedules.snapshot import Case

#: times of one schedule that are counted, and schedules that are looked at
MOST_COUNTED = 100
MOST_LOOKED_AT = 100
#: times that are named
NAMED = 5


def of_schedule(case: Case, until: int | None) -> dict[str, Any]:
    """As it was before the pause. Nothing for one without an end."""
    return {} if until is None else _said(_times(case, until))


async def of_member(request: Request, roster_id: str, until: int | None) -> dict[str, Any]:
    """Of all schedules of a member that is on duty."""
    if until is None:
        return {}
    tenant, triggers = request.caller.tenant, request.services.triggers
    found = await triggers.listening.of_member(tenant, roster_id)
    times: list[dict[str, Any]] = []
    for it in [each.it for each in found if each.it.source == SOURCE][:MOST_LOOKED_AT]:
        try:
            times += _times(await triggers.schedules.find(tenant, it.schedule_id or ""), until)
        except NotFound:
            continue  # removed meanwhile
    return _said(times)


def _times(case: Case, until: int) -> list[dict[str, Any]]:
    spec = case.plan.spec
    try:
        zone = timing_of(spec).zone
        found = upcoming(spec, case.book.decided, case.seen, MOST_COUNTED)
    except ScheduleRefused:
        return []  # nothing of it starts anyway
    return [
        {"at": iso(each.due * 1000), "workflowId": spec.workflow_id, "timezone": zone}
        for each in found
        if each.skipped is None and each.due < until
    ]


def _said(times: list[dict[str, Any]]) -> dict[str, Any]:
    times.sort(key=lambda each: str(each["at"]))
    return {"costs": {"count": len(times), "fires": times[:NAMED]}}
