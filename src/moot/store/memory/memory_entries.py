"""The journal of memory in memory: the specification of the one on disk."""

from collections.abc import Iterator

from msgspec.structs import replace

from moot.store.protocol import Note, continued


class Journal:
    """Part of the store in memory; its promises are those of ``NoteStore``."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: list[Note] = []

    def _keep(self, note: Note) -> None:
        before = self._version(note.tenant, note.scope, note.memory_id, None)
        if note.erases:
            self._notes = [
                replace(each, content=None, tags=[], forgotten=True) if _same(each, note) else each
                for each in self._notes
            ]
        self._notes.append(continued(note, before))

    def _of(self, tenant: str, scope: str) -> Iterator[Note]:
        return (note for note in self._notes if (note.tenant, note.scope) == (tenant, scope))

    def _versions(self, tenant: str, scope: str, at: int | None) -> dict[str, Note]:
        """Entry -> its version at a revision."""
        found = (note for note in self._of(tenant, scope) if at is None or note.revision <= at)
        return {note.memory_id: note for note in found}

    def _version(self, tenant: str, scope: str, memory_id: str, at: int | None) -> Note | None:
        return self._versions(tenant, scope, at).get(memory_id)

    async def memory_revision(self, tenant: str) -> int:
        return max((note.revision for note in self._notes if note.tenant == tenant), default=0)

    async def notes(
        self, tenant: str, scope: str, at: int | None, now: int, tag: str | None, limit: int
    ) -> list[Note]:
        found = [
            note
            for note in self._versions(tenant, scope, at).values()
            if note.lives(now) and (tag is None or tag in note.tags)
        ]
        found.sort(key=lambda note: (note.created_at, note.revision), reverse=True)
        return found[:limit]

    async def note(self, tenant: str, scope: str, memory_id: str, at: int | None) -> Note | None:
        return self._version(tenant, scope, memory_id, at)

    async def late_notes(
        self, tenant: str, scope: str, after: int, roots: tuple[str, ...]
    ) -> list[Note]:
        found = (note for note in self._of(tenant, scope) if note.revision > after)
        return [note for note in found if note.run_id and note.root in roots]

    async def written(self, tenant: str, write_id: str) -> Note | None:
        mine = (note for note in self._notes if (note.tenant, note.write_id) == (tenant, write_id))
        return next(mine, None)

    async def forgotten(self, tenant: str, scope: str, at: int) -> bool:
        return any(note.forgotten for note in self._versions(tenant, scope, at).values())

    async def memory_ids(self, tenant: str, scope: str) -> list[str]:
        found = self._versions(tenant, scope, None).values()
        return sorted(note.memory_id for note in found if not note.erases)

    async def memory_refs(self, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
        scopes = sorted({note.scope for note in self._notes if note.tenant == tenant})
        counts = [
            (scope, sum(note.lives(now) for note in self._versions(tenant, scope, None).values()))
            for scope in scopes
        ]
        return [(scope, count) for scope, count in counts if count][:limit]


def _same(note: Note, other: Note) -> bool:
    mine = note.tenant, note.scope, note.memory_id
    return mine == (other.tenant, other.scope, other.memory_id) and note.content is not None
