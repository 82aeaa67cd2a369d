"""Standing agents: the roster as the protocol reads it, and its management under our own name."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.agents.definitions.manifest import Agent, refuse_unseen
from moot.agents.roster.members import (
    ROSTER_ID,
    AgentRef,
    Budget,
    Entry,
    Hired,
    Owner,
    Seat,
    nobody,
)
from moot.api.agents.routes import refuse_agents, refuse_taken
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import notices
from moot.api.roster import actions, overview, views
from moot.api.roster.changes import differences
from moot.api.roster.views import offered, seat_of, shown, with_budget
from moot.core.agents.deployments import CHANNELS
from moot.core.errors import BadRequest, Conflict, NotFound
from moot.core.errors.triggers import Overtaken, WorkspaceMembershipRequired
from moot.core.text.nearest import nearest

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
    budget: Budget | None = None


class Change(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    persona: Persona | UnsetType = UNSET
    agent_ref: AgentRef | UnsetType = UNSET
    workflows: Annotated[list[WorkflowId], Meta(max_length=MOST_WORKFLOWS)] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    label: Label | UnsetType | None = UNSET
    description: About | UnsetType | None = UNSET
    #: the limits it has from now on; null takes all of them away
    budget: Budget | UnsetType | None = UNSET


# -- as the protocol reads it -------------------------------------------------------------------


async def roster(request: Request) -> Reply:
    offered(request)
    found = await request.services.roster.all(request.caller.tenant)
    now = request.services.clock.millis()
    entries = [seat.hired.seen(now) for seat in found]
    return Reply({"roster": entries, "total": len(entries)})


async def entry(request: Request) -> Reply:
    return Reply((await seat_of(request)).hired.seen(request.services.clock.millis()))


# -- management ---------------------------------------------------------------------------------


async def hire(request: Request) -> Reply:
    offered(request)
    refuse_agents(request)
    asked = await request.read(Hire)
    _check_words(asked)
    tenant, clock = request.caller.tenant, request.services.clock
    agent = await _check_agent(request, asked.agent_ref)
    if asked.roster_id is not None:
        await _check_name(request, asked.roster_id, agent)
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
        raise _taken(made.roster_id)
    guard = nobody(tenant, made.roster_id)
    if known:
        guard = replace(guard, revision=known[0].revision)
    hired = Hired(
        entry=made, did="hired", hired_at=clock.millis(), budget=asked.budget,
        hired_by=request.caller.id,
    )  # fmt: skip
    try:
        await request.services.roster.put(tenant, hired, request.caller.id, guard)
    except Overtaken:
        raise _taken(made.roster_id) from None
    place = f"/v1/host/moot/roster/{made.roster_id}"
    # whoever had this name before was somebody else: what woke that one is the new one's when asked
    left = await request.services.triggers.leaving.left(tenant, made.roster_id) if known else []
    return Reply({**shown(request, hired), "left": left}, 201, {"Location": place})


def _taken(roster_id: str) -> Conflict:
    return Conflict(f"There is a member {roster_id} already.", rosterId=roster_id)


def _check_words(asked: Hire | Change) -> None:
    """People tell members from one another by what they read."""
    refuse_unseen(asked)
    if isinstance(asked.persona, str) and not asked.persona.strip():
        raise BadRequest("A persona of blanks is none.", field="persona")


async def _check_name(request: Request, roster_id: str, agent: Agent) -> None:
    """An agent's own name is for an instance of that agent; a name that a key speaks as is for
    whom the key belongs to."""
    await refuse_taken(request, roster_id)
    named = await request.services.agents.find(
        request.caller.tenant, roster_id.removeprefix("host:")
    )
    if named is not None and named.name != agent.name:
        raise Conflict(
            f"{roster_id} is the agent {named.name}; hire an instance of that one, or choose"
            " another rosterId.",
            rosterId=roster_id,
        )


async def _check_agent(request: Request, ref: AgentRef, own: str | None = None) -> Agent:
    """An agent that is here, by at most one of a version and a channel."""
    tenant, services = request.caller.tenant, request.services
    if ref.version is not None and ref.channel is not None:
        raise BadRequest(
            "An agent is meant by a version or by a channel: leave one out.", field="agentRef"
        )
    if ref.agent_id != own and await services.roster.find(tenant, ref.agent_id) is not None:
        raise BadRequest(
            f"{ref.agent_id} is a member itself; name the agent it is an instance of.",
            field="agentRef.agentId",
        )
    try:
        agent = await services.agents.must_be(tenant, ref.agent_id)
    except NotFound as refusal:
        raise BadRequest(refusal.message, field="agentRef.agentId") from None
    if ref.channel is not None and ref.channel not in CHANNELS:
        raise BadRequest(
            f"There is no channel '{ref.channel[:64]}'; use {', '.join(CHANNELS)}.",
            field="agentRef.channel",
        )
    versions = [record.version for record in await services.agents.history(tenant, agent.name)]
    if ref.version is not None and ref.version not in versions:
        meant = nearest(ref.version, versions)
        hint = f" Did you mean '{meant}'?" if meant else ""
        raise BadRequest(
            f"There is no version '{ref.version}' of {agent.name}.{hint}",
            field="agentRef.version",
        )
    return agent


async def _check_workflows(request: Request, names: list[str]) -> None:
    """Every one is here and the caller's own. Whose another one is, nobody is told."""
    known = [each.workflow_id for each in await request.services.store.definitions(
        request.caller.tenant)]  # fmt: skip
    for name in names:
        try:
            await request.services.host.flows.newest(request.caller.tenant, name)
        except NotFound:
            if await request.services.store.defined_elsewhere(request.caller.tenant, name):
                raise WorkspaceMembershipRequired(name) from None
            meant = nearest(name, known)
            hint = f" Did you mean '{meant}'?" if meant else ""
            more = {"suggestion": meant} if meant else {}
            raise BadRequest(
                f"There is no workflow '{name}'.{hint}", field="workflows", workflowId=name, **more
            ) from None


async def change(request: Request) -> Reply:
    refuse_agents(request)
    seat = await seat_of(request)
    asked = await request.read(Change)
    _check_words(asked)
    if asked.agent_ref is not UNSET:
        agent = await _check_agent(request, asked.agent_ref, seat.entry.roster_id)
        await _check_name(request, seat.entry.roster_id, agent)
    if asked.workflows is not UNSET:
        await _check_workflows(request, asked.workflows)
    fields = {
        name: tuple(dict.fromkeys(value)) if name == "workflows" else value
        for name in asked.__struct_fields__
        if name != "budget" and (value := getattr(asked, name)) is not UNSET
    }
    budget = seat.hired.budget if asked.budget is UNSET else asked.budget
    entry = replace(seat.entry, **fields)
    fresh = replace(seat.hired, entry=entry, did="changed", budget=budget)
    if entry.enabled != seat.entry.enabled:
        fresh = replace(fresh, back_at=request.services.clock.millis())
    await actions.put(request, seat, fresh)
    if asked.budget is not UNSET:
        await notices.changed(request)
    said = await with_budget(request, Seat(fresh, seat.guard))
    return Reply({**said, "changes": differences(seat.hired, fresh)})


async def dismiss(request: Request) -> Reply:
    """What woke it rests with the same commit; its history tells what that is."""
    refuse_agents(request)
    seat = await seat_of(request)
    await actions.put(request, seat, replace(seat.hired, did="dismissed"), gone=True)
    return Reply(None, 204)


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
        method="GET", path=HOST, call=views.members, scope=READ,
        summary="The standing agents, and who is on duty", errors=(501,),
    ),
    Endpoint(
        method="POST", path=HOST, call=hire, body=Hire, scope=WRITE, status=201,
        summary="Take somebody on", errors=(409, 501),
    ),
    Endpoint(
        method="GET", path=ONE, call=views.member, scope=READ,
        summary="A standing agent, and who did what with it", errors=(404, 501),
    ),
    Endpoint(
        method="GET", path=f"{ONE}/work", call=overview.work, scope="runs:read",
        summary="What wakes a standing agent, how it went lately, what it asks; also of one that"
        " was let go",
        errors=(404, 501),
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
        method="GET", path=f"{ONE}/history", call=views.history, scope=READ,
        summary="Who did what with a standing agent; also with one that was let go",
        errors=(404, 501),
    ),
    Endpoint(
        method="POST", path=f"{ONE}/pause", call=actions.pause, scope=WRITE,
        body=actions.PauseAsked,
        summary="Nothing is started for it any more", errors=(404, 409, 501),
    ),
    Endpoint(
        method="POST", path=f"{ONE}/resume", call=actions.resume, scope=WRITE,
        summary="It is on duty again", errors=(404, 409, 501),
    ),
    Endpoint(
        method="POST", path=f"{ONE}/run", call=actions.run, scope="runs:create",
        body=actions.RunAsked,
        status=202, summary="Start one of its workflows now", errors=(404, 409, 422, 501),
    ),
)  # fmt: skip
