"""Seams for councils of a host under trial: the same runs and commands as everybody's."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api import interrupts
from moot.api.wire import Reply, Request
from moot.core import conversation
from moot.core.errors import BadRequest, NotFound
from moot.core.resolving import Answer
from moot.core.starting import StartRun
from moot.core.waiting import THREAD
from moot.engine.built_in import TALK

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Open(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    participants: list[dict[str, Any]]
    max_participants: int = conversation.MOST_PARTICIPANTS


class Exchange(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    turn: dict[str, Any]


async def open_council(request: Request) -> Reply:
    """A roster may be held to fewer members than the host allows, never to more."""
    asked = await request.read(Open)
    if asked.max_participants < 2:
        raise BadRequest("maxParticipants must be at least 2.", field="maxParticipants")
    most = min(asked.max_participants, conversation.MOST_PARTICIPANTS)
    conversation.check_roster(asked.participants, most=most)
    services, tenant = request.services, request.caller.tenant
    flow = await services.host.flows.newest(tenant, THREAD)
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        at=services.clock.millis(),
        limits=services.host.limits,
        inputs={"participants": asked.participants},
    )
    run = await services.host.create(flow, command)
    services.councils[tenant, asked.conversation_id] = run.run_id
    return Reply({"conversationId": asked.conversation_id, "accepted": True})


async def exchange(request: Request) -> Reply:
    asked = await request.read(Exchange)
    services, tenant = request.services, request.caller.tenant
    run_id = services.councils.get((tenant, asked.conversation_id))
    if run_id is None:
        raise NotFound("There is no such conversation.", conversationId=asked.conversation_id)
    turn = {key: value for key, value in asked.turn.items() if key != "turnIndex"}
    given = Answer(
        node_id=TALK,
        value={"operation": "exchange", "turn": turn},
        who=interrupts.speaker(request),
        at=services.clock.millis(),
    )
    await services.host.handle(tenant, run_id, given)
    return Reply({"conversationId": asked.conversation_id, "accepted": True})
