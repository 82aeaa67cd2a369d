"""All tools of the host, and those that an agent may use by its definition.

``price_history`` is a function, ``http:get_rates`` an address in moot.toml, ``mcp:files/read`` and
``mcp:files/*`` are tools of a server."""

import logging
import re
from collections.abc import Mapping

from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.mcp import McpServer
from moot.agents.tools.toolbox import (
    FindUnlisted,
    Toolbox,
    UsableTool,
    is_tool_allowed,
    model_tool_name,
)
from moot.core.text.nearest import nearest_word
from moot.net.outbound import Outbound

log = logging.getLogger("moot.agents")

HTTP, MCP = "http:", "mcp:"
_MCP = re.compile(r"mcp:([A-Za-z0-9_-]+)/(\S+)")


class ToolListing(Struct, frozen=True, kw_only=True):
    """A tool as lists show it."""

    name: str
    source: str
    description: str = ""
    dangerous: bool = False
    idempotent: bool = False
    parameters: dict[str, object] | None = None
    #: why it is unavailable now
    problem: str | None = None


class ToolRegistry:
    def __init__(
        self,
        functions: Mapping[str, tuple[UsableTool, str]] | None = None,
        http: Mapping[str, UsableTool] | None = None,
        servers: Mapping[str, McpServer] | None = None,
        outbound: Outbound | None = None,
    ) -> None:
        self._outbound = outbound
        #: functions and HTTP tools by name
        self._single: dict[str, tuple[UsableTool, str]] = dict(functions or {})
        for tool in (http or {}).values():
            self._single[tool.name] = (tool, "moot.toml")
        self._servers = dict(servers or {})

    @property
    def names(self) -> list[str]:
        """Return all names an agent can use; for a server, the pattern of all its tools."""
        return [*sorted(self._single), *(f"{MCP}{name}/*" for name in sorted(self._servers))]

    def problem(self, reference: str) -> str | None:
        if reference in self._single:
            return None
        match = _MCP.fullmatch(reference)
        if match and match[1] in self._servers:
            return None
        if reference.startswith(MCP) and not match:
            return f"'{reference}' is no tool of a server; write mcp:SERVER/TOOL or mcp:SERVER/*"
        if match:
            suggestion = nearest_word(match[1], list(self._servers))
            hint = f"; did you mean 'mcp:{suggestion}/{match[2]}'?" if suggestion else ""
            return f"there is no MCP server '{match[1]}'{hint}"
        return f"there is no tool '{reference}'{self._hint(reference)}"

    def _hint(self, reference: str) -> str:
        names = list(self._single)
        other = HTTP + reference if not reference.startswith(HTTP) else reference[len(HTTP) :]
        suggestion = other if other in names else nearest_word(reference, names)
        if suggestion:
            return f"; did you mean '{suggestion}'?"
        return "; see: moot tools list" if names else "; this host has no tools"

    async def for_agent(self, agent: Agent) -> Toolbox:
        """Return the tools that the definition of the agent names, as far as they exist."""
        tools: dict[str, UsableTool] = {}
        patterns: list[tuple[str, McpServer, str]] = []
        for reference in agent.tools:
            if reference in self._single:
                tools[reference] = self._single[reference][0]
            elif (match := _MCP.fullmatch(reference)) and match[1] in self._servers:
                server = self._servers[match[1]]
                tools |= await _server_tools(server, match[2])
                patterns.append((f"{MCP}{server.name}/", server, match[2]))
            else:
                log.warning("Agent %s names a tool that is not here: %s", agent.name, reference)
        return Toolbox(tools, _unlisted_finder(patterns))

    async def listed(self, connect: bool = False) -> list[ToolListing]:
        """List all tools. Connect to servers only with ``connect``."""
        single = sorted(self._single.items())
        rows = [_listing(name, source, tool) for name, (tool, source) in single]
        for name, server in sorted(self._servers.items()):
            if connect:
                await server.tools()
            if server.known is None:
                problem = server.problem or "not asked yet"
                pattern = f"{MCP}{name}/*"
                rows.append(ToolListing(name=pattern, source=server.place, problem=problem))
            else:
                rows += [_listing(tool.name, server.place, tool) for tool in server.known.values()]
        return rows

    async def aclose(self) -> None:
        for server in self._servers.values():
            await server.aclose()
        if self._outbound is not None:
            await self._outbound.aclose()


async def _server_tools(server: McpServer, pattern: str) -> dict[str, UsableTool]:
    """Return the matching tools of a server; none while it cannot be reached."""
    reference = f"{MCP}{server.name}/{pattern}"
    tools = await server.tools()
    return {tool.name: tool for tool in tools.values() if is_tool_allowed([reference], tool.name)}


def _unlisted_finder(patterns: list[tuple[str, McpServer, str]]) -> FindUnlisted:
    """Return a finder of tools that cannot be listed now; recorded calls of them may exist."""

    def find(name: str) -> UsableTool | None:
        for prefix, server, pattern in patterns:
            tool = name.removeprefix(model_tool_name(prefix))
            is_unlisted = server.known is None and tool != name
            if is_unlisted and is_tool_allowed([prefix + pattern], prefix + tool):
                return server.unlisted(tool)
        return None

    return find


def _listing(name: str, source: str, tool: UsableTool) -> ToolListing:
    return ToolListing(
        name=name,
        source=source,
        description=tool.description,
        dangerous=tool.dangerous,
        idempotent=tool.idempotent,
        parameters=tool.parameters,
    )
