"""Runs that agents of this host work in: whom they name is known before they begin."""

from msgspec import UNSET

from moot.agents.roster.members import Seat
from moot.api.http.request import Request
from moot.api.runs.create_options import CreateRun
from moot.core.errors import BadRequest
from moot.core.errors.triggers import MemberOffDuty, NotInPortfolio
from moot.core.runs.handles import BY_HAND
from moot.core.state.initiation import Initiation
from moot.core.workflows.graph import Flow
from moot.engine.agents.pins import Drawn
from moot.engine.workflows.ask import PROMPT, TASK


async def member_of(request: Request, asked: CreateRun) -> Seat | None:
    """The standing agent that a run is asked for by its handle. Raises MemberOffDuty, and
    NotInPortfolio for a workflow that is none of its own."""
    if asked.agent_id is UNSET or not (asked.mode is asked.eval_suite_ref is UNSET):
        return None
    services, tenant = request.services, request.caller.tenant
    seat = await services.roster.find(tenant, asked.agent_id)
    if seat is None:
        return None
    if reason := seat.hired.off_duty(services.clock.millis()):
        raise MemberOffDuty(asked.agent_id, reason)
    if asked.workflow_id is not UNSET and asked.workflow_id not in seat.entry.workflows:
        raise NotInPortfolio(asked.agent_id, str(asked.workflow_id), seat.entry.workflows)
    return seat


def initiation(seat: Seat | None, drawn: Drawn) -> Initiation | None:
    if seat is None:
        return None
    return Initiation(source=BY_HAND, member=drawn.members[seat.entry.roster_id])


async def flow_of(request: Request, asked: CreateRun, seat: Seat | None = None) -> Flow:
    """The workflow that is asked for: one by its id, or that of a question to an agent."""
    flows, tenant = request.services.host.flows, request.caller.tenant
    evaluated = not (asked.mode is asked.eval_suite_ref is UNSET)
    portfolio = seat is not None and asked.workflow_id is not UNSET
    if asked.agent_id is UNSET or evaluated or portfolio:
        if asked.workflow_id is UNSET or not asked.workflow_id:
            raise BadRequest("workflowId is missing.", field="workflowId")
        return await flows.newest(tenant, asked.workflow_id)
    if asked.workflow_id is not UNSET:
        raise BadRequest("A run is of a workflow or of an agent: leave one out.", field="agentId")
    if seat is None:
        await request.services.agents.must_be(tenant, asked.agent_id)
    meant = await request.services.instances.worker(tenant, asked.agent_id)
    if not (asked.inputs.get(PROMPT) or asked.inputs.get(TASK)):
        raise BadRequest(
            f"Say what the agent shall do: inputs.{PROMPT} in words, or inputs.{TASK} as data.",
            field=f"inputs.{PROMPT}",
        )
    return await flows.asking(tenant, meant or asked.agent_id)
