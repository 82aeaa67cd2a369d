"""Seams of the clockwork: real schedules, looked at as if it were later."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.core.errors import NotFound
from moot.core.ids import derived_id
from moot.core.schedules.slots import next_slots
from moot.triggers.schedules.snapshot import Case

#: ms; the schedules of the seams have a slot each minute
MINUTE = 60_000
LATE = 2 * MINUTE
FLOW = {
    "id": "conformance-tick", "name": "conformance-tick", "version": "1.0", "edges": [],
    "triggers": [], "variables": [], "metadata": {}, "settings": {},
    "nodes": [{"id": "tick", "typeId": "core.noop", "name": "tick", "config": {}, "inputs": {},
               "position": {"x": 0, "y": 0}}],
}  # fmt: skip


class Tick(Struct, frozen=True, rename="camel"):
    scenario: Literal["single-tick", "missed-window"]
    missed_ticks: Annotated[int, Meta(ge=1, le=10_000)] = 5


class Beat(Struct, frozen=True, rename="camel"):
    heartbeat_id: Annotated[str, Meta(min_length=1, max_length=256)]
    observed_state: Any


async def tick(request: Request) -> Reply:
    """One slot that is due, or many that nobody saw pass."""
    asked, tenant = await request.read(Tick), request.caller.tenant
    case = await _made(request, request.services.clock.new_id("sch_"), {})
    name, schedules = case.plan.spec.schedule_id, request.services.triggers.schedules
    first, *_ = next_slots(case.plan.spec, case.book.decided.decided, 1)
    missed = asked.scenario == "missed-window"
    now = first + asked.missed_ticks * MINUTE + LATE if missed else first
    try:
        done = await request.services.triggers.clockwork.look(tenant, name, now)
    finally:
        await schedules.remove(tenant, name, request.caller.id)
    return Reply({"runsFired": sum(each.run_id is not None for each in done)})


async def beat(request: Request) -> Reply:
    """A schedule that has work only when what is observed has changed."""
    asked, tenant = await request.read(Beat), request.caller.tenant
    schedules = request.services.triggers.schedules
    name = derived_id("sch_", "heartbeat", tenant, asked.heartbeat_id)
    seen = {"condition": {"expression": encode(asked.observed_state).decode(), "onChange": True}}
    try:
        case = await schedules.find(tenant, name)
    except NotFound:
        case = await _made(request, name, seen)
    else:
        case = await schedules.change(tenant, name, encode(seen), request.caller.id)
    before = case.book.observed
    slot, *_ = next_slots(case.plan.spec, case.book.decided.decided, 1)
    done = await request.services.triggers.clockwork.look(tenant, name, slot)
    changed = any(each.run_id is not None for each in done)
    said = {"heartbeatId": asked.heartbeat_id}
    body: dict[str, Any] = {"evaluated": [{**said, "status": "ok", "changed": changed}]}
    if changed and before is not None:
        states = {"from": _state(before), "to": _state(encode(asked.observed_state))}
        body["stateChanged"] = [{**said, **states}]
    return Reply(body)


def _state(text: str | bytes) -> dict[str, Any]:
    value = msgspec.json.decode(text)
    return value if isinstance(value, dict) else {"value": value}


async def _made(request: Request, name: str, more: dict[str, Any]) -> Case:
    tenant, services = request.caller.tenant, request.services
    await services.host.flows.register(tenant, encode(FLOW))
    body = {"workflowId": FLOW["id"], "kind": "interval", "intervalSeconds": 60, **more}
    return await services.triggers.schedules.make(tenant, encode(body), request.caller.id, name)
