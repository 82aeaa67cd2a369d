"""Workflows: read as the protocol has it, registered under the host's own name."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.api.access.auth import require
from moot.api.http.request import Endpoint, Reply, Request, refuse_deep
from moot.conformance import capability_toggle
from moot.core.events import iso
from moot.core.workflows.definition import WorkflowDef
from moot.core.workflows.graph import Flow
from moot.core.workflows.warnings import remarks
from moot.engine.workflows.built_in import BUILT_IN


class Outline(Struct):
    """What a list says of a definition, also of one whose node types are not here any more."""

    name: str
    nodes: list[msgspec.Raw]
    description: str = ""


async def read(request: Request) -> Reply:
    name, tenant = request.params["workflow_id"], request.caller.tenant
    if name in BUILT_IN:
        await request.services.host.flows.own(tenant, name)
    found = await request.services.store.definition(tenant, name)
    if found is None:
        raise request.services.host.flows.unknown(tenant, name)
    return Reply(found.body, 200, {"ETag": f'"{found.digest}"'})


async def register(request: Request) -> Reply:
    body = await request.body()
    refuse_deep(body)
    services = request.services
    asked = services.host.flows.compile(body)
    capability_toggle.refuse_flow(services.overlay, asked)
    if any(each.type == "schedule" and each.enabled for each in asked.definition.triggers):
        require(request.caller, "runs:create")  # it starts runs by itself
    flow = await services.triggers.declared.register(request.caller.tenant, body, request.caller.id)
    answer = {
        "workflowId": flow.definition.id,
        "version": flow.definition.version,
        "digest": flow.digest,
        **_warnings(flow),
    }
    return Reply(answer, 201, {"Location": f"/v1/workflows/{flow.definition.id}"})


async def check(request: Request) -> Reply:
    body = await request.body()
    refuse_deep(body)
    flow = request.services.host.flows.compile(body)
    answer = {"workflowId": flow.definition.id, "ok": True, "nodes": len(flow.nodes)}
    return Reply({**answer, **_warnings(flow)})


def _warnings(flow: Flow) -> dict[str, list[str]]:
    found = remarks(flow)
    return {"warnings": found} if found else {}


async def list_workflows(request: Request) -> Reply:
    found = await request.services.store.definitions(request.caller.tenant)
    rows: list[dict[str, Any]] = []
    for entry in found:
        told = msgspec.json.decode(entry.body, type=Outline)
        rows.append(
            {
                "workflowId": entry.workflow_id,
                "version": entry.version,
                "name": told.name,
                "description": told.description,
                "nodes": len(told.nodes),
                "digest": entry.digest,
                "source": entry.source,
                "registeredAt": iso(entry.created_at * 1000),
            }
        )
    return Reply({"workflows": rows})


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/workflows/{workflow_id}", call=read, scope="manifest:read",
        summary="Read a workflow's definition", answer="workflow-definition", errors=(404,),
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/workflows", call=register, scope="manifest:write",
        body=WorkflowDef, status=201, summary="Register a workflow",
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/workflows:check", call=check, scope="manifest:read",
        body=WorkflowDef, summary="Check a workflow without registering it",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/workflows", call=list_workflows, scope="manifest:read",
        summary="List the registered workflows",
    ),
)  # fmt: skip
