"""What belongs to no run: records, ledgers and deliveries, and what a store promises of them.

All of it is primary. A batch may write it together with the logs of runs, and may be made to hold
only while records are as they were when it was decided.
"""

from typing import Protocol

from msgspec import Struct

from moot.store.tallies import TallyStore


class Record(Struct, frozen=True, kw_only=True):
    """One version of something that is kept in all of them, such as an agent."""

    tenant: str
    kind: str
    name: str
    version: str
    body: bytes
    created_at: int
    by: str = ""
    #: from here on there is none of this name
    gone: bool = False
    #: written by the store: greater than that of every version before
    revision: int = 0


class Guard(Struct, frozen=True, kw_only=True):
    """The batch holds only while this is still the record's newest version; 0: there is none."""

    tenant: str
    kind: str
    name: str
    revision: int


class Ledger(Struct, frozen=True, kw_only=True):
    """A small state that changes often and of which only the present counts.

    Written only when the one that is there has the revision before this one's (1 begins it), so
    that of two who decide on the same state one is refused. ``due_at`` is when (ms) the host must
    look at it again. ``gone`` takes it away.
    """

    tenant: str
    kind: str
    name: str
    revision: int
    body: bytes
    due_at: int | None = None
    gone: bool = False


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one try went. ``event_id`` is that of the event which says so. ``unfit``: what was to be
    handed over is at fault, and no further try could go otherwise."""

    event_id: str
    at: int
    outcome: str
    reason: str = ""
    unfit: bool = False


class Delivery(Struct, frozen=True, kw_only=True):
    """Something to be handed over once: into a run, out to a receiver, or to people as a notice.

    No subscription has two of one key. Revisions are as in a ledger; ``gone`` takes it away.
    """

    tenant: str
    subscription: str
    key: str
    delivery_id: str
    source: str
    state: str
    received_at: int
    updated_at: int
    revision: int = 1
    #: when (ms) to try, or to try again; None: nothing is owed
    due_at: int | None = None
    run_id: str | None = None
    #: the standing agent it is for
    member: str | None = None
    subject: str = ""
    reason: str = ""
    attempts: list[Attempt] = []
    #: what came in, as JSON; for an outbound one where in which log it stands
    body: bytes = b""
    gone: bool = False


class DeliveryFilter(Struct, frozen=True, kw_only=True):
    subscription: str | None = None
    sources: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    member: str | None = None
    run_id: str | None = None
    prefix: str | None = None


class Lane(Struct, frozen=True, kw_only=True):
    """What is owed to one subscription, or one receiver, stands in line there."""

    tenant: str
    subscription: str
    source: str
    #: when (ms) the first of it falls due
    due_at: int


class RecordKeeping(Protocol):
    async def put_record(self, record: Record) -> None:
        """One more version; the newest of a name counts."""

    async def record(self, tenant: str, kind: str, name: str) -> Record | None:
        """The newest; None when there never was one, or it is gone."""

    async def records(self, tenant: str, kind: str) -> list[Record]:
        """The newest of every name that is not gone, by name."""

    async def record_page(
        self, tenant: str, kind: str, after: str, limit: int
    ) -> tuple[list[Record], int]:
        """Of those, so many whose names come after this one; and how many there are in all."""

    async def record_history(self, tenant: str, kind: str, name: str) -> list[Record]:
        """Every version, the newest first."""

    async def record_tenants(self, kind: str) -> list[str]:
        """Who has ever had a record of this kind, in alphabetical order."""


class StandingStore(RecordKeeping, TallyStore, Protocol):
    """Beside these a ``Batch`` writes records, ledgers and deliveries. Raises Overtaken when a
    guard does not hold or a revision is not the next one; then nothing of the batch is written."""

    async def ledger(self, tenant: str, kind: str, name: str) -> Ledger | None: ...

    async def due_ledgers(self, kind: str, until: int, limit: int) -> list[Ledger]:
        """Of every tenant, those due at or before ``until``, the longest due first."""

    async def next_ledger(self, kind: str) -> int | None:
        """When the first of a kind falls due."""

    async def delivery(self, tenant: str, subscription: str, key: str) -> Delivery | None: ...

    async def delivery_by_id(self, tenant: str, delivery_id: str) -> Delivery | None: ...

    async def deliveries(
        self, tenant: str, where: DeliveryFilter, before: str | None, limit: int
    ) -> tuple[list[Delivery], str | None]:
        """Newest first, and the cursor of the next page. Raises BadRequest on a bad cursor."""

    async def waiting_deliveries(
        self, tenant: str, subscription: str, limit: int
    ) -> list[Delivery]:
        """Those in the state ``waiting``, oldest first."""

    async def delivery_counts(self, tenant: str, subscription: str) -> dict[str, int]:
        """How many there are in each state."""

    async def lanes(self) -> list[Lane]:
        """Of every tenant, those with something that is owed, now or later, by tenant and
        subscription."""

    async def due_deliveries(
        self, tenant: str, subscription: str, until: int, limit: int
    ) -> list[Delivery]:
        """Of one lane, those due at or before ``until``, the longest due first."""

    async def forget_deliveries(self, before: int) -> int:
        """Drops those that are owed nothing and last changed before then; says how many."""
