"""Every tool there is, and which of them an agent may use: what its own definition names.

``price_history`` is a function, ``http:get_rates`` an address of moot.toml, ``mcp:files/read`` and
``mcp:files/*`` are tools of a server.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.agents.tools.mcp import McpServer
from moot.agents.tools.toolbox import Later, Toolbox, Usable, allows, spoken
from moot.core.text.nearest import nearest
from moot.net.outbound import Outbound

log = logging.getLogger("moot.agents")

HTTP, MCP = "http:", "mcp:"
_MCP = re.compile(r"mcp:([A-Za-z0-9_-]+)/(\S+)")


class Listed(Struct, frozen=True, kw_only=True):
    """A tool as people are shown it."""

    name: str
    source: str
    description: str = ""
    dangerous: bool = False
    idempotent: bool = False
    parameters: dict[str, Any] | None = None
    #: why it cannot be used now
    problem: str | None = None


class Shelf:
    def __init__(
        self,
        functions: Mapping[str, tuple[Usable, str]] | None = None,
        http: Mapping[str, Usable] | None = None,
        servers: Mapping[str, McpServer] | None = None,
        outbound: Outbound | None = None,
    ) -> None:
        self._outbound = outbound
        #: everything but servers, by the name agents use
        self._single: dict[str, tuple[Usable, str]] = dict(functions or {})
        for tool in (http or {}).values():
            self._single[tool.name] = (tool, "moot.toml")
        self._servers = dict(servers or {})

    @property
    def names(self) -> list[str]:
        """Everything that can be named; of a server, all it has."""
        return [*sorted(self._single), *(f"{MCP}{name}/*" for name in sorted(self._servers))]

    def problem(self, reference: str) -> str | None:
        """Why no agent can be given this, in words; None when it can."""
        if reference in self._single:
            return None
        found = _MCP.fullmatch(reference)
        if found and found[1] in self._servers:
            return None
        if reference.startswith(MCP) and not found:
            return f"'{reference}' is no tool of a server; write mcp:SERVER/TOOL or mcp:SERVER/*"
        if found:
            meant = nearest(found[1], list(self._servers))
            hint = f"; did you mean 'mcp:{meant}/{found[2]}'?" if meant else ""
            return f"there is no MCP server '{found[1]}'{hint}"
        return f"there is no tool '{reference}'{self._hint(reference)}"

    def _hint(self, reference: str) -> str:
        names = list(self._single)
        other = HTTP + reference if not reference.startswith(HTTP) else reference[len(HTTP) :]
        meant = other if other in names else nearest(reference, names)
        if meant:
            return f"; did you mean '{meant}'?"
        return "; see: moot tools list" if names else "; this host has no tools"

    async def for_agent(self, agent: Agent) -> Toolbox:
        """What the agent's definition names, as far as it is there."""
        found: dict[str, Usable] = {}
        maybe: list[tuple[str, McpServer, str]] = []
        for reference in agent.tools:
            if reference in self._single:
                found[reference] = self._single[reference][0]
            elif (named := _MCP.fullmatch(reference)) and named[1] in self._servers:
                server = self._servers[named[1]]
                found |= await _served(server, named[2])
                maybe.append((f"{MCP}{server.name}/", server, named[2]))
            else:
                log.warning("Agent %s names a tool that is not here: %s", agent.name, reference)
        return Toolbox(found, _later(maybe))

    async def listed(self, connect: bool = False) -> list[Listed]:
        """All of them; servers are asked only when told so, or when they were before."""
        rows = [_row(name, source, tool) for name, (tool, source) in sorted(self._single.items())]
        for name, server in sorted(self._servers.items()):
            if connect:
                await server.tools()
            if server.known is None:
                problem = server.problem or "not asked yet"
                rows.append(Listed(name=f"{MCP}{name}/*", source=server.place, problem=problem))
            else:
                rows += [_row(tool.name, server.place, tool) for tool in server.known.values()]
        return rows

    async def aclose(self) -> None:
        for server in self._servers.values():
            await server.aclose()
        if self._outbound is not None:
            await self._outbound.aclose()


async def _served(server: McpServer, pattern: str) -> dict[str, Usable]:
    """Tools of a server whose name fits; none while it cannot be reached."""
    reference = f"{MCP}{server.name}/{pattern}"
    tools = await server.tools()
    return {tool.name: tool for tool in tools.values() if allows([reference], tool.name)}


def _later(maybe: list[tuple[str, McpServer, str]]) -> Later:
    """A tool that cannot be listed now may have been called before: what is on record of that call
    can still be found."""

    def find(wanted: str) -> Usable | None:
        for prefix, server, pattern in maybe:
            word = spoken(prefix)
            tool = wanted.removeprefix(word)
            if (
                server.known is None
                and tool != wanted
                and allows([prefix + pattern], prefix + tool)
            ):
                return server.unlisted(tool)
        return None

    return find


def _row(name: str, source: str, tool: Usable) -> Listed:
    return Listed(
        name=name,
        source=source,
        description=tool.description,
        dangerous=tool.dangerous,
        idempotent=tool.idempotent,
        parameters=tool.parameters,
    )
