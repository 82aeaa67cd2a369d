"""Agents: the inventory as the protocol has it, and their management under the host's own name."""

from collections.abc import Callable
from typing import Any

import msgspec

from moot.agents.definitions.manifest import Agent, from_json
from moot.agents.definitions.packs import from_manifest
from moot.api.access.auth import is_agents
from moot.api.http.request import Endpoint, Reply, Request
from moot.core.errors import Forbidden, NotFound
from moot.core.events import iso

PACK = "local"


def entry(agent: Agent) -> dict[str, Any]:
    """What the inventory says: never a prompt, never a secret."""
    said: dict[str, Any] = {
        "agentId": agent.manifest_id,
        "persona": agent.called,
        "label": agent.called[:100],
        "modelClass": agent.model_class,
        "packName": PACK,
        "packVersion": agent.version,
        "toolAllowlist": [name if ":" in name else f"openwop:{name}" for name in agent.tools],
        "hasHandoffSchemas": False,
        "confidenceThreshold": agent.confidence,
    }
    if agent.description:
        said["description"] = agent.description
    if agent.memory != "none":
        said["memoryShape"] = {"longTerm": agent.memory != "run", "scratchpad": True}
    return said


async def inventory(request: Request) -> Reply:
    instances = await _instances(request)
    found = [
        {**entry(agent), **instances(agent)}
        for agent in await request.services.agents.all(request.caller.tenant)
    ]
    found.sort(key=lambda each: str(each["agentId"]))
    return Reply({"agents": found, "total": len(found)})


async def _instances(request: Request) -> Callable[[Agent], dict[str, Any]]:
    """What the inventory adds to an agent: its standing instances, if there can be any."""
    if not request.services.keeps_roster:
        return lambda agent: {}
    seats = await request.services.roster.all(request.caller.tenant)

    def projected(agent: Agent) -> dict[str, Any]:
        names = (agent.manifest_id, agent.agent_id, agent.name)
        mine = [seat.entry for seat in seats if seat.entry.agent_ref.agent_id in names]
        return {
            "roster": [
                {"rosterId": e.roster_id, "persona": e.persona, "workflows": list(e.workflows)}
                for e in mine
            ]
        }

    return projected


async def inventory_entry(request: Request) -> Reply:
    wanted = request.params["agent_id"]
    for agent in await request.services.agents.all(request.caller.tenant):
        if wanted in (agent.manifest_id, agent.agent_id, agent.name):
            return Reply({**entry(agent), **(await _instances(request))(agent)})
    raise NotFound("There is no such agent.", agentId=wanted)


def shown(agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "agentId": agent.agent_id,
        "persona": agent.called,
        "role": agent.role,
        "description": agent.description,
        "model": agent.model,
        "tools": agent.tools,
        "version": agent.version,
    }


async def list_agents(request: Request) -> Reply:
    found = await request.services.agents.all(request.caller.tenant)
    return Reply({"agents": [shown(agent) for agent in found]})


async def read(request: Request) -> Reply:
    agents, tenant = request.services.agents, request.caller.tenant
    name = request.params["name"].removeprefix("host:")
    agent = await agents.must_find(tenant, name)
    history = [
        {
            "version": record.version,
            "at": iso(record.created_at * 1000),
            "by": record.by,
            **({"removed": True} if record.gone else {}),
        }
        for record in await agents.history(tenant, name)
    ]
    whole = {
        "prompt": agent.prompt,
        "definition": msgspec.to_builtins(agent),
        "history": history[:100],
    }
    return Reply({**shown(agent), **whole})


async def put(request: Request) -> Reply:
    """Our own form, or a manifest as the protocol has it: that one has an ``agentId``."""
    body = await request.read(dict[str, Any])
    agent = from_manifest(body) if "agentId" in body else from_json(body)
    refuse_agents(request)
    await refuse_taken(request, agent.agent_id)
    await request.services.agents.put(
        request.caller.tenant, agent, by=request.caller.id, packed="agentId" in body
    )
    return Reply(shown(agent), 201, {"Location": f"/v1/host/moot/agents/{agent.name}"})


def refuse_agents(request: Request) -> None:
    """What an agent is and may use is for people to say, not for agents."""
    if is_agents(request.caller) and not request.caller.admin:
        raise Forbidden("An agent's key changes no agents; a person's does.")


async def refuse_taken(request: Request, name: str) -> None:
    """A name that a key is bound to is somebody's: the host neither begins nor ceases to speak for
    it because somebody else says so."""
    caller = request.caller
    if caller.admin or name in caller.speaks_as:
        return
    now = request.services.clock.millis()
    for key in await request.services.store.keys(caller.tenant):
        living = key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
        if living and name in key.speaks_as:
            raise Forbidden(f"A key speaks as {name}; ask an administrator.", agentId=name)


async def remove(request: Request) -> Reply:
    name = request.params["name"].removeprefix("host:")
    refuse_agents(request)
    agent = await request.services.agents.must_find(request.caller.tenant, name)
    await refuse_taken(request, agent.agent_id)
    await request.services.agents.remove(request.caller.tenant, name, by=request.caller.id)
    return Reply(None, 204)


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/agents", call=inventory, scope="manifest:read",
        summary="The agents of this host", answer="agent-inventory-response",
    ),
    Endpoint(
        method="GET", path="/v1/agents/{agent_id}", call=inventory_entry, scope="manifest:read",
        summary="One agent of this host", errors=(404,),
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/agents", call=list_agents, scope="manifest:read",
        summary="The agents, with their models and tools",
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/agents", call=put, scope="manifest:write",
        body=Agent, status=201, summary="Take in an agent, or a new version of it", errors=(409,),
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/agents/{name}", call=read, scope="manifest:read",
        summary="One agent, with its prompt and who changed it", errors=(404,),
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/agents/{name}", call=remove, scope="manifest:write",
        status=204, summary="Let an agent go; what it has said stays", errors=(404,),
    ),
)  # fmt: skip
