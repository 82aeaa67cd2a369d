"""The agent inventory of the protocol, the host's own agents, and their tools."""

from collections.abc import Callable

import msgspec
from msgspec.structs import asdict

from moot.agents.definitions.manifest import Agent, agent_from_json, agent_from_manifest
from moot.agents.tools.registry import ToolListing
from moot.agents.tools.toolbox import is_tool_allowed
from moot.api.access.auth import is_agent_key
from moot.api.http.request import FLAG, Endpoint, Reply, Request
from moot.api.views import copy_fields
from moot.core.errors import Forbidden, NotFound
from moot.core.events import iso
from moot.wire.agents import (
    AgentDetails,
    AgentInventory,
    AgentInventoryEntry,
    AgentList,
    AgentMemoryShape,
    AgentVersion,
    AgentView,
    StandingInstance,
    ToolList,
    ToolView,
)

PACK = "local"
#: Versions in the history of one agent.
MOST_VERSIONS = 100


def inventory_view(agent: Agent, roster: list[StandingInstance] | None) -> AgentInventoryEntry:
    """Return an agent as the inventory lists it, without prompt and secrets."""
    memory = AgentMemoryShape(long_term=agent.memory != "run", scratchpad=True)
    return AgentInventoryEntry(
        agent_id=agent.manifest_id,
        persona=agent.called,
        label=agent.called[:100],
        model_class=agent.model_class,
        pack_name=PACK,
        pack_version=agent.version,
        tool_allowlist=[name if ":" in name else f"openwop:{name}" for name in agent.tools],
        has_handoff_schemas=False,
        confidence_threshold=agent.confidence,
        description=agent.description or None,
        memory_shape=memory if agent.memory != "none" else None,
        roster=roster,
    )


async def list_inventory(request: Request) -> Reply:
    instances_of = await _instance_finder(request)
    agents = [
        inventory_view(agent, instances_of(agent))
        for agent in await request.services.agents.all(request.tenant)
    ]
    agents.sort(key=lambda entry: entry.agent_id)
    return Reply(AgentInventory(agents=agents, total=len(agents)))


async def _instance_finder(request: Request) -> Callable[[Agent], list[StandingInstance] | None]:
    """Return a function that lists an agent's standing instances, or None without a roster."""
    if not request.services.has_roster:
        return lambda agent: None
    members = await request.services.roster.all(request.tenant)

    def find_instances(agent: Agent) -> list[StandingInstance]:
        names = (agent.manifest_id, agent.agent_id, agent.name)
        entries = [member.entry for member in members if member.entry.agent_ref.agent_id in names]
        return [
            StandingInstance(
                roster_id=entry.roster_id, persona=entry.persona, workflows=list(entry.workflows)
            )
            for entry in entries
        ]

    return find_instances


async def read_inventory_agent(request: Request) -> Reply:
    wanted = request.params["agent_id"]
    for agent in await request.services.agents.all(request.tenant):
        if wanted in (agent.manifest_id, agent.agent_id, agent.name):
            instances_of = await _instance_finder(request)
            return Reply(inventory_view(agent, instances_of(agent)))
    raise NotFound("There is no such agent.", agentId=wanted)


def agent_view(agent: Agent) -> AgentView:
    return copy_fields(AgentView, agent, persona=agent.called)


async def list_agents(request: Request) -> Reply:
    agents = await request.services.agents.all(request.tenant)
    return Reply(AgentList(agents=[agent_view(agent) for agent in agents]))


async def read_agent(request: Request) -> Reply:
    agents, tenant = request.services.agents, request.tenant
    name = request.params["name"].removeprefix("host:")
    agent = await agents.must_find(tenant, name)
    history = [
        AgentVersion(
            version=record.version,
            at=iso(record.created_at * 1000),
            by=record.by,
            removed=record.gone,
        )
        for record in await agents.history(tenant, name)
    ]
    details = AgentDetails(
        **asdict(agent_view(agent)),
        prompt=agent.prompt,
        definition=msgspec.to_builtins(agent),
        history=history[:MOST_VERSIONS],
    )
    return Reply(details)


async def put_agent(request: Request) -> Reply:
    """Store an agent, in the host's own form or as a manifest with an ``agentId``."""
    body = await request.read(dict)
    agent = agent_from_manifest(body) if "agentId" in body else agent_from_json(body)
    refuse_agent_keys(request)
    await check_name_free(request, agent.agent_id)
    await request.services.agents.put(
        request.tenant, agent, by=request.caller.id, packed="agentId" in body
    )
    return Reply(agent_view(agent), 201, {"Location": f"/v1/host/moot/agents/{agent.name}"})


def refuse_agent_keys(request: Request) -> None:
    """Raise Forbidden for an agent's key. Only people define agents and their tools."""
    if is_agent_key(request.caller) and not request.caller.admin:
        raise Forbidden("An agent's key changes no agents; a person's does.")


async def check_name_free(request: Request, name: str) -> None:
    """Raise Forbidden when another key speaks as this name.

    Only an administrator or that key may define or remove such an agent.
    """
    caller = request.caller
    if caller.admin or name in caller.speaks_as:
        return
    now = request.now()
    for key in await request.store.keys(caller.tenant):
        living = key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
        if living and name in key.speaks_as:
            raise Forbidden(f"A key speaks as {name}; ask an administrator.", agentId=name)


async def remove_agent(request: Request) -> Reply:
    name = request.params["name"].removeprefix("host:")
    refuse_agent_keys(request)
    agent = await request.services.agents.must_find(request.tenant, name)
    await check_name_free(request, agent.agent_id)
    await request.services.agents.remove(request.tenant, name, by=request.caller.id)
    return Reply(None, 204)


def tool_view(tool: ToolListing, agents: list[Agent]) -> ToolView:
    """Return one tool. A tool server that is not connected yet appears as ``name/*``."""
    users = [agent.name for agent in agents if _can_use(agent, tool.name)]
    return copy_fields(ToolView, tool, agents=users)


def _can_use(agent: Agent, name: str) -> bool:
    if name.endswith("/*"):
        return any(reference.startswith(name[:-1]) for reference in agent.tools)
    return is_tool_allowed(agent.tools, name)


async def list_tools(request: Request) -> Reply:
    """List tools. The host starts and asks tool servers only with ``connect=true``."""
    connect = request.query.get("connect") == "true"
    tools = await request.services.tools.listed(connect)
    agents = await request.services.agents.all(request.tenant)
    return Reply(ToolList(tools=[tool_view(tool, agents) for tool in tools]))


AGENT_ENDPOINTS = (
    Endpoint("GET", "/v1/agents", list_inventory, scope="manifest:read", answer=AgentInventory),
    Endpoint("GET", "/v1/agents/{agent_id}", read_inventory_agent, scope="manifest:read",
             answer=AgentInventoryEntry),
    Endpoint("GET", "/v1/host/moot/agents", list_agents, scope="manifest:read", answer=AgentList),
    Endpoint("POST", "/v1/host/moot/agents", put_agent, scope="manifest:write", body=Agent,
             status=201, answer=AgentView),
    Endpoint("GET", "/v1/host/moot/agents/{name}", read_agent, scope="manifest:read",
             answer=AgentDetails),
    Endpoint("DELETE", "/v1/host/moot/agents/{name}", remove_agent, scope="manifest:write",
             status=204),
    Endpoint("GET", "/v1/host/moot/tools", list_tools, scope="manifest:read",
             query={"connect": FLAG}, answer=ToolList),
)  # fmt: skip
