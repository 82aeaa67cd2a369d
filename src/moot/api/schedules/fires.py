"""Run, skip and backfill the slots of a schedule, and list its fires."""

from msgspec.structs import replace

from moot.api.http.request import Reply, Request
from moot.api.schedules.views import fire_view
from moot.api.triggers.views import read_delivery_page
from moot.core.errors import BadRequest
from moot.core.events import iso
from moot.core.schedules.calendar import parse_instant, require_zone
from moot.core.schedules.slots import timing_from_spec
from moot.store.records import DeliveryFilter
from moot.triggers.schedules.scheduler import FireResult
from moot.triggers.schedules.snapshot import ScheduleSnapshot
from moot.wire.schedules import (
    BackfillSchedule,
    FireList,
    FireResultList,
    RunSchedule,
    SkipResult,
    SkipSlot,
    SlotResult,
)


async def find_schedule(request: Request) -> ScheduleSnapshot:
    return await request.triggers.schedules.find(request.tenant, request.params["schedule_id"])


def parse_schedule_time(case: ScheduleSnapshot, text: str, field: str) -> int:
    """Return a time in ms. Without an offset it is local time in the schedule's zone."""
    return parse_instant(text, require_zone(timing_from_spec(case.plan.spec).zone), field)


async def run_schedule(request: Request) -> Reply:
    case, body = await find_schedule(request), await request.read(RunSchedule)
    schedules, name = request.triggers.schedules, case.plan.spec.schedule_id
    if body.fire is not None:
        done = await schedules.run_missed(case.tenant, name, body.fire, body.dry_run)
    else:
        done = await schedules.run(case.tenant, name, body.overlap, body.dry_run)
    return _fires_reply(case, done, body.dry_run)


async def skip_slot(request: Request) -> Reply:
    case, body = await find_schedule(request), await request.read(SkipSlot)
    schedules, name = request.triggers.schedules, case.plan.spec.schedule_id
    answer = SkipResult(schedule_id=name, dry_run=body.dry_run)
    if body.fire is not None and body.undo:
        raise BadRequest("Leave out fire or undo.", field="undo")
    if body.fire is None:
        by, dry = request.caller.id, body.dry_run
        slot = iso(await schedules.skip(case.tenant, name, by, dry, body.undo) * 1000)
        if body.undo:
            return Reply(replace(answer, restored=slot))
        return Reply(replace(answer, skipped=slot))
    if not body.dry_run:
        await schedules.dismiss(case.tenant, name, body.fire)
    return Reply(replace(answer, dismissed=body.fire))


async def backfill_schedule(request: Request) -> Reply:
    case, body = await find_schedule(request), await request.read(BackfillSchedule)
    first = parse_schedule_time(case, body.since, "from")
    last = parse_schedule_time(case, body.to, "to")
    done = await request.triggers.schedules.backfill(
        case.tenant, case.plan.spec.schedule_id, (first, last), body.overlap, body.dry_run
    )
    return _fires_reply(case, done, body.dry_run)


def _fires_reply(case: ScheduleSnapshot, done: list[FireResult], dry: bool) -> Reply:
    began = [each.run_id for each in done if each.run_id is not None]
    results = FireResultList(
        schedule_id=case.plan.spec.schedule_id,
        dry_run=dry,
        fires=[_slot_result(each) for each in done],
        run_id=began[-1] if began else None,
    )
    return Reply(results, 200 if dry else 202)


def _slot_result(done: FireResult) -> SlotResult:
    fire, slot = done.fire, iso(done.fire.slot * 1000)
    return SlotResult(
        act=fire.act, slot=slot, cause=fire.cause, reason=fire.reason, run_id=done.run_id
    )


async def list_fires(request: Request) -> Reply:
    case = await find_schedule(request)
    states = tuple(filter(None, request.query.get("state", "").split(",")))
    where = DeliveryFilter(subscription=case.plan.subscription, states=states)
    rows, following = await read_delivery_page(request, case.tenant, where)
    return Reply(FireList(fires=[fire_view(row) for row in rows], next_cursor=following))
