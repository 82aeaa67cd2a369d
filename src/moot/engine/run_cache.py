"""Cache of runs in memory. A run has at most one head and is read once."""

import asyncio

import msgspec

from moot.core import events
from moot.core.errors import EngineVersionMismatch, RunAlreadyActive, RunNotFound
from moot.core.events import ENGINE_VERSION, Event
from moot.core.state.run import FOLD_VERSION, Run, apply
from moot.engine.derived_rows import inbox_rows
from moot.engine.head import Head, HeadCache
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Store

PAGE = 2000
#: more events than one decision can cause
MOST_EVENTS_OF_DECISION = 1000
#: bytes that every row with a message contains
MESSAGE_MARK = b'"reducer":"message"'

_run_decoder = msgspec.json.Decoder(Run)


class _RunLoading:
    """A run that is being read. Its head is pinned until every waiting caller has resumed."""

    __slots__ = ("head", "task", "waiting")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.task: asyncio.Future[None]
        self.waiting = 0


class RunCache:
    """The heads of a host. A run has at most one; a second one would miss events."""

    def __init__(self, store: Store, flows: WorkflowRegistry, limit: int) -> None:
        self._store, self._flows = store, flows
        self._heads = HeadCache(limit)
        self._opening: dict[tuple[str, str], _RunLoading] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def put(self, head: Head) -> None:
        self._heads.put(head)

    def discard(self, head: Head) -> None:
        """Mark the head as broken, so that the next command reads the log."""
        head.broken = True
        if not head.inflight:
            self._heads.drop(head)

    async def head(self, tenant: str, run_id: str) -> Head:
        """Return the run's only head. Commands may be decided on it until the next await."""
        while True:
            head = self._heads.get(tenant, run_id)
            if head is None:
                await self._load_once(tenant, run_id)
                continue
            if not head.broken:
                return head
            if head.inflight:
                await head.settled()
            else:
                self._heads.drop(head)

    def current(self, head: Head) -> Head:
        """Return the head that replaced a broken one, if it is loaded already."""
        replacement = self._heads.get(head.run.tenant, head.run.run_id) if head.broken else None
        return replacement or head

    def parent_knows_end(self, child: Run) -> bool:
        """Return whether the parent of an ended run is in memory and has recorded the end."""
        parent = self._heads.get(child.tenant, child.parent_run or "")
        if parent is None or parent.broken:
            return False
        return parent.run.children.get(child.run_id) is not None

    async def view(self, tenant: str, run_id: str) -> Head:
        """Return the run as it is on disk, without anything a failed commit could take back."""
        head = await self.head(tenant, run_id)
        for _ in range(16):
            if not head.inflight:
                return head
            await head.settled()
            if head.broken:
                return await self._load(tenant, run_id)
        return await self._load(tenant, run_id)

    async def whole(self, tenant: str, run_id: str) -> Head:
        """Return the run as it is on disk, with the messages that its state does not hold.

        Each message is read from the log once, even for a run that never comes to rest.
        """
        cached = await self.head(tenant, run_id)
        if cached.run.messages:
            await self._read_messages(cached)
        for _ in range(16):
            head = await self.view(tenant, run_id)
            if not head.run.messages or head.messages_at >= head.run.next_sequence:
                return head
            if head is not self._heads.get(tenant, run_id):
                break  # a copy, because the run does not come to rest
            await self._read_messages(head)
        else:
            head = await self._load(tenant, run_id)
        if cached.messages_at <= head.run.next_sequence and not cached.broken:
            head.messages = {name: list(messages) for name, messages in cached.messages.items()}
            head.messages_at = cached.messages_at
        await self._read_messages(head)
        return head

    async def track_messages(self, head: Head) -> None:
        """Keep the head's messages up to date with every decided event from now on."""
        head.tracks_messages = True
        if not head.run.messages:  # there is nothing to read
            head.messages_at = head.run.next_sequence
        while head.messages_at < head.run.next_sequence and not head.broken:
            if head.inflight:
                await head.settled()
            await self._read_messages(head)

    async def _read_messages(self, head: Head) -> None:
        """Read messages from where the last read stopped."""
        run, until = head.run, head.run.next_sequence
        while head.messages_at < until:
            after = head.messages_at - 1
            left = min(PAGE, until - head.messages_at)  # no events that the state has not folded
            rows = await self._store.read(run.tenant, run.run_id, after, left)
            if not rows:
                return
            if head.messages_at - 1 == after:  # else another reader was quicker
                for row in rows:
                    if MESSAGE_MARK in row:
                        head.add_message(events.decode(row))
                head.messages_at += len(rows)

    async def at(self, tenant: str, run_id: str, sequence: int) -> Head:
        """Return a copy of the run right after an event, for the caller to fold on."""
        flow = (await self.view(tenant, run_id)).flow
        head = Head(Run(run_id, tenant=tenant), flow)
        while head.run.next_sequence <= sequence:
            left = min(PAGE, sequence + 1 - head.run.next_sequence)
            rows = await self._store.read(tenant, run_id, head.run.next_sequence - 1, left)
            if not rows:
                break
            for row in rows:
                head.follow(events.decode(row))
        return head

    async def log(self, head: Head) -> list[Event]:
        run, until = head.run, head.run.next_sequence
        log_events: list[Event] = []
        while len(log_events) < until:
            left = min(PAGE, until - len(log_events))
            rows = await self._store.read(run.tenant, run.run_id, len(log_events) - 1, left)
            if not rows:
                break
            log_events += [events.decode(row) for row in rows]
        return log_events

    async def family(self, head: Head, pinned: list[Head]) -> dict[str, Head]:
        """Return every living descendant, so that a cancel reaches them in the same batch.

        Each head is pinned and appended to ``pinned``; the caller must unpin them.
        """
        family: dict[str, Head] = {}
        waiting = [child for child, status in head.run.children.items() if status is None]
        while waiting:
            child = await self.head(head.run.tenant, waiting.pop())
            child.pins += 1
            pinned.append(child)
            family[child.run.run_id] = child
            waiting += [name for name, status in child.run.children.items() if status is None]
        return family

    async def at_rest(self, family: dict[str, Head]) -> None:
        """Wait until no end of a descendant is on its way to disk."""
        for _ in range(len(family) + 1):
            ending = [each for each in family.values() if each.run.terminal and each.inflight]
            if not ending:
                return
            await ending[0].settled()

    async def _load_once(self, tenant: str, run_id: str) -> None:
        key = (tenant, run_id)
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = _RunLoading()
            opening.task = asyncio.ensure_future(self._load_into_cache(key, opening))
            opening.task.add_done_callback(lambda done: done.cancelled() or done.exception())
        opening.waiting += 1
        try:
            await asyncio.shield(opening.task)
        finally:
            opening.waiting -= 1
            if opening.head is not None:
                opening.head.unpin()

    async def _load_into_cache(self, key: tuple[str, str], opening: _RunLoading) -> None:
        """Put the loaded head into the cache before the task ends; a callback is too late."""
        try:
            head = await self._load(*key)
            if self._heads.get(*key) is None:
                head.pins += opening.waiting
                opening.head = head
                self._heads.put(head)
        finally:
            del self._opening[key]

    async def _load(self, tenant: str, run_id: str) -> Head:
        """Fold the tail of the log onto the last snapshot."""
        cached = await self._store.snapshot(tenant, run_id, FOLD_VERSION)
        run = _run_decoder.decode(cached.state) if cached else Run(run_id, tenant=tenant)
        earliest = 0
        while rows := await self._store.read(tenant, run_id, run.next_sequence - 1, PAGE):
            for row in rows:
                event = events.decode(row)
                apply(run, event)
                earliest = max(earliest, events.micros(event.timestamp)) + 1
            if len(rows) < PAGE:
                break
        if not run.next_sequence:
            raise RunNotFound(run_id)
        flow = await self._flows.by_digest(tenant, run.definition)
        sealed = {}
        if not run.terminal:
            rows_sealed = await self._store.sealed(tenant, run_id)
            sealed = {name: msgspec.json.decode(value) for name, value in rows_sealed.items()}
        head = Head(run, flow, sealed)
        head.snapshot_at = cached.next_sequence if cached else 0
        head.earliest = earliest or (run.updated_at + 1) * 1000 + MOST_EVENTS_OF_DECISION
        head.inbox_rows = inbox_rows(run)
        return head


def is_family_complete(head: Head, family: dict[str, Head]) -> bool:
    """Return whether no descendant was started or broken while the family was read."""
    return all(
        status is not None or (child in family and not family[child].broken)
        for member in [head, *family.values()]
        for child, status in member.run.children.items()
        if not member.run.terminal
    )


def refuse_newer_engine(run: Run) -> None:
    """Raise EngineVersionMismatch for a run of a newer engine, which can only be read here."""
    if run.engine_version.isdigit() and int(run.engine_version) > ENGINE_VERSION:
        raise EngineVersionMismatch(
            "The run was written by a newer engine; update this host.",
            runId=run.run_id,
            persistedVersion=run.engine_version,
            currentVersion=str(ENGINE_VERSION),
        )


class RunScopes:
    """Scopes that one run at a time may hold, known before that run is on disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[tuple[str, str], str] = {}

    async def refuse_second(self, tenant: str, scope_id: str) -> None:
        stored = await self._store.active_run(tenant, scope_id)
        active = self._held.get((tenant, scope_id)) or stored
        if active is not None:
            raise RunAlreadyActive(active)

    def hold(self, tenant: str, scope_id: str | None, run_id: str) -> None:
        if scope_id:
            self._held[tenant, scope_id] = run_id

    def release(self, tenant: str, scope_id: str | None, run_id: str) -> None:
        """Free the scope of a run that has ended or never started."""
        if scope_id and self._held.get((tenant, scope_id)) == run_id:
            del self._held[tenant, scope_id]
