"""The store protocol: rows, batches and the promises of every store.

A store keeps the log (primary), a few primary tables beside it, and derived rows. The host hands
derived rows over with each batch and can rebuild them from the log at any time. A store decides
nothing about a run.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from msgspec import UNSET, Struct, UnsetType

from moot.core.state.conversation import THREAD
from moot.store.memory_entries import MemoryEntryStore, MemoryRow
from moot.store.records import Delivery, DeliveryStore, Guard, LedgerRow, Record
from moot.store.search import SearchStore, TextRow

DAY_MS = 86_400_000


class RunIndexRow(Struct, frozen=True, kw_only=True):
    """A run in lists and look-ups (derived). Times are ms since the epoch."""

    tenant: str
    run_id: str
    workflow_id: str
    status: str
    created_at: int
    updated_at: int
    ended_at: int | None = None
    parent_run: str | None = None
    scope_id: str | None = None
    agent_id: str | None = None
    error_code: str | None = None
    next_sequence: int = 0
    #: the run this one was forked from, the place in its log, the mode and the reason
    fork_of: str | None = None
    fork_seq: int | None = None
    fork_mode: str | None = None
    fork_note: str | None = None
    member: str | None = None  # the standing agent that the run works for
    #: set for threads only
    title: str | None = None
    turns: int | None = None
    dead_after: int | None = None  # attempts after which the host gave the run up


class RunFilter(Struct, frozen=True, kw_only=True):
    """The runs that a list contains. An empty or None field does not filter."""

    statuses: tuple[str, ...] = ()
    workflow_id: str | None = None
    agent_id: str | None = None
    parent_run: str | None = None
    fork_of: str | None = None
    member: str | None = None
    prefix: str | None = None
    dead: bool = False
    scope_id: str | None = None
    #: a kind of record: only runs that have (``marked``) or lack such a record under their id
    mark: str | None = None
    marked: bool = True
    #: threads only, the most recently used first
    used: bool = False

    def admits(self, row: RunIndexRow) -> bool:
        """Return whether the run passes every filter except ``mark``, which needs the records."""
        return (
            (not self.statuses or row.status in self.statuses)
            and self.workflow_id in (None, row.workflow_id)
            and self.agent_id in (None, row.agent_id)
            and self.parent_run in (None, row.parent_run)
            and self.fork_of in (None, row.fork_of)
            and self.member in (None, row.member)
            and self.scope_id in (None, row.scope_id)
            and (not self.dead or row.dead_after is not None)
            and (not self.used or row.workflow_id == THREAD)
            and (self.prefix is None or row.run_id.startswith(self.prefix))
        )


class InboxRow(Struct, frozen=True, kw_only=True):
    """An interrupt that waits for a person (derived)."""

    tenant: str
    item_id: str
    run_id: str
    node_id: str
    kind: str
    question: str
    actions: list[str]
    asked_by: str
    since: int
    deadline: int | None = None


class Append(Struct, kw_only=True):
    """Events that continue one run's log, and the run's derived rows after them.

    ``work`` is the time (ms) at which the host must look at the run again: 0 is now, None is
    never, UNSET leaves the row unchanged. ``snapshot`` is a cached fold state at
    ``first + len(events)``; a store may drop it at any time.
    """

    tenant: str
    run_id: str
    first: int
    events: list[bytes]
    row: RunIndexRow | None = None
    work: int | UnsetType | None = UNSET
    snapshot: bytes | None = None
    fold_version: int = 0
    #: replaces the run's inbox rows; UNSET leaves them unchanged
    inbox: list[InboxRow] | UnsetType = UNSET
    #: turns that carry a client's message id: (id, sequence)
    messages: list[tuple[str, int]] = []
    texts: list[TextRow] = []


class Receipt(Struct, frozen=True, kw_only=True):
    """The stored answer to a request with an Idempotency-Key (primary)."""

    tenant: str
    operation: str
    key: str
    digest: str
    status: int
    headers: dict[str, str]
    body: bytes
    created_at: int


class ArtifactRow(Struct, frozen=True, kw_only=True):
    """The bytes of one artifact of a run (primary)."""

    tenant: str
    run_id: str
    artifact_id: str
    body: bytes


class EffectRow(Struct, frozen=True, kw_only=True):
    """The place in the log where an effect starts or ends (derived)."""

    tenant: str
    invocation_id: str
    run_id: str
    sequence: int
    finished: bool
    #: usage, and its day (UTC, counted from 1970); money in millionths
    day: int = 0
    tokens: int = 0
    money: int = 0
    #: the standing agent whose budget pays for the effect
    member: str | None = None


class Batch(Struct, kw_only=True):
    """Changes that are written and synced together or not at all."""

    appends: list[Append] = []
    receipt: Receipt | None = None
    artifacts: list[ArtifactRow] = []
    effects: list[EffectRow] = []
    #: (tenant, run, name, JSON value) of values kept out of the log; None deletes the value
    sealed: list[tuple[str, str, str, bytes | None]] = []
    #: runs whose sealed values are no longer needed
    unseal: list[tuple[str, str]] = []
    notes: list[MemoryRow] = []
    #: the caller will write again in a moment; a store may wait and sync both batches together
    more: bool = False
    #: records that must not have changed
    guards: list[Guard] = []
    records: list[Record] = []
    ledgers: list[LedgerRow] = []
    deliveries: list[Delivery] = []
    #: tenants whose notices changed; the store raises their inbox revision
    inboxes: list[str] = []


#: the source of a definition that was imported with a run; only that run uses it
IMPORTED = "import"


class Definition(Struct, frozen=True, kw_only=True):
    """The exact bytes of a registered workflow, found by id or by digest (primary)."""

    tenant: str
    workflow_id: str
    version: str
    digest: str
    body: bytes
    created_at: int
    source: str = "api"


class Key(Struct, frozen=True, kw_only=True):
    """An API key (primary). The store holds only the hash of its secret."""

    id: str
    hash: str
    tenant: str
    name: str
    scopes: list[str]
    speaks_as: list[str]
    created_at: int
    admin: bool = False
    test: bool = False
    revoked_at: int | None = None
    expires_at: int | None = None
    #: the only conversation this key is valid for, as ``run/node``
    thread: str | None = None


class FoldSnapshot(Struct, frozen=True):
    """A cached fold of the events before ``next_sequence``."""

    next_sequence: int
    state: bytes


class WorkRow(Struct, frozen=True):
    """The time (ms) at which the host must look at a run again (derived)."""

    tenant: str
    run_id: str
    due_at: int


class Tally(Struct, frozen=True):
    """The number of runs of a workflow by start day (UTC, since the epoch) and status."""

    workflow_id: str
    day: int
    status: str
    count: int


class IntegrityProblem(Struct, frozen=True):
    """One finding of ``verify``. ``sequence`` is -1 if it concerns the whole run."""

    tenant: str
    run_id: str
    sequence: int
    what: str


class LogStore(Protocol):
    """Reads and writes of the log and of the rows that share its commits."""

    async def commit(self, batch: Batch) -> None:
        """Write the whole batch durably, or nothing of it.

        Raise SequenceConflict when an append does not continue its run's log (a new run
        continues at 0; a run id of another tenant is a conflict, too) or when the receipt's key is
        taken. Raise Overtaken when a guarded record or a revision has changed. Other batches of
        the same group are not affected. Raise Unavailable when too many batches wait and
        StorageFailed when the disk refuses the write. Cancelling the caller does not withdraw the
        batch: the store may still write it.
        """

    async def settled(self) -> None:
        """Return when every batch that was handed over before is written or refused."""

    async def read(
        self, tenant: str, run_id: str, after: int = -1, limit: int = 1000
    ) -> list[bytes]:
        """Return a run's events after sequence ``after``, in order; [] for an unknown run."""

    async def head(self, tenant: str, run_id: str) -> int | None:
        """Return the run's next sequence; None when this tenant has no such run."""

    async def snapshot(
        self, tenant: str, run_id: str, fold_version: int
    ) -> FoldSnapshot | None: ...

    async def sealed(self, tenant: str, run_id: str) -> dict[str, bytes]: ...

    async def receipt(self, tenant: str, operation: str, key: str) -> Receipt | None: ...

    async def artifact(self, tenant: str, run_id: str, artifact_id: str) -> bytes | None: ...

    async def effect(self, tenant: str, run_id: str, invocation_id: str) -> EffectRow | None:
        """Return the newest row of this effect in this run: its start or its end."""

    async def spent(self, tenant: str, day: int) -> tuple[int, int]:
        """Return tokens and money that the tenant and its rooms used on a day."""

    async def member_spending(
        self, tenant: str, member: str, first: int, last: int
    ) -> tuple[int, int]:
        """Return tokens and money that a standing agent's runs used on days first to last."""


class IndexStore(Protocol):
    """Look-ups over derived rows, each of a limited number of rows."""

    async def find_run(self, tenant: str, run_id: str) -> RunIndexRow | None: ...

    async def list_runs(
        self, tenant: str, where: RunFilter, before: str | None, limit: int
    ) -> tuple[list[RunIndexRow], str | None]:
        """Return runs, newest or most recently used first, and the cursor of the next page.

        A run that does not change between pages is listed once. Raise BadRequest on a bad cursor.
        """

    async def active_run(self, tenant: str, scope_id: str) -> str | None:
        """Return the newest run of this scope that has not ended."""

    async def message(self, tenant: str, run_id: str, message_id: str) -> int | None:
        """Return the sequence of the turn that carries this message id."""

    async def inbox(self, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
        """Return inbox rows, the oldest first, and the inbox's revision, which only grows."""

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        """Count a standing agent's runs since ``since``, without child runs.

        Only its newest ``most`` runs are read.
        """

    async def newest_runs(self, tenant: str, member: str, most: int) -> list[RunIndexRow]:
        """Return the newest run of each workflow among the agent's newest ``most`` runs."""

    async def asked_by(self, tenant: str, member: str, most: int) -> list[tuple[int, InboxRow]]:
        """Return the agent's rows among the first ``most`` of the inbox, each with its number."""

    async def work(self, until: int, limit: int) -> list[WorkRow]:
        """Return work of every tenant due at or before ``until``, the longest due first."""

    async def next_work(self) -> int | None:
        """Return the earliest due time of all work rows."""

    async def rebuild(self, rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> None:
        """Replace every derived row by ``rows``; the ``events`` of the appends are ignored."""

    async def runs(self) -> list[tuple[str, str]]:
        """Return (tenant, run) of every log, oldest first."""


class RegistryStore(Protocol):
    """Definitions, API keys, receipts and secrets, the primary tables beside the log."""

    async def put_definition(self, definition: Definition) -> None:
        """Store a definition; it replaces older ones by id, and those stay readable by digest."""

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None: ...

    async def definition_by_digest(self, tenant: str, digest: str) -> Definition | None: ...

    async def definitions(self, tenant: str) -> list[Definition]: ...

    async def is_defined_elsewhere(self, tenant: str, workflow_id: str) -> bool:
        """Return whether another tenant has registered a workflow with this id."""

    async def put_key(self, key: Key) -> None: ...

    async def key_by_hash(self, hash_: str) -> Key | None: ...

    async def keys(self, tenant: str | None) -> list[Key]:
        """Return the keys of a tenant, or of all tenants for None."""

    async def revoke_key(self, tenant: str | None, key_id: str, at: int) -> bool: ...

    async def forget_receipts(self, before: int) -> int:
        """Delete receipts created before ``before`` (ms) and return their number."""

    async def secret(self, name: str, fresh: bytes) -> bytes:
        """Return the host's secret of this name; the first call stores ``fresh`` as the secret."""


class Store(
    LogStore,
    IndexStore,
    RegistryStore,
    DeliveryStore,
    MemoryEntryStore,
    SearchStore,
    Protocol,
):
    """Everything that a host needs from its store."""

    async def verify(self) -> list[IntegrityProblem]:
        """Recompute every hash chain and return what is wrong.

        Finds flipped bytes, missing, added and reordered rows, cut tails, and definitions whose
        bytes do not match their digest.
        """

    async def verify_log(self, tenant: str, run_id: str) -> list[IntegrityProblem]:
        """Return what is wrong with one log; [] also when this tenant has no such run."""

    async def stats(self) -> dict[str, object]: ...

    async def backup(self, target: str) -> None:
        """Write a consistent copy to ``target`` while the store is in use."""

    async def aclose(self) -> None:
        """Write every accepted batch, then release everything. Safe to call twice."""
