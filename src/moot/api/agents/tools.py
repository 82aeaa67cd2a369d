"""List the tools of this host and the agents that may use them."""

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.registry import ToolListing
from moot.agents.tools.toolbox import is_tool_allowed
from moot.api.http.request import Endpoint, Reply, Request
from moot.wire.agents import ToolList, ToolView


def tool_view(tool: ToolListing, agents: list[Agent]) -> ToolView:
    """Return one tool. A tool server that is not connected yet appears as ``name/*``."""
    return ToolView(
        name=tool.name,
        source=tool.source,
        description=tool.description,
        dangerous=tool.dangerous,
        idempotent=tool.idempotent,
        agents=[agent.name for agent in agents if _can_use(agent, tool.name)],
        parameters=tool.parameters,
        problem=tool.problem,
    )


def _can_use(agent: Agent, name: str) -> bool:
    if name.endswith("/*"):
        return any(reference.startswith(name[:-1]) for reference in agent.tools)
    return is_tool_allowed(agent.tools, name)


async def list_tools(request: Request) -> Reply:
    """List tools. The host starts and asks tool servers only with ``connect=true``."""
    connect = request.query.get("connect") == "true"
    tools = await request.services.tools.listed(connect)
    agents = await request.services.agents.all(request.caller.tenant)
    return Reply(ToolList(tools=[tool_view(tool, agents) for tool in tools]))


TOOL_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/tools", call=list_tools, scope="manifest:read",
        summary="The tools there are, and which agents may use them",
        query={"connect": ({"type": "boolean"}, "ask servers that were not asked yet")},
        tag="Agents", operation_id="listTools", answer=ToolList,
        description="Lists the tools and the agents that may use them. With `connect` the host "
        "asks tool servers that it has not asked yet.",
    ),
)  # fmt: skip
