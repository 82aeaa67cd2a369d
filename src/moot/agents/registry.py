"""The agents of every tenant, in all their versions."""

import re
from collections import OrderedDict
from pathlib import Path

import msgspec

from moot.agents.manifest import MANIFEST_ID, Agent, ManifestProblem, from_markdown
from moot.clock import Clock
from moot.core.definition import nearest
from moot.core.errors import NotFound
from moot.store.protocol import Record, RecordStore

KIND = "agent"
#: how agents of this host are called elsewhere
HOST = "host:"
MOST_CACHED = 4096

_decode = msgspec.json.Decoder(Agent).decode


class Agents:
    """Who there is. The newest version of a name is the one that speaks."""

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
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
        if not re.fullmatch(MANIFEST_ID.strip("^$"), reference):
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

    async def put(self, tenant: str, agent: Agent, by: str) -> bool:
        """Whether it is another version than before."""
        known = await self.find(tenant, agent.name)
        if known == agent:
            return False
        await self._write(tenant, agent, by, gone=False)
        self._keep(tenant, agent)
        return True

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

    async def load(self, tenant: str, folder: Path) -> list[str]:
        """Takes in every ``*.md`` that is right; says of the others what is wrong, and where."""
        problems = []
        for file in sorted(folder.glob("*.md")):
            try:
                agent = from_markdown(file.read_text(encoding="utf-8"), file.stem)
            except ManifestProblem as problem:
                problems.append(f"{file.name}:{problem.line}: {problem.message}")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"{file.name}: {error}")
            else:
                await self.put(tenant, agent, by=f"file:{file.name}")
        return problems
