"""The store in memory: the specification of every other store, and what tests run on."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.core.errors import Conflict, NotProvided, RunNotFound, SequenceConflict
from moot.core.tenants import around
from moot.store import cursor
from moot.store.hash_chain import altered, misplaced, unattested
from moot.store.memory import tallies
from moot.store.memory.memory_entries import Journal
from moot.store.memory.records import Shelf
from moot.store.memory.search import Library
from moot.store.protocol import (
    IMPORTED,
    Append,
    Batch,
    Definition,
    EffectRow,
    InboxRow,
    Key,
    Problem,
    Receipt,
    RunFilter,
    RunRow,
    Snapshot,
    Store,
    WorkRow,
)
from moot.store.tallies import Tally


class Log(Struct):
    tenant: str
    number: int
    events: list[bytes] = []


class MemoryStore(Journal, Shelf, Library):
    """Nothing outlives the process; everything else is as the protocol promises."""

    def __init__(self) -> None:
        Journal.__init__(self)
        Library.__init__(self)
        self._logs: dict[str, Log] = {}
        self._receipts: dict[tuple[str, str, str], Receipt] = {}
        self._artifacts: dict[tuple[str, str, str], bytes] = {}
        self._sealed: dict[tuple[str, str], dict[str, bytes]] = {}
        self._revisions: dict[str, int] = {}
        self._secrets: dict[str, bytes] = {}
        self._definitions: list[Definition] = []
        self._keys: dict[str, Key] = {}
        self._forget_derived()

    def _forget_derived(self) -> None:
        self._rows: dict[str, RunRow] = {}
        self._work: dict[str, int] = {}
        self._snapshots: dict[str, tuple[int, Snapshot]] = {}
        self._effects: dict[tuple[str, str, str], EffectRow] = {}
        self._inbox: dict[str, list[InboxRow]] = {}
        self._messages: dict[tuple[str, str], int] = {}
        self._forget_texts()

    # the log

    async def commit(self, batch: Batch) -> None:
        self._check(batch)
        for append in batch.appends:
            log = self._logs.setdefault(append.run_id, Log(append.tenant, len(self._logs)))
            log.events += append.events
            self._derive(append)
        for effect in batch.effects:
            self._index_effect(effect)
        if (receipt := batch.receipt) is not None:
            self._receipts[receipt.tenant, receipt.operation, receipt.key] = receipt
        for artifact in batch.artifacts:
            where = artifact.tenant, artifact.run_id, artifact.artifact_id
            self._artifacts[where] = artifact.body
        self._seal(batch)
        for note in batch.notes:
            self._keep(note)
        self._keep_standing(batch)
        for tenant in batch.inboxes:
            self._revise(tenant)

    async def settled(self) -> None:
        """Nothing is ever on its way."""

    def _check(self, batch: Batch) -> None:
        seen: set[str] = set()
        for append in batch.appends:
            log = self._logs.get(append.run_id) or Log(append.tenant, 0)
            continues = log.tenant == append.tenant and len(log.events) == append.first
            if not continues or append.run_id in seen:
                raise SequenceConflict(append.run_id)
            seen.add(append.run_id)
        receipt = batch.receipt
        if receipt and (receipt.tenant, receipt.operation, receipt.key) in self._receipts:
            raise SequenceConflict(batch.appends[0].run_id if batch.appends else "")
        self._check_standing(batch)

    def _derive(self, append: Append) -> None:
        run_id = append.run_id
        if append.row is not None:
            self._rows[run_id] = append.row
        if append.work is None:
            self._work.pop(run_id, None)
        elif append.work is not UNSET:
            self._work[run_id] = append.work
        if append.inbox is not UNSET and append.inbox != self._inbox.get(run_id, []):
            self._inbox[run_id] = append.inbox
            self._revise(append.tenant)
        for message_id, sequence in append.messages:
            self._messages.setdefault((run_id, message_id), sequence)
        log, row = self._logs[run_id], self._rows.get(run_id)
        run = run_id, row.workflow_id if row else "", log.number
        for text in append.texts:
            self._shelve(append.tenant, run, text, log.events[text.sequence])
        if append.snapshot is not None:
            cached = Snapshot(append.first + len(append.events), append.snapshot)
            self._snapshots[run_id] = (append.fold_version, cached)

    def _revise(self, tenant: str) -> None:
        self._revisions[tenant] = self._revisions.get(tenant, 0) + 1

    def _index_effect(self, effect: EffectRow) -> None:
        place = (effect.tenant, effect.run_id, effect.invocation_id)
        known = self._effects.get(place)
        if known is None or effect.sequence >= known.sequence:
            self._effects[place] = effect

    def _seal(self, batch: Batch) -> None:
        for tenant, run_id, name, value in batch.sealed:
            values = self._sealed.setdefault((tenant, run_id), {})
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
        for run in batch.unseal:
            self._sealed.pop(run, None)

    def _log(self, tenant: str, run_id: str) -> Log | None:
        log = self._logs.get(run_id)
        return log if log is not None and log.tenant == tenant else None

    def _runs_of(self, tenant: str) -> set[str]:
        return {run_id for run_id, log in self._logs.items() if log.tenant == tenant}

    async def read(
        self, tenant: str, run_id: str, after: int = -1, limit: int = 1000
    ) -> list[bytes]:
        log = self._log(tenant, run_id)
        first = max(after + 1, 0)
        return log.events[first : first + limit] if log else []

    async def head(self, tenant: str, run_id: str) -> int | None:
        log = self._log(tenant, run_id)
        return len(log.events) if log else None

    async def snapshot(self, tenant: str, run_id: str, fold_version: int) -> Snapshot | None:
        version, cached = self._snapshots.get(run_id, (None, None))
        return cached if self._log(tenant, run_id) and version == fold_version else None

    async def sealed(self, tenant: str, run_id: str) -> dict[str, bytes]:
        return dict(self._sealed.get((tenant, run_id), {}))

    async def receipt(self, tenant: str, operation: str, key: str) -> Receipt | None:
        return self._receipts.get((tenant, operation, key))

    async def artifact(self, tenant: str, run_id: str, artifact_id: str) -> bytes | None:
        return self._artifacts.get((tenant, run_id, artifact_id))

    async def effect(self, tenant: str, run_id: str, invocation_id: str) -> EffectRow | None:
        return self._effects.get((tenant, run_id, invocation_id))

    async def spent(self, tenant: str, day: int) -> tuple[int, int]:
        found = [e for e in self._effects.values() if (around(e.tenant), e.day) == (tenant, day)]
        return sum(effect.tokens for effect in found), sum(effect.money for effect in found)

    async def spent_by(self, tenant: str, member: str, first: int, last: int) -> tuple[int, int]:
        found = [
            effect
            for effect in self._effects.values()
            if (effect.tenant, effect.member) == (tenant, member)
            and effect.day > 0
            and first <= effect.day <= last
        ]
        return sum(effect.tokens for effect in found), sum(effect.money for effect in found)

    # derived rows

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None:
        return self._rows.get(run_id) if self._log(tenant, run_id) else None

    async def list_runs(
        self, tenant: str, where: RunFilter, before: str | None, limit: int
    ) -> tuple[list[RunRow], str | None]:
        position = cursor.decode(before)
        place = self._use if where.used else self._position
        rows = [row for row in self._rows.values() if row.tenant == tenant and where.admits(row)]
        found = sorted((row for row in rows if place(row) < position), key=place, reverse=True)
        if where.mark is not None:
            names = {record.name for record in await self.records(tenant, where.mark)}
            found = [row for row in found if (row.run_id in names) == where.marked]
        page = found[:limit]
        more = len(found) > limit > 0
        return page, cursor.encode(place(page[-1])) if more else None

    def _use(self, row: RunRow) -> cursor.Position:
        return row.updated_at, self._logs[row.run_id].number

    def _position(self, row: RunRow) -> cursor.Position:
        return row.created_at, self._logs[row.run_id].number

    def _newest_first(self, tenant: str) -> Iterator[RunRow]:
        rows = (row for row in self._rows.values() if row.tenant == tenant)
        return iter(sorted(rows, key=self._position, reverse=True))

    async def active_run(self, tenant: str, scope_id: str) -> str | None:
        live = (row for row in self._newest_first(tenant) if row.ended_at is None)
        return next((row.run_id for row in live if row.scope_id == scope_id), None)

    async def work(self, until: int, limit: int) -> list[WorkRow]:
        due = ((at, self._logs[run].number, run) for run, at in self._work.items() if at <= until)
        return [WorkRow(self._logs[run].tenant, run, at) for at, _, run in sorted(due)[:limit]]

    async def next_work(self) -> int | None:
        return min(self._work.values(), default=None)

    async def rebuild(self, rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> None:
        given = [pair async for pair in rows]
        for append, _ in given:
            if not self._log(append.tenant, append.run_id):
                raise RunNotFound(append.run_id)
        self._forget_derived()
        for append, effects in given:
            self._derive(append)
            for effect in effects:
                self._index_effect(effect)

    async def runs(self) -> list[tuple[str, str]]:
        return [(log.tenant, run_id) for run_id, log in self._logs.items()]

    # primary tables

    async def put_definition(self, definition: Definition) -> None:
        self._definitions = [
            *(known for known in self._definitions if _identity(known) != _identity(definition)),
            definition,
        ]

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None:
        newest = {known.workflow_id: known for known in await self.definitions(tenant)}
        return newest.get(workflow_id)

    async def definition_by_digest(self, tenant: str, digest: str) -> Definition | None:
        newest_first = reversed(self._definitions)
        same = (known for known in newest_first if (known.tenant, known.digest) == (tenant, digest))
        return next(same, None)

    async def defined_elsewhere(self, tenant: str, workflow_id: str) -> bool:
        return any(
            known.workflow_id == workflow_id and known.tenant != tenant and known.source != IMPORTED
            for known in self._definitions
        )

    async def definitions(self, tenant: str) -> list[Definition]:
        newest = {
            known.workflow_id: known
            for known in self._definitions
            if known.tenant == tenant and known.source != IMPORTED
        }
        return [newest[workflow_id] for workflow_id in sorted(newest)]

    async def put_key(self, key: Key) -> None:
        holder = await self.key_by_hash(key.hash)
        if holder is not None and holder.id != key.id:
            raise Conflict("Another key has this secret.", keyId=holder.id)
        self._keys[key.id] = key

    async def key_by_hash(self, hash_: str) -> Key | None:
        return next((key for key in self._keys.values() if key.hash == hash_), None)

    async def keys(self, tenant: str | None) -> list[Key]:
        asked = (key for key in self._keys.values() if tenant in (None, key.tenant))
        return sorted(asked, key=lambda key: (key.created_at, key.id))

    async def revoke_key(self, tenant: str | None, key_id: str, at: int) -> bool:
        key = self._keys.get(key_id)
        if key is None or tenant not in (None, key.tenant):
            return False
        if key.revoked_at is None:
            self._keys[key_id] = replace(key, revoked_at=at)
        return True

    async def forget_receipts(self, before: int) -> int:
        known = len(self._receipts)
        self._receipts = {
            where: receipt
            for where, receipt in self._receipts.items()
            if receipt.created_at >= before
        }
        return known - len(self._receipts)

    async def secret(self, name: str, fresh: bytes) -> bytes:
        return self._secrets.setdefault(name, fresh)

    async def message(self, tenant: str, run_id: str, message_id: str) -> int | None:
        log = self._logs.get(run_id)
        if log is None or log.tenant != tenant:
            return None
        return self._messages.get((run_id, message_id))

    async def inbox(self, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
        rows = [row for found in self._inbox.values() for row in found if row.tenant == tenant]
        rows.sort(key=lambda row: row.since)
        return rows[:limit], self._revisions.get(tenant, 0)

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        return await tallies.tally(self, tenant, member, since, most)

    async def newest_runs(self, tenant: str, member: str, most: int) -> list[RunRow]:
        return await tallies.newest_runs(self, tenant, member, most)

    async def asked_by(self, tenant: str, member: str, most: int) -> list[tuple[int, InboxRow]]:
        return await tallies.asked_by(self, tenant, member, most)

    # the whole

    async def verify(self) -> list[Problem]:
        return [*self._misplaced(), *self._altered(), *self._unattested()]

    async def verify_log(self, tenant: str, run_id: str) -> list[Problem]:
        return [p for p in self._misplaced() if (p.tenant, p.run_id) == (tenant, run_id)]

    def _misplaced(self) -> Iterator[Problem]:
        for run_id, log in self._logs.items():
            for sequence, body in enumerate(log.events):
                if what := misplaced(body, run_id, sequence):
                    yield Problem(tenant=log.tenant, run_id=run_id, sequence=sequence, what=what)

    def _altered(self) -> Iterator[Problem]:
        for definition in self._definitions:
            if what := altered(definition):
                yield Problem(tenant=definition.tenant, run_id="", sequence=-1, what=what)

    def _unattested(self) -> Iterator[Problem]:
        for note in self._notes:
            log = self._log(note.tenant, note.run_id) or Log(note.tenant, 0)
            body = log.events[note.sequence] if 0 <= note.sequence < len(log.events) else None
            what = unattested(body, note.memory_id) if note.run_id else None
            if what:
                yield Problem(
                    tenant=note.tenant, run_id=note.run_id, sequence=note.sequence, what=what
                )

    async def stats(self) -> dict[str, Any]:
        statuses: dict[str, int] = {}
        for row in self._rows.values():
            statuses[row.status] = statuses.get(row.status, 0) + 1
        return {
            "kind": "memory",
            "runs": len(self._logs),
            "events": sum(len(log.events) for log in self._logs.values()),
            "statuses": statuses,
            "work": len(self._work),
        }

    async def backup(self, target: str) -> None:
        raise NotProvided("A store in memory has nothing to copy; use a file.", target=target)

    async def aclose(self) -> None:
        """Nothing to release."""


def _identity(definition: Definition) -> tuple[str, str, str]:
    return definition.tenant, definition.workflow_id, definition.digest


if TYPE_CHECKING:
    _conforms: type[Store] = MemoryStore
