"""Workflows, agents, memory, keys, and the host itself: every call there is."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from moot.client.http.operation import Again, Sent, given, operation, silent
from moot.wire import host

Definition = Mapping[str, Any] | bytes


def _encoded(definition: Definition) -> bytes:
    """Bytes are sent as they are: their digest is what a run pins."""
    return definition if isinstance(definition, bytes) else msgspec.json.encode(definition)


# -- workflows -----------------------------------------------------------------------------------


@operation("GET /v1/workflows/{workflow_id}", dict)
def workflow(workflow_id: str) -> Sent:
    """A workflow's definition."""
    return Sent(workflow_id)


@operation("GET /v1/host/moot/workflows", host.Workflows)
def workflows() -> Sent:
    """The registered workflows."""
    return Sent()


@operation("POST /v1/host/moot/workflows", host.Registered)
def register(definition: Definition) -> Sent:
    """Register a workflow; the newest of an id is what new runs use."""
    return Sent(body=_encoded(definition))


@operation("POST /v1/host/moot/workflows:check", host.Checked, Again.FREELY)
def check(definition: Definition) -> Sent:
    """Check a workflow without registering it."""
    return Sent(body=_encoded(definition))


# -- agents --------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/agents", host.AgentList)
def agents() -> Sent:
    """The agents, with their models and tools."""
    return Sent()


@operation("GET /v1/host/moot/agents/{name}", host.AgentView)
def agent(name: str) -> Sent:
    """One agent, with its prompt and who changed it."""
    return Sent(name)


@operation("POST /v1/host/moot/agents", host.AgentView)
def put_agent(
    name: str,
    prompt: str = "",
    *,
    role: str | None = None,
    persona: str | None = None,
    model: str | None = None,
    tools: Sequence[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Sent:
    """Take in an agent, or a new version of it. ``more`` are further words of its file."""
    kept = None if tools is None else list(tools)
    body = given(role=role, persona=persona, model=model, tools=kept)
    return Sent(body={"name": name, "prompt": prompt, **body, **(more or {})})


@silent("DELETE /v1/host/moot/agents/{name}")
def remove_agent(name: str) -> Sent:
    """Let an agent go; what it has said stays."""
    return Sent(name)


@operation("GET /v1/agents", host.Inventory)
def inventory() -> Sent:
    """The agents as the protocol lists them."""
    return Sent()


@operation("GET /v1/agents/{agent_id}", host.InventoryEntry)
def inventory_entry(agent_id: str) -> Sent:
    """One agent as the protocol lists it."""
    return Sent(agent_id)


@operation("GET /v1/host/moot/agents/{agent_id}/deployments", host.Deployments)
def deployments(agent_id: str) -> Sent:
    """The versions of an agent that were promoted."""
    return Sent(agent_id)


@operation("POST /v1/agents/{agent_id}/deployments", host.Deployment)
def deploy(
    agent_id: str,
    version: str,
    transition: Literal["promote", "pause", "deprecate", "rollback", "adjust-canary"] = "promote",
    *,
    channel: str | None = None,
    percent: int | None = None,
    reason: str | None = None,
) -> Sent:
    """Change which version of an agent serves whom."""
    body = given(channel=channel, canaryPercent=percent, reason=reason)
    return Sent(agent_id, body={"version": version, "transition": transition, **body})


@operation("GET /v1/host/moot/tools", host.Tools)
def tools(*, connect: bool = False) -> Sent:
    """The tools there are, and which agents may use them; ``connect`` asks servers, too."""
    return Sent(query={"connect": connect}, seconds=60.0 if connect else 0.0)


# -- memory --------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/memory", host.MemoryRefs)
def memories() -> Sent:
    """The memories there are."""
    return Sent()


@operation("GET /v1/host/moot/memory", host.MemoryEntries)
def entries(
    ref: str,
    *,
    id: str | None = None,
    tag: str | None = None,
    limit: int | None = None,
    run_id: str | None = None,
    at: int | None = None,
) -> Sent:
    """The entries of a memory, or as a run sees it, or saw it before one of its events."""
    query = {"ref": ref, "id": id, "tag": tag, "limit": limit, "runId": run_id, "at": at}
    return Sent(query=query)


@operation("DELETE /v1/host/moot/memory", host.Forgotten)
def forget(ref: str, *, id: str | None = None) -> Sent:
    """Forget an entry, or all of a memory, for good."""
    return Sent(query={"ref": ref, "id": id})


# -- keys ----------------------------------------------------------------------------------------


@operation("GET /v1/host/moot/keys", host.Keys)
def keys() -> Sent:
    """The keys; never their secrets."""
    return Sent()


@operation("POST /v1/host/moot/keys", host.NewKey, Again.ONCE)
def create_key(
    name: str,
    *,
    scopes: Sequence[str] | None = None,
    speaks_as: Sequence[str] = (),
    tenant: str | None = None,
    admin: bool = False,
    test: bool = False,
    seconds: int | None = None,
) -> Sent:
    """Make a key. Its secret is shown once, and so is asked for once."""
    kept = None if scopes is None else list(scopes)
    body = given(scopes=kept, tenant=tenant, expires_in_s=seconds)
    flags = {"as": list(speaks_as), "admin": admin, "test": test}
    return Sent(body={"name": name, **flags, **body})


@silent("DELETE /v1/host/moot/keys/{key_id}")
def revoke_key(key_id: str) -> Sent:
    """Revoke a key; whatever it has opened ends."""
    return Sent(key_id)


# -- the host ------------------------------------------------------------------------------------


@operation("GET /.well-known/openwop", dict)
def discovery() -> Sent:
    """What this host can do."""
    return Sent()


@operation("GET /v1/openapi.json", dict)
def openapi() -> Sent:
    """The API as an OpenAPI document."""
    return Sent()


@operation("GET /healthz", host.Health)
def health() -> Sent:
    """Is the server alive?"""
    return Sent()


@operation("GET /readyz", host.Health)
def ready() -> Sent:
    """Does its store answer?"""
    return Sent()


@operation("GET /metrics", str)
def metrics() -> Sent:
    """Metrics in Prometheus' text format."""
    return Sent(accept="text/plain")


@operation("GET /", host.Index)
def index() -> Sent:
    """Where things are."""
    return Sent()
