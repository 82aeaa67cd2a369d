"""Runs in memory: each read in once, however many ask for it, and never twice at a time."""

import asyncio

import msgspec

from moot.core import events
from moot.core.errors import EngineVersionMismatch, RunNotFound
from moot.core.events import ENGINE_VERSION, Event
from moot.core.state.run import FOLD_VERSION, Run, apply
from moot.engine.derived_rows import inbox_rows
from moot.engine.head import Head, Heads
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Store

PAGE = 2000
#: more events than one decision causes
MOST_AT_ONCE = 1000
#: what every row of a message has somewhere
MESSAGE = b'"reducer":"message"'

_state = msgspec.json.Decoder(Run)


class _Opening:
    """A run being read in. For everybody who waits the head is held until he has come to run."""

    __slots__ = ("head", "task", "waiting")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.task: asyncio.Future[None]
        self.waiting = 0


class Runs:
    """The heads of a host. A run has at most one here; a second one would know too little."""

    def __init__(self, store: Store, flows: Flows, limit: int) -> None:
        self._store, self._flows = store, flows
        self._heads = Heads(limit)
        self._opening: dict[tuple[str, str], _Opening] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def put(self, head: Head) -> None:
        self._heads.put(head)

    def break_off(self, head: Head) -> None:
        """Tentative state is worthless now: the next command reads the log."""
        head.broken = True
        if not head.inflight:
            self._heads.drop(head)

    async def head(self, tenant: str, run_id: str) -> Head:
        """The run's one head, good to decide on until the next await."""
        while True:
            head = self._heads.get(tenant, run_id)
            if head is None:
                await self._open(tenant, run_id)
                continue
            if not head.broken:
                return head
            if head.inflight:
                await head.settled()
            else:
                self._heads.drop(head)

    def current(self, head: Head) -> Head:
        """The head that has taken the place of a broken one, if it is there yet."""
        known = self._heads.get(head.run.tenant, head.run.run_id) if head.broken else None
        return known or head

    def knows(self, child: Run) -> bool:
        """Whether the parent of an ended run is at hand and has been told of the end."""
        parent = self._heads.get(child.tenant, child.parent_run or "")
        return (
            parent is not None
            and not parent.broken
            and parent.run.children.get(child.run_id) is not None
        )

    async def view(self, tenant: str, run_id: str) -> Head:
        """The run as it is on disk. Nothing is shown that a failed commit could take back."""
        head = await self.head(tenant, run_id)
        for _ in range(16):
            if not head.inflight:
                return head
            await head.settled()
            if head.broken:
                return await self._load(tenant, run_id)
        return await self._load(tenant, run_id)

    async def whole(self, tenant: str, run_id: str) -> Head:
        """The run as it is on disk, with the messages that are not part of its state.

        Each is read from the log once, also of a run that never comes to rest.
        """
        kept = await self.head(tenant, run_id)
        if kept.run.messages:
            await self._gather(kept)
        for _ in range(16):
            head = await self.view(tenant, run_id)
            if not head.run.messages or head.messages_at >= head.run.next_sequence:
                return head
            if head is not self._heads.get(tenant, run_id):
                break  # a copy, made because the run does not come to rest
            await self._gather(head)
        else:
            head = await self._load(tenant, run_id)
        if kept.messages_at <= head.run.next_sequence and not kept.broken:
            head.messages = {name: list(said) for name, said in kept.messages.items()}
            head.messages_at = kept.messages_at
        await self._gather(head)
        return head

    async def listen(self, head: Head) -> None:
        """From now on its messages are at hand, as far as anything was decided."""
        head.listening = True
        if not head.run.messages:  # there is nothing to read
            head.messages_at = head.run.next_sequence
        while head.messages_at < head.run.next_sequence and not head.broken:
            if head.inflight:
                await head.settled()
            await self._gather(head)

    async def _gather(self, head: Head) -> None:
        """Reads on from where it was left."""
        run, until = head.run, head.run.next_sequence
        while head.messages_at < until:
            after = head.messages_at - 1
            left = min(PAGE, until - head.messages_at)  # and nothing the state knows nothing of
            rows = await self._store.read(run.tenant, run.run_id, after, left)
            if not rows:
                return
            if head.messages_at - 1 == after:  # else another reader was quicker
                for row in rows:
                    if MESSAGE in row:
                        head.hear(events.decode(row))
                head.messages_at += len(rows)

    async def at(self, tenant: str, run_id: str, sequence: int) -> Head:
        """A copy of the run as it was right after an event, for the caller to fold on."""
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
        """Every event up to where the run is."""
        run, until = head.run, head.run.next_sequence
        found: list[Event] = []
        while len(found) < until:
            left = min(PAGE, until - len(found))
            rows = await self._store.read(run.tenant, run.run_id, len(found) - 1, left)
            if not rows:
                break
            found += [events.decode(row) for row in rows]
        return found

    async def family(self, head: Head, held: list[Head]) -> dict[str, Head]:
        """Every living descendant, so that a cancel reaches them in the same batch.

        They are pinned as they come, and added to ``held`` for the caller to let go.
        """
        family: dict[str, Head] = {}
        waiting = [child for child, status in head.run.children.items() if status is None]
        while waiting:
            child = await self.head(head.run.tenant, waiting.pop())
            child.pins += 1
            held.append(child)
            family[child.run.run_id] = child
            waiting += [name for name, status in child.run.children.items() if status is None]
        return family

    async def at_rest(self, family: dict[str, Head]) -> None:
        """Until nobody's end is still on its way to disk: what is said of it must be so."""
        for _ in range(len(family) + 1):
            ending = [each for each in family.values() if each.run.terminal and each.inflight]
            if not ending:
                return
            await ending[0].settled()

    async def _open(self, tenant: str, run_id: str) -> None:
        key = (tenant, run_id)
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = _Opening()
            opening.task = asyncio.ensure_future(self._bring(key, opening))
            opening.task.add_done_callback(lambda done: done.cancelled() or done.exception())
        opening.waiting += 1
        try:
            await asyncio.shield(opening.task)
        finally:
            opening.waiting -= 1
            if opening.head is not None:
                opening.head.unpin()

    async def _bring(self, key: tuple[str, str], opening: _Opening) -> None:
        """Done means: in its place. A callback would come too late for who looks at once."""
        try:
            head = await self._load(*key)
            if self._heads.get(*key) is None:
                head.pins += opening.waiting
                opening.head = head
                self._heads.put(head)
        finally:
            del self._opening[key]

    async def _load(self, tenant: str, run_id: str) -> Head:
        """The last cached fold and the tail of the log."""
        cached = await self._store.snapshot(tenant, run_id, FOLD_VERSION)
        run = _state.decode(cached.state) if cached else Run(run_id, tenant=tenant)
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
        head.earliest = earliest or (run.updated_at + 1) * 1000 + MOST_AT_ONCE
        head.asks = inbox_rows(run)
        return head


def complete(head: Head, family: dict[str, Head]) -> bool:
    """Whether nothing was born or broken while the family was gathered."""
    return all(
        status is not None or (child in family and not family[child].broken)
        for member in [head, *family.values()]
        for child, status in member.run.children.items()
        if not member.run.terminal
    )


def refuse_newer(run: Run) -> None:
    """What a newer engine has written, this one may show but not continue."""
    if run.engine_version.isdigit() and int(run.engine_version) > ENGINE_VERSION:
        raise EngineVersionMismatch(
            "The run was written by a newer engine; update this host.",
            runId=run.run_id,
            persistedVersion=run.engine_version,
            currentVersion=str(ENGINE_VERSION),
        )
