"""Create, change, pause and run schedules; their fires and history."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from moot.api.http.request import Endpoint, Reply, Request, check_depth
from moot.api.schedules import pauses
from moot.api.schedules.views import (
    change_view,
    fire_view,
    mask_inputs,
    next_fires,
    schedule_view,
    times_view,
)
from moot.api.triggers.subscriptions import member_whereabouts
from moot.core.errors import BadRequest, MootError
from moot.core.events import iso
from moot.core.schedules.calendar import parse_instant, require_zone
from moot.core.schedules.decide import new_ledger
from moot.core.schedules.model import OverlapPolicy, ScheduleDraft, ScheduleFacts
from moot.core.schedules.slots import timing_from_spec
from moot.store import cursor
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.overview import MemberAvailability
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.records import SCHEDULE_SOURCE
from moot.triggers.schedules.scheduler import FireResult
from moot.triggers.schedules.snapshot import ScheduleSnapshot

Instant = Annotated[str, Meta(min_length=1, max_length=64)]
#: Deliveries of each state that lists count, the newest.
MOST_ASKING = 1000
FireId = Annotated[str, Meta(min_length=1, max_length=128)]


class PauseScheduleBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=500)] = ""
    #: A time. Without it the pause lasts until a person resumes.
    until: Instant | None = None


class RunScheduleBody(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """``fire`` names a row of missed slots, whose newest one is run."""

    overlap: OverlapPolicy | None = None
    fire: FireId | None = None
    dry_run: bool = False


class SkipSlotBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Skips the next slot, or dismisses a row of missed slots.

    With ``undo`` the last skipped slot is restored.
    """

    fire: FireId | None = None
    undo: bool = False
    dry_run: bool = False


class BackfillBody(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
    rename={"since": "from", "dry_run": "dryRun"},
):  # fmt: skip
    """A period of the past. Both ends are included."""

    since: Instant
    to: Instant
    overlap: OverlapPolicy | None = None
    dry_run: bool = False


# -- one and all ---------------------------------------------------------------------------------


async def create_schedule(request: Request) -> Reply:
    schedules = request.services.triggers.schedules
    case = await schedules.make(request.caller.tenant, await _read_body(request), request.caller.id)
    place = f"/v1/host/moot/schedules/{case.plan.spec.schedule_id}"
    return Reply(await _view_with_inert(request, case), 201, {"Location": place})


async def check_schedule(request: Request) -> Reply:
    """Return what a schedule would do, without creating it."""
    services, now = request.services, request.services.clock.millis()
    spec = await services.triggers.schedules.read(
        request.caller.tenant, await _read_body(request), "sch_check"
    )
    view = times_view(spec, next_fires(spec, new_ledger(spec, now), ScheduleFacts(now=now)))
    return Reply({"ok": True, **await _without_secrets(request, spec.workflow_id, view)})


async def list_schedules(request: Request) -> Reply:
    tenant, schedules = request.caller.tenant, request.services.triggers.schedules
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
        rows.append(
            await _view_with_inert(request, case, where) | ({"missed": missed} if missed else {})
        )
    more = {"nextCursor": cursor.bind_cursor(page[-1], *name)} if len(ids) > limit else {}
    return Reply({"schedules": rows, **more})


async def _count_missed(request: Request) -> dict[str, int]:
    """Return how many slots of each subscription wait for a person: missed, or never started."""
    counts: dict[str, int] = {}
    for state in ("missed", "dead"):
        where = DeliveryFilter(sources=(SCHEDULE_SOURCE,), states=(state,))
        rows, _ = await request.services.store.deliveries(
            request.caller.tenant, where, None, MOST_ASKING
        )
        for row in rows:
            counts[row.subscription] = counts.get(row.subscription, 0) + fire_from_row(row).count
    return counts


async def read_schedule(request: Request) -> Reply:
    case = await _find_schedule(request)
    counts = await request.services.store.delivery_counts(case.tenant, case.plan.subscription)
    return Reply({**await _view_with_inert(request, case), "fires": counts})


async def change_schedule(request: Request) -> Reply:
    body = await _read_body(request)
    await _refuse_masks(request, body)
    case = await request.services.triggers.schedules.change(
        request.caller.tenant, request.params["schedule_id"], body, request.caller.id
    )
    return Reply(await _view_with_inert(request, case))


async def _refuse_masks(request: Request, body: bytes) -> None:
    """Raise BadRequest when a caller sends back a mask, which would replace the secret."""
    try:
        inputs = msgspec.json.decode(body, type=_ScheduleInputs).inputs or {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return  # the schedule service reports what is wrong
    spec = (await _find_schedule(request)).plan.spec
    stored = spec.inputs or {}
    masked = (await _without_secrets(request, spec.workflow_id, {"inputs": stored}))["inputs"]
    for name in inputs:
        if name in masked and masked[name] == inputs[name] != stored[name]:
            raise BadRequest(
                f"'{name[:64]}' is shown masked; give its value, or leave inputs out.",
                field=f"inputs.{name[:64]}",
            )


class _ScheduleInputs(Struct):
    inputs: dict[str, Any] | None = None


async def remove_schedule(request: Request) -> Reply:
    await request.services.triggers.schedules.remove(
        request.caller.tenant, request.params["schedule_id"], request.caller.id
    )
    return Reply(None, 204)


async def pause_schedule(request: Request) -> Reply:
    case = await _find_schedule(request)
    body = await request.read(PauseScheduleBody)
    until = None if body.until is None else _parse_instant(case, body.until, "until")
    paused = await request.services.triggers.schedules.pause(
        case.tenant, case.plan.spec.schedule_id, request.caller.id, body.reason, until
    )
    costs = pauses.schedule_pause_cost(case, until)
    return Reply({**await _view_with_inert(request, paused), **costs})


async def resume_schedule(request: Request) -> Reply:
    case = await request.services.triggers.schedules.resume(
        request.caller.tenant, request.params["schedule_id"], request.caller.id
    )
    return Reply(await _view_with_inert(request, case))


async def _view_with_inert(
    request: Request, case: ScheduleSnapshot, where: MemberAvailability | None = None
) -> dict[str, Any]:
    """Return a schedule, with the reason if its member keeps it from starting anything."""
    spec, where = case.plan.spec, where or member_whereabouts(request)
    why = await where.inert(spec.roster_id, spec.workflow_id)
    view = await _without_secrets(request, spec.workflow_id, schedule_view(case))
    return view if why is None else {**view, "inert": why}


async def _without_secrets(
    request: Request, workflow_id: str, view: dict[str, Any]
) -> dict[str, Any]:
    """Mask the inputs that the workflow hides in its runs.

    All are masked when the workflow cannot be read.
    """
    try:
        flow = await request.services.host.flows.newest(request.caller.tenant, workflow_id)
    except MootError:
        flow = None
    return mask_inputs(view, flow)


async def _read_body(request: Request) -> bytes:
    """Return the raw body. The schedule service parses it."""
    body = await request.body() or b"{}"
    check_depth(body)
    return body


async def _find_schedule(request: Request) -> ScheduleSnapshot:
    return await request.services.triggers.schedules.find(
        request.caller.tenant, request.params["schedule_id"]
    )


def _parse_instant(case: ScheduleSnapshot, text: str, field: str) -> int:
    """Return a time in ms. Without an offset it is local time in the schedule's zone."""
    return parse_instant(text, require_zone(timing_from_spec(case.plan.spec).zone), field)


# -- by hand -------------------------------------------------------------------------------------


async def run_schedule(request: Request) -> Reply:
    case, body = await _find_schedule(request), await request.read(RunScheduleBody)
    schedules, name = request.services.triggers.schedules, case.plan.spec.schedule_id
    if body.fire is not None:
        done = await schedules.run_missed(case.tenant, name, body.fire, body.dry_run)
    else:
        done = await schedules.run(case.tenant, name, body.overlap, body.dry_run)
    return _fires_reply(case, done, body.dry_run)


async def skip_slot(request: Request) -> Reply:
    case, body = await _find_schedule(request), await request.read(SkipSlotBody)
    schedules, name = request.services.triggers.schedules, case.plan.spec.schedule_id
    answer: dict[str, Any] = {"scheduleId": name, "dryRun": body.dry_run}
    if body.fire is not None and body.undo:
        raise BadRequest("Leave out fire or undo.", field="undo")
    if body.fire is None:
        by, dry = request.caller.id, body.dry_run
        slot = await schedules.skip(case.tenant, name, by, dry, body.undo)
        return Reply({**answer, "restored" if body.undo else "skipped": iso(slot * 1000)})
    if not body.dry_run:
        await schedules.dismiss(case.tenant, name, body.fire)
    return Reply({**answer, "dismissed": body.fire})


async def backfill_schedule(request: Request) -> Reply:
    case, body = await _find_schedule(request), await request.read(BackfillBody)
    between = _parse_instant(case, body.since, "from"), _parse_instant(case, body.to, "to")
    done = await request.services.triggers.schedules.backfill(
        case.tenant, case.plan.spec.schedule_id, between, body.overlap, body.dry_run
    )
    return _fires_reply(case, done, body.dry_run)


def _fires_reply(case: ScheduleSnapshot, done: list[FireResult], dry: bool) -> Reply:
    rows = [_fire_result(each) for each in done]
    body: dict[str, Any] = {
        "scheduleId": case.plan.spec.schedule_id, "dryRun": dry, "fires": rows,
    }  # fmt: skip
    began = [row["runId"] for row in rows if "runId" in row]
    if began:
        body["runId"] = began[-1]
    return Reply(body, 200 if dry else 202)


def _fire_result(done: FireResult) -> dict[str, Any]:
    fire = done.fire
    body: dict[str, Any] = {
        "act": fire.act, "slot": iso(fire.slot * 1000), "cause": fire.cause,
    }  # fmt: skip
    if fire.reason is not None:
        body["reason"] = fire.reason
    if done.run_id is not None:
        body["runId"] = done.run_id
    return body


# -- what it did ---------------------------------------------------------------------------------


async def list_fires(request: Request) -> Reply:
    case = await _find_schedule(request)
    limit = request.integer("limit", 50, 1, 200)
    states = tuple(filter(None, request.query.get("state", "").split(",")))
    where = DeliveryFilter(subscription=case.plan.subscription, states=states)
    rows, following = await request.services.store.deliveries(
        case.tenant, where, request.query.get("cursor"), limit
    )
    more = {"nextCursor": following} if following is not None else {}
    return Reply({"fires": [fire_view(row) for row in rows], **more})


async def read_schedule_history(request: Request) -> Reply:
    records = await request.services.triggers.schedules.history(
        request.caller.tenant, request.params["schedule_id"]
    )
    return Reply({"changes": [change_view(record) for record in records]})


HOST = "/v1/host/moot/schedules"
ONE = f"{HOST}/{{schedule_id}}"
READ, WRITE, START = "runs:read", "manifest:write", "runs:create"
LIMIT: dict[str, tuple[dict[str, Any], str]] = {
    "limit": ({"type": "integer", "minimum": 1, "maximum": 200}, "at most so many"),
    "cursor": ({"type": "string"}, "where the page before ended"),
}
OF = {
    "rosterId": ({"type": "string"}, "only those of this member"),
    "workflowId": ({"type": "string"}, "only those of this workflow"),
}
STATE = {
    "state": (
        {"type": "string"},
        "only delivered, waiting, skipped, missed or dead ones; several with commas",
    )
}
SCHEDULE_ENDPOINTS = (
    Endpoint(
        method="POST", path=HOST, call=create_schedule, body=ScheduleDraft, scope=WRITE,
        beside=START,
        status=201,
        summary="Have a workflow run at times to come",
    ),
    Endpoint(
        method="POST", path=f"{HOST}:check", call=check_schedule, body=ScheduleDraft, scope=READ,
        summary="What a schedule would do, without making it",
    ),
    Endpoint(
        method="GET", path=HOST, call=list_schedules, scope=READ, query={**LIMIT, **OF},
        summary="Schedules and their next times",
    ),
    Endpoint(
        method="GET", path=ONE, call=read_schedule, scope=READ, errors=(404,),
        summary="A schedule, its next times, and how its fires went",
    ),
    Endpoint(
        method="PATCH", path=ONE, call=change_schedule, scope=WRITE, beside=START,
        errors=(404, 409),
        summary="Change a schedule; null takes a field back to its default",
    ),
    Endpoint(
        method="DELETE", path=ONE, call=remove_schedule, scope=WRITE, status=204, errors=(404, 409),
        summary="End a schedule; runs that it has started go on",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/pause", call=pause_schedule, body=PauseScheduleBody,
        scope=WRITE,
        errors=(404, 409), summary="Start nothing for now; nothing of it is caught up",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/resume", call=resume_schedule, scope=WRITE, beside=START,
        errors=(404, 409),
        summary="End a pause",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/run", call=run_schedule, body=RunScheduleBody, scope=START,
        status=202,
        errors=(404, 409), summary="Run now, or run what was missed",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/skip", call=skip_slot, body=SkipSlotBody, scope=START,
        errors=(404, 409), summary="Leave the next time out, or let go what was missed",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/backfill", call=backfill_schedule, body=BackfillBody,
        scope=START,
        status=202, errors=(404, 409), summary="Run times of the past that have had no run",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/fires", call=list_fires, scope=READ, query={**LIMIT, **STATE},
        errors=(404,), summary="What became of its times, newest first",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/history", call=read_schedule_history, scope=READ, errors=(404,),
        summary="Who did what to it, newest first",
    ),
)  # fmt: skip
