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
    from_markdown,
    line_of_field,
    line_of_tool,
)
from moot.clock import Clock
from moot.core.conversations.participants import RESERVED, is_agents
from moot.core.errors import BadRequest, Conflict, NotFound, Unprocessable
from moot.core.text.nearest import nearest
from moot.store.records import Record, RecordKeeping

KIND = "agent"
#: how agents of this host are called elsewhere
HOST = "host:"
MOST_CACHED = 4096

_decode = msgspec.json.Decoder(Agent).decode


#: a tool, or a model, as an agent names it -> why nobody can be given it
Lacks = Callable[[str], str | None]


#: who an agent is by that came from a file
FILE = "file:"


class Agents:
    """Who there is. The newest version of a name is the one that speaks."""

    def __init__(
        self,
        store: RecordKeeping,
        clock: Clock,
        lacks: Lacks = lambda _: None,
        mute: Lacks = lambda _: None,
    ) -> None:
        self._store, self._clock, self._lacks, self._mute = store, clock, lacks, mute
        self._taking = asyncio.Lock()
        self._known: OrderedDict[tuple[str, str], Agent] = OrderedDict()

    async def find(self, tenant: str, name: str) -> Agent | None:
        found = self._known.get((tenant, name))
        if found is None:
            record = await self._store.record(tenant, KIND, name)
            if record is None:
                return None
            found = self._keep(tenant, _decode(record.body))
        return found

    async def must_find(self, tenant: str, name: str) -> Agent:
        """Raises NotFound with the nearest name."""
        found = await self.find(tenant, name)
        if found is None:
            names = [agent.name for agent in await self.all(tenant)]
            meant = nearest(name, names)
            hint = f" Did you mean '{meant}'?" if meant else ""
            raise NotFound(f"There is no agent '{name}'.{hint}", agent=name, agents=names[:50])
        return found

    async def named(self, tenant: str, reference: str) -> Agent | None:
        """By ``host:NAME`` or by the id of its manifest."""
        if reference.startswith(HOST):
            return await self.find(tenant, reference.removeprefix(HOST))
        if not re.fullmatch(MANIFEST_ID, reference):
            return None
        for agent in await self.all(tenant):
            if agent.manifest_id == reference:
                return agent
        return None

    async def worker(self, tenant: str, name: str) -> str | None:
        """The id of who is meant by the name of a worker: an id, or a bare name."""
        if await self.named(tenant, name) is not None:
            return name
        found = await self.find(tenant, name)
        return None if found is None else found.agent_id

    async def must_be(self, tenant: str, reference: str) -> Agent:
        """The same. Raises NotFound with the nearest name."""
        found = await self.named(tenant, reference)
        return found or await self.must_find(tenant, reference.removeprefix(HOST))

    async def at(self, tenant: str, name: str, version: str) -> Agent | None:
        """The agent as it was in this version, also when it has gone since."""
        newest = await self.find(tenant, name)
        if newest is not None and newest.version == version:
            return newest
        for record in await self.history(tenant, name):
            if record.version == version:
                return _decode(record.body)
        return None

    async def all(self, tenant: str) -> list[Agent]:
        return [_decode(record.body) for record in await self._store.records(tenant, KIND)]

    async def history(self, tenant: str, name: str) -> list[Record]:
        return await self._store.record_history(tenant, KIND, name)

    async def put(self, tenant: str, agent: Agent, by: str, packed: bool = False) -> bool:
        """Whether it is another version than before. Raises Unprocessable for a tool or a model
        that nobody can be given, Conflict for the id of somebody else. A manifest that was
        ``packed`` elsewhere names tools of any host; what is here of them is given."""
        known = await self.find(tenant, agent.name)
        if known == agent:
            return False
        if not is_agents(agent.agent_id):
            raise BadRequest(
                f"Nobody goes by the name '{agent.name}': it is the host's own, a person's, or"
                " means everybody. Take another one.",
                field="name",
                reserved=sorted(RESERVED),
            )
        for reference in agent.tools if not packed else ():
            if problem := self._lacks(reference):
                raise Unprocessable(
                    f"Agent {agent.name}: {problem}.", field="tools", tool=reference
                )
        if problem := self._mute(agent.model):
            raise Unprocessable(f"Agent {agent.name}: {problem}", field="model")
        async with self._taking:  # two that want one id at the same time: the second is refused
            await self._refuse_taken(tenant, agent)
            await self._write(tenant, agent, by, gone=False)
        self._keep(tenant, agent)
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
        self._known.pop((tenant, name), None)

    async def _write(self, tenant: str, agent: Agent, by: str, gone: bool) -> None:
        await self._store.put_record(
            Record(
                tenant=tenant,
                kind=KIND,
                name=agent.name,
                version=agent.version,
                body=agent.encoded(),
                created_at=self._clock.millis(),
                by=by,
                gone=gone,
            )
        )

    def _keep(self, tenant: str, agent: Agent) -> Agent:
        self._known[tenant, agent.name] = agent
        self._known.move_to_end((tenant, agent.name))
        while len(self._known) > MOST_CACHED:
            self._known.popitem(last=False)
        return agent

    def _check(self, agent: Agent, text: str) -> None:
        for reference in agent.tools:
            if problem := self._lacks(reference):
                raise ManifestProblem(problem, line_of_tool(text, reference))
        if problem := self._mute(agent.model):
            raise ManifestProblem(problem, line_of_field(text, "model"))

    async def load(self, tenant: str, folder: Path) -> list[str]:
        """Takes in every ``*.md`` that is right; says of the others what is wrong, and where. Who
        came from a file that is gone goes with it."""
        found, problems = in_folder(folder)
        await self._let_go(tenant, folder)
        for file, agent in found.items():
            try:
                self._check(agent, (folder / file).read_text(encoding="utf-8"))
                await self.put(tenant, agent, by=f"{FILE}{file}")
            except ManifestProblem as problem:
                problems.append(f"{file}:{problem.line}: {problem.message}")
            except Conflict as taken:
                problems.append(f"{file}:1: {taken.message}")
        return problems

    async def _let_go(self, tenant: str, folder: Path) -> None:
        for agent in await self.all(tenant):
            newest = (await self.history(tenant, agent.name))[0]
            file = newest.by.removeprefix(FILE)
            if newest.by.startswith(FILE) and not (folder / file).exists():
                await self.remove(tenant, agent.name, by=newest.by)


def refuse_second(text: str, agent: Agent, first: str, file: str) -> None:
    """Raises ManifestProblem when another file has defined an agent of this name."""
    if first != file:
        raise ManifestProblem(
            f"'{agent.name}' is defined in {first}, too; give one of them another name",
            line_of_field(text, "name"),
        )


def in_folder(folder: Path) -> tuple[dict[str, Agent], list[str]]:
    """The agents of a folder by file, and what is wrong with the other files: ``file:line: …``."""
    found: dict[str, Agent] = {}
    problems = []
    files: dict[str, str] = {}
    for file in sorted(folder.glob("*.md")):
        try:
            text = file.read_text(encoding="utf-8")
            agent = from_markdown(text, file.stem)
            refuse_second(text, agent, files.setdefault(agent.name, file.name), file.name)
            found[file.name] = agent
        except ManifestProblem as problem:
            problems.append(f"{file.name}:{problem.line}: {problem.message}")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file.name}: {error}")
    return found, problems
