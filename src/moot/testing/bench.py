"""``Bench``: a real host in a test, without a network, with a clock that only the test moves."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from moot.agents.definitions.manifest import Agent
from moot.agents.models.config import Fail, Line, ModelEntry
from moot.agents.models.registry import PRESETS, Book, Ways
from moot.api.access.auth import DEFAULT_TENANT
from moot.api.workflows.folder import SUFFIXES, read_flow
from moot.client import Client, Options
from moot.client.http.sse import Event
from moot.config.project import Project, read
from moot.config.settings import USUAL_FILE, Settings, secret
from moot.core.errors import MootError
from moot.core.workflows.node_types import NodeType
from moot.core.workflows.yaml import compile_yaml
from moot.testing.clock import VirtualClock
from moot.testing.hosting import Hosting, InProcess
from moot.testing.outcome import BenchRun, BenchThread

ADDRESS = "http://127.0.0.1:1"
FailKind = Literal["timeout", "refusal", "rate_limit", "bad_json", "error", "disconnect"]

#: settings of a project that a bench decides itself
OWN = ("database", "host", "port", "workflows", "agents", "models_mode", "cassette")


class Tape(NamedTuple):
    """A file of recorded answers, and whether it is written or read."""

    file: Path
    record: bool = False


class BenchError(Exception):
    """The bench cannot be set up as it was told."""


class Bench:
    """A host to try workflows, agents and councils on.

    Nothing starts before it is needed, and every word before that sets it up: ``demo``, ``script``,
    ``agent``, ``nodes``, ``flow``. Every model is the demo model, whatever an agent names.
    """

    def __init__(
        self, project: str | Path | None = None, *, database: str | Path | None = None,
        seed: str = "",
    ) -> None:  # fmt: skip
        self.clock = VirtualClock(seed)
        self._project = _project(None if project is None else Path(project))
        self._root = None if project is None else Path(project).resolve()
        self._database = None if database is None else str(database)
        self._flows: list[tuple[str, bytes]] = []
        self._neighbours: list[Path] = []
        self._agents: dict[str, Agent] = {}
        self._models: dict[str, ModelEntry] = {}
        self._types: dict[str, NodeType] = {}
        self._tape: Tape | None = None
        self._hosting: Hosting | None = None
        self._client: Client | None = None
        self._first: str | None = None

    # -- setting up ---------------------------------------------------------------------------

    @classmethod
    def load(cls, *files: str | Path, **how: Any) -> "Bench":
        """The project around a workflow file: its moot.toml, agents and nodes; ``run`` runs the
        first of the files. Mistakes in them are raised with file and line."""
        paths = [Path(file).resolve() for file in files]
        if not paths:
            raise BenchError("Name a workflow file: Bench.load('flows/brief.yaml').")
        bench = cls(_root_of(paths[0]), **how)
        for path in paths:
            bench.flow(path)
        return bench

    def flow(self, definition: str | Path | Mapping[str, Any]) -> "Bench":
        """One more workflow: a file, YAML, or a definition as the protocol has it."""
        if isinstance(definition, Path):
            body, name = read_flow(definition), definition.name
            self._neighbours.append(definition)
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
        """Further ``@node`` functions."""
        for function in functions:
            type_ = getattr(function, "node_type", None)
            if not isinstance(type_, NodeType):
                raise BenchError(f"{function!r} is no node; mark it with @node.")
            self._types[type_.type_id] = type_
        self._before_start()
        return self

    def agent(self, name: str, prompt: str = "", **fields: Any) -> "Bench":
        """One more agent, or another one of this name."""
        self._before_start()
        self._agents[name] = msgspec.convert({"name": name, "prompt": prompt, **fields}, Agent)
        return self

    def script(self, agent: str, lines: Sequence[str | Mapping[str, Any]]) -> "Bench":
        """What an agent says, turn by turn; after that it speaks for itself. A line is a text, or
        ``{"json": …}``, ``{"refusal": …}``, ``{"tool": …, "arguments": …}``."""
        said = [line if isinstance(line, str) else msgspec.convert(line, Line) for line in lines]
        return self._speaks(agent, script=said)

    def demo(
        self, agent: str, *, fail: FailKind | None = None, turn: int | None = None,
        times: int | None = None,
    ) -> "Bench":  # fmt: skip
        """How an agent fails: in which of its turns, and how many attempts of it."""
        failing = None if fail is None else Fail(kind=fail, turn=turn, times=times)
        return self._speaks(agent, fail=failing)

    def _speaks(self, agent: str, **how: Any) -> "Bench":
        self._before_start()
        before = self._models.get(agent, ModelEntry(provider="demo", model="demo"))
        self._models[agent] = msgspec.structs.replace(before, **how)
        return self

    def tape(self, tape: str | Path | Tape) -> "Bench":
        """The project's own models, from recorded answers, or asked to be recorded."""
        self._before_start()
        self._tape = tape if isinstance(tape, Tape) else Tape(Path(tape))
        return self

    def _before_start(self) -> None:
        if self._hosting is not None:
            raise BenchError("The host runs already; say this before the first run.")

    # -- at work ------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The whole API, in this process."""
        if self._client is None:
            hosting = self.hosting
            door = InProcess(hosting.loop, hosting.app)
            self._client = Client(ADDRESS, hosting.key, transport=door, retries=0)
        return self._client

    def run(
        self,
        workflow: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        /,
        **named: Any,
    ) -> BenchRun:
        """Start a run, of the first workflow unless another is named, and let it come to rest."""
        client = self.client
        name = workflow or self._first
        if name is None:
            raise BenchError("There is no workflow on this bench; load one.")
        return BenchRun(self, client.runs.start(name, inputs, options, **named))

    def ask(self, agent: str, prompt: str | None = None, **how: Any) -> BenchRun:
        """A run that is a question to one agent; its answer is the variable ``text``."""
        return BenchRun(self, self.client.runs.ask(agent, prompt, **how))

    def convene(self, question: str, *participants: str, **how: Any) -> BenchThread:
        """A council, spoken until it falls silent. Two rounds in turn, unless said otherwise."""
        if not {"policy", "moderator", "budget"} & how.keys():
            how["policy"] = {"mode": "round-robin", "rounds": 2}
        if how.get("moderator") is not None and how["moderator"] not in participants:
            participants = (*participants, how["moderator"])
        return BenchThread(self, self.client.convene(question, *participants, **how))

    def advance(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Set the clock forward; what falls due meanwhile happens, one after another."""
        self.hosting.forward(seconds + 60 * minutes + 3600 * hours + 86_400 * days)

    def settle(self, run_id: str) -> None:
        """Let a run go on until it has ended or waits for somebody."""
        self.hosting.settle(run_id)

    def log(self, run_id: str) -> list[Event]:
        """Every event of a run so far."""
        found: list[Event] = []
        while True:
            page = self.client.runs.poll(run_id, after=len(found) - 1)
            found += [msgspec.convert(event, Event) for event in page.events]
            if not page.events:
                return found

    # -- the host -----------------------------------------------------------------------------

    @property
    def hosting(self) -> Hosting:
        if self._hosting is None:
            self._hosting = hosting = self._started()
            self._end = weakref.finalize(self, Hosting.close, hosting)
            hosting.know(self._types)
            hosting.loop.call(self._staff(hosting))
            self._settle_flows()
        return self._hosting

    def _started(self) -> Hosting:
        project = self._project
        given = {name: value for name, value in project.settings.items() if name not in OWN}
        for name in ("nodes", "tools"):
            usual = None if self._root is None else self._root / f"{name}.py"
            if usual is not None and usual.is_file():
                given.setdefault(name, str(usual))
        if self._database is not None:
            given["database"] = self._database
        return Hosting(given, self.clock, project, self._book())

    def _book(self) -> Book:
        own = {_model_of(name): entry for name, entry in self._models.items()}
        if self._tape is not None:
            file, record = self._tape
            ways = Ways(mode="record" if record else "replay", cassette=str(file), demo_wps=0)
            entries = {**self._project.models, **own}
            return Book(entries, secret, self.clock, ways, self._project.prices)
        names = (*PRESETS, *self._project.models)
        entries = {name: ModelEntry(provider="demo", model="demo") for name in names} | own
        ways = Ways(demo_wps=0)
        return Book(entries, secret, self.clock, ways, self._project.prices, self._wait)

    async def _wait(self, seconds: float) -> None:
        """Models are tried again at once; the clock says that time has passed."""
        self.clock.forward(seconds)

    async def _staff(self, hosting: Hosting) -> None:
        agents = hosting.services.agents
        folder = self._folder("agents")
        if folder is not None and (problems := await agents.load(DEFAULT_TENANT, folder)):
            raise BenchError(f"{folder.name}/{problems[0]}")
        for agent in self._agents.values():
            await agents.put(DEFAULT_TENANT, agent, by="bench")
        for name in self._models:
            agent = await agents.must_find(DEFAULT_TENANT, name)
            scripted = msgspec.structs.replace(agent, model=_model_of(name))
            await agents.put(DEFAULT_TENANT, scripted, by="bench")

    def _folder(self, name: str) -> Path | None:
        """What moot.toml names, or what usually lies there."""
        said = self._project.settings.get(name)
        if said is not None:
            return Path(said)
        usual = None if self._root is None else self._root / name
        return usual if usual is not None and usual.is_dir() else None

    def _settle_flows(self) -> None:
        """First those that may be called by others; the ones that were named must be right."""
        for file in self._beside():
            try:
                self._register(file.name, read_flow(file))
            except (MootError, ValueError):
                continue  # whoever needs it is told that it is not there
        for name, body in self._flows:
            flow_id = self._register(name, body)
            self._first = self._first or flow_id

    def _beside(self) -> list[Path]:
        folders = {file.parent for file in self._neighbours}
        found = {file for folder in folders for file in folder.iterdir() if file.suffix in SUFFIXES}
        return sorted(found - set(self._neighbours))

    def _register(self, name: str, body: bytes) -> str:
        assert self._hosting is not None
        declared = self._hosting.services.triggers.declared
        flow = self._hosting.loop.call(declared.register(DEFAULT_TENANT, body, "bench", name))
        return flow.definition.id

    def restart(self) -> None:
        """An orderly stop, and a new host on the same database."""
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


def _model_of(agent: str) -> str:
    return f"bench-{agent}"


def _project(root: Path | None) -> Project:
    file = None if root is None else root.resolve() / USUAL_FILE
    return read(file, Settings) if file is not None and file.is_file() else Project()


def _root_of(file: Path) -> Path:
    """The nearest folder above with a moot.toml; else the one the flows folder lies in."""
    for folder in file.parents:
        if (folder / USUAL_FILE).is_file():
            return folder
    return file.parent.parent if file.parent.name == "flows" else file.parent
