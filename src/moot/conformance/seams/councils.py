"""Seams for councils of a host under trial: the same runs and commands as everybody's."""

from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.api.interrupts import routes
from moot.core.conversations.participants import MOST_PARTICIPANTS, check_roster
from moot.core.errors import BadRequest, Forbidden, NotFound
from moot.core.runs.answers import Answer
from moot.core.runs.start import StartRun
from moot.core.speaker import Speaker
from moot.core.state.conversation import THREAD
from moot.engine.workflows.built_in import TALK

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Open(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    participants: list[dict[str, Any]]
    max_participants: int = MOST_PARTICIPANTS


class Gate(Struct, frozen=True):
    scenario: str
    principal: Name
    reason: str = ""


class Exchange(Struct, frozen=True, rename="camel"):
    conversation_id: Name
    turn: dict[str, Any]


async def open_council(request: Request) -> Reply:
    """A roster may be held to fewer members than the host allows, never to more."""
    asked = await request.read(Open)
    if asked.max_participants < 2:
        raise BadRequest("maxParticipants must be at least 2.", field="maxParticipants")
    most = min(asked.max_participants, MOST_PARTICIPANTS)
    check_roster(asked.participants, most=most)
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
        who=routes.speaker(request),
        at=services.clock.millis(),
    )
    await routes.refuse_repeat(request, run_id, given.value)
    await services.host.handle(tenant, run_id, given)
    return Reply({"conversationId": asked.conversation_id, "accepted": True})


#: who may approve the gate below
APPROVER = "conformance-owner-principal"

GATE = {
    "id": "conformance-governance-gate",
    "name": "Governance gate",
    "version": "1.0",
    "nodes": [
        {
            "id": "gate",
            "typeId": "core.approvalGate",
            "name": "Gate",
            "position": {"x": 0, "y": 0},
            "config": {
                "title": "Publish",
                "requiredApprovals": 2,
                "approversList": [APPROVER, "conformance-second-principal"],
                "overrideBypassesQuorum": True,
            },
            "inputs": {},
        }
    ],
    "edges": [],
    "triggers": [],
    "variables": [],
    "metadata": {},
    "settings": {},
}


async def approval_gate(request: Request) -> Reply:
    """A gate that one principal may pass: another one tries, or its owner overrides it."""
    asked = await request.read(Gate)
    services, tenant = request.services, request.caller.tenant
    flow = await services.host.flows.register(tenant, encode(GATE))
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        at=services.clock.millis(),
        limits=services.host.limits,
    )
    run_id = (await services.host.create(flow, command)).run_id
    overrides = asked.scenario == "override"
    value: dict[str, Any] = {"action": "accept"}
    if overrides:
        value |= {"override": True, "reason": asked.reason}
    who = Speaker(asked.principal, (), admin=overrides and asked.principal == APPROVER)
    given = Answer(node_id="gate", value=value, who=who, at=services.clock.millis())
    with suppress(Forbidden):
        await services.host.handle(tenant, run_id, given)
    head = await services.host.view(tenant, run_id)
    body: dict[str, Any] = {"runId": run_id, "released": "gate" not in head.run.interrupts}
    for event in await services.host.runs.log(head):
        if event.type == "approval.overridden":
            body["event"] = {"type": event.type, "payload": event.payload}
    return Reply(body)
