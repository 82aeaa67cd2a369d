"""Read, register, check and list workflows."""

import msgspec
from msgspec import Struct

from moot.api.access.auth import require_scope
from moot.api.http.request import Endpoint, Reply, Request, check_depth
from moot.api.views import copy_fields
from moot.core.events import iso
from moot.core.workflows.schema import WorkflowDef
from moot.core.workflows.warnings import definition_warnings
from moot.engine.workflows.built_in import BUILT_IN
from moot.store.protocol import Definition
from moot.wire.workflows import WorkflowCheck, WorkflowList, WorkflowRegistration, WorkflowSummary


class WorkflowOutline(Struct):
    """The parts of a definition that a list shows.

    They can be read even if node types are missing.
    """

    name: str
    nodes: list[msgspec.Raw]
    description: str = ""


async def read_workflow(request: Request) -> Reply:
    name, tenant = request.params["workflow_id"], request.tenant
    if name in BUILT_IN:
        await request.host.flows.own(tenant, name)
    definition = await request.store.definition(tenant, name)
    if definition is None:
        raise request.host.flows.unknown(tenant, name)
    return Reply(definition.body, 200, {"ETag": f'"{definition.digest}"'})


async def register_workflow(request: Request) -> Reply:
    body = await request.body()
    check_depth(body)
    services = request.services
    compiled = services.host.flows.compile(body)
    services.seams.check_flow(compiled)
    if any(each.type == "schedule" and each.enabled for each in compiled.definition.triggers):
        require_scope(request.caller, "runs:create")  # a schedule starts runs
    flow = await services.triggers.declared.register(request.tenant, body, request.caller.id)
    answer = WorkflowRegistration(
        workflow_id=flow.definition.id,
        version=flow.definition.version,
        digest=flow.digest,
        warnings=definition_warnings(flow),
    )
    return Reply(answer, 201, {"Location": f"/v1/workflows/{flow.definition.id}"})


async def check_workflow(request: Request) -> Reply:
    body = await request.body()
    check_depth(body)
    flow = request.host.flows.compile(body)
    answer = WorkflowCheck(
        workflow_id=flow.definition.id,
        ok=True,
        nodes=len(flow.nodes),
        warnings=definition_warnings(flow),
    )
    return Reply(answer)


async def list_workflows(request: Request) -> Reply:
    definitions = await request.store.definitions(request.tenant)
    return Reply(WorkflowList(workflows=[_workflow_summary(entry) for entry in definitions]))


def _workflow_summary(entry: Definition) -> WorkflowSummary:
    outline = msgspec.json.decode(entry.body, type=WorkflowOutline)
    return copy_fields(
        WorkflowSummary,
        entry,
        name=outline.name,
        description=outline.description,
        nodes=len(outline.nodes),
        registered_at=iso(entry.created_at * 1000),
    )


WORKFLOW_ENDPOINTS = (
    Endpoint("GET", "/v1/workflows/{workflow_id}", read_workflow, scope="manifest:read",
             answer=WorkflowDef),
    Endpoint("POST", "/v1/host/moot/workflows", register_workflow, scope="manifest:write",
             body=WorkflowDef, status=201, answer=WorkflowRegistration),
    Endpoint("POST", "/v1/host/moot/workflows:check", check_workflow, scope="manifest:read",
             body=WorkflowDef, answer=WorkflowCheck),
    Endpoint("GET", "/v1/host/moot/workflows", list_workflows, scope="manifest:read",
             answer=WorkflowList),
)  # fmt: skip
