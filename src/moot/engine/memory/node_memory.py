"""Access of a node to memory, as ``ctx.memory``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moot.core import memory
from moot.core.errors import BadRequest
from moot.core.events import MemoryWrite, NewEvent
from moot.core.ids import derived_id
from moot.core.memory import MemoryEntry
from moot.core.payloads.memory import MemoryRead, MemoryWritten
from moot.core.state.memory import SHORTEST_IN_NAMES, SHORTEST_SECRET, memory_ref, redact_secrets
from moot.core.workflows.flow import FlowNode
from moot.engine.memory.journal import entry_from_note
from moot.store.memory_entries import MemoryRow

if TYPE_CHECKING:
    from moot.engine.effects.node_context import ActivityContext
    from moot.engine.head import Head
    from moot.engine.host import Host


class NodeMemory:
    """Memory beyond the run, for one attempt of a node. ``ref`` names a memory; the default is the
    node's own.

    The node's own memory is that of its agent's ``memoryRef``, of ``config.agentSharing``, else of
    the run's scope. A node sees memory as of the start of its run (in the loop of a supervisor: of
    the turn), and the later writes of the run and its completed children. An invalid ``ref`` has
    no entries.
    """

    def __init__(
        self, host: "Host", context: "ActivityContext", head: "Head", node: FlowNode
    ) -> None:
        self._host, self._context, self._head, self._node = host, context, head, node
        #: values that are secret at the start of the attempt stay secret to its end
        self._secrets = dict(head.sealed)
        self._writes = 0
        self._read_refs: set[str] = set()

    async def list(
        self, ref: str | None = None, *, tag: str | None = None, limit: int | None = None
    ) -> "list[MemoryEntry]":
        """Return entries, newest first: a hundred by default, or ``limit``."""
        ref = await self._record_read(ref)
        if tag is not None:
            tag = self._redact(tag)
        run = self._now().run
        notes = await self._host.memory.list(self._context.tenant, ref, run, tag, limit)
        return [entry_from_note(note) for note in notes]

    async def get(self, memory_id: str, *, ref: str | None = None) -> MemoryEntry | None:
        ref, entry_id = await self._record_read(ref), self._redact(memory_id, SHORTEST_IN_NAMES)
        note = await self._host.memory.get(self._context.tenant, ref, self._now().run, entry_id)
        return entry_from_note(note) if note is not None else None

    async def put(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        memory_id: str | None = None,
        ttl: float | None = None,
        expires_at: str | None = None,
        ref: str | None = None,
    ) -> MemoryEntry:
        """Store a text and return when it is on disk. A later attempt returns the first one's
        entry.

        The entry ends ``ttl`` seconds after the write, or at ``expires_at`` (ISO 8601). With the
        id of an existing entry this writes a new version. Values of secrets are removed.
        """
        self._writes += 1
        name = self._name(self._context.run_id)
        if (written := await self._written()) is not None:
            return self._entry_of(written)
        await self._context.confirmed()  # values that the node has sealed are secrets now
        if memory_id is not None:
            memory_id = memory.check_id(self._redact(memory_id, SHORTEST_IN_NAMES))
        write = MemoryWrite(
            scope=memory.check_ref(self._ref(ref)),
            memory_id=memory_id or f"mem_{name}",
            write_id=name,
            content=memory.check_content(self._redact(content)),
            tags=memory.check_tags([self._redact(tag) for tag in memory.check_tags(tags)]),
            agent_id=self._context.agent_id,
            ttl_ms=memory.check_ttl(ttl),
            expires_at=memory.check_expiry(expires_at, self._context.now()),
        )
        await self._write(write)
        note = await self._written()
        assert note is not None
        return self._entry_of(note)

    async def delete(self, memory_id: str, *, ref: str | None = None) -> bool:
        """Delete the entry and return whether it existed."""
        self._writes += 1
        write_id = self._name(self._context.run_id)
        if await self._written() is not None:
            return True
        if await self.get(memory_id, ref=ref) is None:
            return False
        name = self._redact(memory_id, SHORTEST_IN_NAMES)
        write = MemoryWrite(
            scope=self._ref(ref),
            memory_id=name,
            write_id=write_id,
            agent_id=self._context.agent_id,
        )
        await self._write(write)
        return True

    def _name(self, run_id: str) -> str:
        """Return the id of the write: equal in every attempt, different in each round of a loop."""
        here = self._context
        return derived_id("", run_id, here.node_id, str(here.earlier), str(self._writes))

    async def _written(self) -> MemoryRow | None:
        """Return the note of this write from an earlier attempt or the history of a fork."""
        store, tenant, run = self._host.store, self._context.tenant, self._now().run
        note = await store.written(tenant, self._name(run.run_id))
        for each in run.memory.inherited if run.memory is not None else ():
            if note is None:
                note = await store.written(tenant, self._name(each.run))
                note = note if note is not None and note.sequence < each.below else None
        return note

    @staticmethod
    def _entry_of(note: MemoryRow) -> MemoryEntry:
        if note.content is None:
            raise BadRequest("The entry has been forgotten since it was written.", field="id")
        return entry_from_note(note)

    async def _write(self, write: MemoryWrite) -> None:
        """Record the write and return when it is on disk."""
        here = self._context
        payload = MemoryWritten(
            memory_ref=write.scope,
            memory_id=write.memory_id,
            node_id=here.node_id,
            agent_id=write.agent_id,
            tags=write.tags or None,
            deleted=write.content is None,
        )
        await here.recorded(NewEvent(payload, here.node_id, note=write))

    async def _record_read(self, ref: str | None) -> str:
        """Return the reference and record once that the node reads it, because a fork must see the
        same."""
        resolved = self._ref(ref)
        if memory.is_ref(resolved) and resolved not in self._read_refs:
            self._read_refs.add(resolved)
            here = self._context
            payload = MemoryRead(memory_ref=resolved, node_id=here.node_id)
            await here.report(NewEvent(payload, here.node_id))
        return resolved

    def _ref(self, ref: str | None) -> str:
        if ref is None:
            return memory_ref(self._now().run, self._node)
        return str(self._redact(ref, SHORTEST_IN_NAMES))

    def _now(self) -> "Head":
        return self._host.runs.current(self._head)

    def _redact(self, text: Any, shortest: int = SHORTEST_SECRET) -> Any:
        if not isinstance(text, str):
            return text
        return redact_secrets(text, (self._secrets, self._now().sealed), shortest)
