"""Seams for standing agents of a host under trial: a real member, really woken."""

from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.agents.definitions.manifest import Agent
from moot.agents.roster.members import AgentRef, Entry, Hired, Owner, Seat, nobody
from moot.api.http.request import Reply, Request
from moot.api.roster import routes
from moot.api.roster.views import offered
from moot.conformance.seams.standing_agents import ITEM, woken
from moot.core.errors import BadRequest, Conflict
from moot.core.errors.triggers import Overtaken
from moot.triggers.start_run import Order

#: who is woken when a suite names nobody, whose instance that is, and what it does
NAME, AGENT, FLOW = "host:conformance-sally", "conformance-clerk", "conformance-noop"

ALIASES = tuple(
    replace(row, path=row.path.replace("/moot/", "/sample/"), hidden=True)
    for row in routes.ENDPOINTS
    if row.path.startswith(routes.HOST)
)


class Fire(Struct, frozen=True, kw_only=True, rename="camel"):
    trigger_source: Annotated[str, Meta(min_length=1, max_length=64)]
    roster_id: str | None = None
    workflow_id: str | None = None
    #: it comes through a subscription, as a delivery of its own; everything does here. Fields of
    #: an object are those of the item
    as_work_item: bool | dict[str, Any] = False


async def fire(request: Request) -> Reply:
    offered(request)
    asked = await request.read(Fire)
    services, tenant = request.services, request.caller.tenant
    seat = await _somebody(request, asked.roster_id)
    workflows = (asked.workflow_id,) if asked.workflow_id else seat.entry.workflows
    if not workflows:
        raise BadRequest(f"{seat.entry.roster_id} has no workflows.", field="rosterId")
    order = Order(
        tenant=tenant,
        workflow_id=workflows[0],
        source=asked.trigger_source,
        principal=request.caller.id,
        roster_id=seat.entry.roster_id,
    )
    await services.triggers.firing.drawn(order)
    item = asked.as_work_item if isinstance(asked.as_work_item, dict) else ITEM
    row = await woken(request, order.source, order.workflow_id, order.roster_id, item)
    if row.run_id is None:
        raise Conflict(f"No run was begun: {row.reason}", rosterId=seat.entry.roster_id)
    said = {"runId": row.run_id, "rosterId": seat.entry.roster_id}
    return Reply({**said, "triggerSubscriptionId": row.subscription})


async def _somebody(request: Request, name: str | None) -> Seat:
    services, tenant = request.services, request.caller.tenant
    if name is not None:
        return await services.roster.must_find(tenant, name)
    found = await services.roster.find(tenant, NAME)
    if found is not None:
        return found
    agent = Agent(name=AGENT, role="tester", prompt="You are asked by a test suite. Be brief.")
    await services.agents.put(tenant, agent, by="conformance")
    entry = Entry(
        roster_id=NAME,
        persona="Sally",
        agent_ref=AgentRef(agent_id=agent.manifest_id),
        owner=Owner(tenant_id=tenant),
        workflows=(FLOW,),
    )
    hired = Hired(entry=entry, did="hired", hired_at=services.clock.millis())
    known = await services.roster.history(tenant, NAME)
    guard = nobody(tenant, NAME)
    guard = replace(guard, revision=known[0].revision) if known else guard
    if not known or known[0].gone:
        with suppress(Overtaken):  # another call has hired it meanwhile
            await services.roster.put(tenant, hired, "conformance", guard)
    return await services.roster.must_find(tenant, NAME)
