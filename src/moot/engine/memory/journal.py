"""Memory journal: revisions, the entries a run sees, and erasure.

Writes go through the log of a run. Only erasure, which belongs to no run, is committed here.
"""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.clock import Clock
from moot.core.errors import MemorySnapshotUnavailable
from moot.core.events import Event, MemoryWrite, iso
from moot.core.memory import MemoryEntry, check_limit, is_ref
from moot.core.payloads.memory import MemoryRead, MemoryWritten
from moot.core.state import memory
from moot.core.state.run import Run
from moot.store.memory_entries import MemoryRow
from moot.store.protocol import Batch, Store

if TYPE_CHECKING:
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
        self._durable: dict[str, int] = {}
        self._last_given: dict[str, int] = {}

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._durable

    async def learn(self, tenant: str) -> None:
        revision = await self._store.memory_revision(tenant)
        self._durable[tenant] = max(revision, self.now(tenant))

    def now(self, tenant: str) -> int:
        return self._durable.get(tenant, 0)

    def next(self, tenant: str) -> int:
        self._last_given[tenant] = max(self._last_given.get(tenant, 0), self.now(tenant)) + 1
        return self._last_given[tenant]

    def keep(self, notes: list[MemoryRow]) -> None:
        """Count the revisions of notes that are on disk now."""
        for note in notes:
            self._durable[note.tenant] = max(self.now(note.tenant), note.revision)


def note_from_write(
    run: Run, write: MemoryWrite, event: Event, revision: int, now: int
) -> MemoryRow:
    """Return the journal row of a write, as of its event."""
    return MemoryRow(
        tenant=run.tenant,
        revision=revision,
        scope=write.scope,
        memory_id=write.memory_id,
        content=write.content,
        tags=write.tags,
        run_id=run.run_id,
        sequence=event.sequence,
        ancestors=memory.ancestor_runs(run),
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
        most, now = check_limit(limit), self._clock.millis()
        if not is_ref(ref):
            return []
        later = await self._notes_after_start(tenant, ref, run)
        at = None if run is None else memory.memory_view(run).revision
        notes = await self._store.notes(tenant, ref, at, now, tag, most + len(later))
        notes = [note for note in notes if note.memory_id not in later]
        notes += [
            note for note in later.values() if note.lives(now) and (tag is None or tag in note.tags)
        ]
        notes.sort(key=lambda note: (note.created_at, note.revision), reverse=True)
        return notes[:most]

    async def get(self, tenant: str, ref: str, run: Run | None, memory_id: str) -> MemoryRow | None:
        if not is_ref(ref):
            return None
        later = await self._notes_after_start(tenant, ref, run)
        at = None if run is None else memory.memory_view(run).revision
        note = later.get(memory_id) or await self._store.note(tenant, ref, memory_id, at)
        return note if note is not None and note.lives(self._clock.millis()) else None

    async def _notes_after_start(
        self, tenant: str, ref: str, run: Run | None
    ) -> dict[str, MemoryRow]:
        """Return entry id -> newest version after the run's start that the run knows of."""
        view = memory.memory_view(run) if run is not None else None
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
        if tenant not in self._revisions:
            await self._revisions.learn(tenant)
        now = self._clock.millis()
        notes = [
            MemoryRow(
                tenant=tenant,
                revision=self._revisions.next(tenant),
                scope=ref,
                memory_id=name,
                written_at=now,
                created_at=now,
                erases=True,
            )
            for name in names
        ]
        await self._store.commit(Batch(notes=notes))  # the queue keeps the order of revisions
        self._revisions.keep(notes)
        return names


def _knows_note(run: Run, note: MemoryRow) -> bool:
    return memory.can_see_write(run, note.run_id, note.sequence, note.ancestors)


async def refuse_forgotten_memory(
    host: "Host", source: Run, log: list[Event], from_seq: int
) -> None:
    """Raise MemorySnapshotUnavailable when memory that the source saw has been erased since."""
    used = dict.fromkeys(
        event.payload.memory_ref for event in log if isinstance(event.payload, MEMORY_EVENTS)
    )
    if not used:
        return
    store, tenant = host.store, source.tenant
    run = (await host.at(tenant, source.run_id, max(from_seq, 1) - 1)).run
    lost = [ref for ref in used if await _is_memory_lost(store, run, ref)]
    if not lost:
        return
    details: dict[str, Any] = {"sourceRunId": source.run_id, "fromSeq": from_seq}
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
    view = memory.memory_view(run)
    if view.revision is None:
        return False
    if await store.forgotten(run.tenant, ref, view.revision):
        return True
    late = await store.memory_rows_after(run.tenant, ref, view.revision, view.roots)
    return any(note.forgotten for note in late if _knows_note(run, note))


def _revision_mark(event: Event) -> int | None:
    """Return the revision of memory at the start of a supervisor's turn."""
    return event.known_hints.memory_revision
