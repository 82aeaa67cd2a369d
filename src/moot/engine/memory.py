"""Memory: its journal, the entries a run sees, and the access of nodes to them.

Writes go through the log of a run. Only erasure, which belongs to no run, is committed here.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from moot.clock import Clock
from moot.core import memory
from moot.core.errors import BadRequest, MemorySnapshotUnavailable
from moot.core.events import Event, MemoryWrite, NewEvent, iso
from moot.core.ids import derived_id
from moot.core.memory import MemoryEntry, is_ref
from moot.core.payloads.memory import MemoryRead, MemoryWritten
from moot.core.state.memory import (
    SHORTEST_IN_NAMES,
    SHORTEST_SECRET,
    ancestor_runs,
    can_see_write,
    memory_ref,
    memory_view,
    redact_secrets,
)
from moot.core.state.run import Run
from moot.core.workflows.flow import FlowNode
from moot.store.memory_entries import MemoryRow
from moot.store.protocol import Batch, Store

if TYPE_CHECKING:
    from moot.engine.effects.activities import ActivityContext
    from moot.engine.head import Head
    from moot.engine.host import Host

#: events of a run that uses memory
MEMORY_EVENTS = (MemoryWritten, MemoryRead)

EntryIds = list[str]


class MemoryRevisions:
    """The newest revision of each tenant's journal.

    A number is given out when a write is decided and counts when it is on disk, so that the memory
    a run saw at its start can never grow.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        #: tenant -> newest revision on disk, for the tenants that have been looked up
        self.durable: dict[str, int] = {}
        self._last_given: dict[str, int] = {}

    async def learn(self, tenant: str) -> None:
        revision = await self._store.memory_revision(tenant)
        self.durable[tenant] = max(revision, self.now(tenant))

    def now(self, tenant: str) -> int:
        return self.durable.get(tenant, 0)

    def next(self, tenant: str) -> int:
        self._last_given[tenant] = max(self._last_given.get(tenant, 0), self.now(tenant)) + 1
        return self._last_given[tenant]

    def keep(self, notes: list[MemoryRow]) -> None:
        for note in notes:
            self.durable[note.tenant] = max(self.now(note.tenant), note.revision)


def note_from_write(
    run: Run, write: MemoryWrite, event: Event, revision: int, now: int
) -> MemoryRow:
    return MemoryRow(
        tenant=run.tenant,
        revision=revision,
        scope=write.scope,
        memory_id=write.memory_id,
        content=write.content,
        tags=write.tags,
        run_id=run.run_id,
        sequence=event.sequence,
        ancestors=ancestor_runs(run),
        agent_id=write.agent_id,
        write_id=write.write_id,
        written_at=now,
        created_at=now,
        expires_at=write.end(now),
    )


def entry_from_note(note: MemoryRow) -> MemoryEntry:
    assert note.content is not None
    return MemoryEntry(
        id=note.memory_id,
        content=note.content,
        tags=note.tags,
        created_at=iso(note.created_at * 1000),
        expires_at=UNSET if note.expires_at is None else iso(note.expires_at * 1000),
    )


class MemoryJournal:
    """Entries of memory, as a run sees them or as they are now.

    An invalid reference has no entries.
    """

    def __init__(self, store: Store, clock: Clock, revisions: MemoryRevisions) -> None:
        self._store, self._clock, self._revisions = store, clock, revisions

    async def list(
        self, tenant: str, ref: str, run: Run | None, tag: str | None, limit: int | None
    ) -> list[MemoryRow]:
        """Return entries, newest first. Without a run, as they are now."""
        most, now = memory.check_limit(limit), self._clock.millis()
        if not is_ref(ref):
            return []
        later = await self._notes_after_start(tenant, ref, run)
        at = None if run is None else memory_view(run).revision
        notes = await self._store.notes(tenant, ref, at, now, tag, most + len(later))
        notes = [note for note in notes if note.memory_id not in later]
        mine = [note for note in later.values() if tag is None or tag in note.tags]
        notes += [note for note in mine if note.lives(now)]
        notes.sort(key=lambda note: (note.created_at, note.revision), reverse=True)
        return notes[:most]

    async def get(self, tenant: str, ref: str, run: Run | None, memory_id: str) -> MemoryRow | None:
        if not is_ref(ref):
            return None
        later = await self._notes_after_start(tenant, ref, run)
        at = None if run is None else memory_view(run).revision
        note = later.get(memory_id) or await self._store.note(tenant, ref, memory_id, at)
        return note if note is not None and note.lives(self._clock.millis()) else None

    async def _notes_after_start(
        self, tenant: str, ref: str, run: Run | None
    ) -> dict[str, MemoryRow]:
        """Return entry id -> newest version after the run's start that the run knows of."""
        view = memory_view(run) if run is not None else None
        if run is None or view is None or view.revision is None or not view.roots:
            return {}
        notes = await self._store.memory_rows_after(tenant, ref, view.revision, view.roots)
        return {note.memory_id: note for note in notes if _knows_note(run, note)}

    async def forget(self, tenant: str, ref: str, memory_id: str | None) -> EntryIds:
        """Erase an entry, or all of a memory, for good. Return the ids of the erased entries."""
        names = await self._store.memory_ids(tenant, ref)
        if memory_id is not None:
            names = [name for name in names if name == memory_id]
        if not names:
            return []
        if tenant not in self._revisions.durable:
            await self._revisions.learn(tenant)
        now = self._clock.millis()
        row = MemoryRow(
            tenant=tenant, revision=0, scope=ref, memory_id="", written_at=now, created_at=now,
            erases=True,
        )  # fmt: skip
        next_revision = partial(self._revisions.next, tenant)
        notes = [replace(row, revision=next_revision(), memory_id=name) for name in names]
        await self._store.commit(Batch(notes=notes))  # the queue keeps the order of revisions
        self._revisions.keep(notes)
        return names


def _knows_note(run: Run, note: MemoryRow) -> bool:
    return can_see_write(run, note.run_id, note.sequence, note.ancestors)


async def refuse_forgotten_memory(
    host: "Host", source: Run, log: list[Event], from_seq: int
) -> None:
    """Raise MemorySnapshotUnavailable when memory that the source saw has been erased since."""
    uses = (event.payload for event in log if isinstance(event.payload, MEMORY_EVENTS))
    used = dict.fromkeys(use.memory_ref for use in uses)
    if not used:
        return
    store, tenant = host.store, source.tenant
    run = (await host.runs.at(tenant, source.run_id, max(from_seq, 1) - 1)).run
    lost = [ref for ref in used if await _is_memory_lost(store, run, ref)]
    if not lost:
        return
    details: dict[str, object] = {"sourceRunId": source.run_id, "fromSeq": from_seq}
    for event in log[from_seq:]:
        at = _revision_mark(event)
        if at is not None and not [ref for ref in lost if await store.forgotten(tenant, ref, at)]:
            details["oldestAvailableIdx"] = event.sequence + 1
            break
    raise MemorySnapshotUnavailable(
        "Some of what the run remembered has been forgotten since; it cannot be forked there.",
        **details,
        memoryRefs=lost,
    )


async def _is_memory_lost(store: Store, run: Run, ref: str) -> bool:
    view = memory_view(run)
    if view.revision is None:
        return False
    if await store.forgotten(run.tenant, ref, view.revision):
        return True
    late = await store.memory_rows_after(run.tenant, ref, view.revision, view.roots)
    return any(note.forgotten for note in late if _knows_note(run, note))


def _revision_mark(event: Event) -> int | None:
    """Return the revision of memory at the start of a supervisor's turn."""
    return event.known_hints.memory_revision


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
        scope, agent_id = self._ref(ref), self._context.agent_id
        write = MemoryWrite(scope=scope, memory_id=name, write_id=write_id, agent_id=agent_id)
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
        """Return the reference, and record the read once: a fork must see the same."""
        resolved = self._ref(ref)
        if is_ref(resolved) and resolved not in self._read_refs:
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
