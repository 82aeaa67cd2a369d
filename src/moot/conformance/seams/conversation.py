"""Seams ``conversation/multi-party/*``: open a council and speak in it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.access.auth import speaker_from_request
from moot.api.http.request import Reply, Request
from moot.api.interrupts import answers
from moot.conformance.host import seams_of
from moot.core.conversations.participants import MOST_PARTICIPANTS, check_roster
from moot.core.errors import BadRequest, NotFound
from moot.core.runs.answers import GateAnswer
from moot.core.state.conversation import THREAD
from moot.engine.start import RunOrder, start_run
from moot.engine.workflows.built_in import TALK

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class OpenCouncil(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    participants: list[dict[str, Any]]
    max_participants: int = MOST_PARTICIPANTS


class ExchangeTurn(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    turn: dict[str, Any]


async def open_council(request: Request) -> Reply:
    """Open a council. The request may lower the host's limit of participants, never raise it."""
    body = await request.read(OpenCouncil)
    if body.max_participants < 2:
        raise BadRequest("maxParticipants must be at least 2.", field="maxParticipants")
    most = min(body.max_participants, MOST_PARTICIPANTS)
    check_roster(body.participants, most=most)
    services, tenant = request.services, request.caller.tenant
    order = RunOrder(
        tenant=tenant,
        principal=request.caller.id,
        workflow_id=THREAD,
        inputs={"participants": body.participants},
    )
    run = await start_run(services.host, order)
    seams_of(request).councils[tenant, body.conversation_id] = run.run_id
    return Reply({"conversationId": body.conversation_id, "accepted": True})


async def exchange_turn(request: Request) -> Reply:
    body = await request.read(ExchangeTurn)
    services, tenant = request.services, request.caller.tenant
    run_id = seams_of(request).councils.get((tenant, body.conversation_id))
    if run_id is None:
        raise NotFound("There is no such conversation.", conversationId=body.conversation_id)
    turn = {key: value for key, value in body.turn.items() if key != "turnIndex"}
    command = GateAnswer(
        node_id=TALK,
        value={"operation": "exchange", "turn": turn},
        who=speaker_from_request(request),
        at=services.clock.millis(),
    )
    await answers.check_new_message_id(request, run_id, command.value)
    await services.host.handle(tenant, run_id, command)
    return Reply({"conversationId": body.conversation_id, "accepted": True})
