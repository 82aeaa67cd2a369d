"""What tools lack, as ``moot doctor`` says it."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from moot.agents.definitions.manifest import ManifestProblem, from_markdown, line_of_tool
from moot.agents.tools.registry import Shelf
from moot.config.extras import install
from moot.config.settings import agents_folder, secret
from moot.net.targets import TargetRefused, target

if TYPE_CHECKING:
    from moot.agents.tools.config import HttpEntry, McpEntry
    from moot.config.project import Project
    from moot.config.settings import Settings


def lacking(project: "Project | None", settings: "Settings", shelf: Shelf) -> list[str]:
    """Each with its way out."""
    found: list[str] = []
    if project is not None:
        for name, entry in project.tools.items():
            found += [f"http:{name} {said}" for said in _http(entry, settings)]
        for name, server in project.mcp.items():
            found += [f"mcp:{name} {said}" for said in _mcp(server)]
    folder = agents_folder(settings)
    return found if folder is None else found + _agents(folder, shelf)


def _http(entry: "HttpEntry", settings: "Settings") -> list[str]:
    try:
        target(entry.url.replace("{", "").replace("}", ""), settings.allow_private_targets)
    except TargetRefused as refusal:
        return [f"cannot be called: {refusal}"]
    return _key(entry.key_env)


def _key(name: str | None) -> list[str]:
    return [f"has no key: set {name}"] if name and not secret(name) else []


def _mcp(entry: "McpEntry") -> list[str]:
    if find_spec("mcp") is None:
        return [f"needs a package: {install('mcp')}"]
    if entry.command is not None and shutil.which(entry.command[0]) is None:
        return [f"cannot be started: there is no program {entry.command[0]}"]
    return [*_key(entry.key_env), *(said for name in entry.pass_env for said in _key(name))]


def _agents(folder: Path, shelf: Shelf) -> list[str]:
    """Tools that agents name and nobody has."""
    found = []
    for file in sorted(folder.glob("*.md")):
        try:
            text = file.read_text(encoding="utf-8")
            agent = from_markdown(text, file.stem)
        except (OSError, UnicodeDecodeError, ManifestProblem):
            continue  # the server says so when it reads them
        found += [
            f"{file}:{line_of_tool(text, reference)}: {problem}"
            for reference in agent.tools
            if (problem := shelf.problem(reference))
        ]
    return found
