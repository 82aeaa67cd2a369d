"""List the tools of this host and the agents that may use them."""

from typing import Any

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.registry import ToolListing
from moot.agents.tools.toolbox import is_tool_allowed
from moot.api.http.request import Endpoint, Reply, Request


def tool_view(tool: ToolListing, agents: list[Agent]) -> dict[str, Any]:
    """Return one tool. A tool server that is not connected yet appears as ``name/*``."""
    view: dict[str, Any] = {
        "name": tool.name,
        "source": tool.source,
        "description": tool.description,
        "dangerous": tool.dangerous,
        "idempotent": tool.idempotent,
        "agents": [agent.name for agent in agents if _can_use(agent, tool.name)],
    }
    if tool.parameters is not None:
        view["parameters"] = tool.parameters
    if tool.problem is not None:
        view["problem"] = tool.problem
    return view


def _can_use(agent: Agent, name: str) -> bool:
    if name.endswith("/*"):
        return any(reference.startswith(name[:-1]) for reference in agent.tools)
    return is_tool_allowed(agent.tools, name)


async def list_tools(request: Request) -> Reply:
    """List tools. The host starts and asks tool servers only with ``connect=true``."""
    connect = request.query.get("connect") == "true"
    tools = await request.services.tools.listed(connect)
    agents = await request.services.agents.all(request.caller.tenant)
    return Reply({"tools": [tool_view(tool, agents) for tool in tools]})


TOOL_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/tools", call=list_tools, scope="manifest:read",
        summary="The tools there are, and which agents may use them",
        query={"connect": ({"type": "boolean"}, "ask servers that were not asked yet")},
    ),
)  # fmt: skip
