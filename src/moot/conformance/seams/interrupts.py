"""Seams of interrupts: open a council, speak in it, try to pass an approval gate."""

from contextlib import suppress
from typing import Annotated

from msgspec import Meta, Struct

from moot.api.access.auth import speaker_from_request
from moot.api.http.request import Reply, Request
from moot.api.interrupts import answers
from moot.conformance.host import seams_of
from moot.conformance.seams.setup import (
    node,
    read_log,
    register_workflow,
    seam,
    start_workflow,
    workflow,
)
from moot.core.conversations.participants import MOST_PARTICIPANTS, check_roster
from moot.core.errors import BadRequest, Forbidden, NotFound
from moot.core.events import payload_fields
from moot.core.payloads.interrupts import ApprovalOverridden
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.conversation import THREAD
from moot.engine.workflows.built_in import TALK

Name = Annotated[str, Meta(min_length=1, max_length=256)]

#: An approver of the gate below.
APPROVER = "conformance-owner-principal"
GATE = {
    "title": "Publish",
    "requiredApprovals": 2,
    "approversList": [APPROVER, "conformance-second-principal"],
    "overrideBypassesQuorum": True,
}


class OpenCouncil(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    participants: list[dict[str, object]]
    max_participants: int = MOST_PARTICIPANTS


class ExchangeTurn(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    turn: dict[str, object]


class GateTrial(Struct, frozen=True):
    scenario: str
    principal: Name
    reason: str = ""


async def open_council(request: Request) -> Reply:
    """Open a council. The request may lower the host's limit of participants, never raise it."""
    body = await request.read(OpenCouncil)
    if body.max_participants < 2:
        raise BadRequest("maxParticipants must be at least 2.", field="maxParticipants")
    most = min(body.max_participants, MOST_PARTICIPANTS)
    check_roster(body.participants, most=most)
    tenant = request.caller.tenant
    flow = await request.services.host.flows.newest(tenant, THREAD)
    run_id = await start_workflow(request, flow, {"participants": body.participants})
    seams_of(request).councils[tenant, body.conversation_id] = run_id
    return Reply({"conversationId": body.conversation_id, "accepted": True})


async def exchange_turn(request: Request) -> Reply:
    body = await request.read(ExchangeTurn)
    services, tenant = request.services, request.caller.tenant
    run_id = seams_of(request).councils.get((tenant, body.conversation_id))
    if run_id is None:
        raise NotFound("There is no such conversation.", conversationId=body.conversation_id)
    turn = {key: value for key, value in body.turn.items() if key != "turnIndex"}
    value, who = {"operation": "exchange", "turn": turn}, speaker_from_request(request)
    command = GateAnswer(node_id=TALK, value=value, who=who, at=services.clock.millis())
    await answers.check_new_message_id(request, run_id, command.value)
    await services.host.handle(tenant, run_id, command)
    return Reply({"conversationId": body.conversation_id, "accepted": True})


async def try_approval_gate(request: Request) -> Reply:
    """Start a gate for two approvers.

    Another principal tries to pass it, or its owner overrides it.
    """
    body = await request.read(GateTrial)
    services, tenant = request.services, request.caller.tenant
    gate = workflow("conformance-governance-gate", [node("gate", "core.approvalGate", GATE)])
    run_id = await start_workflow(request, await register_workflow(request, gate))
    overrides = body.scenario == "override"
    value: dict[str, object] = {"action": "accept"}
    if overrides:
        value |= {"override": True, "reason": body.reason}
    who = Speaker(body.principal, (), admin=overrides and body.principal == APPROVER)
    command = GateAnswer(node_id="gate", value=value, who=who, at=services.clock.millis())
    with suppress(Forbidden):
        await services.host.handle(tenant, run_id, command)
    run = (await services.host.view(tenant, run_id)).run
    answer: dict[str, object] = {"runId": run_id, "released": "gate" not in run.interrupts}
    for event in await read_log(request, run_id):
        if isinstance(event.payload, ApprovalOverridden):
            answer["event"] = {"type": event.type, "payload": payload_fields(event)}
    return Reply(answer)


INTERRUPT_SEAMS = (
    seam("conversation/multi-party/open", open_council, OpenCouncil),
    seam("conversation/multi-party/exchange", exchange_turn, ExchangeTurn),
    seam("governance/approval-gate", try_approval_gate, GateTrial),
)
