"""What a standing agent is told to do by hand: to stop, to go on, to start something now."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.agents.roster.members import Hired, Pause, Seat
from moot.api.http import times
from moot.api.http.request import Reply, Request
from moot.api.roster.views import seat_of, shown, with_budget
from moot.api.schedules import pause_cost
from moot.core.commands import CancelRun
from moot.core.errors import MootError
from moot.core.errors.triggers import Overtaken
from moot.core.runs.handles import BY_HAND
from moot.core.state.status import GOING
from moot.store.protocol import RunFilter
from moot.triggers.start_run import Order

#: runs that a pause stops, at most
MOST_STOPPED = 500
MOST_TRIES = 4


class PauseAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=500)] = ""
    #: an ISO time; left out, until somebody resumes it
    until: str | None = None
    #: cancel what it has under way, too
    stop: bool = False


class RunAsked(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    workflow_id: Annotated[str, Meta(min_length=1, max_length=128)]
    inputs: dict[str, Any] = {}
    #: the id of something that came in, for the run to be given; it stays where it is
    item: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    #: say what would be started, and start nothing
    dry_run: bool = False


async def pause(request: Request) -> Reply:
    seat = await seat_of(request)
    asked = await request.read(PauseAsked)
    now = request.services.clock.millis()
    until = times.to_come(asked.until, now)
    paused = Pause(since=now, by=request.caller.id, reason=asked.reason, until=until)
    hired = replace(seat.hired, pause=paused, did="paused")
    costs = await pause_cost.of_member(request, seat.entry.roster_id, until)
    await put(request, seat, hired)
    triggers = request.services.triggers.listening.of_member
    inert = len(await triggers(request.caller.tenant, seat.entry.roster_id))
    running, said = await _under_way(request, seat), {**shown(request, hired), "inert": inert}
    said |= costs
    if asked.stop:
        stopped = [run_id for run_id in running if await _stopped(request, run_id, asked.reason)]
        return Reply({**said, "stopped": stopped})
    return Reply({**said, "running": running})


async def _under_way(request: Request, seat: Seat) -> list[str]:
    """Its runs that have not ended; those that others of them began go with them."""
    where = RunFilter(statuses=tuple(sorted(GOING)), member=seat.entry.roster_id)
    rows, _ = await request.services.store.list_runs(
        request.caller.tenant, where, None, MOST_STOPPED
    )
    return [row.run_id for row in rows if row.parent_run is None]


async def _stopped(request: Request, run_id: str, reason: str) -> bool:
    now = request.services.clock.millis()
    command = CancelRun(now, reason or "its standing agent was paused", request.caller.id)
    try:
        await request.services.host.handle(request.caller.tenant, run_id, command)
    except MootError:
        return False  # it has ended meanwhile
    return True


async def resume(request: Request) -> Reply:
    seat = await seat_of(request)
    back = replace(seat.hired, pause=None, did="resumed", back_at=request.services.clock.millis())
    answer = await put(request, seat, back)
    request.services.triggers.look()
    return answer


async def run(request: Request) -> Reply:
    """Somebody who is changed meanwhile is looked up again: what counts is who it is now."""
    await seat_of(request)  # who is not here is not, whatever else is asked
    asked = await request.read(RunAsked)
    for _ in range(MOST_TRIES - 1):
        try:
            return await _run(request, asked)
        except Overtaken:
            continue
    return await _run(request, asked)


async def _run(request: Request, asked: RunAsked) -> Reply:
    seat = await seat_of(request)
    order = Order(
        tenant=request.caller.tenant,
        workflow_id=asked.workflow_id,
        source=BY_HAND,
        principal=request.caller.id,
        roster_id=seat.entry.roster_id,
        inputs=asked.inputs,
    )
    if asked.item is not None:
        order = await _with_item(request, order, asked.item)
    firing = request.services.triggers.firing
    if asked.dry_run:
        member = await firing.rehearsed(order)
        would = {"workflowId": asked.workflow_id, "rosterId": member.roster_id, **member.told()}
        return Reply({"dryRun": True, "would": would, **await _left(request, seat)}, 200)
    started = await firing.start(order)
    body = {"runId": started.run_id, "rosterId": seat.entry.roster_id}
    return Reply(body, 202, {"Location": f"/v1/runs/{started.run_id}"})


async def _left(request: Request, seat: Seat) -> dict[str, Any]:
    budget = (await with_budget(request, seat)).get("budget")
    return {} if budget is None else {"budget": budget}


async def _with_item(request: Request, order: Order, name: str) -> Order:
    """Given what came in as its own trigger would give it; what is said beside it wins."""
    given = await request.services.triggers.items.given(order.tenant, name, order.workflow_id)
    return replace(order, inputs={**given.inputs, **order.inputs}, trigger=given.trigger)


async def put(request: Request, seat: Seat, hired: Hired, gone: bool = False) -> Reply:
    try:
        await request.services.roster.put(
            request.caller.tenant, hired, request.caller.id, seat.guard, gone
        )
    except Overtaken:
        raise Overtaken(seat.entry.roster_id) from None
    return Reply(shown(request, hired))
