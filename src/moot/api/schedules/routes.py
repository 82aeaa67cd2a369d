"""Create, change, pause and run schedules; their fires and history."""

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request, check_depth
from moot.api.schedules import fires, pauses
from moot.api.schedules.fires import find_schedule, parse_schedule_time
from moot.api.schedules.views import (
    change_view,
    checked_schedule,
    mask_inputs,
    next_fires,
    schedule_view,
)
from moot.api.triggers.subscriptions import member_whereabouts
from moot.core.errors import BadRequest, MootError
from moot.core.schedules.decide import new_ledger
from moot.core.schedules.model import Schedule, ScheduleDraft, ScheduleFacts
from moot.store import cursor
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.overview import MemberAvailability
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.records import SCHEDULE_SOURCE
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


async def _visible_inputs(request: Request, spec: Schedule) -> JsonObject | None:
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
    Endpoint("POST", f"{ONE}/run", fires.run_schedule, scope=START, body=RunSchedule, status=202,
             answer=FireResultList),
    Endpoint("POST", f"{ONE}/skip", fires.skip_slot, scope=START, body=SkipSlot, answer=SkipResult),
    Endpoint("POST", f"{ONE}/backfill", fires.backfill_schedule, scope=START, body=BackfillSchedule,
             status=202, answer=FireResultList),
    Endpoint("GET", f"{ONE}/fires", fires.list_fires, scope=READ,
             query={**PAGE_QUERY, "state": TEXT}, answer=FireList),
    Endpoint("GET", f"{ONE}/history", read_schedule_history, scope=READ, answer=ScheduleChangeList),
)  # fmt: skip
