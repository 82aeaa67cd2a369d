"""The tentative head of a run: its state in memory, a few milliseconds ahead of the disk."""

import asyncio
from collections import OrderedDict
from typing import Any

from msgspec import UNSET, Struct

from moot.core.errors import Conflict
from moot.core.events import Event
from moot.core.secrets import redacted, secrets_in
from moot.core.state.run import Run, apply
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import copied
from moot.store.protocol import InboxRow


class Head:
    """One run in memory. Commands are decided on ``run``; ``inflight`` commits are on their way.

    A head whose commit failed is broken: its state is worthless and is read anew from the log
    once nothing of it is in flight any more.
    """

    __slots__ = (
        "_settled",
        "asks",
        "broken",
        "cached",
        "earliest",
        "flow",
        "inflight",
        "kept",
        "listening",
        "messages",
        "messages_at",
        "pins",
        "run",
        "sealed",
        "snapshot_at",
        "told",
        "unfinished",
    )

    def __init__(self, run: Run, flow: Flow, sealed: dict[str, Any] | None = None) -> None:
        self.run, self.flow = run, flow
        self.sealed: dict[str, Any] = sealed or {}
        self.inflight = 0
        #: how many events of its log are on disk for certain
        self.kept = run.next_sequence
        #: somebody relies on this being the run's one head
        self.pins = 0
        #: the graph may have more ready than the last step says: its batch was full, or it was
        #: taken before this head was read from the log
        self.unfinished = run.next_sequence > 0
        self.broken = False
        #: the time (µs) that the next decision has at the earliest: each event of the last one has
        #: room for a time of its own
        self.earliest = 0
        self.snapshot_at = run.next_sequence
        #: the encoded snapshot of the run and the sequence it was made at
        self.cached: tuple[int, bytes] | None = None
        #: the run's rows of the inbox, and the status its parent shows for it
        self.asks: list[InboxRow] = []
        self.told = "running"
        #: the messages of its channels, read from the log up to a sequence
        self.messages: dict[str, list[Any]] = {}
        self.messages_at = 0
        #: a node reads them: they are kept up with what is decided
        self.listening = False
        self._settled: asyncio.Future[None] | None = None

    @property
    def secrets(self) -> list[str]:
        """Texts that nothing anybody says in the run may show."""
        if self.flow.masking == "passthrough":
            return []
        return [text for text in secrets_in(self.sealed.values()) if isinstance(text, str)]

    def redacted(self, value: Any) -> Any:
        """A copy of the value as the log will show it."""
        return redacted(copied(value), self.sealed, self.flow.masking)

    def follow(self, event: Event) -> None:
        """One more event of the log, for a copy that nobody decides on."""
        apply(self.run, event)
        self.hear(event)
        self.messages_at = event.sequence + 1

    def heed(self, event: Event) -> None:
        """One more event that was decided; what was missed before is for ``Runs`` to gather."""
        if self.messages_at == event.sequence:
            self.hear(event)
            self.messages_at += 1

    def hear(self, event: Event) -> None:
        hints = event.hints if event.hints is not UNSET else {}
        if event.type == "channel.written" and hints.get("reducer") == "message":
            said = event.payload
            self.messages.setdefault(said["channel"], []).append(said["value"])

    async def settled(self) -> None:
        """Until the next commit of this run is on disk, or has failed."""
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._settled)

    async def on_disk(self, sequence: int) -> None:
        """Until an event that was decided is there. Raises Conflict when it will not be."""
        for _ in range(self.inflight):
            if self.kept > sequence or self.broken:
                break
            await self.settled()
        self.refuse_lost(sequence)

    def refuse_lost(self, sequence: int) -> None:
        """An event that only a broken head knows never was; another may have its number now."""
        if self.broken and self.kept <= sequence:
            raise Conflict("What this goes back to was not kept.", runId=self.run.run_id)

    def unpin(self) -> None:
        self.pins -= 1

    def settle(self) -> None:
        self.inflight -= 1
        if self._settled is not None:
            self._settled.set_result(None)
            self._settled = None


class Ground(Struct, frozen=True):
    """The event that a command goes back to, as far as it was decided on a head. It may be on its
    way to disk yet."""

    head: Head
    sequence: int

    def refuse_lost(self) -> None:
        self.head.refuse_lost(self.sequence)


class Heads:
    """The heads in memory, least recently used first to go. What is busy stays."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heads: OrderedDict[tuple[str, str], Head] = OrderedDict()

    def get(self, tenant: str, run_id: str) -> Head | None:
        head = self._heads.get((tenant, run_id))
        if head is not None:
            self._heads.move_to_end((tenant, run_id))
        return head

    def put(self, head: Head) -> None:
        self._heads[head.run.tenant, head.run.run_id] = head
        while len(self._heads) > self._limit:
            if not self._evict(head):
                return

    def drop(self, head: Head) -> None:
        key = (head.run.tenant, head.run.run_id)
        if self._heads.get(key) is head:
            del self._heads[key]

    def __len__(self) -> int:
        return len(self._heads)

    def _evict(self, newest: Head) -> bool:
        for key, head in self._heads.items():
            if not head.inflight and not head.pins and head is not newest:
                del self._heads[key]
                return True
        return False
