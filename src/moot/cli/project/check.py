"""``moot check``: every file of a project, before anything runs. Names file and line."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moot.cli.project.flow import checked, say_fine, say_problem
from moot.cli.project.flow_files import SUFFIXES, FlowProblem
from moot.cli.shared import output
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, shows

if TYPE_CHECKING:
    from moot.agents.definitions.manifest import Agent
    from moot.agents.models.registry import Book
    from moot.config.settings import Settings
    from moot.core.workflows.graph import Flow

AGENT = ".md"


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1)
@shows
def check(options: Options, files: tuple[str, ...]) -> Exit:
    """Check moot.toml, agents, nodes, tools and workflows; or only these files and folders.

    Needs no server. Without FILE, what moot.toml and the environment name is checked.
    """
    project = Project(options)
    project.look(files)
    if not project.seen:
        raise Trouble("there is nothing to check here. Make a project with: moot init NAME",
                      Exit.NOT_FOUND)  # fmt: skip
    return Exit.FAILED if project.problems else Exit.OK


class Project:
    """What is checked, and what is wrong with it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.seen = self.problems = 0
        #: who there is; None where nobody says, and then nobody is missing
        self._agents: set[str] | None = None
        #: agent -> the file it is defined in
        self._files: dict[str, str] = {}
        #: reference of a tool -> why no agent can be given it
        self._lacks: Callable[[str], str | None] = lambda _: None
        #: reference of a model -> why no agent can speak through it
        self._mute: Callable[[str], str | None] = lambda _: None
        #: what was said already, of files that are looked at twice
        self._told: set[tuple[str, str]] = set()

    def look(self, files: tuple[str, ...]) -> None:
        from moot.config.settings import agents_folder

        settings = self._settings()
        if settings is None:
            return
        types = self._types(settings)
        self._take_tools(settings)
        folder = agents_folder(settings)
        flows = settings.workflows or ("flows" if Path("flows").is_dir() else None)
        if folder is not None:
            self._take_agents(_inside(folder, (AGENT,)), shown=not files)
        named = [Path(file) for file in files]
        for path in named:
            if not path.exists():
                self._wrong(str(path), Trouble(f"there is no file {path}."))
        self._take_agents([f for path in named for f in _inside(path, (AGENT,))], shown=True)
        wanted = named or ([Path(flows)] if flows is not None else [])
        every = [Path(flows)] if flows is not None else []
        self._take_flows(wanted, [*every, *named], types)

    def _settings(self) -> "Settings | None":
        from moot.config.settings import load, project_file

        try:
            file = project_file()
            settings = load()
        except ValueError as error:
            self._wrong("moot.toml", Trouble(str(error)))
            return None
        self._mute = partial(unspeakable, models_of(settings))
        if file.is_file():
            self._fine(str(file))
        return settings

    def _types(self, settings: "Settings") -> Any:
        from moot.api.server import node_types

        try:
            types = node_types(settings)
        except ValueError as error:
            self._wrong(str(settings.nodes), Trouble(str(error)))
            return None
        if settings.nodes:
            self._fine(settings.nodes)
        return types

    def _take_tools(self, settings: "Settings") -> None:
        from moot.config.project import shelf_of
        from moot.config.settings import project, secret

        try:
            self._lacks = shelf_of(project(), settings, secret).problem
        except ValueError as error:
            self._wrong(str(settings.tools), Trouble(str(error)))
            return
        if settings.tools:
            self._fine(settings.tools)

    def _take_agents(self, files: list[Path], shown: bool) -> None:
        from moot.agents.definitions.manifest import ManifestProblem, from_markdown
        from moot.agents.definitions.registry import refuse_second

        for file in files:
            self._agents = self._agents or set()
            try:
                text = file.read_text(encoding="utf-8")
                agent = from_markdown(text, file.stem)
                path = str(file.resolve())
                refuse_second(text, agent, self._files.setdefault(agent.name, path), path)
                self._refuse_lacking(agent, text)
            except ManifestProblem as problem:
                self._wrong(str(file), FlowProblem(str(file), problem.line, problem.message))
            except (OSError, UnicodeDecodeError) as error:
                self._wrong(str(file), Trouble(f"{file}: {error}"))
            else:
                self._agents.add(agent.name)
                if shown:
                    self._fine(str(file))

    def _refuse_lacking(self, agent: "Agent", text: str) -> None:
        """Raises ManifestProblem for a tool or a model that is not there, or an empty file."""
        from moot.agents.definitions.manifest import ManifestProblem, line_of_field, line_of_tool

        for tool in agent.tools:
            if said := self._lacks(tool):
                raise ManifestProblem(said, line_of_tool(text, tool))
        if said := self._mute(agent.model):
            raise ManifestProblem(said, line_of_field(text, "model"))
        if not text.strip():
            raise ManifestProblem("the file is empty; write what the agent is to do", 1)

    def _take_flows(self, wanted: list[Path], every: list[Path], types: Any) -> None:
        if types is None:
            return
        found = {str(file): checked(str(file), types)
                 for folder in every for file in _inside(folder, SUFFIXES)}  # fmt: skip
        known = {flow.definition.id for flow in found.values() if not isinstance(flow, Trouble)}
        for name in dict.fromkeys(str(f) for folder in wanted for f in _inside(folder, SUFFIXES)):
            flow = found[name]
            if not isinstance(flow, Trouble) and (who := self._missing(name, flow, known)):
                flow = who
            if isinstance(flow, Trouble):
                self._wrong(name, flow)
            else:
                self.seen += 1
                say_fine(self._options, name, flow, sorted(set(flow.references) - known))

    def _missing(self, file: str, flow: "Flow", flows: set[str]) -> FlowProblem | None:
        """Somebody the workflow counts on who is neither an agent nor a workflow here."""
        from moot.core.text.nearest import nearest

        for name in _people(flow) if self._agents is not None else ():
            known = {*(self._agents or ()), *flows}
            if name not in known:
                meant = nearest(name, sorted(known))
                hint = f" — did you mean '{meant}'?" if meant else ""
                line = _line_with(Path(file), name)
                return FlowProblem(file, line, f"unknown agent '{name}'{hint}")
        return None

    def _fine(self, name: str) -> None:
        self.seen += 1
        if self._options.json:
            output.json_line({"file": name, "ok": True})
        else:
            click.echo(f"{name} is fine")

    def _wrong(self, name: str, problem: Trouble) -> None:
        if (name, str(problem)) in self._told:
            return
        self._told.add((name, str(problem)))
        self.seen += 1
        self.problems += 1
        say_problem(self._options, name, problem)


def models_of(settings: "Settings") -> "Book":
    """Those of this project; none of them is spoken to."""
    from moot.clock import SystemClock
    from moot.config.project import book_of
    from moot.config.settings import project, secret

    return book_of(project(), settings, secret, SystemClock())


def unspeakable(book: "Book", reference: str) -> str | None:
    """Why no agent can speak through a model, in the words of a mistake in a file."""
    from moot.agents.models.registry import PRESETS
    from moot.core.text.nearest import nearest

    name, known = reference.partition("/")[0], [*book.entries, *PRESETS]
    if name in known:
        return book.problem(reference)
    meant = nearest(name, known)
    return f"unknown model '{name}'" + (f" — did you mean '{meant}'?" if meant else "")


def _inside(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in suffixes)
    return [path] if path.suffix in suffixes and path.is_file() else []


def _people(flow: "Flow") -> Iterable[str]:
    """The agents of this host a workflow names, and the workers it hands work to."""
    for node in flow.nodes.values():
        pin = node.definition.agent
        named = [node.definition.config.get("agent"), *node.definition.config.get("workers", [])]
        if isinstance(pin, dict):
            named.append(pin.get("agentId"))
        for name in named:
            if isinstance(name, str) and (":" not in name or name.startswith("host:")):
                yield name.removeprefix("host:")


def _line_with(file: Path, word: str) -> int:
    import re

    lines = file.read_text(encoding="utf-8").splitlines()
    found = (n for n, line in enumerate(lines, 1)
             if re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", line))  # fmt: skip
    return next(found, 1)
