"""Standing agents: the roster as the protocol reads it, and its management under our own name."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.agents.roster import (
    ROSTER_ID,
    AgentRef,
    Entry,
    Hired,
    Owner,
    Pause,
    Seat,
    decoded,
    nobody,
)
from moot.api.wire import Endpoint, Reply, Request
from moot.core.definition import nearest
from moot.core.errors import BadRequest, Conflict, NotFound, NotProvided
from moot.core.events import iso
from moot.core.handles import BY_HAND
from moot.core.trigger_errors import Overtaken
from moot.triggers.firing import Order

Persona = Annotated[str, Meta(min_length=1, max_length=200)]
Label = Annotated[str, Meta(min_length=1, max_length=100)]
About = Annotated[str, Meta(max_length=500)]
WorkflowId = Annotated[str, Meta(min_length=1, max_length=128)]
MOST_WORKFLOWS = 200


class Hire(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Somebody new. Whose it is follows from the key, never from the body."""

    persona: Persona
    agent_ref: AgentRef
    roster_id: Annotated[str, Meta(min_length=6, max_length=128, pattern=ROSTER_ID)] | None = None
    workflows: Annotated[list[WorkflowId], Meta(max_length=MOST_WORKFLOWS)] = []
    enabled: bool = True
    label: Label | None = None
    description: About | None = None


class Change(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    persona: Persona | UnsetType = UNSET
    agent_ref: AgentRef | UnsetType = UNSET
    workflows: Annotated[list[WorkflowId], Meta(max_length=MOST_WORKFLOWS)] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    label: Label | UnsetType | None = UNSET
    description: About | UnsetType | None = UNSET


class PauseAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=500)] = ""
    #: an ISO time; left out, until somebody resumes it
    until: str | None = None


class RunAsked(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    workflow_id: WorkflowId
    inputs: dict[str, Any] = {}


# -- as the protocol reads it -------------------------------------------------------------------


def offered(request: Request) -> None:
    if not request.services.settings.roster:
        raise NotProvided("This host keeps no roster (MOOT_ROSTER).", capability="agents.roster")


async def roster(request: Request) -> Reply:
    offered(request)
    found = await request.services.roster.all(request.caller.tenant)
    entries = [seat.entry for seat in found]
    return Reply({"roster": entries, "total": len(entries)})


async def entry(request: Request) -> Reply:
    return Reply((await _seat(request)).entry)


async def _seat(request: Request) -> Seat:
    offered(request)
    roster_id = request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")
    return await request.services.roster.must_find(request.caller.tenant, roster_id)


# -- management ---------------------------------------------------------------------------------


async def hire(request: Request) -> Reply:
    offered(request)
    asked = await request.read(Hire)
    tenant, clock = request.caller.tenant, request.services.clock
    await _check_agent(request, asked.agent_ref)
    await _check_workflows(request, asked.workflows)
    made = Entry(
        roster_id=asked.roster_id or clock.new_id("host:"),
        persona=asked.persona,
        agent_ref=asked.agent_ref,
        owner=Owner(tenant_id=tenant),
        workflows=tuple(dict.fromkeys(asked.workflows)),
        enabled=asked.enabled,
        label=asked.label,
        description=asked.description,
    )
    known = await request.services.roster.history(tenant, made.roster_id)
    if known and not known[0].gone:
        raise Conflict(f"There is a member {made.roster_id} already.", rosterId=made.roster_id)
    guard = nobody(tenant, made.roster_id)
    if known:
        guard = replace(guard, revision=known[0].revision)
    hired = Hired(entry=made, did="hired", hired_at=clock.millis())
    await request.services.roster.put(tenant, hired, request.caller.id, guard)
    place = f"/v1/host/moot/roster/{made.roster_id}"
    return Reply(_shown(request, hired), 201, {"Location": place})


async def _check_agent(request: Request, ref: AgentRef) -> None:
    """An agent that is here, by at most one of a version and a channel."""
    tenant, services = request.caller.tenant, request.services
    if ref.version is not None and ref.channel is not None:
        raise BadRequest(
            "An agent is meant by a version or by a channel: leave one out.", field="agentRef"
        )
    if await services.roster.find(tenant, ref.agent_id) is not None:
        raise BadRequest(
            f"{ref.agent_id} is a member itself; name the agent it is an instance of.",
            field="agentRef.agentId",
        )
    try:
        agent = await services.agents.must_be(tenant, ref.agent_id)
    except NotFound as refusal:
        raise BadRequest(refusal.message, field="agentRef.agentId") from None
    versions = [record.version for record in await services.agents.history(tenant, agent.name)]
    if ref.version is not None and ref.version not in versions:
        meant = nearest(ref.version, versions)
        hint = f" Did you mean '{meant}'?" if meant else ""
        raise BadRequest(
            f"There is no version '{ref.version}' of {agent.name}.{hint}",
            field="agentRef.version",
        )


async def _check_workflows(request: Request, names: list[str]) -> None:
    """Every one is here and the caller's own. Others' look like missing ones."""
    known = [each.workflow_id for each in await request.services.store.definitions(
        request.caller.tenant)]  # fmt: skip
    for name in names:
        try:
            await request.services.host.flows.newest(request.caller.tenant, name)
        except NotFound:
            meant = nearest(name, known)
            hint = f" Did you mean '{meant}'?" if meant else ""
            raise BadRequest(
                f"There is no workflow '{name}'.{hint}", field="workflows", workflowId=name
            ) from None


async def change(request: Request) -> Reply:
    seat = await _seat(request)
    asked = await request.read(Change)
    if asked.agent_ref is not UNSET:
        await _check_agent(request, asked.agent_ref)
    if asked.workflows is not UNSET:
        await _check_workflows(request, asked.workflows)
    fields = {
        name: tuple(dict.fromkeys(value)) if name == "workflows" else value
        for name in asked.__struct_fields__
        if (value := getattr(asked, name)) is not UNSET
    }
    fresh = replace(seat.hired, entry=replace(seat.entry, **fields), did="changed")
    return await _put(request, seat, fresh)


async def pause(request: Request) -> Reply:
    seat = await _seat(request)
    asked = await request.read(PauseAsked)
    now = request.services.clock.millis()
    until = _instant(asked.until) if asked.until is not None else None
    if until is not None and until <= now:
        raise BadRequest("until has passed; name a time to come.", field="until")
    paused = Pause(since=now, by=request.caller.id, reason=asked.reason, until=until)
    return await _put(request, seat, replace(seat.hired, pause=paused, did="paused"))


async def resume(request: Request) -> Reply:
    seat = await _seat(request)
    answer = await _put(request, seat, replace(seat.hired, pause=None, did="resumed"))
    request.services.triggers.look()
    return answer


async def dismiss(request: Request) -> Reply:
    """Its schedules and subscriptions start nothing from now on: their member is not there."""
    seat = await _seat(request)
    await _put(request, seat, replace(seat.hired, did="dismissed"), gone=True)
    return Reply(None, 204)


async def run(request: Request) -> Reply:
    seat = await _seat(request)
    asked = await request.read(RunAsked)
    order = Order(
        tenant=request.caller.tenant,
        workflow_id=asked.workflow_id,
        source=BY_HAND,
        principal=request.caller.id,
        roster_id=seat.entry.roster_id,
        inputs=asked.inputs,
    )
    started = await request.services.triggers.firing.start(order)
    place = f"/v1/runs/{started.run_id}"
    body = {"runId": started.run_id, "rosterId": seat.entry.roster_id}
    return Reply(body, 202, {"Location": place})


async def _put(request: Request, seat: Seat, hired: Hired, gone: bool = False) -> Reply:
    try:
        await request.services.roster.put(
            request.caller.tenant, hired, request.caller.id, seat.guard, gone
        )
    except Overtaken:
        raise Overtaken(seat.entry.roster_id) from None
    return Reply(_shown(request, hired))


def _instant(text: str) -> int:
    from datetime import datetime

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"'{text[:64]}' is no ISO time.", field="until") from None
    if found.tzinfo is None:
        raise BadRequest("until needs a time zone, such as Z or +01:00.", field="until")
    return round(found.timestamp() * 1000)


# -- as people see it ---------------------------------------------------------------------------


async def members(request: Request) -> Reply:
    offered(request)
    found = await request.services.roster.all(request.caller.tenant)
    return Reply({"roster": [_shown(request, seat.hired) for seat in found], "total": len(found)})


async def member(request: Request) -> Reply:
    seat = await _seat(request)
    history = await request.services.roster.history(request.caller.tenant, seat.entry.roster_id)
    told = [
        {"at": iso(record.created_at * 1000), "by": record.by, **_did(decoded(record))}
        for record in history[:100]
    ]
    return Reply({**_shown(request, seat.hired), "history": told})


def _did(hired: Hired) -> dict[str, Any]:
    said: dict[str, Any] = {"did": hired.did}
    if hired.did == "paused" and hired.pause is not None:
        said |= _pause(hired.pause)
    return said


def _pause(pause: Pause) -> dict[str, Any]:
    said: dict[str, Any] = {"by": pause.by}
    if pause.reason:
        said["reason"] = pause.reason
    if pause.until is not None:
        said["until"] = iso(pause.until * 1000)
    return said


def _shown(request: Request, hired: Hired) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.to_builtins(hired.entry)
    off = hired.off_duty(request.services.clock.millis())
    said |= {"status": off or "on-duty", "hiredAt": iso(hired.hired_at * 1000)}
    if off == "paused" and hired.pause is not None:
        since = {"since": iso(hired.pause.since * 1000)}
        said["paused"] = {**since, **_pause(hired.pause)}
    return said


HOST = "/v1/host/moot/roster"
ONE = f"{HOST}/{{roster_id}}"
READ, WRITE = "manifest:read", "manifest:write"
ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/agents/roster", call=roster, scope=READ,
        summary="The standing agents", answer="agent-roster-response", errors=(501,),
    ),
    Endpoint(
        method="GET", path="/v1/agents/roster/{roster_id}", call=entry, scope=READ,
        summary="One standing agent", answer="agent-roster-entry", errors=(404, 501),
    ),
    Endpoint(
        method="GET", path=HOST, call=members, scope=READ,
        summary="The standing agents, and who is on duty", errors=(501,),
    ),
    Endpoint(
        method="POST", path=HOST, call=hire, body=Hire, scope=WRITE, status=201,
        summary="Take somebody on", errors=(409, 501),
    ),
    Endpoint(
        method="GET", path=ONE, call=member, scope=READ,
        summary="A standing agent, and who did what with it", errors=(404, 501),
    ),
    Endpoint(
        method="PATCH", path=ONE, call=change, body=Change, scope=WRITE,
        summary="Change a standing agent", errors=(404, 409, 501),
    ),
    Endpoint(
        method="DELETE", path=ONE, call=dismiss, scope=WRITE, status=204,
        summary="Let a standing agent go; what it did stays its own", errors=(404, 409, 501),
    ),
    Endpoint(
        method="POST", path=f"{ONE}/pause", call=pause, body=PauseAsked, scope=WRITE,
        summary="Nothing is started for it any more", errors=(404, 409, 501),
    ),
    Endpoint(
        method="POST", path=f"{ONE}/resume", call=resume, scope=WRITE,
        summary="It is on duty again", errors=(404, 409, 501),
    ),
    Endpoint(
        method="POST", path=f"{ONE}/run", call=run, body=RunAsked, scope="runs:create",
        status=202, summary="Start one of its workflows now", errors=(404, 409, 422, 501),
    ),
)  # fmt: skip
