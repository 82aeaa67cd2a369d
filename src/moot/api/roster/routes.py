"""Hire, change and dismiss standing agents; the protocol's roster."""

from msgspec import UNSET
from msgspec.structs import asdict, replace

from moot.agents.definitions.manifest import Agent, refuse_invisible_characters
from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    MemberVersion,
    new_member_guard,
)
from moot.api.agents.routes import check_name_free, refuse_agent_keys
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import notices
from moot.api.roster import actions, overview, views
from moot.api.roster.views import (
    changed_fields,
    check_roster_offered,
    find_member,
    left_triggers,
    member_view,
    roster_entry,
    view_with_budget,
)
from moot.core.agents.deployments import CHANNELS
from moot.core.errors import BadRequest, Conflict, NotFound
from moot.core.errors.triggers import Overtaken, WorkspaceMembershipRequired
from moot.core.text.nearest import nearest_word
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
    members = await request.services.roster.all(request.caller.tenant)
    now = request.services.clock.millis()
    entries = [roster_entry(member.hired.seen(now)) for member in members]
    return Reply(RosterEntryList(roster=entries, total=len(entries)))


async def read_roster_entry(request: Request) -> Reply:
    member, now = await find_member(request), request.services.clock.millis()
    return Reply(roster_entry(member.hired.seen(now)))


# -- management ---------------------------------------------------------------------------------


async def hire_member(request: Request) -> Reply:
    check_roster_offered(request)
    refuse_agent_keys(request)
    body = await request.read(HireMember)
    _check_texts(body)
    tenant, clock = request.caller.tenant, request.services.clock
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
    named = await request.services.agents.find(
        request.caller.tenant, roster_id.removeprefix("host:")
    )
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
        suggestion = nearest_word(ref.version, versions)
        hint = f" Did you mean '{suggestion}'?" if suggestion else ""
        raise BadRequest(
            f"There is no version '{ref.version}' of {agent.name}.{hint}",
            field="agentRef.version",
        )
    return agent


async def _check_workflows(request: Request, names: list[str]) -> None:
    """Raise when a workflow is unknown or belongs to another tenant.

    The refusal does not say whose it is.
    """
    workflow_ids = [each.workflow_id for each in await request.services.store.definitions(
        request.caller.tenant)]  # fmt: skip
    for name in names:
        try:
            await request.services.host.flows.newest(request.caller.tenant, name)
        except NotFound:
            if await request.services.store.is_defined_elsewhere(request.caller.tenant, name):
                raise WorkspaceMembershipRequired(name) from None
            suggestion = nearest_word(name, workflow_ids)
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
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
        fresh = replace(fresh, back_at=request.services.clock.millis())
    await actions.save_member(request, member, fresh)
    if body.budget is not UNSET:
        await notices.announce_inbox_change(request)
    view = await view_with_budget(request, MemberVersion(fresh, member.guard))
    return Reply(ChangedMember(**asdict(view), changes=changed_fields(member.hired, fresh)))


async def dismiss_member(request: Request) -> Reply:
    """Dismiss a member. Its triggers pause in the same commit."""
    refuse_agent_keys(request)
    member = await find_member(request)
    await actions.save_member(request, member, replace(member.hired, did="dismissed"), gone=True)
    return Reply(None, 204)


HOST = "/v1/host/moot/roster"
ONE = f"{HOST}/{{roster_id}}"
READ, WRITE = "manifest:read", "manifest:write"
ROSTER_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/agents/roster", call=list_roster, scope=READ,
        summary="The standing agents", published="agent-roster-response", errors=(501,),
        tag="Roster", operation_id="listRoster", answer=RosterEntryList,
        description="Lists the standing agents in the form of the protocol. A paused one is not "
        "enabled.",
    ),
    Endpoint(
        method="GET", path="/v1/agents/roster/{roster_id}", call=read_roster_entry, scope=READ,
        summary="One standing agent", published="agent-roster-entry", errors=(404, 501),
        tag="Roster", operation_id="readRosterEntry", answer=RosterEntry,
        description="Returns one standing agent in the form of the protocol.",
    ),
    Endpoint(
        method="GET", path=HOST, call=views.list_members, scope=READ,
        summary="The standing agents, and who is on duty", errors=(501,),
        tag="Roster", operation_id="listMembers", answer=MemberList,
        description="Lists the standing agents with their duty, their model and the use of their "
        "budgets.",
    ),
    Endpoint(
        method="POST", path=HOST, call=hire_member, body=HireMember, scope=WRITE, status=201,
        summary="Take somebody on", errors=(409, 501),
        tag="Roster", operation_id="hireMember", answer=HiredMember,
        description="Hires a standing agent: an instance of an agent with a persona and "
        "workflows. The answer lists the paused triggers of a former agent with this id. "
        "Refuses an unknown agent, version or workflow, a name in use, and keys of agents.",
    ),
    Endpoint(
        method="GET", path=ONE, call=views.read_member, scope=READ,
        summary="A standing agent, and who did what with it", errors=(404, 501),
        tag="Roster", operation_id="readMember", answer=MemberDetail,
        description="Returns a standing agent with its budget and the history of its changes.",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/work", call=overview.read_member_work, scope="runs:read",
        summary="What wakes a standing agent, how it went lately, what it asks; also of one that"
        " was let go",
        errors=(404, 501),
        tag="Roster", operation_id="readMemberWork", answer=MemberWork,
        description="Returns the workflows of a standing agent with their triggers and recent "
        "runs, and its open questions. It works for a dismissed agent, too.",
    ),
    Endpoint(
        method="PATCH", path=ONE, call=change_member, body=ChangeMember, scope=WRITE,
        summary="Change a standing agent", errors=(404, 409, 501),
        tag="Roster", operation_id="changeMember", answer=ChangedMember,
        description="Changes the named fields of a standing agent and returns each with both "
        "values. Null removes a label, a description or the budget. Refuses a change that "
        "another one has overtaken with 409.",
    ),
    Endpoint(
        method="DELETE", path=ONE, call=dismiss_member, scope=WRITE, status=204,
        summary="Let a standing agent go; what it did stays its own", errors=(404, 409, 501),
        tag="Roster", operation_id="dismissMember",
        description="Dismisses a standing agent and pauses its triggers in the same step. Its "
        "runs and history stay.",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/history", call=views.read_member_history, scope=READ,
        summary="Who did what with a standing agent; also with one that was let go",
        errors=(404, 501),
        tag="Roster", operation_id="readMemberHistory", answer=MemberHistory,
        description="Returns the changes of a standing agent, newest first, also of a dismissed "
        "one.",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/pause", call=actions.pause_member, scope=WRITE,
        body=PauseMember,
        summary="Nothing is started for it any more", errors=(404, 409, 501),
        tag="Roster", operation_id="pauseMember", answer=PausedMember,
        description="Pauses a standing agent: no run starts for it until it is resumed or `until` "
        "has passed. With `stop` its active runs are cancelled. The answer lists the scheduled "
        "times that a pause with an end skips.",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/resume", call=actions.resume_member, scope=WRITE,
        summary="It is on duty again", errors=(404, 409, 501),
        tag="Roster", operation_id="resumeMember", answer=MemberView,
        description="Ends the pause of a standing agent, so that its triggers start runs again.",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/run", call=actions.run_member_workflow, scope="runs:create",
        body=RunMemberWorkflow,
        status=202, summary="Start one of its workflows now", errors=(404, 409, 422, 501),
        tag="Roster", operation_id="runMemberWorkflow", answer=MemberRun,
        description="Starts one of the agent's workflows now, with an item of a queue if you name "
        "one. With `dryRun` it only returns what would start. Refuses a workflow outside its "
        "portfolio, and an agent that is off duty or has used up its budget.",
    ),
)  # fmt: skip
