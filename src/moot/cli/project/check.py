"""``moot check``: check every file of a project before anything runs."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from moot.agents.definitions.manifest import (
    Agent,
    ManifestProblem,
    agent_from_markdown,
    find_field_line,
    find_tool_line,
)
from moot.agents.definitions.registry import refuse_duplicate
from moot.agents.models.registry import PRESETS, ModelRegistry
from moot.agents.project import build_model_registry, build_tool_registry
from moot.cli.project.files import SUFFIXES, FlowProblem, line_of_word
from moot.cli.project.flow import check_or_error, print_checked, print_problem
from moot.cli.shared import output
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, json_option
from moot.clock import SystemClock
from moot.config.settings import (
    Settings,
    find_agents_folder,
    load_project,
    load_settings,
    project_file,
    read_secret,
)
from moot.core.text.nearest import nearest_word
from moot.core.workflows.flow import Flow

AGENT = ".md"


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1)
@json_option
def check(options: CommandOptions, files: tuple[str, ...]) -> ExitCode:
    """Check moot.toml, agents, nodes, tools and workflows; or only these files and folders.

    Needs no server. Without FILE, what moot.toml and the environment name is checked.
    """
    project = ProjectCheck(options)
    project.check_files(files)
    if not project.checked:
        raise CommandError("there is nothing to check here. Make a project with: moot init NAME",
                      ExitCode.NOT_FOUND)  # fmt: skip
    return ExitCode.FAILED if project.problems else ExitCode.OK


class ProjectCheck:
    """Checks the files of a project, and counts the problems."""

    def __init__(self, options: CommandOptions) -> None:
        self._options = options
        self.checked = self.problems = 0
        #: the known agents; None if no folder lists them, and then none is missing
        self._agents: set[str] | None = None
        #: agent -> the file it is defined in
        self._files: dict[str, str] = {}
        #: reference of a tool -> why no agent can use it
        self._tool_problem: Callable[[str], str | None] = lambda _: None
        #: reference of a model -> why no agent can use it
        self._model_problem: Callable[[str], str | None] = lambda _: None
        #: problems that were printed already; a file may be checked twice
        self._reported: set[tuple[str, str]] = set()

    def check_files(self, files: tuple[str, ...]) -> None:
        settings = self._load_settings()
        if settings is None:
            return
        types = self._load_node_types(settings)
        self._check_tools(settings)
        folder = find_agents_folder(settings)
        flows = settings.workflows or ("flows" if Path("flows").is_dir() else None)
        if folder is not None:
            self._check_agents(_files_in(folder, (AGENT,)), report=not files)
        named = [Path(file) for file in files]
        for path in named:
            if not path.exists():
                self._report_problem(str(path), CommandError(f"there is no file {path}."))
        self._check_agents([f for path in named for f in _files_in(path, (AGENT,))], report=True)
        to_check = named or ([Path(flows)] if flows is not None else [])
        every = [Path(flows)] if flows is not None else []
        self._check_flows(to_check, [*every, *named], types)

    def _load_settings(self) -> Settings | None:
        try:
            file = project_file()
            settings = load_settings()
        except ValueError as error:
            self._report_problem("moot.toml", CommandError(str(error)))
            return None
        self._model_problem = partial(model_problem, load_models(settings))
        if file.is_file():
            self._report_fine(str(file))
        return settings

    def _load_node_types(self, settings: Settings) -> Any:
        from moot.api.server import build_node_types

        try:
            types = build_node_types(settings)
        except ValueError as error:
            self._report_problem(str(settings.nodes), CommandError(str(error)))
            return None
        if settings.nodes:
            self._report_fine(settings.nodes)
        return types

    def _check_tools(self, settings: Settings) -> None:
        try:
            self._tool_problem = build_tool_registry(load_project(), settings, read_secret).problem
        except ValueError as error:
            self._report_problem(str(settings.tools), CommandError(str(error)))
            return
        if settings.tools:
            self._report_fine(settings.tools)

    def _check_agents(self, files: list[Path], report: bool) -> None:
        for file in files:
            self._agents = self._agents or set()
            try:
                text = file.read_text(encoding="utf-8")
                agent = agent_from_markdown(text, file.stem)
                path = str(file.resolve())
                refuse_duplicate(text, agent, self._files.setdefault(agent.name, path), path)
                self._check_agent(agent, text)
            except ManifestProblem as problem:
                self._report_problem(
                    str(file), FlowProblem(str(file), problem.line, problem.message)
                )
            except (OSError, UnicodeDecodeError) as error:
                self._report_problem(str(file), CommandError(f"{file}: {error}"))
            else:
                self._agents.add(agent.name)
                if report:
                    self._report_fine(str(file))

    def _check_agent(self, agent: Agent, text: str) -> None:
        """Raise ManifestProblem for a missing tool or model, or an empty file."""
        for tool in agent.tools:
            if problem := self._tool_problem(tool):
                raise ManifestProblem(problem, find_tool_line(text, tool))
        if problem := self._model_problem(agent.model):
            raise ManifestProblem(problem, find_field_line(text, "model"))
        if not text.strip():
            raise ManifestProblem("the file is empty; write what the agent is to do", 1)

    def _check_flows(self, to_check: list[Path], every: list[Path], types: Any) -> None:
        if types is None:
            return
        results = {str(file): check_or_error(str(file), types)
                 for folder in every for file in _files_in(folder, SUFFIXES)}  # fmt: skip
        known_ids = {
            flow.definition.id for flow in results.values() if not isinstance(flow, CommandError)
        }
        for name in dict.fromkeys(
            str(f) for folder in to_check for f in _files_in(folder, SUFFIXES)
        ):
            flow = results[name]
            if not isinstance(flow, CommandError) and (
                problem := self._missing_agent(name, flow, known_ids)
            ):
                flow = problem
            if isinstance(flow, CommandError):
                self._report_problem(name, flow)
            else:
                self.checked += 1
                print_checked(self._options, name, flow, sorted(set(flow.references) - known_ids))

    def _missing_agent(self, file: str, flow: Flow, flows: set[str]) -> FlowProblem | None:
        """Return a problem for an agent or worker that is neither an agent nor a workflow here."""
        for name in _agent_names(flow) if self._agents is not None else ():
            names_known = {*(self._agents or ()), *flows}
            if name not in names_known:
                suggestion = nearest_word(name, sorted(names_known))
                hint = f" — did you mean '{suggestion}'?" if suggestion else ""
                line = line_of_word(Path(file).read_text(encoding="utf-8"), name) or 1
                return FlowProblem(file, line, f"unknown agent '{name}'{hint}")
        return None

    def _report_fine(self, name: str) -> None:
        self.checked += 1
        if self._options.json:
            output.print_json_line({"file": name, "ok": True})
        else:
            click.echo(f"{name} is fine")

    def _report_problem(self, name: str, problem: CommandError) -> None:
        if (name, str(problem)) in self._reported:
            return
        self._reported.add((name, str(problem)))
        self.checked += 1
        self.problems += 1
        print_problem(self._options, name, problem)


def load_models(settings: Settings) -> ModelRegistry:
    """Return the project's models; none of them is called."""
    return build_model_registry(load_project(), settings, read_secret, SystemClock())


def model_problem(registry: ModelRegistry, reference: str) -> str | None:
    """Return why no agent can use a model, as a message for a file."""
    name, names = reference.partition("/")[0], [*registry.entries, *PRESETS]
    if name in names:
        return registry.problem(reference)
    suggestion = nearest_word(name, names)
    return f"unknown model '{name}'" + (f" — did you mean '{suggestion}'?" if suggestion else "")


def _files_in(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in suffixes)
    return [path] if path.suffix in suffixes and path.is_file() else []


def _agent_names(flow: Flow) -> Iterable[str]:
    """Yield the agents of this host that a workflow names, and its workers."""
    for node in flow.nodes.values():
        pin = node.definition.agent
        names = [node.definition.config.get("agent"), *node.definition.config.get("workers", [])]
        if isinstance(pin, dict):
            names.append(pin.get("agentId"))
        for name in names:
            if isinstance(name, str) and (":" not in name or name.startswith("host:")):
                yield name.removeprefix("host:")
