"""Create runs, of a workflow or of an agent."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.agents.roster.members import MemberVersion
from moot.api.access.auth import speaker_from_request
from moot.api.http.request import Reply, Request
from moot.api.runs import create_options, origin
from moot.core.errors import BadRequest
from moot.core.errors.triggers import Overtaken
from moot.core.runs.standing_agents import BY_HAND
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.flow import Flow
from moot.engine.start import RunOrder, check_member, start_run
from moot.engine.workflows.ask import PROMPT, TASK
from moot.wire.runs import CreateRun, StartedRun

#: Attempts of a start that another change overtakes.
MOST_TRIES = 4


async def find_initiating_member(request: Request, body: CreateRun) -> MemberVersion | None:
    """Return the standing agent that the body names, or None.

    Raise MemberOffDuty, or NotInPortfolio for a workflow that the member does not own.
    """
    if body.agent_id is UNSET or not (body.mode is body.eval_suite_ref is UNSET):
        return None
    services, tenant = request.services, request.caller.tenant
    member = await services.roster.find(tenant, body.agent_id)
    if member is None:
        return None
    workflow_id = body.workflow_id if isinstance(body.workflow_id, str) else None
    check_member(member, workflow_id, services.clock.millis())
    return member


async def find_run_flow(
    request: Request, body: CreateRun, member: MemberVersion | None = None
) -> Flow:
    """Return the workflow to run: by its id, or the one that asks a single agent."""
    flows, tenant = request.services.host.flows, request.caller.tenant
    evaluated = not (body.mode is body.eval_suite_ref is UNSET)
    portfolio = member is not None and body.workflow_id is not UNSET
    if body.agent_id is UNSET or evaluated or portfolio:
        if body.workflow_id is UNSET or not body.workflow_id:
            raise BadRequest("workflowId is missing.", field="workflowId")
        return await flows.newest(tenant, body.workflow_id)
    if body.workflow_id is not UNSET:
        raise BadRequest("A run is of a workflow or of an agent: leave one out.", field="agentId")
    if member is None:
        await request.services.agents.must_find_by_id(tenant, body.agent_id)
    worker = await request.services.instances.worker(tenant, body.agent_id)
    if not (body.inputs.get(PROMPT) or body.inputs.get(TASK)):
        raise BadRequest(
            f"Say what the agent shall do: inputs.{PROMPT} in words, or inputs.{TASK} as data.",
            field=f"inputs.{PROMPT}",
        )
    return await flows.asking(tenant, worker or body.agent_id)


async def create_run(request: Request) -> Reply:
    body = await request.read(CreateRun)
    for _ in range(MOST_TRIES - 1):
        try:
            return await _create_once(request, body)
        except Overtaken:
            continue  # a standing agent changed meanwhile; look it up again
    return await _create_once(request, body)


async def _create_once(request: Request, body: CreateRun) -> Reply:
    services, tenant = request.services, request.caller.tenant
    member = await find_initiating_member(request, body)
    flow = await find_run_flow(request, body, member)
    create_options.check_run_options(services, request, body, flow)
    order = RunOrder(
        tenant=tenant,
        principal=request.caller.id,
        workflow_id=flow.definition.id,
        flow=flow,
        person=speaker_from_request(request).person,
        inputs=body.inputs,
        checks_rosters=True,
        tags=body.tags,
        metadata=body.metadata,
        configurable=body.configurable,
        scope_id=None if body.scope_id is UNSET else body.scope_id,
        dedup=(request.header("x-dedup") or "").lower() == "enforce",
        callback_url=None if body.callback_url is UNSET else body.callback_url,
        engine_version=create_options.requested_engine_version(services, request),
        remote=origin.cause_from_headers(request),
    )
    if member is not None:
        order = replace(order, source=BY_HAND, roster_id=member.entry.roster_id)
    await start_run(
        services.host, order, services.pins, member, request.record_reply(_created_reply)
    )
    return request.reply


def _created_reply(run: Run) -> Reply:
    """Answer with a status of a living run.

    The protocol allows no other here, though the run may already have ended.
    """
    status = Status.RUNNING if run.terminal else run.status
    url = f"/v1/runs/{run.run_id}"
    started = StartedRun(
        run_id=run.run_id, status=status.value, events_url=f"{url}/events", status_url=url
    )
    return Reply(started, 201, {"Location": url})
