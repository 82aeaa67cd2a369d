"""Operations on workflows, agents, memory, keys and the host."""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Literal

import msgspec

from moot.client.http.operation import RequestParts, Retry, operation, without_none
from moot.wire import agents, host, keys, memory, workflows

DefinitionBody = Mapping[str, Any] | bytes


def _encode_definition(definition: DefinitionBody) -> bytes:
    """Return bytes unchanged, because a run pins the digest of the exact bytes."""
    return definition if isinstance(definition, bytes) else msgspec.json.encode(definition)


# -- workflows -----------------------------------------------------------------------------------


@operation("GET /v1/workflows/{workflow_id}", dict)
def get_workflow(workflow_id: str) -> RequestParts:
    """Get the definition of a workflow."""
    return RequestParts(workflow_id)


@operation("GET /v1/host/moot/workflows", workflows.WorkflowList)
def list_workflows() -> RequestParts:
    """List the registered workflows."""
    return RequestParts()


@operation("POST /v1/host/moot/workflows", workflows.WorkflowRegistration)
def register_workflow(definition: DefinitionBody) -> RequestParts:
    """Register a workflow. New runs use the newest definition of an id."""
    return RequestParts(body=_encode_definition(definition))


@operation("POST /v1/host/moot/workflows:check", workflows.WorkflowCheck, Retry.FREELY)
def check_workflow(definition: DefinitionBody) -> RequestParts:
    """Check a workflow without registering it."""
    return RequestParts(body=_encode_definition(definition))


# -- agents --------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/agents", agents.AgentList)
def list_agents() -> RequestParts:
    """List the agents with their models and tools."""
    return RequestParts()


@operation("GET /v1/host/moot/agents/{name}", agents.AgentDetails)
def get_agent(name: str) -> RequestParts:
    """Get an agent with its prompt and history."""
    return RequestParts(name)


@operation("POST /v1/host/moot/agents", agents.AgentView)
def put_agent(
    name: str,
    prompt: str = "",
    *,
    role: str | None = None,
    persona: str | None = None,
    model: str | None = None,
    tools: Sequence[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> RequestParts:
    """Create an agent or a new version of it. ``more`` has further fields of its file."""
    tool_names = None if tools is None else list(tools)
    body = without_none(role=role, persona=persona, model=model, tools=tool_names)
    return RequestParts(body={"name": name, "prompt": prompt, **body, **(more or {})})


@operation("POST /v1/host/moot/agents", agents.AgentView)
def register_agent(definition: Mapping[str, Any]) -> RequestParts:
    """Create an agent or a new version of it from the fields of its file or manifest."""
    return RequestParts(body=dict(definition))


@operation("DELETE /v1/host/moot/agents/{name}", NoneType)
def remove_agent(name: str) -> RequestParts:
    """Remove an agent. Its past turns stay."""
    return RequestParts(name)


@operation("GET /v1/agents", agents.AgentInventory)
def get_inventory() -> RequestParts:
    """List the agents in the form of the protocol."""
    return RequestParts()


@operation("GET /v1/agents/{agent_id}", agents.AgentInventoryEntry)
def get_inventory_entry(agent_id: str) -> RequestParts:
    """Get an agent in the form of the protocol."""
    return RequestParts(agent_id)


@operation("GET /v1/host/moot/agents/{agent_id}/deployments", agents.DeploymentList)
def list_deployments(agent_id: str) -> RequestParts:
    """List the promoted versions of an agent."""
    return RequestParts(agent_id)


@operation("POST /v1/agents/{agent_id}/deployments", agents.DeploymentView)
def deploy_agent(
    agent_id: str,
    version: str,
    transition: Literal["promote", "pause", "deprecate", "rollback", "adjust-canary"] = "promote",
    *,
    channel: str | None = None,
    percent: int | None = None,
    reason: str | None = None,
) -> RequestParts:
    """Change which version of an agent serves which channel."""
    body = without_none(channel=channel, canaryPercent=percent, reason=reason)
    return RequestParts(agent_id, body={"version": version, "transition": transition, **body})


@operation("GET /v1/host/moot/tools", agents.ToolList)
def list_tools(*, connect: bool = False) -> RequestParts:
    """List the tools and the agents that may use them; ``connect`` also queries MCP servers."""
    return RequestParts(query={"connect": connect}, seconds=60.0 if connect else 0.0)


# -- memory --------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/memory", memory.MemoryList)
def list_memories() -> RequestParts:
    """List the memories."""
    return RequestParts()


@operation("GET /v1/host/moot/memory", memory.MemoryEntryList)
def list_memory_entries(
    ref: str,
    *,
    id: str | None = None,
    tag: str | None = None,
    limit: int | None = None,
    run_id: str | None = None,
    at: int | None = None,
) -> RequestParts:
    """List the entries of a memory: now, as a run sees them, or before an event of that run."""
    query = {"ref": ref, "id": id, "tag": tag, "limit": limit, "runId": run_id, "at": at}
    return RequestParts(query=query)


@operation("DELETE /v1/host/moot/memory", memory.MemoryErasure)
def forget_memory(ref: str, *, id: str | None = None) -> RequestParts:
    """Erase an entry, or a whole memory."""
    return RequestParts(query={"ref": ref, "id": id})


# -- keys ----------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/keys", keys.KeyList)
def list_keys() -> RequestParts:
    """List the keys, never their secrets."""
    return RequestParts()


@operation("POST /v1/host/moot/keys", keys.NewKey, Retry.ONCE)
def create_key(
    name: str,
    *,
    scopes: Sequence[str] | None = None,
    speaks_as: Sequence[str] = (),
    tenant: str | None = None,
    admin: bool = False,
    test: bool = False,
    seconds: int | None = None,
) -> RequestParts:
    """Create a key. Only this answer contains its secret."""
    body = keys.CreateKey(
        name=name,
        scopes=None if scopes is None else list(scopes),
        as_=list(speaks_as),
        tenant=tenant,
        admin=admin,
        test=test,
        expires_in_s=seconds,
    )
    return RequestParts(body=body)


@operation("DELETE /v1/host/moot/keys/{key_id}", NoneType)
def revoke_key(key_id: str) -> RequestParts:
    """Revoke a key. Its open streams end."""
    return RequestParts(key_id)


# -- the host ------------------------------------------------------------------------------------


@operation("GET /.well-known/openwop", dict)
def get_discovery() -> RequestParts:
    """Get the capabilities of this host."""
    return RequestParts()


@operation("GET /v1/openapi.json", dict)
def get_openapi() -> RequestParts:
    """Get the API as an OpenAPI document."""
    return RequestParts()


@operation("GET /healthz", host.Health)
def get_health() -> RequestParts:
    """Check that the server is alive."""
    return RequestParts()


@operation("GET /readyz", host.Health)
def get_readiness() -> RequestParts:
    """Check that the store answers."""
    return RequestParts()


@operation("GET /metrics", str)
def get_metrics() -> RequestParts:
    """Get metrics in Prometheus' text format."""
    return RequestParts(accept="text/plain")


@operation("GET /", host.HostIndex)
def get_index() -> RequestParts:
    """Get the links to the parts of the API."""
    return RequestParts()
