"""Schedules: made, changed, paused, ended; what they will do, what they did, and what by hand."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from moot.api.http.request import Endpoint, Reply, Request, refuse_deep
from moot.api.schedules import pause_cost
from moot.api.schedules.views import changed, fired, next_fires, shown, times, veiled
from moot.api.triggers.subscriptions import whereabouts
from moot.core.errors import BadRequest, MootError
from moot.core.events import iso
from moot.core.schedules.calendar import instant_from, zone_from
from moot.core.schedules.decide import opened
from moot.core.schedules.model import Overlap, ScheduleDraft, Seen
from moot.core.schedules.slots import timing_of
from moot.store import cursor
from moot.store.records import DeliveryFilter
from moot.triggers.inbound.overview import Whereabouts
from moot.triggers.schedules.fire_rows import fire_of
from moot.triggers.schedules.records import SOURCE
from moot.triggers.schedules.scheduler import Done
from moot.triggers.schedules.snapshot import Case

Instant = Annotated[str, Meta(min_length=1, max_length=64)]
#: of each kind, the newest that are counted in lists
MOST_ASKING = 1000
FireId = Annotated[str, Meta(min_length=1, max_length=128)]


class PauseAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=500)] = ""
    #: a time; left out, until somebody resumes it
    until: Instant | None = None


class RunAsked(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """``fire`` names a row of missed slots, whose newest is run."""

    overlap: Overlap | None = None
    fire: FireId | None = None
    dry_run: bool = False


class SkipAsked(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The next slot, or that row of missed slots; or, undone, the slot that was left out last."""

    fire: FireId | None = None
    undo: bool = False
    dry_run: bool = False


class Backfill(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
    rename={"since": "from", "dry_run": "dryRun"},
):  # fmt: skip
    """Both ends are included."""

    since: Instant
    to: Instant
    overlap: Overlap | None = None
    dry_run: bool = False


# -- one and all ---------------------------------------------------------------------------------


async def make(request: Request) -> Reply:
    schedules = request.services.triggers.schedules
    case = await schedules.make(request.caller.tenant, await _body(request), request.caller.id)
    place = f"/v1/host/moot/schedules/{case.plan.spec.schedule_id}"
    return Reply(await _shown(request, case), 201, {"Location": place})


async def check(request: Request) -> Reply:
    """What a schedule would do, without making it."""
    services, now = request.services, request.services.clock.millis()
    spec = await services.triggers.schedules.read(
        request.caller.tenant, await _body(request), "sch_check"
    )
    said = times(spec, next_fires(spec, opened(spec, now), Seen(now=now)))
    return Reply({"ok": True, **await _veiled(request, spec.workflow_id, said)})


async def list_schedules(request: Request) -> Reply:
    tenant, schedules = request.caller.tenant, request.services.triggers.schedules
    limit = request.integer("limit", 100, 1, 200)
    member, workflow = request.query.get("rosterId"), request.query.get("workflowId")
    name = tenant, "schedules", member, workflow
    after = cursor.unbound(request.query.get("cursor"), *name) or ""
    found = [
        plan.spec.schedule_id
        for plan in await schedules.all(tenant)
        if plan.spec.schedule_id > after
        and member in (None, plan.spec.roster_id)
        and workflow in (None, plan.spec.workflow_id)
    ]
    page = found[:limit]
    asking, where = await _asking(request), whereabouts(request)
    rows = []
    for each in page:
        case = await schedules.find(tenant, each)
        missed = asking.get(case.plan.subscription, 0)
        rows.append(await _shown(request, case, where) | ({"missed": missed} if missed else {}))
    more = {"nextCursor": cursor.bound(page[-1], *name)} if len(found) > limit else {}
    return Reply({"schedules": rows, **more})


async def _asking(request: Request) -> dict[str, int]:
    """How many times of each subscription wait for somebody to look: missed, or never begun."""
    found: dict[str, int] = {}
    for state in ("missed", "dead"):
        where = DeliveryFilter(sources=(SOURCE,), states=(state,))
        rows, _ = await request.services.store.deliveries(
            request.caller.tenant, where, None, MOST_ASKING
        )
        for row in rows:
            found[row.subscription] = found.get(row.subscription, 0) + fire_of(row).count
    return found


async def read(request: Request) -> Reply:
    case = await _case(request)
    counts = await request.services.store.delivery_counts(case.tenant, case.plan.subscription)
    return Reply({**await _shown(request, case), "fires": counts})


async def change(request: Request) -> Reply:
    body = await _body(request)
    await _refuse_masks(request, body)
    case = await request.services.triggers.schedules.change(
        request.caller.tenant, request.params["schedule_id"], body, request.caller.id
    )
    return Reply(await _shown(request, case))


async def _refuse_masks(request: Request, body: bytes) -> None:
    """Whoever sends back what was shown would put the mask in the place of the secret."""
    try:
        given = msgspec.json.decode(body, type=_Inputs).inputs or {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return  # whoever reads it all says what is wrong
    spec = (await _case(request)).plan.spec
    kept = spec.inputs or {}
    seen = (await _veiled(request, spec.workflow_id, {"inputs": kept}))["inputs"]
    for name in given:
        if name in seen and seen[name] == given[name] != kept[name]:
            raise BadRequest(
                f"'{name[:64]}' is shown masked; give its value, or leave inputs out.",
                field=f"inputs.{name[:64]}",
            )


class _Inputs(Struct):
    inputs: dict[str, Any] | None = None


async def remove(request: Request) -> Reply:
    await request.services.triggers.schedules.remove(
        request.caller.tenant, request.params["schedule_id"], request.caller.id
    )
    return Reply(None, 204)


async def pause(request: Request) -> Reply:
    case = await _case(request)
    asked = await request.read(PauseAsked)
    until = None if asked.until is None else _instant(case, asked.until, "until")
    paused = await request.services.triggers.schedules.pause(
        case.tenant, case.plan.spec.schedule_id, request.caller.id, asked.reason, until
    )
    costs = pause_cost.of_schedule(case, until)
    return Reply({**await _shown(request, paused), **costs})


async def resume(request: Request) -> Reply:
    case = await request.services.triggers.schedules.resume(
        request.caller.tenant, request.params["schedule_id"], request.caller.id
    )
    return Reply(await _shown(request, case))


async def _shown(request: Request, case: Case, where: Whereabouts | None = None) -> dict[str, Any]:
    """With why it starts nothing, if that is its member's doing."""
    spec, where = case.plan.spec, where or whereabouts(request)
    why = await where.inert(spec.roster_id, spec.workflow_id)
    said = await _veiled(request, spec.workflow_id, shown(case))
    return said if why is None else {**said, "inert": why}


async def _veiled(request: Request, workflow_id: str, said: dict[str, Any]) -> dict[str, Any]:
    """Whoever may see a schedule sees of its inputs what they would see of its runs'. Of a
    workflow that cannot be read nobody can say which are secret."""
    try:
        flow = await request.services.host.flows.newest(request.caller.tenant, workflow_id)
    except MootError:
        flow = None
    return veiled(said, flow)


async def _body(request: Request) -> bytes:
    """What a schedule says is read where schedules are, with the fields they have."""
    body = await request.body() or b"{}"
    refuse_deep(body)
    return body


async def _case(request: Request) -> Case:
    return await request.services.triggers.schedules.find(
        request.caller.tenant, request.params["schedule_id"]
    )


def _instant(case: Case, text: str, field: str) -> int:
    """Without an offset it is a time on the wall of the schedule's zone."""
    return instant_from(text, zone_from(timing_of(case.plan.spec).zone), field)


# -- by hand -------------------------------------------------------------------------------------


async def run(request: Request) -> Reply:
    case, asked = await _case(request), await request.read(RunAsked)
    schedules, name = request.services.triggers.schedules, case.plan.spec.schedule_id
    if asked.fire is not None:
        done = await schedules.run_missed(case.tenant, name, asked.fire, asked.dry_run)
    else:
        done = await schedules.run(case.tenant, name, asked.overlap, asked.dry_run)
    return _said(case, done, asked.dry_run)


async def skip(request: Request) -> Reply:
    case, asked = await _case(request), await request.read(SkipAsked)
    schedules, name = request.services.triggers.schedules, case.plan.spec.schedule_id
    body: dict[str, Any] = {"scheduleId": name, "dryRun": asked.dry_run}
    if asked.fire is not None and asked.undo:
        raise BadRequest("Leave out fire or undo.", field="undo")
    if asked.fire is None:
        by, dry = request.caller.id, asked.dry_run
        slot = await schedules.skip(case.tenant, name, by, dry, asked.undo)
        return Reply({**body, "restored" if asked.undo else "skipped": iso(slot * 1000)})
    if not asked.dry_run:
        await schedules.dismiss(case.tenant, name, asked.fire)
    return Reply({**body, "dismissed": asked.fire})


async def backfill(request: Request) -> Reply:
    case, asked = await _case(request), await request.read(Backfill)
    between = _instant(case, asked.since, "from"), _instant(case, asked.to, "to")
    done = await request.services.triggers.schedules.backfill(
        case.tenant, case.plan.spec.schedule_id, between, asked.overlap, asked.dry_run
    )
    return _said(case, done, asked.dry_run)


def _said(case: Case, done: list[Done], dry: bool) -> Reply:
    rows = [_done(each) for each in done]
    body: dict[str, Any] = {
        "scheduleId": case.plan.spec.schedule_id, "dryRun": dry, "fires": rows,
    }  # fmt: skip
    began = [row["runId"] for row in rows if "runId" in row]
    if began:
        body["runId"] = began[-1]
    return Reply(body, 200 if dry else 202)


def _done(done: Done) -> dict[str, Any]:
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


async def fires(request: Request) -> Reply:
    case = await _case(request)
    limit = request.integer("limit", 50, 1, 200)
    states = tuple(filter(None, request.query.get("state", "").split(",")))
    where = DeliveryFilter(subscription=case.plan.subscription, states=states)
    found, following = await request.services.store.deliveries(
        case.tenant, where, request.query.get("cursor"), limit
    )
    more = {"nextCursor": following} if following is not None else {}
    return Reply({"fires": [fired(row) for row in found], **more})


async def history(request: Request) -> Reply:
    found = await request.services.triggers.schedules.history(
        request.caller.tenant, request.params["schedule_id"]
    )
    return Reply({"changes": [changed(record) for record in found]})


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
ENDPOINTS = (
    Endpoint(
        method="POST", path=HOST, call=make, body=ScheduleDraft, scope=WRITE, beside=START,
        status=201,
        summary="Have a workflow run at times to come",
    ),
    Endpoint(
        method="POST", path=f"{HOST}:check", call=check, body=ScheduleDraft, scope=READ,
        summary="What a schedule would do, without making it",
    ),
    Endpoint(
        method="GET", path=HOST, call=list_schedules, scope=READ, query={**LIMIT, **OF},
        summary="Schedules and their next times",
    ),
    Endpoint(
        method="GET", path=ONE, call=read, scope=READ, errors=(404,),
        summary="A schedule, its next times, and how its fires went",
    ),
    Endpoint(
        method="PATCH", path=ONE, call=change, scope=WRITE, beside=START, errors=(404, 409),
        summary="Change a schedule; null takes a field back to its default",
    ),
    Endpoint(
        method="DELETE", path=ONE, call=remove, scope=WRITE, status=204, errors=(404, 409),
        summary="End a schedule; runs that it has started go on",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/pause", call=pause, body=PauseAsked, scope=WRITE,
        errors=(404, 409), summary="Start nothing for now; nothing of it is caught up",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/resume", call=resume, scope=WRITE, beside=START,
        errors=(404, 409),
        summary="End a pause",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/run", call=run, body=RunAsked, scope=START, status=202,
        errors=(404, 409), summary="Run now, or run what was missed",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/skip", call=skip, body=SkipAsked, scope=START,
        errors=(404, 409), summary="Leave the next time out, or let go what was missed",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/backfill", call=backfill, body=Backfill, scope=START,
        status=202, errors=(404, 409), summary="Run times of the past that have had no run",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/fires", call=fires, scope=READ, query={**LIMIT, **STATE},
        errors=(404,), summary="What became of its times, newest first",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/history", call=history, scope=READ, errors=(404,),
        summary="Who did what to it, newest first",
    ),
)  # fmt: skip
