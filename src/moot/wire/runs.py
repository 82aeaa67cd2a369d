"""Requests and answers about runs and their events."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.wire.interrupts import OpenQuestion
from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import RequestStruct

ENDED_STATUSES = ("completed", "failed", "cancelled")

RunId = Annotated[str, Meta(min_length=1, max_length=128)]
Reason = Annotated[str, Meta(max_length=512, description="The reason, for the log.")]

Artifact = Annotated[
    Any, Meta(title="Artifact", description="The content of an artifact, any JSON value.")
]


class CreateRun(RequestStruct, frozen=True, kw_only=True):
    """A run of a workflow, or of one agent."""

    workflow_id: Annotated[str, Meta(description="The workflow to run.", examples=["hello"])] | (
        UnsetType
    ) = UNSET
    inputs: Annotated[
        JsonObject, Meta(description="The inputs of the workflow.", examples=[{"name": "Ada"}])
    ] = {}
    tenant_id: str | UnsetType = UNSET
    scope_id: (
        Annotated[str, Meta(description="A name for runs that belong together.")] | UnsetType
    ) = UNSET
    callback_url: str | UnsetType = UNSET
    configurable: Annotated[
        JsonObject, Meta(description="Options of the run; the discovery document lists the keys.")
    ] = {}
    tags: Annotated[list[str], Meta(description="Up to 100 tags.")] = []
    metadata: Annotated[JsonObject, Meta(description="Up to 8192 bytes of your own data.")] = {}
    residency: JsonObject | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    eval_suite_ref: Any = UNSET
    agent_id: (
        Annotated[str, Meta(description="The agent to ask in place of a workflow.")] | UnsetType
    ) = UNSET


class CancelRunBody(RequestStruct, frozen=True, kw_only=True):
    """The reason of a cancellation."""

    reason: Reason | None = None


class BulkCancel(RequestStruct, frozen=True, kw_only=True):
    """The runs to cancel."""

    run_ids: Annotated[list[RunId], Meta(min_length=1)]
    reason: Reason | None = None


class PauseRunBody(RequestStruct, frozen=True, kw_only=True):
    """The manner of a pause: at once, or after the current node."""

    reason: Reason | None = None
    drain_policy: Literal["immediate", "drain-current-node"] | UnsetType = UNSET


class ResumeRunBody(RequestStruct, frozen=True, kw_only=True):
    """The reason of a resume."""

    reason: Reason | None = None


class StartedRun(WireStruct, frozen=True):
    """A new run."""

    run_id: str
    status: str
    events_url: str
    status_url: str


class RunFailure(WireStruct, frozen=True):
    """The error of a failed run or of one item of a bulk operation."""

    code: str
    message: str | None = None
    details: JsonObject | None = None


class NodeView(WireStruct, frozen=True):
    """The state of one node."""

    status: str
    attempt: int
    started_at: str | None = None
    due_at: str | None = None
    outputs: Any = None
    error: JsonObject | None = None
    reason: str | None = None
    child_run_id: str | None = None


class ChildRun(WireStruct, frozen=True):
    """A child run and its status."""

    run_id: str
    status: str
    #: the host of the child, when it is another one
    peer: str | None = None


class RunOwner(WireStruct, frozen=True):
    """The tenant of a run and the key that started it."""

    tenant: str
    principal: str


class TokenCount(WireStruct, frozen=True):
    """Tokens of model calls."""

    input: int
    output: int


class ModelCost(WireStruct, frozen=True):
    """The cost of model calls in the form of the protocol."""

    tokens: TokenCount
    usd: float | None = None


class RunMetrics(WireStruct, frozen=True):
    """Counts of a run."""

    event_count: int
    node_executions: int
    openwop_cost: ModelCost | None = None
    model_calls: int | None = None
    cost: float | None = None
    currency: str | None = None


class Snapshot(WireStruct, frozen=True):
    """A run as it is now."""

    run_id: str
    workflow_id: str
    status: str
    owner: RunOwner
    started_at: str
    inputs: JsonObject
    variables: JsonObject
    node_states: dict[str, NodeView]
    engine_version: str
    event_log_schema_version: int
    metrics: RunMetrics
    completed_at: str | None = None
    outputs: Any = None
    error: RunFailure | None = None
    channels: JsonObject | None = None
    tags: list[str] = []
    metadata: JsonObject = {}
    configurable: JsonObject = {}
    scope_id: str | None = None
    parent_run_id: str | None = None
    parent_node_id: str | None = None
    paused_at: str | None = None
    #: the run pauses after the current node
    draining: bool = False
    run_orchestrator: JsonObject | None = None
    definition_version: str | None = None
    #: the agent that does the work
    agent: JsonObject | None = None
    #: runs of the whole tree, when a run of another host started it
    tree_runs: int | None = None
    #: the question that the run waits for, and its node
    interrupt: OpenQuestion | None = None
    current_node_id: str | None = None
    child_runs: list[ChildRun] | None = None

    @property
    def ended(self) -> bool:
        return self.status in ENDED_STATUSES

    @property
    def waiting(self) -> bool:
        """True if the run waits for an answer from outside."""
        return self.status.startswith("waiting-")


class ForkOrigin(WireStruct, frozen=True):
    """The run and the event that a fork continues."""

    source_run_id: str
    from_seq: int | None
    mode: str | None
    note: str | None = None


class RunTimes(WireStruct, frozen=True):
    """The times of the schedule that started a run."""

    kind: str
    words: str | None = None
    cron_expr: str | None = None
    interval_seconds: int | None = None
    at: str | None = None
    timezone: str | None = None


class RunStart(WireStruct, frozen=True):
    """The cause of a run, and its standing agent under the name it had then."""

    source: str | None
    roster_id: str | None = None
    persona: str | None = None
    item_id: str | None = None
    queue: str | None = None
    schedule_id: str | None = None
    slot: str | None = None
    times: RunTimes | None = None


class RunRow(WireStruct, frozen=True):
    """A run in a list."""

    run_id: str
    workflow_id: str
    status: str
    started_at: str
    updated_at: str
    event_count: int
    completed_at: str | None = None
    parent_run_id: str | None = None
    scope_id: str | None = None
    error_code: str | None = None
    forked_from: ForkOrigin | None = None
    #: the standing agent that the run works for
    roster_id: str | None = None
    #: attempts after which the host gave the run up
    dead_lettered_after: int | None = None
    #: on request
    begun: RunStart | None = None


class RunList(WireStruct, frozen=True):
    """One page of runs, the newest first."""

    runs: list[RunRow]
    next_cursor: str | None = None


class CancelledRun(WireStruct, frozen=True):
    """The answer to a cancellation."""

    run_id: str
    status: str
    already_terminal: bool = False


class BulkCancelResult(WireStruct, frozen=True):
    """The result for one run of a bulk cancellation."""

    run_id: str
    ok: bool
    status: str | None = None
    error: RunFailure | None = None


class BulkCancelResults(WireStruct, frozen=True):
    """The results of a bulk cancellation."""

    results: list[BulkCancelResult]


class PausedRun(WireStruct, frozen=True):
    """The answer to a pause."""

    run_id: str
    status: str
    paused_at: str
    draining: bool = False


class ResumedRun(WireStruct, frozen=True):
    """The answer to a resume."""

    run_id: str
    status: str
    resumed_at: str


class RunEventPage(WireStruct, frozen=True):
    """Events of a run, and the status of the run."""

    events: list[JsonObject]
    is_complete: bool
    run_id: str
    last_event_seq: int
    run_status: str
    is_terminal: bool


class ParentRun(WireStruct, frozen=True):
    """The run that started another one, on this or another host."""

    run_id: str
    host_id: str
    cause: str
    well_known_url: str | None = None


class RunAncestry(WireStruct, frozen=True):
    """The parent of a run."""

    run_id: str
    host_id: str
    parent: ParentRun | None


# -- the debug bundle ----------------------------------------------------------------------------


class BundleHost(WireStruct, frozen=True):
    """The program that wrote a bundle."""

    name: str
    version: str


class BundleMetrics(WireStruct, frozen=True):
    """Counts of the events in a bundle."""

    event_count: int
    node_count: int


class NodeSpan(Struct, kw_only=True, rename="camel"):
    """One attempt of a node, from its start to its end in the log."""

    name: str
    started_at: str
    ended_at: str | None
    attributes: dict[str, str | int]


class DebugBundle(WireStruct, frozen=True):
    """A run as one document for diagnosis."""

    bundle_version: str
    generated_at: str
    host: BundleHost
    run: JsonObject
    events: list[JsonObject]
    spans: list[NodeSpan]
    metrics: BundleMetrics
    redaction_applied: bool
    redaction_mode: str
    truncated: bool = False
    truncated_reason: str | None = None
