"""The agents of every tenant, in all their versions."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import msgspec

from moot.agents.definitions.manifest import (
    MANIFEST_ID,
    Agent,
    ManifestProblem,
    agent_from_markdown,
    find_field_line,
    find_tool_line,
)
from moot.clock import Clock
from moot.core.errors import BadRequest, Conflict, NotFound, Unprocessable
from moot.core.text.names import RESERVED_NAMES, is_agent_name
from moot.core.text.nearest import nearest_word
from moot.store.records import Record, RecordStore

AGENT_KIND = "agent"
#: the prefix of agent ids of this host
HOST_PREFIX = "host:"
MOST_CACHED = 4096

_decode = msgspec.json.Decoder(Agent).decode


#: the name of a tool or a model -> why no agent can use it
FindProblem = Callable[[str], str | None]


#: the prefix of the author of an agent from a file
FILE_PREFIX = "file:"


class AgentRegistry:
    """Finds and stores agents. The newest version of a name is the current one."""

    def __init__(
        self,
        store: RecordStore,
        clock: Clock,
        tool_problem: FindProblem = lambda _: None,
        model_problem: FindProblem = lambda _: None,
    ) -> None:
        self._store, self._clock, self._tool_problem, self._model_problem = (
            store,
            clock,
            tool_problem,
            model_problem,
        )
        self._writing = asyncio.Lock()
        self._cache: OrderedDict[tuple[str, str], Agent] = OrderedDict()

    async def find(self, tenant: str, name: str) -> Agent | None:
        agent = self._cache.get((tenant, name))
        if agent is None:
            record = await self._store.record(tenant, AGENT_KIND, name)
            if record is None:
                return None
            agent = self._remember(tenant, _decode(record.body))
        return agent

    async def must_find(self, tenant: str, name: str) -> Agent:
        """Return the agent. Raise NotFound with the nearest name."""
        agent = await self.find(tenant, name)
        if agent is None:
            names = [agent.name for agent in await self.all(tenant)]
            suggestion = nearest_word(name, names)
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            raise NotFound(f"There is no agent '{name}'.{hint}", agent=name, agents=names[:50])
        return agent

    async def named(self, tenant: str, reference: str) -> Agent | None:
        """Return the agent with this ``host:NAME`` or manifest id."""
        if reference.startswith(HOST_PREFIX):
            return await self.find(tenant, reference.removeprefix(HOST_PREFIX))
        if not re.fullmatch(MANIFEST_ID, reference):
            return None
        for agent in await self.all(tenant):
            if agent.manifest_id == reference:
                return agent
        return None

    async def worker(self, tenant: str, name: str) -> str | None:
        """Return the agent id that the name of a worker means: an id or a bare name."""
        if await self.named(tenant, name) is not None:
            return name
        agent = await self.find(tenant, name)
        return None if agent is None else agent.agent_id

    async def must_find_by_id(self, tenant: str, reference: str) -> Agent:
        """Return the agent with this id. Raise NotFound with the nearest name."""
        agent = await self.named(tenant, reference)
        return agent or await self.must_find(tenant, reference.removeprefix(HOST_PREFIX))

    async def at(self, tenant: str, name: str, version: str) -> Agent | None:
        """Return the agent in this version, even if it has been removed."""
        newest = await self.find(tenant, name)
        if newest is not None and newest.version == version:
            return newest
        for record in await self.history(tenant, name):
            if record.version == version:
                return _decode(record.body)
        return None

    async def all(self, tenant: str) -> list[Agent]:
        return [_decode(record.body) for record in await self._store.records(tenant, AGENT_KIND)]

    async def history(self, tenant: str, name: str) -> list[Record]:
        return await self._store.record_history(tenant, AGENT_KIND, name)

    async def put(self, tenant: str, agent: Agent, by: str, packed: bool = False) -> bool:
        """Store an agent, and return whether it is a new version.

        Raise Unprocessable for an unknown tool or model, and Conflict when another agent has its
        id. A ``packed`` manifest may name tools of any host; the agent gets those that exist here.
        """
        current = await self.find(tenant, agent.name)
        if current == agent:
            return False
        if not is_agent_name(agent.agent_id):
            raise BadRequest(
                f"Nobody goes by the name '{agent.name}': it is the host's own, a person's, or"
                " means everybody. Take another one.",
                field="name",
                reserved=sorted(RESERVED_NAMES),
            )
        for reference in agent.tools if not packed else ():
            if problem := self._tool_problem(reference):
                raise Unprocessable(
                    f"Agent {agent.name}: {problem}.", field="tools", tool=reference
                )
        if problem := self._model_problem(agent.model):
            raise Unprocessable(f"Agent {agent.name}: {problem}", field="model")
        async with self._writing:  # of two agents with one id, the second is refused
            await self._refuse_taken(tenant, agent)
            await self._write(tenant, agent, by, gone=False)
        self._remember(tenant, agent)
        return True

    async def _refuse_taken(self, tenant: str, agent: Agent) -> None:
        for other in await self.all(tenant):
            if other.name != agent.name and other.manifest_id == agent.manifest_id:
                raise Conflict(
                    f"'{agent.manifest_id}' is the id of the agent '{other.name}'; choose another"
                    " name or manifest.",
                    agentId=agent.manifest_id,
                    agent=other.name,
                )

    async def remove(self, tenant: str, name: str, by: str) -> None:
        agent = await self.must_find(tenant, name)
        await self._write(tenant, agent, by, gone=True)
        self._cache.pop((tenant, name), None)

    async def _write(self, tenant: str, agent: Agent, by: str, gone: bool) -> None:
        await self._store.put_record(
            Record(
                tenant=tenant,
                kind=AGENT_KIND,
                name=agent.name,
                version=agent.version,
                body=agent.encoded(),
                created_at=self._clock.millis(),
                by=by,
                gone=gone,
            )
        )

    def _remember(self, tenant: str, agent: Agent) -> Agent:
        self._cache[tenant, agent.name] = agent
        self._cache.move_to_end((tenant, agent.name))
        while len(self._cache) > MOST_CACHED:
            self._cache.popitem(last=False)
        return agent

    def _check(self, agent: Agent, text: str) -> None:
        for reference in agent.tools:
            if problem := self._tool_problem(reference):
                raise ManifestProblem(problem, find_tool_line(text, reference))
        if problem := self._model_problem(agent.model):
            raise ManifestProblem(problem, find_field_line(text, "model"))

    async def load(self, tenant: str, folder: Path) -> list[str]:
        """Store the agent of every valid ``*.md`` file, and return the problems of the others with
        file and line. Remove agents whose file is gone."""
        agents, problems = read_agents_folder(folder)
        await self._remove_deleted(tenant, folder)
        for file, agent in agents.items():
            try:
                self._check(agent, (folder / file).read_text(encoding="utf-8"))
                await self.put(tenant, agent, by=f"{FILE_PREFIX}{file}")
            except ManifestProblem as problem:
                problems.append(f"{file}:{problem.line}: {problem.message}")
            except Conflict as conflict:
                problems.append(f"{file}:1: {conflict.message}")
        return problems

    async def _remove_deleted(self, tenant: str, folder: Path) -> None:
        for agent in await self.all(tenant):
            newest = (await self.history(tenant, agent.name))[0]
            file = newest.by.removeprefix(FILE_PREFIX)
            if newest.by.startswith(FILE_PREFIX) and not (folder / file).exists():
                await self.remove(tenant, agent.name, by=newest.by)


def refuse_duplicate(text: str, agent: Agent, first: str, file: str) -> None:
    """Raise ManifestProblem when another file defines an agent of this name."""
    if first != file:
        raise ManifestProblem(
            f"'{agent.name}' is defined in {first}, too; give one of them another name",
            find_field_line(text, "name"),
        )


def read_agents_folder(folder: Path) -> tuple[dict[str, Agent], list[str]]:
    """Return the agents of a folder by file, and the problems of the other files as ``file:line:
    …``."""
    agents: dict[str, Agent] = {}
    problems = []
    files: dict[str, str] = {}
    for file in sorted(folder.glob("*.md")):
        try:
            text = file.read_text(encoding="utf-8")
            agent = agent_from_markdown(text, file.stem)
            refuse_duplicate(text, agent, files.setdefault(agent.name, file.name), file.name)
            agents[file.name] = agent
        except ManifestProblem as problem:
            problems.append(f"{file.name}:{problem.line}: {problem.message}")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file.name}: {error}")
    return agents, problems
