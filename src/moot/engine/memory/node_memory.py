"""``ctx.memory``: what a node remembers and is reminded of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moot.core import memory
from moot.core.errors import BadRequest
from moot.core.events import MemoryWrite, NewEvent
from moot.core.ids import derived_id
from moot.core.memory import Entry
from moot.core.state.memory import SHORTEST_IN_NAMES, SHORTEST_SECRET, redacted, ref_of
from moot.core.workflows.graph import FlowNode
from moot.engine.memory.journal import entry_of
from moot.store.protocol import Note

if TYPE_CHECKING:
    from moot.engine.effects.node_context import Context
    from moot.engine.head import Head
    from moot.engine.host import Host


class Memory:
    """The memory of one attempt of a node; see ``NodeMemory`` for the promises."""

    def __init__(self, host: "Host", context: "Context", head: "Head", node: FlowNode) -> None:
        self._host, self._context, self._head, self._node = host, context, head, node
        #: what was secret when the attempt began is secret to its end
        self._secrets = dict(head.sealed)
        self._writes = 0
        self._seen: set[str] = set()

    async def list(
        self, ref: str | None = None, *, tag: str | None = None, limit: int | None = None
    ) -> "list[Entry]":
        ref = await self._look(ref)
        if tag is not None:
            tag = self._hidden(tag)
        run = self._now().run
        found = await self._host.memory.list(self._context.tenant, ref, run, tag, limit)
        return [entry_of(note) for note in found]

    async def get(self, memory_id: str, *, ref: str | None = None) -> Entry | None:
        ref, name = await self._look(ref), self._hidden(memory_id, SHORTEST_IN_NAMES)
        found = await self._host.memory.get(self._context.tenant, ref, self._now().run, name)
        return entry_of(found) if found is not None else None

    async def put(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        memory_id: str | None = None,
        ttl: float | None = None,
        expires_at: str | None = None,
        ref: str | None = None,
    ) -> Entry:
        self._writes += 1
        name = self._name(self._context.run_id)
        if (known := await self._written()) is not None:
            return self._kept(known)
        await self._context.confirmed()  # what it has sealed on the way is a secret by now
        if memory_id is not None:
            memory_id = memory.check_id(self._hidden(memory_id, SHORTEST_IN_NAMES))
        write = MemoryWrite(
            scope=memory.check_ref(self._ref(ref)),
            memory_id=memory_id or f"mem_{name}",
            write_id=name,
            content=memory.check_content(self._hidden(content)),
            tags=memory.check_tags([self._hidden(tag) for tag in memory.check_tags(tags)]),
            agent_id=self._context.agent_id,
            ttl_ms=memory.check_ttl(ttl),
            expires_at=memory.check_end(expires_at, self._context.now()),
        )
        await self._write(write)
        found = await self._written()
        assert found is not None
        return self._kept(found)

    async def delete(self, memory_id: str, *, ref: str | None = None) -> bool:
        self._writes += 1
        write_id = self._name(self._context.run_id)
        if await self._written() is not None:
            return True
        if await self.get(memory_id, ref=ref) is None:
            return False
        name = self._hidden(memory_id, SHORTEST_IN_NAMES)
        write = MemoryWrite(
            scope=self._ref(ref),
            memory_id=name,
            write_id=write_id,
            agent_id=self._context.agent_id,
        )
        await self._write(write)
        return True

    def _name(self, run_id: str) -> str:
        """The same for the same write in every attempt, in each round of a loop another one."""
        here = self._context
        return derived_id("", run_id, here.node_id, str(here.earlier), str(self._writes))

    async def _written(self) -> Note | None:
        """What this write became in an earlier attempt, or in the history of a branch; it stays as
        it is."""
        store, tenant, run = self._host.store, self._context.tenant, self._now().run
        found = await store.written(tenant, self._name(run.run_id))
        for each in run.memory.inherited if run.memory is not None else ():
            if found is None:
                found = await store.written(tenant, self._name(each.run))
                found = found if found is not None and found.sequence < each.below else None
        return found

    @staticmethod
    def _kept(note: Note) -> Entry:
        if note.content is None:
            raise BadRequest("The entry has been forgotten since it was written.", field="id")
        return entry_of(note)

    async def _write(self, write: MemoryWrite) -> None:
        """On disk when it returns."""
        here = self._context
        payload: dict[str, Any] = {
            "memoryRef": write.scope,
            "memoryId": write.memory_id,
            "nodeId": here.node_id,
        }
        if write.agent_id is not None:
            payload["agentId"] = write.agent_id
        if write.tags:
            payload["tags"] = write.tags
        if write.content is None:
            payload["deleted"] = True
        await here.recorded(NewEvent("memory.written", payload, here.node_id, note=write))

    async def _look(self, ref: str | None) -> str:
        """What is looked at is told once: a fork must be able to see the same."""
        found = self._ref(ref)
        if memory.is_ref(found) and found not in self._seen:
            self._seen.add(found)
            here = self._context
            payload = {"memoryRef": found, "nodeId": here.node_id}
            await here.report(NewEvent("moot.memory.read", payload, here.node_id))
        return found

    def _ref(self, ref: str | None) -> str:
        if ref is None:
            return ref_of(self._now().run, self._node)
        return str(self._hidden(ref, SHORTEST_IN_NAMES))

    def _now(self) -> "Head":
        return self._host.runs.current(self._head)

    def _hidden(self, text: Any, shortest: int = SHORTEST_SECRET) -> Any:
        if not isinstance(text, str):
            return text
        return redacted(text, (self._secrets, self._now().sealed), shortest)
