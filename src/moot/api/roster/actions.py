"""Pause, resume and run standing agents by hand."""

import msgspec
from msgspec.structs import asdict, replace

from moot.agents.roster.members import MemberRecord, MemberVersion, PausePeriod
from moot.api.http.request import Reply, Request
from moot.api.roster.views import find_member, member_view, view_with_budget
from moot.api.schedules import pauses
from moot.api.schedules.pauses import parse_pause_end
from moot.core.commands import CancelRun
from moot.core.errors import MootError
from moot.core.errors.triggers import Overtaken
from moot.core.runs.standing_agents import BY_HAND
from moot.core.state.status import GOING
from moot.engine.start import RunOrder
from moot.store.protocol import RunFilter
from moot.wire.roster import MemberRun, PausedMember, PauseMember, RunMemberWorkflow

#: Runs that one pause cancels at most.
MOST_STOPPED = 500
MOST_TRIES = 4


async def pause_member(request: Request) -> Reply:
    member = await find_member(request)
    body = await request.read(PauseMember)
    now = request.services.clock.millis()
    until = parse_pause_end(body.until, now)
    paused = PausePeriod(since=now, by=request.caller.id, reason=body.reason, until=until)
    record = replace(member.hired, pause=paused, did="paused")
    costs = await pauses.member_pause_cost(request, member.entry.roster_id, until)
    await save_member(request, member, record)
    triggers = request.services.triggers.listening.of_member
    inert = len(await triggers(request.caller.tenant, member.entry.roster_id))
    running = await _active_runs(request, member)
    view = PausedMember(**asdict(member_view(request, record)), inert=inert, costs=costs)
    if body.stop:
        stopped = [run_id for run_id in running if await _cancel_run(request, run_id, body.reason)]
        return Reply(replace(view, stopped=stopped))
    return Reply(replace(view, running=running))


async def _active_runs(request: Request, member: MemberVersion) -> list[str]:
    """Return the member's runs that have not ended, without child runs."""
    where = RunFilter(statuses=tuple(sorted(GOING)), member=member.entry.roster_id)
    rows, _ = await request.services.store.list_runs(
        request.caller.tenant, where, None, MOST_STOPPED
    )
    return [row.run_id for row in rows if row.parent_run is None]


async def _cancel_run(request: Request, run_id: str, reason: str) -> bool:
    now = request.services.clock.millis()
    command = CancelRun(now, reason or "its standing agent was paused", request.caller.id)
    try:
        await request.services.host.handle(request.caller.tenant, run_id, command)
    except MootError:
        return False  # the run has ended meanwhile
    return True


async def resume_member(request: Request) -> Reply:
    member = await find_member(request)
    back = replace(member.hired, pause=None, did="resumed", back_at=request.services.clock.millis())
    answer = await save_member(request, member, back)
    request.services.triggers.look()
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
        tenant=request.caller.tenant,
        workflow_id=body.workflow_id,
        source=BY_HAND,
        principal=request.caller.id,
        roster_id=member.entry.roster_id,
        inputs=body.inputs,
    )
    if body.item is not None:
        order = await _add_item(request, order, body.item)
    firing = request.services.triggers.run_starter
    if body.dry_run:
        planned = await firing.rehearsed(order)
        would = {"workflowId": body.workflow_id, "rosterId": planned.roster_id}
        would |= msgspec.to_builtins(planned.recorded())
        budget = (await view_with_budget(request, member)).budget
        return Reply(MemberRun(dry_run=True, would=would, budget=budget))
    started = await firing.start(order)
    answer = MemberRun(run_id=started.run_id, roster_id=member.entry.roster_id)
    return Reply(answer, 202, {"Location": f"/v1/runs/{started.run_id}"})


async def _add_item(request: Request, order: RunOrder, name: str) -> RunOrder:
    """Add an item as its own trigger would. Inputs in the body win."""
    item = await request.services.triggers.items.given(order.tenant, name, order.workflow_id)
    return replace(order, inputs={**item.inputs, **order.inputs}, trigger=item.trigger)


async def save_member(
    request: Request, member: MemberVersion, record: MemberRecord, gone: bool = False
) -> Reply:
    try:
        await request.services.roster.put(
            request.caller.tenant, record, request.caller.id, member.guard, gone
        )
    except Overtaken:
        raise Overtaken(member.entry.roster_id) from None
    return Reply(member_view(request, record))
