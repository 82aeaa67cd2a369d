"""What every store promises. No rule of the protocol is decided in a store.

A store keeps the log (primary), a few primary tables beside it, and derived rows that the host
hands over with each batch and can rebuild from the log at any time.
"""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from moot.store.effect_rows import EffectRow as EffectRow
from moot.store.records import Delivery as Delivery
from moot.store.records import Guard as Guard
from moot.store.records import Ledger as Ledger
from moot.store.records import Record as Record
from moot.store.records import StandingStore
from moot.store.run_filter import RunFilter as RunFilter
from moot.store.search import MarkStore, SearchStore, TextRow


class RunRow(Struct, frozen=True, kw_only=True):
    """Derived: what lists and look-ups need of a run. Times are ms since the epoch."""

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
    #: the run this one was made from, where in its log, how and why
    fork_of: str | None = None
    fork_seq: int | None = None
    fork_mode: str | None = None
    fork_note: str | None = None
    member: str | None = None  # the standing agent whose work it is
    #: of a thread
    title: str | None = None
    turns: int | None = None
    dead_after: int | None = None  # attempts after which it was given up


class InboxRow(Struct, frozen=True, kw_only=True):
    """Derived: something that waits for a person."""

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
    """Rows that continue one run's log, with the run's derived rows after them.

    ``work`` is the time (ms) at which the host must look at the run again: 0 is now, None is
    never, UNSET leaves the row as it is. ``snapshot`` is a cached fold state at
    ``first + len(events)``; it may be thrown away at will.
    """

    tenant: str
    run_id: str
    first: int
    events: list[bytes]
    row: RunRow | None = None
    work: int | UnsetType | None = UNSET
    snapshot: bytes | None = None
    fold_version: int = 0
    #: what of the run waits for a person, in place of what was there; UNSET leaves it
    inbox: list[InboxRow] | UnsetType = UNSET
    #: turns that came with an id of their own: (id, sequence)
    messages: list[tuple[str, int]] = []
    texts: list[TextRow] = []


class Receipt(Struct, frozen=True, kw_only=True):
    """A remembered answer to a request that carried an Idempotency-Key (primary)."""

    tenant: str
    operation: str
    key: str
    digest: str
    status: int
    headers: dict[str, str]
    body: bytes
    created_at: int


class ArtifactRow(Struct, frozen=True, kw_only=True):
    tenant: str
    run_id: str
    artifact_id: str
    body: bytes


class Note(Struct, frozen=True, kw_only=True):
    """One row of the journal of memory (primary): a version of an entry, or its end.

    Revisions grow within a tenant, in the order in which batches are committed. ``erases`` takes
    the content of every earlier version away for good; those are then ``forgotten``.
    """

    tenant: str
    revision: int
    scope: str
    memory_id: str
    #: None ends the entry
    content: str | None = None
    tags: list[str] = []
    #: where the write stands; a run without a name is nobody's: the host's own doing
    run_id: str = ""
    sequence: int = -1
    #: the runs its run comes from
    ancestors: list[str] = []
    agent_id: str | None = None
    #: the write of a node, the same in every attempt
    write_id: str | None = None
    written_at: int = 0
    #: when the entry began; a version that goes on with one keeps what that one says
    created_at: int = 0
    expires_at: int | None = None
    erases: bool = False
    forgotten: bool = False

    @property
    def root(self) -> str:
        return (self.ancestors or [self.run_id])[0]

    def lives(self, now: int) -> bool:
        return self.content is not None and (self.expires_at is None or self.expires_at > now)


def continued(note: Note, before: Note | None) -> Note:
    """The note as the next version of an entry that lives: its beginning stays, and its end is
    never put off."""
    if note.content is None or before is None or not before.lives(note.written_at):
        return note
    ends = [end for end in (note.expires_at, before.expires_at) if end is not None]
    return replace(note, created_at=before.created_at, expires_at=min(ends, default=None))


class Batch(Struct, kw_only=True):
    """All of it is written, synced, or nothing is."""

    appends: list[Append] = []
    receipt: Receipt | None = None
    artifacts: list[ArtifactRow] = []
    effects: list[EffectRow] = []
    #: (tenant, run, name, JSON value) of values that must not stand in the log; None forgets
    sealed: list[tuple[str, str, str, bytes | None]] = []
    #: runs whose sealed values are no longer needed
    unseal: list[tuple[str, str]] = []
    notes: list[Note] = []
    #: who writes this has more to write in a moment; a store may wait so long and sync both at once
    more: bool = False
    #: what must still be so, and what is written beside the logs
    guards: list[Guard] = []
    records: list[Record] = []
    ledgers: list[Ledger] = []
    deliveries: list[Delivery] = []
    inboxes: list[str] = []  #: tenants whose inbox has other notices now: its revision grows


#: source of a definition that came with a run: only that run uses it
IMPORTED = "import"


class Definition(Struct, frozen=True, kw_only=True):
    """A registered workflow: the exact bytes, found by id or by digest (primary)."""

    tenant: str
    workflow_id: str
    version: str
    digest: str
    body: bytes
    created_at: int
    source: str = "api"


class Key(Struct, frozen=True, kw_only=True):
    """An API key (primary). Only the hash of the secret is kept."""

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
    #: good for this conversation only: its run and node, with a slash between
    thread: str | None = None


class Snapshot(Struct, frozen=True):
    """A cached fold: the state after the events before ``next_sequence``."""

    next_sequence: int
    state: bytes


class WorkRow(Struct, frozen=True):
    tenant: str
    run_id: str
    due_at: int


class Problem(Struct, frozen=True, kw_only=True):
    """Something ``verify`` found. ``sequence`` is -1 where it concerns the whole run."""

    tenant: str
    run_id: str
    sequence: int
    what: str


class LogStore(Protocol):
    """The log and what is written with it."""

    async def commit(self, batch: Batch) -> None:
        """Write all of it durably, or nothing.

        Raises SequenceConflict when an append does not continue its run's log (a new run
        continues at 0; a run id that exists under another tenant is a conflict too) or when the
        receipt's key is taken, Overtaken when what it was decided on has changed; other batches of
        the same group are not harmed. Raises Unavailable when too many wait, StorageFailed when the
        disk refuses. Who is cancelled while he waits takes nothing back: it may be written later.
        """

    async def settled(self) -> None:
        """Until every batch handed over before is written or refused, whoever waits for it."""

    async def read(
        self, tenant: str, run_id: str, after: int = -1, limit: int = 1000
    ) -> list[bytes]:
        """Events of one run in order, sequence greater than ``after``; [] for an unknown run."""

    async def head(self, tenant: str, run_id: str) -> int | None:
        """The run's next sequence; None when this tenant has no such run."""

    async def snapshot(self, tenant: str, run_id: str, fold_version: int) -> Snapshot | None: ...

    async def sealed(self, tenant: str, run_id: str) -> dict[str, bytes]: ...

    async def receipt(self, tenant: str, operation: str, key: str) -> Receipt | None: ...

    async def artifact(self, tenant: str, run_id: str, artifact_id: str) -> bytes | None: ...

    async def effect(self, tenant: str, run_id: str, invocation_id: str) -> EffectRow | None:
        """The newest record of this effect in this run: that it was begun, or how it ended."""

    async def spent(self, tenant: str, day: int) -> tuple[int, int]:
        """Tokens and money that effects have used up on a day: the tenant's, and in its rooms."""

    async def spent_by(self, tenant: str, member: str, first: int, last: int) -> tuple[int, int]:
        """The same, of the runs of a standing agent, from a day to another, both counted."""


class IndexStore(Protocol):
    """Look-ups over derived rows."""

    async def find_run(self, tenant: str, run_id: str) -> RunRow | None: ...

    async def list_runs(
        self, tenant: str, where: RunFilter, before: str | None, limit: int
    ) -> tuple[list[RunRow], str | None]:
        """Newest first, or as they were used last, and the cursor of the next page: what does not
        change meanwhile comes once. Raises BadRequest on a bad cursor."""

    async def active_run(self, tenant: str, scope_id: str) -> str | None:
        """The newest run of this scope that has not ended."""

    async def message(self, tenant: str, run_id: str, message_id: str) -> int | None:
        """The sequence of the turn that came with this id of its own."""

    async def inbox(self, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
        """What waits for a person, longest first, and the inbox's revision, which only grows."""

    async def work(self, until: int, limit: int) -> list[WorkRow]:
        """Runs of every tenant the host owes something at or before ``until``, oldest first."""

    async def next_work(self) -> int | None:
        """The earliest due time of all work rows."""

    async def rebuild(self, rows: AsyncIterator[tuple[Append, list[EffectRow]]]) -> None:
        """Replace every derived row by the given ones (their ``events`` are ignored)."""

    async def runs(self) -> list[tuple[str, str]]:
        """(tenant, run) of every log, oldest first."""


class RecordStore(Protocol):
    """Primary tables beside the log."""

    async def put_definition(self, definition: Definition) -> None:
        """The newest of an id wins; older ones stay readable by digest."""

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None: ...

    async def definition_by_digest(self, tenant: str, digest: str) -> Definition | None: ...

    async def definitions(self, tenant: str) -> list[Definition]: ...

    async def defined_elsewhere(self, tenant: str, workflow_id: str) -> bool:
        """Whether a tenant other than this one has registered a workflow of this id."""

    async def put_key(self, key: Key) -> None: ...

    async def key_by_hash(self, hash_: str) -> Key | None: ...

    async def keys(self, tenant: str | None) -> list[Key]:
        """All keys of a tenant, or of every tenant."""

    async def revoke_key(self, tenant: str | None, key_id: str, at: int) -> bool: ...

    async def forget_receipts(self, before: int) -> int:
        """Drops answers that are older, and says how many."""

    async def secret(self, name: str, fresh: bytes) -> bytes:
        """The host's secret of this name; the first caller's ``fresh`` one becomes it."""


class NoteStore(Protocol):
    """The journal of memory. ``at`` is a revision: what is asked for is as it was then; None is
    now. ``now`` is the time (ms) by which entries have come to their end."""

    async def memory_revision(self, tenant: str) -> int:
        """The newest; 0 when nothing was ever written."""

    async def notes(
        self, tenant: str, scope: str, at: int | None, now: int, tag: str | None, limit: int
    ) -> list[Note]:
        """Living entries, newest first."""

    async def note(self, tenant: str, scope: str, memory_id: str, at: int | None) -> Note | None:
        """The version of an entry, also one that ends it."""

    async def late_notes(
        self, tenant: str, scope: str, after: int, roots: tuple[str, ...]
    ) -> list[Note]:
        """What runs of these families have written after a revision, oldest first."""

    async def written(self, tenant: str, write_id: str) -> Note | None:
        """The row that a node's write became."""

    async def forgotten(self, tenant: str, scope: str, at: int) -> bool:
        """Whether anything that was remembered at a revision has been erased since."""

    async def memory_ids(self, tenant: str, scope: str) -> list[str]:
        """Every entry that has anything to erase."""

    async def memory_refs(self, tenant: str, now: int, limit: int) -> list[tuple[str, int]]:
        """Scopes in alphabetical order, each with the number of its living entries."""


class Store(
    LogStore, IndexStore, RecordStore, StandingStore, NoteStore, SearchStore, MarkStore, Protocol
):
    """What a host needs of its store."""

    async def verify(self) -> list[Problem]:
        """Recompute every hash chain: flipped bytes, missing, added and reordered rows, cut tails,
        and definitions whose bytes no longer match their digest."""

    async def verify_log(self, tenant: str, run_id: str) -> list[Problem]:
        """The same for one log; [] also when this tenant has no such run."""

    async def stats(self) -> dict[str, Any]: ...

    async def backup(self, target: str) -> None:
        """A consistent copy, taken while the store is in use."""

    async def aclose(self) -> None:
        """Finish what was accepted, then release everything. Safe to call twice."""
