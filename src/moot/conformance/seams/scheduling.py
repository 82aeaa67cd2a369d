"""Seams ``scheduling/tick`` and ``heartbeat/tick``: real schedules, later."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.conformance.seams.deliveries import create_minute_schedule
from moot.conformance.seams.setup import node, register_workflow, seam, workflow
from moot.core.errors import NotFound
from moot.core.ids import derived_id
from moot.core.schedules.slots import next_slots
from moot.triggers.schedules.snapshot import ScheduleSnapshot

#: Milliseconds. The seams' schedules have one slot each minute.
MINUTE = 60_000
LATE = 2 * MINUTE
FLOW = workflow("conformance-tick", [node("tick")])


class SchedulingTick(Struct, frozen=True, rename="camel"):
    scenario: Literal["single-tick", "missed-window"]
    missed_ticks: Annotated[int, Meta(ge=1, le=10_000)] = 5


class HeartbeatTick(Struct, frozen=True, rename="camel"):
    heartbeat_id: Annotated[str, Meta(min_length=1, max_length=256)]
    observed_state: Any


async def tick_schedule(request: Request) -> Reply:
    """Let one slot fall due, or many that were missed."""
    body, tenant = await request.read(SchedulingTick), request.caller.tenant
    case = await _create_schedule(request, request.services.clock.new_id("sch_"))
    name, schedules = case.plan.spec.schedule_id, request.services.triggers.schedules
    first, *_ = next_slots(case.plan.spec, case.book.decided.decided, 1)
    missed = body.scenario == "missed-window"
    now = first + body.missed_ticks * MINUTE + LATE if missed else first
    try:
        done = await request.services.triggers.scheduler.look(tenant, name, now)
    finally:
        await schedules.remove(tenant, name, request.caller.id)
    return Reply({"runsFired": sum(each.run_id is not None for each in done)})


async def tick_heartbeat(request: Request) -> Reply:
    """Run a schedule that starts a run only when the observed state has changed."""
    body, tenant = await request.read(HeartbeatTick), request.caller.tenant
    schedules = request.services.triggers.schedules
    name = derived_id("sch_", "heartbeat", tenant, body.heartbeat_id)
    change = {"condition": {"expression": encode(body.observed_state).decode(), "onChange": True}}
    try:
        case = await schedules.find(tenant, name)
    except NotFound:
        case = await _create_schedule(request, name, **change)
    else:
        case = await schedules.change(tenant, name, encode(change), request.caller.id)
    before = case.book.observed
    slot, *_ = next_slots(case.plan.spec, case.book.decided.decided, 1)
    done = await request.services.triggers.scheduler.look(tenant, name, slot)
    changed = any(each.run_id is not None for each in done)
    heartbeat = {"heartbeatId": body.heartbeat_id}
    answer: dict[str, object] = {"evaluated": [{**heartbeat, "status": "ok", "changed": changed}]}
    if changed and before is not None:
        now = _observed_state(encode(body.observed_state))
        states = {"from": _observed_state(before), "to": now}
        answer["stateChanged"] = [{**heartbeat, **states}]
    return Reply(answer)


def _observed_state(text: str | bytes) -> dict[str, object]:
    value = msgspec.json.decode(text)
    return value if isinstance(value, dict) else {"value": value}


async def _create_schedule(request: Request, name: str, **more: object) -> ScheduleSnapshot:
    flow = await register_workflow(request, FLOW)
    return await create_minute_schedule(request, flow.definition.id, name, **more)


SCHEDULING_SEAMS = (
    seam("scheduling/tick", tick_schedule, SchedulingTick),
    seam("heartbeat/tick", tick_heartbeat, HeartbeatTick),
)
