"""Hire, change and dismiss standing agents; the protocol's roster."""

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace

from moot.agents.definitions.manifest import Agent, refuse_invisible_characters
from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    MemberVersion,
    PausePeriod,
    new_member_guard,
)
from moot.api.agents.routes import check_name_free, refuse_agent_keys
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import notices
from moot.api.roster import overview, views
from moot.api.roster.views import (
    changed_fields,
    check_roster_offered,
    find_member,
    left_triggers,
    member_view,
    roster_entry,
    view_with_budget,
)
from moot.api.schedules import pauses
from moot.api.schedules.pauses import parse_pause_end
from moot.core.agents.deployments import CHANNELS
from moot.core.commands import CancelRun
from moot.core.errors import BadRequest, Conflict, MootError, NotFound
from moot.core.errors.triggers import Overtaken, WorkspaceMembershipRequired
from moot.core.runs.standing_agents import BY_HAND
from moot.core.state.status import GOING
from moot.core.text.nearest import describe_nearest, nearest_word
from moot.engine.start import RunOrder
from moot.store.protocol import RunFilter
from moot.wire.roster import (
    ChangedMember,
    ChangeMember,
    HiredMember,
    HireMember,
    MemberAgentRef,
    MemberDetail,
    MemberHistory,
    MemberList,
    MemberRun,
    MemberView,
    MemberWork,
    PausedMember,
    PauseMember,
    RosterEntry,
    RosterEntryList,
    RunMemberWorkflow,
)

# -- as the protocol reads it -------------------------------------------------------------------


async def list_roster(request: Request) -> Reply:
    check_roster_offered(request)
    members = await request.services.roster.all(request.tenant)
    now = request.now()
    entries = [roster_entry(member.hired.seen(now)) for member in members]
    return Reply(RosterEntryList(roster=entries, total=len(entries)))


async def read_roster_entry(request: Request) -> Reply:
    member, now = await find_member(request), request.now()
    return Reply(roster_entry(member.hired.seen(now)))


# -- management ---------------------------------------------------------------------------------


async def hire_member(request: Request) -> Reply:
    check_roster_offered(request)
    refuse_agent_keys(request)
    body = await request.read(HireMember)
    _check_texts(body)
    tenant, clock = request.tenant, request.services.clock
    agent = await _check_agent(request, body.agent_ref)
    if body.roster_id is not None:
        await _check_name(request, body.roster_id, agent)
    await _check_workflows(request, body.workflows)
    entry = MemberEntry(
        roster_id=body.roster_id or clock.new_id("host:"),
        persona=body.persona,
        agent_ref=body.agent_ref,
        owner=MemberOwner(tenant_id=tenant),
        workflows=tuple(dict.fromkeys(body.workflows)),
        enabled=body.enabled,
        label=body.label,
        description=body.description,
    )
    versions = await request.services.roster.history(tenant, entry.roster_id)
    if versions and not versions[0].gone:
        raise _name_taken(entry.roster_id)
    guard = new_member_guard(tenant, entry.roster_id)
    if versions:
        guard = replace(guard, revision=versions[0].revision)
    record = MemberRecord(
        entry=entry, did="hired", hired_at=clock.millis(), budget=body.budget,
        hired_by=request.caller.id,
    )  # fmt: skip
    try:
        await request.services.roster.put(tenant, record, request.caller.id, guard)
    except Overtaken:
        raise _name_taken(entry.roster_id) from None
    place = f"/v1/host/moot/roster/{entry.roster_id}"
    # triggers of a former member with this id stay paused; the answer lists them
    left = await left_triggers(request, entry.roster_id) if versions else []
    view = HiredMember(**asdict(member_view(request, record)), left=left)
    return Reply(view, 201, {"Location": place})


def _name_taken(roster_id: str) -> Conflict:
    return Conflict(f"There is a member {roster_id} already.", rosterId=roster_id)


def _check_texts(body: HireMember | ChangeMember) -> None:
    """Raise BadRequest for texts that people cannot read or tell apart."""
    refuse_invisible_characters(body)
    if isinstance(body.persona, str) and not body.persona.strip():
        raise BadRequest("A persona of blanks is none.", field="persona")


async def _check_name(request: Request, roster_id: str, agent: Agent) -> None:
    """Raise when the id belongs to another agent or to another key."""
    await check_name_free(request, roster_id)
    named = await request.services.agents.find(request.tenant, roster_id.removeprefix("host:"))
    if named is not None and named.name != agent.name:
        raise Conflict(
            f"{roster_id} is the agent {named.name}; hire an instance of that one, or choose"
            " another rosterId.",
            rosterId=roster_id,
        )


async def _check_agent(request: Request, ref: MemberAgentRef, own: str | None = None) -> Agent:
    """Return the agent that is referred to.

    Raise BadRequest for an unknown agent, version or channel.
    """
    tenant, services = request.tenant, request.services
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
        agent = await services.agents.must_find_by_id(tenant, ref.agent_id)
    except NotFound as refusal:
        raise BadRequest(refusal.message, field="agentRef.agentId") from None
    if ref.channel is not None and ref.channel not in CHANNELS:
        raise BadRequest(
            f"There is no channel '{ref.channel[:64]}'; use {', '.join(CHANNELS)}.",
            field="agentRef.channel",
        )
    versions = [record.version for record in await services.agents.history(tenant, agent.name)]
    if ref.version is not None and ref.version not in versions:
        hint = describe_nearest(ref.version, versions)
        raise BadRequest(
            f"There is no version '{ref.version}' of {agent.name}.{hint}", field="agentRef.version"
        )
    return agent


async def _check_workflows(request: Request, names: list[str]) -> None:
    """Raise when a workflow is unknown or belongs to another tenant.

    The refusal does not say whose it is.
    """
    workflow_ids = [each.workflow_id for each in await request.store.definitions(
        request.tenant)]  # fmt: skip
    for name in names:
        try:
            await request.host.flows.newest(request.tenant, name)
        except NotFound:
            if await request.store.is_defined_elsewhere(request.tenant, name):
                raise WorkspaceMembershipRequired(name) from None
            suggestion = nearest_word(name, workflow_ids)
            hint = describe_nearest(name, workflow_ids)
            more = {"suggestion": suggestion} if suggestion else {}
            raise BadRequest(
                f"There is no workflow '{name}'.{hint}", field="workflows", workflowId=name, **more
            ) from None


async def change_member(request: Request) -> Reply:
    refuse_agent_keys(request)
    member = await find_member(request)
    body = await request.read(ChangeMember)
    _check_texts(body)
    if body.agent_ref is not UNSET:
        agent = await _check_agent(request, body.agent_ref, member.entry.roster_id)
        await _check_name(request, member.entry.roster_id, agent)
    if body.workflows is not UNSET:
        await _check_workflows(request, body.workflows)
    fields = {
        name: tuple(dict.fromkeys(value)) if name == "workflows" else value
        for name in body.__struct_fields__
        if name != "budget" and (value := getattr(body, name)) is not UNSET
    }
    budget = member.hired.budget if body.budget is UNSET else body.budget
    entry = replace(member.entry, **fields)
    fresh = replace(member.hired, entry=entry, did="changed", budget=budget)
    if entry.enabled != member.entry.enabled:
        fresh = replace(fresh, back_at=request.now())
    await save_member(request, member, fresh)
    if body.budget is not UNSET:
        await notices.announce_inbox_change(request)
    view = await view_with_budget(request, MemberVersion(fresh, member.guard))
    return Reply(ChangedMember(**asdict(view), changes=changed_fields(member.hired, fresh)))


async def dismiss_member(request: Request) -> Reply:
    """Dismiss a member. Its triggers pause in the same commit."""
    refuse_agent_keys(request)
    member = await find_member(request)
    await save_member(request, member, replace(member.hired, did="dismissed"), gone=True)
    return Reply(None, 204)


#: Runs that one pause cancels at most.
MOST_STOPPED = 500
MOST_TRIES = 4


async def pause_member(request: Request) -> Reply:
    member = await find_member(request)
    body = await request.read(PauseMember)
    now = request.now()
    until = parse_pause_end(body.until, now)
    paused = PausePeriod(since=now, by=request.caller.id, reason=body.reason, until=until)
    record = replace(member.hired, pause=paused, did="paused")
    costs = await pauses.member_pause_cost(request, member.entry.roster_id, until)
    await save_member(request, member, record)
    triggers = request.triggers.listening.of_member
    inert = len(await triggers(request.tenant, member.entry.roster_id))
    running = await _active_runs(request, member)
    view = PausedMember(**asdict(member_view(request, record)), inert=inert, costs=costs)
    if body.stop:
        stopped = [run_id for run_id in running if await _cancel_run(request, run_id, body.reason)]
        return Reply(replace(view, stopped=stopped))
    return Reply(replace(view, running=running))


async def _active_runs(request: Request, member: MemberVersion) -> list[str]:
    """Return the member's runs that have not ended, without child runs."""
    where = RunFilter(statuses=tuple(sorted(GOING)), member=member.entry.roster_id)
    rows, _ = await request.store.list_runs(request.tenant, where, None, MOST_STOPPED)
    return [row.run_id for row in rows if row.parent_run is None]


async def _cancel_run(request: Request, run_id: str, reason: str) -> bool:
    now = request.now()
    command = CancelRun(now, reason or "its standing agent was paused", request.caller.id)
    try:
        await request.host.handle(request.tenant, run_id, command)
    except MootError:
        return False  # the run has ended meanwhile
    return True


async def resume_member(request: Request) -> Reply:
    member = await find_member(request)
    back = replace(member.hired, pause=None, did="resumed", back_at=request.now())
    answer = await save_member(request, member, back)
    request.triggers.look()
    return answer


async def run_member_workflow(request: Request) -> Reply:
    """Start one of the member's workflows. When the member changes meanwhile, look it up again."""
    await find_member(request)  # 404 comes before the checks of the body
    body = await request.read(RunMemberWorkflow)
    for _ in range(MOST_TRIES - 1):
        try:
            return await _start_run(request, body)
        except Overtaken:
            continue
    return await _start_run(request, body)


async def _start_run(request: Request, body: RunMemberWorkflow) -> Reply:
    member = await find_member(request)
    order = RunOrder(
        tenant=request.tenant,
        workflow_id=body.workflow_id,
        source=BY_HAND,
        principal=request.caller.id,
        roster_id=member.entry.roster_id,
        inputs=body.inputs,
    )
    if body.item is not None:
        order = await _add_item(request, order, body.item)
    firing = request.triggers.run_starter
    if body.dry_run:
        planned = await firing.rehearsed(order)
        would = {
            "workflowId": body.workflow_id,
            "rosterId": planned.roster_id,
            **msgspec.to_builtins(planned.recorded()),
        }
        budget = (await view_with_budget(request, member)).budget
        return Reply(MemberRun(dry_run=True, would=would, budget=budget))
    started = await firing.start(order)
    answer = MemberRun(run_id=started.run_id, roster_id=member.entry.roster_id)
    return Reply(answer, 202, {"Location": f"/v1/runs/{started.run_id}"})


async def _add_item(request: Request, order: RunOrder, name: str) -> RunOrder:
    """Add an item as its own trigger would. Inputs in the body win."""
    item = await request.triggers.items.given(order.tenant, name, order.workflow_id)
    return replace(order, inputs={**item.inputs, **order.inputs}, trigger=item.trigger)


async def save_member(
    request: Request, member: MemberVersion, record: MemberRecord, gone: bool = False
) -> Reply:
    try:
        await request.services.roster.put(
            request.tenant, record, request.caller.id, member.guard, gone
        )
    except Overtaken:
        raise Overtaken(member.entry.roster_id) from None
    return Reply(member_view(request, record))


HOST = "/v1/host/moot/roster"
ONE = f"{HOST}/{{roster_id}}"
READ, WRITE = "manifest:read", "manifest:write"
ROSTER_ENDPOINTS = (
    Endpoint("GET", "/v1/agents/roster", list_roster, scope=READ, answer=RosterEntryList),
    Endpoint("GET", "/v1/agents/roster/{roster_id}", read_roster_entry, scope=READ,
             answer=RosterEntry),
    Endpoint("GET", HOST, views.list_members, scope=READ, answer=MemberList),
    Endpoint("POST", HOST, hire_member, scope=WRITE, body=HireMember, status=201,
             answer=HiredMember),
    Endpoint("GET", ONE, views.read_member, scope=READ, answer=MemberDetail),
    Endpoint("GET", f"{ONE}/work", overview.read_member_work, scope="runs:read", answer=MemberWork),
    Endpoint("PATCH", ONE, change_member, scope=WRITE, body=ChangeMember, answer=ChangedMember),
    Endpoint("DELETE", ONE, dismiss_member, scope=WRITE, status=204),
    Endpoint("GET", f"{ONE}/history", views.read_member_history, scope=READ, answer=MemberHistory),
    Endpoint("POST", f"{ONE}/pause", pause_member, scope=WRITE, body=PauseMember,
             answer=PausedMember),
    Endpoint("POST", f"{ONE}/resume", resume_member, scope=WRITE, answer=MemberView),
    Endpoint("POST", f"{ONE}/run", run_member_workflow, scope="runs:create",
             body=RunMemberWorkflow, status=202, answer=MemberRun),
)  # fmt: skip
