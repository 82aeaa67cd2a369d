"""List the tools of this host and the agents that may use them."""

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.registry import ToolListing
from moot.agents.tools.toolbox import is_tool_allowed
from moot.api.http.request import FLAG, Endpoint, Reply, Request
from moot.api.views import copy_fields
from moot.wire.agents import ToolList, ToolView


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


TOOL_ENDPOINTS = (
    Endpoint("GET", "/v1/host/moot/tools", list_tools, scope="manifest:read",
             query={"connect": FLAG}, answer=ToolList),
)  # fmt: skip
