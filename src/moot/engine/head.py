"""Tentative heads of runs: state in memory, a few milliseconds ahead of the disk."""

import asyncio
from collections import OrderedDict
from typing import Any

from msgspec import Struct

from moot.core.errors import Conflict
from moot.core.events import Event
from moot.core.payloads.nodes import ChannelWritten
from moot.core.secrets import mask_sealed, secrets_in
from moot.core.state.run import Run, apply
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import copy_json
from moot.store.protocol import InboxRow


class Head:
    """One run in memory. Commands are decided on ``run``; ``inflight`` counts commits on their
    way.

    A head whose commit failed is broken. Its state is worthless, and the run is read from the log
    again once none of its commits is in flight.
    """

    __slots__ = (
        "_settled",
        "broken",
        "cached",
        "durable",
        "earliest",
        "flow",
        "inbox_rows",
        "inflight",
        "messages",
        "messages_at",
        "mirrored_status",
        "pins",
        "run",
        "sealed",
        "snapshot_at",
        "tracks_messages",
        "unfinished",
    )

    def __init__(self, run: Run, flow: Flow, sealed: dict[str, Any] | None = None) -> None:
        self.run, self.flow = run, flow
        self.sealed: dict[str, Any] = sealed or {}
        self.inflight = 0
        #: how many events of its log are certainly on disk
        self.durable = run.next_sequence
        #: how many users rely on this being the run's only head
        self.pins = 0
        #: the graph may have more ready nodes than the last step started: its batch was full, or
        #: the step happened before this head was read from the log
        self.unfinished = run.next_sequence > 0
        self.broken = False
        #: the earliest time (µs) of the next decision, so that each event of the last one can have
        #: a time of its own
        self.earliest = 0
        self.snapshot_at = run.next_sequence
        #: the encoded snapshot of the run, and its sequence
        self.cached: tuple[int, bytes] | None = None
        #: the run's inbox rows, and the status its parent shows for it
        self.inbox_rows: list[InboxRow] = []
        self.mirrored_status = "running"
        #: the messages of its channels, read from the log up to ``messages_at``
        self.messages: dict[str, list[Any]] = {}
        self.messages_at = 0
        #: a node reads the messages, so each decided event updates them
        self.tracks_messages = False
        self._settled: asyncio.Future[None] | None = None

    @property
    def secrets(self) -> list[str]:
        """Return the texts that no report of the run may contain."""
        if self.flow.masking == "passthrough":
            return []
        return [text for text in secrets_in(self.sealed.values()) if isinstance(text, str)]

    def redacted(self, value: Any) -> Any:
        """Return a copy of the value as the log will show it."""
        return mask_sealed(copy_json(value), self.sealed, self.flow.masking)

    def follow(self, event: Event) -> None:
        """Fold one more event of the log into a copy that takes no commands."""
        apply(self.run, event)
        self.add_message(event)
        self.messages_at = event.sequence + 1

    def follow_decided(self, event: Event) -> None:
        """Add the messages of a decided event. ``RunCache`` reads the ones before it."""
        if self.messages_at == event.sequence:
            self.add_message(event)
            self.messages_at += 1

    def add_message(self, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, ChannelWritten) and event.known_hints.reducer == "message":
            self.messages.setdefault(payload.channel, []).append(payload.value)

    async def settled(self) -> None:
        """Wait until the next commit of this run is on disk or has failed."""
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._settled)

    async def on_disk(self, sequence: int) -> None:
        """Wait until a decided event is on disk. Raise Conflict when its commit failed."""
        for _ in range(self.inflight):
            if self.durable > sequence or self.broken:
                break
            await self.settled()
        self.refuse_lost(sequence)

    def refuse_lost(self, sequence: int) -> None:
        """Raise Conflict for an event that only a broken head has; another event may have its
        number now."""
        if self.broken and self.durable <= sequence:
            raise Conflict("What this goes back to was not kept.", runId=self.run.run_id)

    def unpin(self) -> None:
        self.pins -= 1

    def settle(self) -> None:
        self.inflight -= 1
        if self._settled is not None:
            self._settled.set_result(None)
            self._settled = None


class BasisEvent(Struct, frozen=True):
    """An event that a command relies on, possibly still on its way to disk."""

    head: Head
    sequence: int

    def refuse_lost(self) -> None:
        self.head.refuse_lost(self.sequence)


class HeadCache:
    """Heads in memory. The least recently used one is dropped first; busy ones stay."""

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
