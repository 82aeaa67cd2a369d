"""Payloads of the events of runs and replays."""

from typing import Any, ClassVar

from msgspec import UNSET, Struct, UnsetType

from moot.core.payloads.base import Payload, RecordedError


class RunPrincipal(Struct, frozen=True):
    """The tenant that a run belongs to, and the principal that started it."""

    tenant: str = ""
    principal: str = ""


class RecordedLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """The limits of a run. An older log may lack some of them."""

    node_executions: int = 0
    duration_ms: int = 0
    parallel: int = 0
    depth: int = 16
    tree: int = 1000
    loop_iterations: int | UnsetType = UNSET


class InheritedWrites(Struct, frozen=True):
    """Writes of the run that this one was forked from, below the sequence of the fork."""

    run: str
    root: str
    below: int


class RecordedMemory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The memory of a run at its start: its scope, its ancestors and what it inherits."""

    scope: str | None = None
    ancestors: list[str] | None = None
    revision: int | None = None
    inherited: list[InheritedWrites] | None = None


class RecordedMember(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A standing agent that the run names, in the version resolved at its start."""

    agent_id: str
    persona: str
    manifest_id: str | None = None
    version: str | None = None
    channel: str | None = None


class RecordedEdit(Struct, frozen=True, kw_only=True):
    """The editor of a fork, and the kinds of its edits."""

    by: str | None = None
    kinds: list[str] = []


class RunFork(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The source of a fork and its place there; ``given`` counts the copied events."""

    source_run_id: str | None = None
    from_seq: int | None = None
    mode: str | None = None
    by: str | None = None
    given: int | None = None
    note: str | None = None
    edit: RecordedEdit | None = None


class PeerOrigin(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The run on another host that started a run, as the caller reports it."""

    run_id: str
    host_id: str
    well_known_url: str
    cause: str
    #: the event on that host that caused it
    event_id: str | None = None
    #: the depth in its tree of runs, and how many runs its own tree may have
    depth: int = 0
    tree: int | None = None


class RunStarted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.started"

    workflow_id: str
    definition: str
    inputs: dict[str, Any]
    variables: dict[str, Any]
    transport: str | None = None
    engine_version: str = ""
    owner: RunPrincipal | None = None
    limits: RecordedLimits | None = None
    #: a RecordedMemory; a log from elsewhere may hold another value
    memory: Any = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    configurable: dict[str, Any] | None = None
    scope_id: str | None = None
    person: str | None = None
    callback_url: str | None = None
    agent_versions: dict[str, str] | None = None
    members: dict[str, RecordedMember] | None = None
    parent_run_id: str | None = None
    parent_node_id: str | None = None
    depth: int = 0
    trace: dict[str, str] | None = None
    origin: PeerOrigin | None = None
    causation_host_id: str | None = None
    channels: dict[str, Any] | None = None
    rights: list[str] | None = None
    member: str | None = None
    trigger: dict[str, Any] | None = None
    hops: int = 0
    forked_from: RunFork | None = None


class RunInitiated(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "roster.run.initiated"

    roster_id: str
    persona: str
    agent_id: str
    workflow_id: str
    trigger_source: str
    trigger_subscription_id: str | None = None


class DeliveryAttempted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "trigger.delivery.attempted"

    subscription_id: str
    dedup_key: str
    attempt: int
    outcome: str
    run_id: str


class RunCompleted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.completed"

    outputs: dict[str, Any]
    duration_ms: int


class RunFailed(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.failed"

    error: RecordedError
    duration_ms: int
    failed_node_id: str | None = None


class RunDeadLettered(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.dead_lettered"

    run_id: str
    node_id: str
    reason: str
    attempts: int


class RunCancelled(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.cancelled"

    duration_ms: int
    reason: str | None = None
    cancelled_by: str | None = None
    parent_run_id: str | None = None


class PauseBegan(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.paused"

    drain_policy: str
    reason: str | None = None
    paused_by: str | None = None


class RunResumed(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "run.resumed"

    reason: str | None = None
    resumed_by: str | None = None


class PauseRequested(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "moot.pause.requested"

    drain_policy: str
    reason: str | None = None
    paused_by: str | None = None


class CapBreached(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "cap.breached"

    kind: str
    limit: int | float
    observed: int | float
    node_id: str | None = None
    bound: str | None = None


class ReplayDiverged(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "replay.diverged"

    source_run_id: str
    at_sequence: int
    original_event_id: str
    divergence_kind: str
    divergence_point: str | None = None


class RefusalDiverged(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "replay.divergedAtRefusal"

    source_run_id: str
    at_sequence: int
    original_event_id: str
    node_id: str
    original_envelope_kind: str
    replay_envelope_kind: str
    refusal_reason: str | None = None
