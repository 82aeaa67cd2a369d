"""Memory: the journal's revisions, what a run sees of it, and what is erased.

Writes go through the log of a run like everything else; only erasure, which belongs to no run, is
committed here.
"""

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.clock import Clock
from moot.core.errors import MemorySnapshotUnavailable
from moot.core.events import Event, MemoryWrite, iso
from moot.core.memory import Entry, check_limit, is_ref
from moot.core.state import memory
from moot.core.state.memory import MARK
from moot.core.state.run import Run
from moot.store.protocol import Batch, Note, Store

if TYPE_CHECKING:
    from moot.engine.host import Host

#: events of a run that has to do with memory
USES = frozenset({"memory.written", "moot.memory.read"})

Names = list[str]


class Revisions:
    """How far each tenant's journal has come. A number is given out when a write is decided and
    counts when it is on disk, so that what a run saw at its beginning can never grow."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, int] = {}
        self._given: dict[str, int] = {}

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._kept

    async def learn(self, tenant: str) -> None:
        found = await self._store.memory_revision(tenant)
        self._kept[tenant] = max(found, self.now(tenant))

    def now(self, tenant: str) -> int:
        return self._kept.get(tenant, 0)

    def next(self, tenant: str) -> int:
        self._given[tenant] = max(self._given.get(tenant, 0), self.now(tenant)) + 1
        return self._given[tenant]

    def keep(self, notes: list[Note]) -> None:
        """These are on disk."""
        for note in notes:
            self._kept[note.tenant] = max(self.now(note.tenant), note.revision)


def note_of(run: Run, write: MemoryWrite, event: Event, revision: int, now: int) -> Note:
    """The row of a write, as of the event that tells of it."""
    return Note(
        tenant=run.tenant,
        revision=revision,
        scope=write.scope,
        memory_id=write.memory_id,
        content=write.content,
        tags=write.tags,
        run_id=run.run_id,
        sequence=event.sequence,
        ancestors=memory.ancestors_of(run),
        agent_id=write.agent_id,
        write_id=write.write_id,
        written_at=now,
        created_at=now,
        expires_at=write.end(now),
    )


def entry_of(note: Note) -> Entry:
    assert note.content is not None
    return Entry(
        id=note.memory_id,
        content=note.content,
        tags=note.tags,
        created_at=iso(note.created_at * 1000),
        expires_at=UNSET if note.expires_at is None else iso(note.expires_at * 1000),
    )


class Recollections:
    """What is remembered, as a run sees it or as it is. What a reference cannot name is empty."""

    def __init__(self, store: Store, clock: Clock, revisions: Revisions) -> None:
        self._store, self._clock, self._revisions = store, clock, revisions

    async def list(
        self, tenant: str, ref: str, run: Run | None, tag: str | None, limit: int | None
    ) -> list[Note]:
        """Newest first. Without a run: as it is."""
        most, now = check_limit(limit), self._clock.millis()
        if not is_ref(ref):
            return []
        later = await self._later(tenant, ref, run)
        at = None if run is None else memory.view(run).revision
        found = await self._store.notes(tenant, ref, at, now, tag, most + len(later))
        found = [note for note in found if note.memory_id not in later]
        found += [
            note for note in later.values() if note.lives(now) and (tag is None or tag in note.tags)
        ]
        found.sort(key=lambda note: (note.created_at, note.revision), reverse=True)
        return found[:most]

    async def get(self, tenant: str, ref: str, run: Run | None, memory_id: str) -> Note | None:
        if not is_ref(ref):
            return None
        later = await self._later(tenant, ref, run)
        at = None if run is None else memory.view(run).revision
        found = later.get(memory_id) or await self._store.note(tenant, ref, memory_id, at)
        return found if found is not None and found.lives(self._clock.millis()) else None

    async def _later(self, tenant: str, ref: str, run: Run | None) -> dict[str, Note]:
        """Entry -> its newest version of those written after the run began that it knows of."""
        view = memory.view(run) if run is not None else None
        if run is None or view is None or view.revision is None or not view.roots:
            return {}
        found = await self._store.late_notes(tenant, ref, view.revision, view.roots)
        return {note.memory_id: note for note in found if _known(run, note)}

    async def forget(self, tenant: str, ref: str, memory_id: str | None) -> Names:
        """Erases an entry, or all of a memory, for good. Says which entries that was."""
        names = await self._store.memory_ids(tenant, ref)
        if memory_id is not None:
            names = [name for name in names if name == memory_id]
        if not names:
            return []
        if tenant not in self._revisions:
            await self._revisions.learn(tenant)
        now = self._clock.millis()
        notes = [
            Note(
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


def _known(run: Run, note: Note) -> bool:
    return memory.knows_of(run, note.run_id, note.sequence, note.ancestors)


async def refuse_forgotten(host: "Host", source: Run, log: list[Event], from_seq: int) -> None:
    """A fork sees what its source saw. Raises when some of that has been erased since."""
    used = dict.fromkeys(str(event.payload.get("memoryRef")) for event in log if event.type in USES)
    if not used:
        return
    store, tenant = host.store, source.tenant
    run = (await host.at(tenant, source.run_id, max(from_seq, 1) - 1)).run
    lost = [ref for ref in used if await _is_lost(store, run, ref)]
    if not lost:
        return
    details: dict[str, Any] = {"sourceRunId": source.run_id, "fromSeq": from_seq}
    for event in log[from_seq:]:
        at = _mark(event)
        if at is not None and not [ref for ref in lost if await store.forgotten(tenant, ref, at)]:
            details["oldestAvailableIdx"] = event.sequence + 1
            break
    raise MemorySnapshotUnavailable(
        "Some of what the run remembered has been forgotten since; it cannot be forked there.",
        **details,
        memoryRefs=lost,
    )


async def _is_lost(store: Store, run: Run, ref: str) -> bool:
    view = memory.view(run)
    if view.revision is None:
        return False
    if await store.forgotten(run.tenant, ref, view.revision):
        return True
    late = await store.late_notes(run.tenant, ref, view.revision, view.roots)
    return any(note.forgotten for note in late if _known(run, note))


def _mark(event: Event) -> int | None:
    """How far memory had come when a turn of the supervisor began."""
    found = event.hints.get(MARK) if event.hints is not UNSET else None
    return found if isinstance(found, int) else None
