"""Create, change, pause and run schedules; their fires and history."""

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request, check_depth
from moot.api.schedules import pauses
from moot.api.schedules.views import (
    change_view,
    checked_schedule,
    fire_view,
    mask_inputs,
    next_fires,
    schedule_view,
)
from moot.api.triggers.subscriptions import member_whereabouts
from moot.api.triggers.views import read_delivery_page
from moot.core.errors import BadRequest, MootError
from moot.core.events import iso
from moot.core.schedules.calendar import parse_instant, require_zone
from moot.core.schedules.decide import new_ledger
from moot.core.schedules.model import Schedule, ScheduleDraft, ScheduleFacts
from moot.core.schedules.slots import timing_from_spec
from moot.store import cursor
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.overview import MemberAvailability
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.records import SCHEDULE_SOURCE
from moot.triggers.schedules.scheduler import FireResult
from moot.triggers.schedules.snapshot import ScheduleSnapshot
from moot.wire.json import JsonObject
from moot.wire.schedules import (
    BackfillSchedule,
    ChangeSchedule,
    CheckedSchedule,
    FireList,
    FireResultList,
    PauseSchedule,
    RunSchedule,
    ScheduleChangeList,
    ScheduleDetail,
    ScheduleList,
    ScheduleView,
    SkipResult,
    SkipSlot,
    SlotResult,
)

#: Deliveries of each state that lists count, the newest.
MOST_ASKING = 1000

# -- one and all ---------------------------------------------------------------------------------


async def create_schedule(request: Request) -> Reply:
    schedules = request.triggers.schedules
    case = await schedules.make(request.tenant, await _read_body(request), request.caller.id)
    place = f"/v1/host/moot/schedules/{case.plan.spec.schedule_id}"
    return Reply(await _view_with_inert(request, case), 201, {"Location": place})


async def check_schedule(request: Request) -> Reply:
    """Return what a schedule would do, without creating it."""
    services, now = request.services, request.now()
    spec = await services.triggers.schedules.read(
        request.tenant, await _read_body(request), "sch_check"
    )
    dues = next_fires(spec, new_ledger(spec, now), ScheduleFacts(now=now))
    inputs = await _visible_inputs(request, spec)
    return Reply(replace(checked_schedule(spec, dues), inputs=inputs))


async def list_schedules(request: Request) -> Reply:
    tenant, schedules = request.tenant, request.triggers.schedules
    limit = request.integer("limit", 100, 1, 200)
    member, workflow = request.query.get("rosterId"), request.query.get("workflowId")
    name = tenant, "schedules", member, workflow
    after = cursor.unbind_cursor(request.query.get("cursor"), *name) or ""
    ids = [
        plan.spec.schedule_id
        for plan in await schedules.all(tenant)
        if plan.spec.schedule_id > after
        and member in (None, plan.spec.roster_id)
        and workflow in (None, plan.spec.workflow_id)
    ]
    page = ids[:limit]
    asking, where = await _count_missed(request), member_whereabouts(request)
    rows = []
    for each in page:
        case = await schedules.find(tenant, each)
        missed = asking.get(case.plan.subscription, 0)
        rows.append(replace(await _view_with_inert(request, case, where), missed=missed))
    following = cursor.bind_cursor(page[-1], *name) if len(ids) > limit else None
    return Reply(ScheduleList(schedules=rows, next_cursor=following))


async def _count_missed(request: Request) -> dict[str, int]:
    """Return how many slots of each subscription wait for a person: missed, or never started."""
    counts: dict[str, int] = {}
    for state in ("missed", "dead"):
        where = DeliveryFilter(sources=(SCHEDULE_SOURCE,), states=(state,))
        rows, _ = await request.store.deliveries(request.tenant, where, None, MOST_ASKING)
        for row in rows:
            counts[row.subscription] = counts.get(row.subscription, 0) + fire_from_row(row).count
    return counts


async def read_schedule(request: Request) -> Reply:
    case = await find_schedule(request)
    counts = await request.store.delivery_counts(case.tenant, case.plan.subscription)
    view = await _view_with_inert(request, case)
    return Reply(ScheduleDetail(**asdict(view), fires=counts))


async def change_schedule(request: Request) -> Reply:
    body = await _read_body(request)
    await _refuse_masks(request, body)
    case = await request.triggers.schedules.change(
        request.tenant, request.params["schedule_id"], body, request.caller.id
    )
    return Reply(await _view_with_inert(request, case))


async def _refuse_masks(request: Request, body: bytes) -> None:
    """Raise BadRequest when a caller sends back a mask, which would replace the secret."""
    try:
        inputs = msgspec.json.decode(body, type=_ScheduleInputs).inputs or {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return  # the schedule service reports what is wrong
    spec = (await find_schedule(request)).plan.spec
    stored = spec.inputs or {}
    masked = await _visible_inputs(request, spec) or {}
    for name in inputs:
        if name in masked and masked[name] == inputs[name] != stored[name]:
            raise BadRequest(
                f"'{name[:64]}' is shown masked; give its value, or leave inputs out.",
                field=f"inputs.{name[:64]}",
            )


class _ScheduleInputs(Struct):
    inputs: JsonObject | None = None


async def remove_schedule(request: Request) -> Reply:
    await request.triggers.schedules.remove(
        request.tenant, request.params["schedule_id"], request.caller.id
    )
    return Reply(None, 204)


async def pause_schedule(request: Request) -> Reply:
    case = await find_schedule(request)
    body = await request.read(PauseSchedule)
    until = None if body.until is None else parse_schedule_time(case, body.until, "until")
    paused = await request.triggers.schedules.pause(
        case.tenant, case.plan.spec.schedule_id, request.caller.id, body.reason, until
    )
    costs = pauses.schedule_pause_cost(case, until)
    return Reply(replace(await _view_with_inert(request, paused), costs=costs))


async def resume_schedule(request: Request) -> Reply:
    case = await request.triggers.schedules.resume(
        request.tenant, request.params["schedule_id"], request.caller.id
    )
    return Reply(await _view_with_inert(request, case))


async def _view_with_inert(
    request: Request, case: ScheduleSnapshot, where: MemberAvailability | None = None
) -> ScheduleView:
    """Return a schedule, with the reason if its member keeps it from starting anything."""
    spec, where = case.plan.spec, where or member_whereabouts(request)
    why = await where.inert(spec.roster_id, spec.workflow_id)
    return replace(schedule_view(case), inert=why, inputs=await _visible_inputs(request, spec))


async def _visible_inputs(request: Request, spec: Schedule) -> dict[str, object] | None:
    """Return the inputs and mask those that the workflow hides in its runs.

    All are masked when the workflow cannot be read.
    """
    if not spec.inputs:
        return spec.inputs
    try:
        flow = await request.host.flows.newest(request.tenant, spec.workflow_id)
    except MootError:
        flow = None
    return mask_inputs(spec.inputs, flow)


async def _read_body(request: Request) -> bytes:
    """Return the raw body. The schedule service parses it."""
    body = await request.body() or b"{}"
    check_depth(body)
    return body


async def read_schedule_history(request: Request) -> Reply:
    records = await request.triggers.schedules.history(
        request.tenant, request.params["schedule_id"]
    )
    return Reply(ScheduleChangeList(changes=[change_view(record) for record in records]))


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


HOST = "/v1/host/moot/schedules"
ONE = f"{HOST}/{{schedule_id}}"
READ, WRITE, START = "runs:read", "manifest:write", "runs:create"
SCHEDULE_ENDPOINTS = (
    Endpoint("POST", HOST, create_schedule, scope=WRITE, beside=START, body=ScheduleDraft,
             status=201, answer=ScheduleView),
    Endpoint("POST", f"{HOST}:check", check_schedule, scope=READ, body=ScheduleDraft,
             answer=CheckedSchedule),
    Endpoint("GET", HOST, list_schedules, scope=READ,
             query={**PAGE_QUERY, "rosterId": TEXT, "workflowId": TEXT}, answer=ScheduleList),
    Endpoint("GET", ONE, read_schedule, scope=READ, answer=ScheduleDetail),
    Endpoint("PATCH", ONE, change_schedule, scope=WRITE, beside=START, body=ChangeSchedule,
             answer=ScheduleView),
    Endpoint("DELETE", ONE, remove_schedule, scope=WRITE, status=204),
    Endpoint("POST", f"{ONE}/pause", pause_schedule, scope=WRITE, body=PauseSchedule,
             answer=ScheduleView),
    Endpoint("POST", f"{ONE}/resume", resume_schedule, scope=WRITE, beside=START,
             answer=ScheduleView),
    Endpoint("POST", f"{ONE}/run", run_schedule, scope=START, body=RunSchedule, status=202,
             answer=FireResultList),
    Endpoint("POST", f"{ONE}/skip", skip_slot, scope=START, body=SkipSlot, answer=SkipResult),
    Endpoint("POST", f"{ONE}/backfill", backfill_schedule, scope=START, body=BackfillSchedule,
             status=202, answer=FireResultList),
    Endpoint("GET", f"{ONE}/fires", list_fires, scope=READ,
             query={**PAGE_QUERY, "state": TEXT}, answer=FireList),
    Endpoint("GET", f"{ONE}/history", read_schedule_history, scope=READ, answer=ScheduleChangeList),
)  # fmt: skip
