"""``Bench``, a real host in a test, without a network and with a virtual clock."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from moot.agents.definitions.manifest import Agent
from moot.agents.models.registry import PRESETS, ModelRegistry, ModelSettings
from moot.api.access.auth import DEFAULT_TENANT
from moot.api.workflows.folder import SUFFIXES, read_flow
from moot.client import Client, Options
from moot.client.http.frames import Event
from moot.config.models import DemoFailure, ModelEntry, ScriptLine
from moot.config.project import ProjectConfig, read_project
from moot.config.settings import PROJECT_FILE, Settings, read_secret
from moot.core.errors import MootError
from moot.core.workflows.node_types import NodeType
from moot.core.workflows.yaml import compile_yaml
from moot.testing.bench_host import BenchHost, InProcessTransport
from moot.testing.clock import VirtualClock
from moot.testing.outcome import BenchRun, BenchThread

ADDRESS = "http://127.0.0.1:1"
FailKind = Literal["timeout", "refusal", "rate_limit", "bad_json", "error", "disconnect"]

#: settings of a project that the bench sets itself
BENCH_SETTINGS = ("database", "host", "port", "workflows", "agents", "models_mode", "cassette")


class Tape(NamedTuple):
    """A file of recorded answers, to read or (``record``) to write."""

    file: Path
    record: bool = False


class BenchError(Exception):
    """The setup of the bench is wrong."""


class Bench:
    """A host for tests of workflows, agents and councils.

    The host starts when it is first needed. Before that, set it up with ``demo``, ``script``,
    ``agent``, ``nodes`` and ``flow``. Every agent uses the demo model, whatever model it names.
    """

    def __init__(
        self, project: str | Path | None = None, *, database: str | Path | None = None,
        seed: str = "",
    ) -> None:  # fmt: skip
        self.clock = VirtualClock(seed)
        self._project = _read_project_of(None if project is None else Path(project))
        self._root = None if project is None else Path(project).resolve()
        self._database = None if database is None else str(database)
        self._flows: list[tuple[str, bytes]] = []
        self._flow_files: list[Path] = []
        self._agents: dict[str, Agent] = {}
        self._models: dict[str, ModelEntry] = {}
        self._types: dict[str, NodeType] = {}
        self._tape: Tape | None = None
        self._hosting: BenchHost | None = None
        self._client: Client | None = None
        self._first: str | None = None

    # -- setting up ---------------------------------------------------------------------------

    @classmethod
    def load(cls, *files: str | Path, **how: Any) -> "Bench":
        """Load the project around a workflow file: its moot.toml, agents and nodes.

        ``run`` runs the first of the files. Errors in the files name file and line.
        """
        paths = [Path(file).resolve() for file in files]
        if not paths:
            raise BenchError("Name a workflow file: Bench.load('flows/brief.yaml').")
        bench = cls(_root_of(paths[0]), **how)
        for path in paths:
            bench.flow(path)
        return bench

    def flow(self, definition: str | Path | Mapping[str, Any]) -> "Bench":
        """Add a workflow: a file, YAML text, or a definition in the form of the protocol."""
        if isinstance(definition, Path):
            body, name = read_flow(definition), definition.name
            self._flow_files.append(definition)
        elif isinstance(definition, str):
            body, name = msgspec.json.encode(compile_yaml(definition, "flow")), "flow"
        else:
            body, name = msgspec.json.encode(definition), "flow"
        if self._hosting is not None:
            self._register(name, body)
        else:
            self._flows.append((name, body))
        return self

    def nodes(self, *functions: Callable[..., Any]) -> "Bench":
        """Add ``@node`` functions."""
        for function in functions:
            type_ = getattr(function, "node_type", None)
            if not isinstance(type_, NodeType):
                raise BenchError(f"{function!r} is no node; mark it with @node.")
            self._types[type_.type_id] = type_
        self._check_not_started()
        return self

    def agent(self, name: str, prompt: str = "", **fields: Any) -> "Bench":
        """Add an agent, or replace the agent of this name."""
        self._check_not_started()
        self._agents[name] = msgspec.convert({"name": name, "prompt": prompt, **fields}, Agent)
        return self

    def script(self, agent: str, lines: Sequence[str | Mapping[str, Any]]) -> "Bench":
        """Set the first turns of an agent; after them the demo model speaks freely.

        A line is a text, ``{"json": …}``, ``{"refusal": …}`` or ``{"tool": …, "arguments": …}``.
        """
        script = [
            line if isinstance(line, str) else msgspec.convert(line, ScriptLine) for line in lines
        ]
        return self._change_model(agent, script=script)

    def demo(
        self, agent: str, *, fail: FailKind | None = None, turn: int | None = None,
        times: int | None = None,
    ) -> "Bench":  # fmt: skip
        """Make an agent fail: in which of its turns, and for how many attempts."""
        failure = None if fail is None else DemoFailure(kind=fail, turn=turn, times=times)
        return self._change_model(agent, fail=failure)

    def _change_model(self, agent: str, **fields: Any) -> "Bench":
        self._check_not_started()
        entry = self._models.get(agent, ModelEntry(provider="demo", model="demo"))
        self._models[agent] = msgspec.structs.replace(entry, **fields)
        return self

    def tape(self, tape: str | Path | Tape) -> "Bench":
        """Use the project's own models, with recorded answers or to record them."""
        self._check_not_started()
        self._tape = tape if isinstance(tape, Tape) else Tape(Path(tape))
        return self

    def _check_not_started(self) -> None:
        if self._hosting is not None:
            raise BenchError("The host runs already; say this before the first run.")

    # -- use ----------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """A client of the whole API, in this process."""
        if self._client is None:
            hosting = self.hosting
            transport = InProcessTransport(hosting.loop, hosting.app)
            self._client = Client(ADDRESS, hosting.key, transport=transport, retries=0)
        return self._client

    def run(
        self,
        workflow: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        /,
        **named: Any,
    ) -> BenchRun:
        """Start a run, by default of the first workflow, and let it come to rest."""
        client = self.client
        name = workflow or self._first
        if name is None:
            raise BenchError("There is no workflow on this bench; load one.")
        return BenchRun(self, client.runs.start(name, inputs, options, **named))

    def ask(self, agent: str, prompt: str | None = None, **how: Any) -> BenchRun:
        """Start a run that asks one agent; its answer is the variable ``text``."""
        return BenchRun(self, self.client.runs.ask(agent, prompt, **how))

    def convene(self, question: str, *participants: str, **how: Any) -> BenchThread:
        """Convene a council and let it come to rest. The default is two rounds, in turn."""
        if not {"policy", "moderator", "budget"} & how.keys():
            how["policy"] = {"mode": "round-robin", "rounds": 2}
        if how.get("moderator") is not None and how["moderator"] not in participants:
            participants = (*participants, how["moderator"])
        return BenchThread(self, self.client.convene(question, *participants, **how))

    def advance(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Set the clock forward and carry out everything that falls due, one after another."""
        self.hosting.forward(seconds + 60 * minutes + 3600 * hours + 86_400 * days)

    def settle(self, run_id: str) -> None:
        """Return when the run has ended or waits for an answer from outside."""
        self.hosting.settle(run_id)

    def log(self, run_id: str) -> list[Event]:
        """Return all events of a run so far."""
        events: list[Event] = []
        while True:
            page = self.client.runs.poll(run_id, after=len(events) - 1)
            events += [msgspec.convert(event, Event) for event in page.events]
            if not page.events:
                return events

    # -- the host -----------------------------------------------------------------------------

    @property
    def hosting(self) -> BenchHost:
        if self._hosting is None:
            self._hosting = hosting = self._start_host()
            self._end = weakref.finalize(self, BenchHost.close, hosting)
            hosting.add_node_types(self._types)
            hosting.loop.call(self._add_agents(hosting))
            self._register_flows()
        return self._hosting

    def _start_host(self) -> BenchHost:
        project = self._project
        settings = {
            name: value for name, value in project.settings.items() if name not in BENCH_SETTINGS
        }
        for name in ("nodes", "tools"):
            default = None if self._root is None else self._root / f"{name}.py"
            if default is not None and default.is_file():
                settings.setdefault(name, str(default))
        if self._database is not None:
            settings["database"] = self._database
        return BenchHost(settings, self.clock, project, self._model_registry())

    def _model_registry(self) -> ModelRegistry:
        own = {_model_name(name): entry for name, entry in self._models.items()}
        if self._tape is not None:
            file, record = self._tape
            mode: Literal["record", "replay"] = "record" if record else "replay"
            ways = ModelSettings(mode=mode, cassette=str(file), demo_wps=0)
            entries = {**self._project.models, **own}
            return ModelRegistry(entries, read_secret, self.clock, ways, self._project.prices)
        names, prices = (*PRESETS, *self._project.models), self._project.prices
        entries = {name: ModelEntry(provider="demo", model="demo") for name in names} | own
        ways = ModelSettings(demo_wps=0)
        return ModelRegistry(entries, read_secret, self.clock, ways, prices, self._wait)

    async def _wait(self, seconds: float) -> None:
        """Retry models at once and set the clock forward by the delay."""
        self.clock.forward(seconds)

    async def _add_agents(self, hosting: BenchHost) -> None:
        agents = hosting.services.agents
        folder = self._folder("agents")
        if folder is not None and (problems := await agents.load(DEFAULT_TENANT, folder)):
            raise BenchError(f"{folder.name}/{problems[0]}")
        for agent in self._agents.values():
            await agents.put(DEFAULT_TENANT, agent, by="bench")
        for name in self._models:
            agent = await agents.must_find(DEFAULT_TENANT, name)
            scripted = msgspec.structs.replace(agent, model=_model_name(name))
            await agents.put(DEFAULT_TENANT, scripted, by="bench")

    def _folder(self, name: str) -> Path | None:
        """Return the folder of moot.toml, or the default folder if it exists."""
        folder = self._project.settings.get(name)
        if folder is not None:
            return Path(str(folder))
        default = None if self._root is None else self._root / name
        return default if default is not None and default.is_dir() else None

    def _register_flows(self) -> None:
        """Register neighbouring files first, because the named flows may call them.

        Only the named flows must be valid.
        """
        for file in self._neighbouring_files():
            try:
                self._register(file.name, read_flow(file))
            except (MootError, ValueError):
                continue  # a flow that needs this one fails with a clear error
        for name, body in self._flows:
            flow_id = self._register(name, body)
            self._first = self._first or flow_id

    def _neighbouring_files(self) -> list[Path]:
        folders = {file.parent for file in self._flow_files}
        files = {file for folder in folders for file in folder.iterdir() if file.suffix in SUFFIXES}
        return sorted(files - set(self._flow_files))

    def _register(self, name: str, body: bytes) -> str:
        assert self._hosting is not None
        declared = self._hosting.services.triggers.declared
        flow = self._hosting.loop.call(declared.register(DEFAULT_TENANT, body, "bench", name))
        return flow.definition.id

    def restart(self) -> None:
        """Stop the host in order; the next use starts a new one on the same database."""
        if self._database is None:
            raise BenchError("Only a bench with a database can be started again.")
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._hosting is not None:
            self._end()
            self._hosting = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _model_name(agent: str) -> str:
    return f"bench-{agent}"


def _read_project_of(root: Path | None) -> ProjectConfig:
    file = None if root is None else root.resolve() / PROJECT_FILE
    return read_project(file, Settings) if file is not None and file.is_file() else ProjectConfig()


def _root_of(file: Path) -> Path:
    """Return the nearest folder above with a moot.toml, else the parent of the flows folder."""
    for folder in file.parents:
        if (folder / PROJECT_FILE).is_file():
            return folder
    return file.parent.parent if file.parent.name == "flows" else file.parent
