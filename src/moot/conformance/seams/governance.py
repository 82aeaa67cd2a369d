"""Seam ``governance/approval-gate``: try to pass a real approval gate."""

from contextlib import suppress
from typing import Any

from msgspec import Struct

from moot.api.http.request import Reply, Request, encode
from moot.conformance.seams.conversation import Name
from moot.core.errors import Forbidden
from moot.core.events import payload_fields
from moot.core.payloads.interrupts import ApprovalOverridden
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.engine.start import RunOrder, start_run


class GateTrial(Struct, frozen=True):
    scenario: str
    principal: Name
    reason: str = ""


#: An approver of the gate below.
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


async def try_approval_gate(request: Request) -> Reply:
    """Start a gate for two approvers.

    Another principal tries to pass it, or its owner overrides it.
    """
    body = await request.read(GateTrial)
    services, tenant = request.services, request.caller.tenant
    flow = await services.host.flows.register(tenant, encode(GATE))
    order = RunOrder(
        tenant=tenant, principal=request.caller.id, workflow_id=flow.definition.id, flow=flow
    )
    run_id = (await start_run(services.host, order)).run_id
    overrides = body.scenario == "override"
    value: dict[str, Any] = {"action": "accept"}
    if overrides:
        value |= {"override": True, "reason": body.reason}
    who = Speaker(body.principal, (), admin=overrides and body.principal == APPROVER)
    answer_command = GateAnswer(node_id="gate", value=value, who=who, at=services.clock.millis())
    with suppress(Forbidden):
        await services.host.handle(tenant, run_id, answer_command)
    head = await services.host.view(tenant, run_id)
    answer: dict[str, Any] = {"runId": run_id, "released": "gate" not in head.run.interrupts}
    for event in await services.host.runs.log(head):
        if isinstance(event.payload, ApprovalOverridden):
            answer["event"] = {"type": event.type, "payload": payload_fields(event)}
    return Reply(answer)
