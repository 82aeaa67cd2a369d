"""Find problems of tools, for ``moot doctor``."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from moot.agents.definitions.manifest import find_tool_line
from moot.agents.definitions.registry import read_agents_folder
from moot.agents.tools.registry import ToolRegistry
from moot.config.extras import install_hint
from moot.config.settings import find_agents_folder, read_secret
from moot.net.targets import TargetRefused, parse_target

if TYPE_CHECKING:
    from moot.config.project import ProjectConfig
    from moot.config.settings import Settings
    from moot.config.tools import HttpEntry, McpEntry


def tool_problems(
    project: "ProjectConfig | None", settings: "Settings", registry: ToolRegistry
) -> list[str]:
    """Return each problem with its remedy."""
    problems: list[str] = []
    if project is not None:
        for name, entry in project.tools.items():
            problems += [f"http:{name} {problem}" for problem in _http_problems(entry, settings)]
        for name, server in project.mcp.items():
            problems += [f"mcp:{name} {problem}" for problem in _mcp_problems(server)]
    folder = find_agents_folder(settings)
    return problems if folder is None else problems + _agent_problems(folder, registry)


def _http_problems(entry: "HttpEntry", settings: "Settings") -> list[str]:
    try:
        parse_target(entry.url.replace("{", "").replace("}", ""), settings.allow_private_targets)
    except TargetRefused as refusal:
        return [f"cannot be called: {refusal}"]
    return _key_problems(entry.key_env)


def _key_problems(name: str | None) -> list[str]:
    return [f"has no key: set {name}"] if name and not read_secret(name) else []


def _mcp_problems(entry: "McpEntry") -> list[str]:
    if find_spec("mcp") is None:
        return [f"needs a package: {install_hint('mcp')}"]
    if entry.command is not None and shutil.which(entry.command[0]) is None:
        return [f"cannot be started: there is no program {entry.command[0]}"]
    return [
        *_key_problems(entry.key_env),
        *(problem for name in entry.pass_env for problem in _key_problems(name)),
    ]


def _agent_problems(folder: Path, registry: ToolRegistry) -> list[str]:
    """Return the tools that agents name and that do not exist."""
    problems = []
    for file, agent in read_agents_folder(folder)[0].items():
        text = (folder / file).read_text(encoding="utf-8")
        problems += [
            f"{folder / file}:{find_tool_line(text, reference)}: {problem}"
            for reference in agent.tools
            if (problem := registry.problem(reference))
        ]
    return problems
