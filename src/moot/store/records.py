"""Records, ledgers and deliveries, which belong to no run.

All of them are primary. A batch may write them together with logs of runs. Guards make a batch
fail when a record has changed since the batch was decided.
"""

from typing import Protocol

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace


class Record(Struct, frozen=True, kw_only=True):
    """One version of a thing whose versions are all stored, such as an agent."""

    tenant: str
    kind: str
    name: str
    version: str
    body: bytes
    created_at: int
    by: str = ""
    #: this version deletes the record
    gone: bool = False
    #: set by the store; grows with every version
    revision: int = 0

    @property
    def guard(self) -> "Guard":
        """The guard that holds while this is the newest version."""
        return Guard(tenant=self.tenant, kind=self.kind, name=self.name, revision=self.revision)


def new_record(
    place: tuple[str, str, str], did: str, value: Struct, by: str, now: int, gone: bool = False
) -> Record:
    """Return a version of the thing at ``place`` (tenant, kind, name) that is JSON on disk."""
    tenant, kind, name = place
    return Record(
        tenant=tenant, kind=kind, name=name, version=did, body=encode(value), created_at=now,
        by=by, gone=gone,
    )  # fmt: skip


class Guard(Struct, frozen=True, kw_only=True):
    """The revision that a batch expects of a record; 0 means that no record exists."""

    tenant: str
    kind: str
    name: str
    revision: int


class LedgerRow(Struct, frozen=True, kw_only=True):
    """A small state that changes often; the store holds only its newest version.

    The store writes a ledger only if its revision follows the stored one (the first is 1), so one
    of two concurrent decisions is refused. ``due_at`` is the time (ms) at which the host must look
    at it again. ``gone`` deletes it.
    """

    tenant: str
    kind: str
    name: str
    revision: int
    body: bytes
    due_at: int | None = None
    gone: bool = False


class DeliveryAttempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one attempt to deliver, reported by the event ``event_id``.

    ``unfit`` means that the content is invalid, so further attempts would fail, too.
    """

    event_id: str
    at: int
    outcome: str
    reason: str = ""
    unfit: bool = False


class Delivery(Struct, frozen=True, kw_only=True):
    """An item for a run, an event for a receiver, or a notice for people; delivered once.

    A key is unique within its subscription. Revisions work as in a ledger; ``gone`` deletes it.
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
    #: the time (ms) of the next attempt; None when no attempt is due
    due_at: int | None = None
    run_id: str | None = None
    #: the standing agent that the delivery is for
    member: str | None = None
    subject: str = ""
    reason: str = ""
    attempts: list[DeliveryAttempt] = []
    #: the inbound content as JSON; for an outbound delivery, the place of its event
    body: bytes = b""
    gone: bool = False

    def next(self, **changes: object) -> "Delivery":
        """Return the next revision."""
        return replace(self, revision=self.revision + 1, **changes)

    def tried(
        self, at: int, outcome: str, reason: str = "", unfit: bool = False
    ) -> list[DeliveryAttempt]:
        """Return the attempts with one more, whose event gets the next number."""
        event_id = f"{self.delivery_id}.{len(self.attempts) + 1}"
        return [*self.attempts, DeliveryAttempt(
            event_id=event_id, at=at, outcome=outcome, reason=reason, unfit=unfit
        )]  # fmt: skip


class DeliveryFilter(Struct, frozen=True, kw_only=True):
    """The deliveries that a list contains. An empty or None field does not filter."""

    subscription: str | None = None
    sources: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    member: str | None = None
    run_id: str | None = None
    prefix: str | None = None


class Lane(Struct, frozen=True, kw_only=True):
    """The line of due deliveries of one subscription or receiver."""

    tenant: str
    subscription: str
    source: str
    #: the time (ms) at which the first delivery is due
    due_at: int


class RecordStore(Protocol):
    """Look-ups of records by tenant, kind and name."""

    async def put_record(self, record: Record) -> None:
        """Add a version, which becomes the newest of its name."""

    async def record(self, tenant: str, kind: str, name: str) -> Record | None:
        """Return the newest version; None when the record never existed or is gone."""

    async def records(self, tenant: str, kind: str) -> list[Record]:
        """Return the newest version of every record that is not gone, by name."""

    async def record_page(
        self, tenant: str, kind: str, after: str, limit: int
    ) -> tuple[list[Record], int]:
        """Return up to ``limit`` records with names after ``after``, and the total number."""

    async def record_history(self, tenant: str, kind: str, name: str) -> list[Record]:
        """Return every version, the newest first."""

    async def record_tenants(self, kind: str) -> list[str]:
        """Return all tenants that ever had a record of this kind, in alphabetical order."""


class DeliveryStore(RecordStore, Protocol):
    """Look-ups of ledgers and deliveries, with those of records.

    A ``Batch`` writes ledgers, deliveries and records. Its commit raises Overtaken and writes
    nothing when a guard does not hold or a revision is not the next one.
    """

    async def ledger(self, tenant: str, kind: str, name: str) -> LedgerRow | None: ...

    async def due_ledgers(self, kind: str, until: int, limit: int) -> list[LedgerRow]:
        """Return ledgers of every tenant due at or before ``until``, the longest due first."""

    async def next_ledger(self, kind: str) -> int | None:
        """Return the earliest due time (ms) of a kind of ledger."""

    async def delivery(self, tenant: str, subscription: str, key: str) -> Delivery | None: ...

    async def delivery_by_id(self, tenant: str, delivery_id: str) -> Delivery | None: ...

    async def deliveries(
        self, tenant: str, where: DeliveryFilter, before: str | None, limit: int
    ) -> tuple[list[Delivery], str | None]:
        """Return deliveries, newest first, and the cursor of the next page.

        Raise BadRequest on a bad cursor.
        """

    async def waiting_deliveries(
        self, tenant: str, subscription: str, limit: int
    ) -> list[Delivery]:
        """Return deliveries in the state ``waiting``, oldest first."""

    async def delivery_counts(self, tenant: str, subscription: str) -> dict[str, int]:
        """Return the number of deliveries in each state."""

    async def lanes(self) -> list[Lane]:
        """Return every tenant's lanes with a due time, by tenant and subscription."""

    async def due_deliveries(
        self, tenant: str, subscription: str, until: int, limit: int
    ) -> list[Delivery]:
        """Return one lane's deliveries due at or before ``until``, the longest due first."""

    async def forget_deliveries(self, before: int) -> int:
        """Delete deliveries without a due time that last changed before ``before`` (ms).

        Return their number.
        """
