"""Build the models and tools that a project's file names."""

from collections.abc import Callable
from pathlib import Path

from moot.agents.models.registry import ModelRegistry, ModelSettings
from moot.agents.tools import functions, http
from moot.agents.tools.mcp import McpServer
from moot.agents.tools.registry import ToolRegistry
from moot.clock import Clock
from moot.config.models import ModelEntry, Price
from moot.config.project import ProjectConfig
from moot.config.settings import Settings
from moot.net.outbound import Outbound


def build_model_registry(
    config: ProjectConfig | None,
    settings: Settings,
    secret: Callable[[str], str | None],
    clock: Clock,
    again: Callable[[], ProjectConfig | None] | None = None,
) -> ModelRegistry:
    """Return the models of the project, called in the mode of the settings.

    ``again`` reads the project once more, so that models added to a running process are found.
    """
    ways = ModelSettings(
        mode=settings.models_mode, cassette=settings.cassette, demo_wps=settings.demo_wps
    )
    project = config or ProjectConfig()

    def read_again() -> tuple[dict[str, ModelEntry], dict[str, Price]]:
        newer = (again and again()) or ProjectConfig()
        return newer.models, newer.prices

    later = None if again is None else read_again
    return ModelRegistry(project.models, secret, clock, ways, project.prices, later=later)


def build_tool_registry(
    config: ProjectConfig | None, settings: Settings, secret: Callable[[str], str | None]
) -> ToolRegistry:
    """Return the tools of the project: functions, HTTP addresses and MCP servers.

    Raise ValueError that names the file.
    """
    project = config or ProjectConfig()
    tools = functions.tools_from_entry_points()
    for path in filter(None, (settings.nodes, settings.tools)):
        for tool, source in functions.tools_from_path(Path(path)).values():
            functions.add_tools(tools, [tool], source)
    outbound = Outbound(settings.allow_private_targets)
    return ToolRegistry(
        tools,
        {
            name: http.http_tool(name, entry, outbound, secret)
            for name, entry in project.tools.items()
        },
        {name: McpServer(name, entry, secret) for name, entry in project.mcp.items()},
        outbound,
    )
