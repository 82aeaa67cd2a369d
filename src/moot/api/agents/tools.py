"""The tools of this host, and which agents may use them."""

from typing import Any

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.registry import Listed
from moot.agents.tools.toolbox import allows
from moot.api.http.request import Endpoint, Reply, Request


def shown(tool: Listed, agents: list[Agent]) -> dict[str, Any]:
    """A server that was not asked yet stands for all it may have."""
    said: dict[str, Any] = {
        "name": tool.name,
        "source": tool.source,
        "description": tool.description,
        "dangerous": tool.dangerous,
        "idempotent": tool.idempotent,
        "agents": [agent.name for agent in agents if _may(agent, tool.name)],
    }
    if tool.parameters is not None:
        said["parameters"] = tool.parameters
    if tool.problem is not None:
        said["problem"] = tool.problem
    return said


def _may(agent: Agent, name: str) -> bool:
    if name.endswith("/*"):
        return any(reference.startswith(name[:-1]) for reference in agent.tools)
    return allows(agent.tools, name)


async def list_tools(request: Request) -> Reply:
    """Servers are started and asked only when ``connect=true``."""
    connect = request.query.get("connect") == "true"
    found = await request.services.tools.listed(connect)
    agents = await request.services.agents.all(request.caller.tenant)
    return Reply({"tools": [shown(tool, agents) for tool in found]})


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/tools", call=list_tools, scope="manifest:read",
        summary="The tools there are, and which agents may use them",
        query={"connect": ({"type": "boolean"}, "ask servers that were not asked yet")},
    ),
)  # fmt: skip
