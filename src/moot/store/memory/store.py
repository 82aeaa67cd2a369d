"""The store in memory, for tests and as the specification of every other store."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from moot.core.errors import Conflict, NotProvided, RunNotFound, SequenceConflict
from moot.core.tenants import parent_tenant
from moot.store.hash_chain import check_definition_digest, check_event_place, check_memory_event
from moot.store.memory.index import InMemoryIndex, InMemoryLog
from moot.store.memory.memory_entries import InMemoryEntries
from moot.store.memory.search import InMemorySearch
from moot.store.protocol import (
    IMPORTED,
    Append,
    Batch,
    Definition,
    EffectRow,
    FoldSnapshot,
    IntegrityProblem,
    Key,
    Receipt,
    Store,
)


class MemoryStore(InMemoryEntries, InMemoryIndex, InMemorySearch):
    """Keeps every promise of ``Store`` except that its data ends with the process."""

    def __init__(self) -> None:
        InMemoryEntries.__init__(self)
        InMemorySearch.__init__(self)
        self._receipts: dict[tuple[str, str, str], Receipt] = {}
        self._artifacts: dict[tuple[str, str, str], bytes] = {}
        self._sealed: dict[tuple[str, str], dict[str, bytes]] = {}
        self._secrets: dict[str, bytes] = {}
        self._definitions: list[Definition] = []
        self._keys: dict[str, Key] = {}
        self._forget_derived()

    def _forget_derived(self) -> None:
        self._forget_index()
        self._snapshots: dict[str, tuple[int, FoldSnapshot]] = {}
        self._effects: dict[tuple[str, str, str], EffectRow] = {}
        self._forget_texts()

    # the log

    async def commit(self, batch: Batch) -> None:
        self._check(batch)
        for append in batch.appends:
            log = self._logs.setdefault(append.run_id, InMemoryLog(append.tenant, len(self._logs)))
            log.events += append.events
            self._derive(append)
        for effect in batch.effects:
            self._index_effect(effect)
        if (receipt := batch.receipt) is not None:
            self._receipts[receipt.tenant, receipt.operation, receipt.key] = receipt
        for artifact in batch.artifacts:
            place = artifact.tenant, artifact.run_id, artifact.artifact_id
            self._artifacts[place] = artifact.body
        self._seal(batch)
        for row in batch.notes:
            self._write_entry(row)
        self._write_records(batch)
        for tenant in batch.inboxes:
            self._raise_inbox_revision(tenant)

    async def settled(self) -> None:
        """Return at once: every commit is complete when it returns."""

    def _check(self, batch: Batch) -> None:
        run_ids: set[str] = set()
        for append in batch.appends:
            log = self._logs.get(append.run_id) or InMemoryLog(append.tenant, 0)
            continues = log.tenant == append.tenant and len(log.events) == append.first
            if not continues or append.run_id in run_ids:
                raise SequenceConflict(append.run_id)
            run_ids.add(append.run_id)
        receipt = batch.receipt
        if receipt and (receipt.tenant, receipt.operation, receipt.key) in self._receipts:
            raise SequenceConflict(batch.appends[0].run_id if batch.appends else "")
        self._check_revisions(batch)

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
            self._raise_inbox_revision(append.tenant)
        for message_id, sequence in append.messages:
            self._messages.setdefault((run_id, message_id), sequence)
        log, row = self._logs[run_id], self._rows.get(run_id)
        run = run_id, row.workflow_id if row else "", log.number
        for text in append.texts:
            self._index_texts(append.tenant, run, text, log.events[text.sequence])
        if append.snapshot is not None:
            cached = FoldSnapshot(append.first + len(append.events), append.snapshot)
            self._snapshots[run_id] = (append.fold_version, cached)

    def _raise_inbox_revision(self, tenant: str) -> None:
        self._inbox_revisions[tenant] = self._inbox_revisions.get(tenant, 0) + 1

    def _index_effect(self, effect: EffectRow) -> None:
        place = (effect.tenant, effect.run_id, effect.invocation_id)
        indexed = self._effects.get(place)
        if indexed is None or effect.sequence >= indexed.sequence:
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

    def _runs_of(self, tenant: str) -> set[str]:
        return {run_id for run_id, log in self._logs.items() if log.tenant == tenant}

    async def read(
        self, tenant: str, run_id: str, after: int = -1, limit: int = 1000
    ) -> list[bytes]:
        log, first = self._log(tenant, run_id), max(after + 1, 0)
        return log.events[first : first + limit] if log else []

    async def head(self, tenant: str, run_id: str) -> int | None:
        log = self._log(tenant, run_id)
        return len(log.events) if log else None

    async def snapshot(self, tenant: str, run_id: str, fold_version: int) -> FoldSnapshot | None:
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
        place = tenant, day
        effects = self._effects.values()
        return _spending(e for e in effects if (parent_tenant(e.tenant), e.day) == place)

    async def member_spending(
        self, tenant: str, member: str, first: int, last: int
    ) -> tuple[int, int]:
        place, days = (tenant, member), range(max(first, 1), last + 1)
        effects = (e for e in self._effects.values() if (e.tenant, e.member) == place)
        return _spending(effect for effect in effects if effect.day in days)

    # derived rows

    async def rebuild(self, rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> None:
        pairs = [pair async for pair in rows]
        for append, _ in pairs:
            if not self._log(append.tenant, append.run_id):
                raise RunNotFound(append.run_id)
        self._forget_derived()
        for append, effects in pairs:
            self._derive(append)
            for effect in effects:
                self._index_effect(effect)

    async def runs(self) -> list[tuple[str, str]]:
        return [(log.tenant, run_id) for run_id, log in self._logs.items()]

    # primary tables beside the log

    async def put_definition(self, definition: Definition) -> None:
        identity = _identity(definition)
        others = [stored for stored in self._definitions if _identity(stored) != identity]
        self._definitions = [*others, definition]

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None:
        newest = {stored.workflow_id: stored for stored in await self.definitions(tenant)}
        return newest.get(workflow_id)

    async def definition_by_digest(self, tenant: str, digest: str) -> Definition | None:
        by_digest = {(stored.tenant, stored.digest): stored for stored in self._definitions}
        return by_digest.get((tenant, digest))

    async def is_defined_elsewhere(self, tenant: str, workflow_id: str) -> bool:
        registered = [stored for stored in self._definitions if stored.source != IMPORTED]
        tenants = {stored.tenant for stored in registered if stored.workflow_id == workflow_id}
        return bool(tenants - {tenant})

    async def definitions(self, tenant: str) -> list[Definition]:
        own = [stored for stored in self._definitions if stored.tenant == tenant]
        newest = {stored.workflow_id: stored for stored in own if stored.source != IMPORTED}
        return [newest[workflow_id] for workflow_id in sorted(newest)]

    async def put_key(self, key: Key) -> None:
        holder = await self.key_by_hash(key.hash)
        if holder is not None and holder.id != key.id:
            raise Conflict("Another key has this secret.", keyId=holder.id)
        self._keys[key.id] = key

    async def key_by_hash(self, hash_: str) -> Key | None:
        return next((key for key in self._keys.values() if key.hash == hash_), None)

    async def keys(self, tenant: str | None) -> list[Key]:
        keys = (key for key in self._keys.values() if tenant in (None, key.tenant))
        return sorted(keys, key=lambda key: (key.created_at, key.id))

    async def revoke_key(self, tenant: str | None, key_id: str, at: int) -> bool:
        key = self._keys.get(key_id)
        if key is None or tenant not in (None, key.tenant):
            return False
        if key.revoked_at is None:
            self._keys[key_id] = replace(key, revoked_at=at)
        return True

    async def forget_receipts(self, before: int) -> int:
        old = [place for place, each in self._receipts.items() if each.created_at < before]
        for place in old:
            del self._receipts[place]
        return len(old)

    async def secret(self, name: str, fresh: bytes) -> bytes:
        return self._secrets.setdefault(name, fresh)

    # the whole store

    async def verify(self) -> list[IntegrityProblem]:
        return [*self._check_logs(), *self._check_definitions(), *self._check_memory()]

    async def verify_log(self, tenant: str, run_id: str) -> list[IntegrityProblem]:
        return [p for p in self._check_logs() if (p.tenant, p.run_id) == (tenant, run_id)]

    def _check_logs(self) -> Iterator[IntegrityProblem]:
        for run_id, log in self._logs.items():
            for sequence, body in enumerate(log.events):
                if what := check_event_place(body, run_id, sequence):
                    yield IntegrityProblem(log.tenant, run_id, sequence, what)

    def _check_definitions(self) -> Iterator[IntegrityProblem]:
        for definition in self._definitions:
            if what := check_definition_digest(definition):
                yield IntegrityProblem(definition.tenant, "", -1, what)

    def _check_memory(self) -> Iterator[IntegrityProblem]:
        for row in self._memory_rows:
            log = self._log(row.tenant, row.run_id) or InMemoryLog(row.tenant, 0)
            body = log.events[row.sequence] if 0 <= row.sequence < len(log.events) else None
            what = check_memory_event(body, row.memory_id) if row.run_id else None
            if what:
                yield IntegrityProblem(row.tenant, row.run_id, row.sequence, what)

    async def stats(self) -> dict[str, object]:
        statuses = dict(Counter(row.status for row in self._rows.values()))
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
        """Do nothing: there is nothing to release."""


def _spending(effects: Iterable[EffectRow]) -> tuple[int, int]:
    """Return the tokens and the money of all effects."""
    rows = list(effects)
    return sum(effect.tokens for effect in rows), sum(effect.money for effect in rows)


def _identity(definition: Definition) -> tuple[str, str, str]:
    return definition.tenant, definition.workflow_id, definition.digest


if TYPE_CHECKING:
    _conforms: type[Store] = MemoryStore
