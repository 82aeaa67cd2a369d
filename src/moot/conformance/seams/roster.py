"""Seam ``roster/fire``: start a workflow of a real standing agent."""

from contextlib import suppress
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.agents.definitions.manifest import Agent
from moot.agents.roster.members import MemberEntry, MemberOwner, MemberRecord, MemberVersion
from moot.api.http.request import Reply, Request
from moot.api.roster import routes
from moot.api.roster.views import check_roster_offered
from moot.conformance.seams.deliveries import ITEM, deliver_by_source
from moot.conformance.seams.setup import seam
from moot.core.errors import BadRequest, Conflict
from moot.core.errors.triggers import Overtaken
from moot.engine.start import RunOrder
from moot.wire.roster import MemberAgentRef

#: The default member, its agent and its workflow.
NAME, AGENT, FLOW = "host:conformance-sally", "conformance-clerk", "conformance-noop"

ROSTER_ALIASES = tuple(
    replace(row, path=row.path.replace("/moot/", "/sample/"))
    for row in routes.ROSTER_ENDPOINTS
    if row.path.startswith(routes.HOST)
)


class RosterFire(Struct, frozen=True, kw_only=True, rename="camel"):
    trigger_source: Annotated[str, Meta(min_length=1, max_length=64)]
    roster_id: str | None = None
    workflow_id: str | None = None
    #: Every fire is a delivery of a subscription here. An object holds the fields of the item.
    as_work_item: bool | dict[str, object] = False


async def fire_member(request: Request) -> Reply:
    check_roster_offered(request)
    body = await request.read(RosterFire)
    services, tenant = request.services, request.caller.tenant
    member = await _find_or_hire(request, body.roster_id)
    workflows = (body.workflow_id,) if body.workflow_id else member.entry.workflows
    if not workflows:
        raise BadRequest(f"{member.entry.roster_id} has no workflows.", field="rosterId")
    order = RunOrder(
        tenant=tenant,
        workflow_id=workflows[0],
        source=body.trigger_source,
        principal=request.caller.id,
        roster_id=member.entry.roster_id,
    )
    await services.triggers.run_starter.drawn(order)
    item = body.as_work_item if isinstance(body.as_work_item, dict) else ITEM
    source, workflow_id = body.trigger_source, order.workflow_id
    row = await deliver_by_source(request, source, workflow_id, order.roster_id, item)
    if row.run_id is None:
        raise Conflict(f"No run was begun: {row.reason}", rosterId=member.entry.roster_id)
    answer = {"runId": row.run_id, "rosterId": member.entry.roster_id}
    return Reply({**answer, "triggerSubscriptionId": row.subscription})


async def _find_or_hire(request: Request, name: str | None) -> MemberVersion:
    services, tenant = request.services, request.caller.tenant
    if name is not None:
        return await services.roster.must_find(tenant, name)
    member = await services.roster.find(tenant, NAME)
    if member is not None:
        return member
    agent = Agent(name=AGENT, role="tester", prompt="You are asked by a test suite. Be brief.")
    await services.agents.put(tenant, agent, by="conformance")
    entry = MemberEntry(
        roster_id=NAME,
        persona="Sally",
        agent_ref=MemberAgentRef(agent_id=agent.manifest_id),
        owner=MemberOwner(tenant_id=tenant),
        workflows=(FLOW,),
    )
    record = MemberRecord(entry=entry, did="hired", hired_at=services.clock.millis())
    guard = await services.roster.guard(tenant, NAME)
    versions = await services.roster.history(tenant, NAME)
    if not versions or versions[0].gone:
        with suppress(Overtaken):  # another call added it meanwhile
            await services.roster.put(tenant, record, "conformance", guard)
    return await services.roster.must_find(tenant, NAME)


ROSTER_SEAMS = (
    seam("roster/fire", fire_member, RosterFire),
    *ROSTER_ALIASES,
)
